"""The memory and processes of the claude observer with eight active sessions, and when idle."""

import sys
import tempfile
from pathlib import Path

from tests.conftest import Home, wait_until
from tests.fake_api import running_api
from tests.observed import by_topic, is_alive, use
from tests.payloads import prompt, stop
from tests.real_client import bundled_client

from bench.footprint import child_pids
from bench.measure import Figure, run
from claude_mem.install.launcher import write_launcher

SESSIONS = 8
CLOSED_AFTER_SECONDS = 90.0  # an idle client is closed after a minute
MEMORY_TARGET, CHILDREN_TARGET = 600, 0


def measure() -> list[Figure]:
    if bundled_client() is None:
        print("  the real client has no wheel for this platform: not measured")
        return []
    with tempfile.TemporaryDirectory(prefix="claude-mem-bench-") as place, running_api() as api:
        home = Home(Path(place))
        home.layout.create()
        write_launcher(home.layout)
        api.otherwise = by_topic
        use(home, api, "claude")
        try:
            return _figures(home)
        finally:
            home.end_worker()


def _figures(home: Home) -> list[Figure]:
    peak, clients = 0.0, 0
    home.start_worker()
    process = Path("/proc", str(home.worker_pid()))
    for number in (1, 2, 3):
        for session in range(SESSIONS):
            names = {"session_id": f"s{session}", "prompt_id": f"s{session}-{number}"}
            home.hook(prompt(f"Work on topic-{session}x{number}", **names))
            home.hook(stop("Done.", **names))

    def done() -> bool:
        nonlocal peak, clients
        alive = [child for child in child_pids(process) if is_alive(int(child))]
        children = [Path("/proc", child) for child in alive]
        peak = max(peak, sum(map(_resident_megabytes, (process, *children))))
        clients = max(clients, len(children))
        return home.settled() and not home.rows("SELECT 1 FROM refinements")

    wait_until(done, "the revisions")
    wait_until(lambda: not child_pids(process), "the end of the idle clients", CLOSED_AFTER_SECONDS)
    rows = home.rows("SELECT count(*) AS n FROM session_summaries WHERE observer = 'claude'")
    print(f"  {rows[0]['n']} turns of {SESSIONS} sessions revised by at most {clients} clients")
    return [
        Figure("worker and clients at work, resident", peak, " MB", MEMORY_TARGET),
        Figure("worker after the idle time, resident", _resident_megabytes(process), " MB"),
        Figure("clients after the idle time", len(child_pids(process)), "", CHILDREN_TARGET),
    ]


def _resident_megabytes(process: Path) -> float:
    try:
        lines = (process / "status").read_text().splitlines()
    except OSError:
        return 0.0  # it has just ended
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


if __name__ == "__main__":
    sys.exit(run({"clients": measure}))

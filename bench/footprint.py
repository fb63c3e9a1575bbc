"""The memory and processor time of an idle worker, and the size of the package. Needs /proc."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from tests.payloads import session_start

import claude_mem
from bench.home import Home, temporary_home
from bench.material import traffic
from bench.measure import Figure, run, table
from claude_mem.server import client

MEGABYTE = 1024 * 1024
SESSIONS, TURNS = 10, 5
IDLE_SECONDS = 3.0
PORT = 47_777  # an installed worker serves one too
MEMORY_TARGET, CHILDREN_TARGET = 60, 0
PAGES = ("observations", "summaries", "prompts", "sessions")


def measure() -> list[Figure]:
    with temporary_home(PORT) as home:
        home.hook(session_start())
        process = Path("/proc", str(home.worker_pid()))
        fresh = private_megabytes(process)
        _work(home)
        before = processor_seconds(process)
        time.sleep(IDLE_SECONDS)
        idle = (processor_seconds(process) - before) / IDLE_SECONDS
        memory = private_megabytes(process)
        children = len(child_pids(process))
        figures = {
            "private memory, just started": f"{fresh:.1f} MB",
            "private memory, idle after work": f"{memory:.1f} MB",
            "the same of a bare interpreter": f"{_bare_megabytes():.1f} MB",
            "processor while idle": f"{idle:.1%}",
            "children": str(children),
            "threads": str(len(list((process / "task").iterdir()))),
            "open files": str(len(list((process / "fd").iterdir()))),
            "package on disk": f"{_package_bytes() / 1024:.0f} KB",
        }
    table(("worker", "is"), list(figures.items()))
    return [
        Figure("idle worker, private memory", memory, " MB", MEMORY_TARGET),
        Figure("idle worker to a bare interpreter", memory / _bare_megabytes()),
        Figure("idle worker, children", children, "", CHILDREN_TARGET),
    ]


def _work(home: Home) -> None:
    """Sessions through the spool, SessionStart hooks, and pages over HTTP."""
    for payload in traffic(SESSIONS, TURNS):
        home.spool(payload)
    for number in range(SESSIONS):
        home.hook(session_start(session_id=f"next-{number}"))
    home.wait_until_quiet()
    for noun in PAGES:
        client.ask_worker(home.layout, f"/api/{noun}?limit=100")


def private_megabytes(process: Path) -> float:
    lines = (process / "smaps_rollup").read_text().splitlines()
    private = ("Private_Clean:", "Private_Dirty:")
    return sum(int(line.split()[1]) for line in lines if line.startswith(private)) / 1024


def _bare_megabytes() -> float:
    command = [sys.executable, "-I", "-S", "-c", "print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as bare:
        assert bare.stdin and bare.stdout
        bare.stdout.readline()
        megabytes = private_megabytes(Path("/proc", str(bare.pid)))
        bare.stdin.write(b"\n")
    return megabytes


def processor_seconds(process: Path) -> float:
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def child_pids(process: Path) -> list[str]:
    children: list[str] = []
    for task in (process / "task").iterdir():
        with suppress(FileNotFoundError):  # a thread that has just ended
            children += (task / "children").read_text().split()
    return children


def _package_bytes() -> int:
    files = Path(claude_mem.__file__).parent.rglob("*")
    return sum(f.stat().st_size for f in files if f.is_file() and f.suffix != ".pyc")


if __name__ == "__main__":
    sys.exit(run({"footprint": measure}))

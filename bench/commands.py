"""What a command costs as the memory grows, next to an interpreter that starts; and the first
message of an MCP session.

`python -m bench.commands [--full]`: with the launcher's environment and a worker that is running,
over turns with their records, as in `bench.search`. Each round searches for other words. Elapsed
times are what the user waits for, the worker's work included; processor time is the command's
alone. `--full` adds 100,000 turns: some minutes. `bench.peers` measures a million observations.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from bench.footprint import processor_seconds
from bench.home import Home, temporary_home
from bench.mcp_server import seconds_to_first_response
from bench.measure import Figure, in_turns, median, run, table
from bench.search import questions
from bench.turns import fill_turns, shared_pool, vocabulary
from claude_mem.server import client
from claude_mem.store import Store

SIZES, FULL_SIZES = (1_000, 10_000), (1_000, 10_000, 100_000)
ROUNDS, WORKERS = 15, 3
BARE = "python -I -S -c pass"
HELP, STATUS, CONTEXT = "--help", "status", "context"
HELP_TARGET, TARGET, INITIALIZE_TARGET = 8.0, 10.0, 4.0
QUIET_SECONDS = 0.5
_INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {},
               "clientInfo": {"name": "bench", "version": "1"}},
}  # fmt: skip


class Cost(NamedTuple):
    seconds: float
    processor: float  # of the command, not of the worker


Costs = dict[str, list[Cost]]  # by command, in rounds


def measure(sizes: tuple[int, ...] = SIZES) -> list[Figure]:
    costs = {size: _costs_with(size) for size in sizes}
    rows = [
        (name, f"{size:,}", f"{1e3 * median([c.seconds for c in runs]):.1f}",
         f"{ratio(of_size, name, 'seconds'):.1f}x", f"{ratio(of_size, name, 'processor'):.1f}x")
        for size, of_size in costs.items() for name, runs in of_size.items()
    ]  # fmt: skip
    print(f"  {ROUNDS} rounds in turns; ratios of medians to {BARE}")
    table(("command", "turns", "elapsed ms", "elapsed", "processor"), rows)
    first = costs[sizes[0]]
    figures = [Figure(f"claude-mem {HELP}, processor time", ratio(first, HELP, "processor"),
                      target=HELP_TARGET)]  # fmt: skip
    for size, of_size in costs.items():
        for part in ("seconds", "processor"):
            slowest = max(
                ratio(of_size, name, part) for name in of_size if name not in (BARE, HELP)
            )
            named = "elapsed" if part == "seconds" else "processor time"
            figures.append(Figure(f"slowest command at {size:,} turns, {named}", slowest,
                                  target=TARGET))  # fmt: skip
    return [*figures, first_initialize()]


def ratio(costs: Costs, name: str, part: str) -> float:
    """Returns the ratio of the medians of a command and of an interpreter."""
    of_command, of_bare = ([getattr(c, part) for c in costs[key]] for key in (name, BARE))
    return median(of_command) / median(of_bare)


def _costs_with(turns: int) -> Costs:
    with temporary_home() as home:
        with Store.open(home.layout.database, home.layout.backups) as store:
            fill_turns(store, shared_pool(), home.project_dir, turns)
        skip_backup(home)
        return costs_in(home, ROUNDS)


def skip_backup(home: Home) -> None:
    """That of today is there: a worker makes one when it starts first on a day."""
    home.layout.backups.mkdir(mode=0o700, exist_ok=True)
    (home.layout.backups / "memory-today.db").touch()


def costs_in(home: Home, rounds: int) -> Costs:
    """Measures the commands in a home, with a worker that has loaded what a search needs."""
    client.start(home.layout, home.environment)
    words = vocabulary()
    searches = [questions(words, number) for number in range(rounds + 2)]
    for _ in range(2):
        _command(home, "search", searches[0]["a sentence"])
        _wait_until_idle(home)
    cases: dict[str, Callable[[], Cost]] = {
        BARE: partial(_timed, home, [sys.executable, "-I", "-S", "-c", "pass"]),
        **{name: partial(_command, home, name) for name in (HELP, STATUS, CONTEXT)},
    }
    for name in searches[0]:
        cases[f"search: {name}"] = _searching(home, [asked[name] for asked in searches])
    return in_turns(cases, rounds)


def _searching(home: Home, texts: list[str]) -> Callable[[], Cost]:
    """Each call searches for the next text."""
    in_order = cycle(texts)
    return lambda: _command(home, "search", *next(in_order).split())


def _command(home: Home, *arguments: str) -> Cost:
    return _timed(home, [str(Path(sys.executable).with_name("claude-mem")), *arguments])


def _timed(home: Home, command: list[str]) -> Cost:
    begun = time.perf_counter()
    pid = os.posix_spawn(
        command[0], command, home.environment,
        file_actions=[(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                      (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )  # fmt: skip
    _, status, used = os.wait4(pid, 0)
    seconds = time.perf_counter() - begun
    if status:
        raise RuntimeError(f"{command} exited with {os.waitstatus_to_exitcode(status)}")
    return Cost(seconds, used.ru_utime + used.ru_stime)


def _wait_until_idle(home: Home) -> None:
    """Waits until the worker has loaded in the background what a search has asked for."""
    worker = Path("/proc", str(home.worker_pid()))
    before = -1.0
    while (used := processor_seconds(worker)) != before:
        before = used
        time.sleep(QUIET_SECONDS)


def first_initialize() -> Figure:
    ratios = [ours / bare for ours, bare in first_initializes(WORKERS)]
    return Figure("first MCP initialize of a worker", median(ratios), target=INITIALIZE_TARGET)


def first_initializes(workers: int) -> list[tuple[float, float]]:
    """The seconds until the answer to the first that a worker gets, and to a line that a bare
    interpreter reads, the fastest of several."""
    request = json.dumps(_INITIALIZE).encode() + b"\n"
    line = "import sys; sys.stdin.buffer.readline(); sys.stdout.write('{}\\n')"
    seconds: list[tuple[float, float]] = []
    for _ in range(workers):
        with temporary_home() as home:
            client.start(home.layout, home.environment)
            launcher = [str(home.layout.mcp_launcher)]
            first = seconds_to_first_response(launcher, home, request)
            bare = [sys.executable, "-I", "-S", "-c", line]
            fastest = min(seconds_to_first_response(bare, home) for _ in range(5))
            seconds.append((first, fastest))
    return seconds


if __name__ == "__main__":
    chosen = FULL_SIZES if "--full" in sys.argv[1:] else SIZES
    sys.exit(run({"commands": partial(measure, chosen)}))

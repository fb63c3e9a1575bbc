"""What a command and the first message of an MCP session cost, next to an interpreter that starts.

`python -m bench.commands`. Times are of the processor, the command's and not the worker's, so that
a busy machine does not decide; the first MCP message is timed until its answer.
"""

import json
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

from bench.home import Home, temporary_home
from bench.mcp_server import seconds_to_first_response
from bench.measure import Figure, in_turns, median, run, table
from claude_mem.server import client

ROUNDS, WORKERS = 15, 3
BARE = "python -I -S -c pass"
TARGETS = {"--help": 8.0, "status": 10.0, "context": 10.0, "search harbour light": 10.0}
INITIALIZE_TARGET = 4.0
_INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {},
               "clientInfo": {"name": "bench", "version": "1"}},
}  # fmt: skip


def measure() -> list[Figure]:
    with temporary_home() as home:
        client.start(home.layout, home.environment)
        _command(home, "remember", "The harbour light blinks twice")
        cases = {name: partial(_command, home, *name.split()) for name in TARGETS}
        timings = in_turns({BARE: partial(_bare, home), **cases}, ROUNDS)
    medians = {name: median(seconds) for name, seconds in timings.items()}
    rows = [(name, f"{seconds * 1e3:.1f}", f"{seconds / medians[BARE]:.1f}x")
            for name, seconds in medians.items()]  # fmt: skip
    table(("command", "processor ms", "ratio"), rows)
    figures = [
        Figure(f"claude-mem {name} to {BARE}", medians[name] / medians[BARE], target=target)
        for name, target in TARGETS.items()
    ]
    return [*figures, _first_initialize()]


def _first_initialize() -> Figure:
    """The first that a worker gets; the median of several workers."""
    request = json.dumps(_INITIALIZE).encode() + b"\n"
    line = "import sys; sys.stdin.buffer.readline(); sys.stdout.write('{}\\n')"
    ratios: list[float] = []
    for _ in range(WORKERS):
        with temporary_home() as home:
            client.start(home.layout, home.environment)
            launcher = [str(home.layout.mcp_launcher)]
            first = seconds_to_first_response(launcher, home, request)
            bare = [sys.executable, "-I", "-S", "-c", line]
            ratios.append(first / min(seconds_to_first_response(bare, home) for _ in range(5)))
    return Figure("first MCP initialize of a worker", median(ratios), target=INITIALIZE_TARGET)


def _command(home: Home, *arguments: str) -> float:
    return _processor_seconds(home, [str(Path(sys.executable).with_name("claude-mem")), *arguments])


def _bare(home: Home) -> float:
    return _processor_seconds(home, [sys.executable, "-I", "-S", "-c", "pass"])


def _processor_seconds(home: Home, command: list[str]) -> float:
    before = _of_children()
    subprocess.run(command, env=home.environment, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, check=True, cwd=home.project_dir)  # fmt: skip
    return _of_children() - before


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(run({"commands": measure}))

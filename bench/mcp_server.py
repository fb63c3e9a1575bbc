"""The cost of the MCP server for a session: its start, its memory, and its tool definitions."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.footprint import private_megabytes
from bench.home import Home, temporary_home, wait_for
from bench.measure import Figure, in_turns, median, p90, run, table
from claude_mem.mcp.tool_definitions import INSTRUCTIONS, TOOLS
from claude_mem.recall.tokens import estimate_tokens
from claude_mem.server import client
from claude_mem.types import Json

ROUNDS = 60
BARE, SHIM, COMMAND = (
    "python -I -S, one line",
    "the launcher, one answer",
    "claude-mem mcp, the same",
)
START_TARGET, MEMORY_TARGET, TOKEN_TARGET = 4, 20, 900
_REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
_CALL = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
    b'"params":{"name":"get_observations","arguments":{"ids":[1]}}}\n'
)
_BARE = "import sys; sys.stdin.buffer.readline(); sys.stdout.write('{}\\n')"


def measure() -> list[Figure]:
    with temporary_home() as home:
        timings = in_turns(_cases(home), ROUNDS)
        base = median(timings[BARE])
        table(
            ("from the start to the first answer", "median ms", "median ratio", "p90 ratio"),
            [
                (name, f"{median(seconds) * 1000:.2f}", f"{median(seconds) / base:.2f}x",
                 f"{p90(seconds) / p90(timings[BARE]):.2f}x")
                for name, seconds in timings.items()
            ],
        )  # fmt: skip
        shim, bare = (
            _private_megabytes([str(home.layout.mcp_launcher)], home),
            _private_megabytes(_bare(), home),
        )
        before, after = _worker_megabytes()
    tokens = {name: _tokens(tool.definition()) for name, tool in TOOLS.items()}
    total = _tokens({"tools": [tool.definition() for tool in TOOLS.values()]})
    always = _tokens({"tools": [t.definition() for t in TOOLS.values() if not t.deferred]})
    rows = {
        "private memory of the shim": f"{shim:.1f} MB",
        "the same of a bare interpreter": f"{bare:.1f} MB",
        "worker before the first call of a tool": f"{before:.1f} MB",
        "worker after it": f"{after:.1f} MB",
        **{f"tokens of {name}": str(count) for name, count in tokens.items()},
        "tokens of the instructions": str(estimate_tokens(INSTRUCTIONS)),
        "tokens that are always loaded": str(always),
    }
    table(("MCP", "is"), list(rows.items()))
    return [
        Figure("MCP shim, start", median(timings[SHIM]) / base, target=START_TARGET),
        Figure("claude-mem mcp, start", median(timings[COMMAND]) / base),
        Figure("MCP shim, private memory", shim, " MB", MEMORY_TARGET),
        Figure("MCP tools, tokens of the list", total, "", TOKEN_TARGET),
    ]


def _cases(home: Home) -> dict[str, Callable[[], float]]:
    command = Path(sys.executable).with_name("claude-mem")
    return {
        BARE: lambda: seconds_to_first_response(_bare(), home),
        SHIM: lambda: seconds_to_first_response([str(home.layout.mcp_launcher)], home),
        COMMAND: lambda: seconds_to_first_response([str(command), "mcp"], home),
    }


def _bare() -> list[str]:
    return [sys.executable, "-I", "-S", "-c", _BARE]


class _Process:
    """A server with pipes for stdin and stdout, started with posix_spawn."""

    def __init__(self, command: list[str], home: Home) -> None:
        stdin, self._to = os.pipe()
        self._from, stdout = os.pipe()
        self.pid = os.posix_spawn(
            command[0],
            command,
            home.environment,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, stdin, 0),
                (os.POSIX_SPAWN_DUP2, stdout, 1),
                (os.POSIX_SPAWN_CLOSE, self._to),
            ],
        )
        os.close(stdin)
        os.close(stdout)

    def request(self, line: bytes = _REQUEST) -> bytes:
        os.write(self._to, line)
        return os.read(self._from, 65536)

    def end(self) -> None:
        os.close(self._to)
        os.waitpid(self.pid, 0)
        os.close(self._from)


def seconds_to_first_response(command: list[str], home: Home, line: bytes = _REQUEST) -> float:
    begun = time.perf_counter()
    server = _Process(command, home)
    answer = server.request(line)
    seconds = time.perf_counter() - begun
    server.end()
    if not answer.startswith(b"{") or b"error" in answer:
        raise RuntimeError(f"{command[0]} responded with {answer[:200]!r}")
    return seconds


def _private_megabytes(command: list[str], home: Home) -> float:
    """Private memory of a server that has responded and waits."""
    server = _Process(command, home)
    if command != _bare():
        server.request()
    else:
        process = Path("/proc", str(server.pid), "stat")
        wait_for(lambda: process.read_text().rpartition(")")[2].split()[0] == "S", "its waiting")
    megabytes = private_megabytes(Path("/proc", str(server.pid)))
    if command == _bare():
        server.request()
    server.end()
    return megabytes


def _worker_megabytes() -> tuple[float, float]:
    """Returns the memory before and after the worker has imported the SDK."""
    with temporary_home() as home:
        client.start(home.layout, home.environment)
        process = Path("/proc", str(home.worker_pid()))
        before = private_megabytes(process)
        seconds_to_first_response([str(home.layout.mcp_launcher)], home, _CALL)
        return before, private_megabytes(process)


def _tokens(value: Json) -> int:
    return estimate_tokens(json.dumps(value, separators=(",", ":"), ensure_ascii=False))


if __name__ == "__main__":
    sys.exit(run({"mcp": measure}))

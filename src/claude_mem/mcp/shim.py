"""The MCP server that an agent starts: each line on stdin is asked of the worker.

It keeps no state and the worker keeps none for it: every line is a request of its own over the
Unix socket. So a worker that was killed or replaced is started again, asked again, and the
session goes on. To ask twice is harmless: tools that change something do it once.
"""

import _socket
import posix
import time

from claude_mem import paths
from claude_mem.hook.spool import make_directories, write_all

TYPE_CHECKING = False  # typing itself would cost more than all the rest
if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 60.0  # for one answer
START_SECONDS = 10.0  # for a worker to be there; agents wait for a server thrice that
SENDS = 3  # whatever kills the worker so often is not asked again
PAUSE = 0.02
LARGEST_LINE = 32 * 1024 * 1024
# What our answers look like. What client and server agree on is said in their own messages.
PROTOCOL = b"2025-06-18"

_HEAD = (
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    b"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    b"MCP-Protocol-Version: %s\r\nClaude-Mem-Directory: %s\r\nContent-Length: %d\r\n\r\n"
)


def run() -> int:
    data_dir = paths.data_dir(posix.environ)
    directory = posix.environ.get(b"CLAUDE_PROJECT_DIR") or posix.getcwdb()
    if not data_dir:
        posix.write(2, b"claude-mem: neither CLAUDE_MEM_DATA_DIR nor HOME is set\n")
        return 1
    data_dir = data_dir if data_dir.startswith(b"/") else posix.getcwdb() + b"/" + data_dir
    try:
        for line in _lines():
            answer = _answer(data_dir, directory, line)
            if answer:
                write_all(1, answer + b"\n")
    except (BrokenPipeError, KeyboardInterrupt):
        pass  # the agent is gone, or going
    return 0


def _lines() -> "Iterator[bytes]":
    waiting = bytearray()
    while chunk := posix.read(0, 1 << 16):
        waiting += chunk
        if b"\n" not in chunk:
            if len(waiting) > LARGEST_LINE:
                return
            continue
        *lines, rest = bytes(waiting).split(b"\n")
        waiting = bytearray(rest)
        yield from (line for line in lines if line.strip())


def _answer(data_dir: bytes, directory: bytes, line: bytes) -> bytes:
    """The worker's; where there is none to be had, an error in its place."""
    request = _HEAD % (PROTOCOL, _quoted(directory), len(line)) + line
    deadline = time.monotonic() + SECONDS
    sends = 0
    while sends < SENDS and time.monotonic() < deadline:
        socket = _connected(data_dir)
        if socket is None:
            break
        sends += 1
        try:
            socket.sendall(request)
            status, body = _received(socket, deadline)
        except OSError:
            continue  # it died meanwhile
        finally:
            socket.close()
        if status == b"202" or (body.startswith(b'{"jsonrpc"') and b"\n" not in body):
            return body
        return _error(line, f"the worker answered {status!r}")
    return _error(line, "the worker does not answer: claude-mem doctor")


def _connected(data_dir: bytes) -> "_socket.socket | None":
    started = False
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            # A socket's path may be 107 bytes at most; relative to the data directory it fits.
            posix.chdir(data_dir)
            socket.connect(paths.SOCKET)
        except OSError:
            socket.close()
            if not started:
                started = True
                _start_worker(data_dir)
            time.sleep(PAUSE)
        else:
            return socket
    return None


def _start_worker(data_dir: bytes) -> None:
    """Through the launcher, which may belong to a newer installation by now."""
    make_directories(data_dir)
    launcher = data_dir + b"/" + paths.LAUNCHER
    null = posix.open(b"/dev/null", posix.O_RDWR)
    try:
        child = posix.posix_spawn(
            launcher, [launcher, b"claude", b"Wake"], posix.environ,
            file_actions=[(posix.POSIX_SPAWN_DUP2, null, standard) for standard in (0, 1, 2)],
        )  # fmt: skip
        posix.waitpid(child, 0)
    except OSError:
        from claude_mem.hook.launch import start_worker

        start_worker(data_dir)
    finally:
        posix.close(null)


def _received(socket: _socket.socket, deadline: float) -> tuple[bytes, bytes]:
    """Status and body of a whole answer; half of one is none."""
    received = bytearray()
    while True:
        socket.settimeout(max(0.01, deadline - time.monotonic()))
        chunk = socket.recv(1 << 16)
        if not chunk:
            break
        received += chunk
    head, separator, body = bytes(received).partition(b"\r\n\r\n")
    length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    if not separator or (length and int(length[0][15:]) != len(body)):
        raise ConnectionError
    return head.split(b" ", 2)[1], body


def _error(line: bytes, reason: str) -> bytes:
    import json

    try:
        message = json.loads(line)
    except ValueError:
        return b""
    if not isinstance(message, dict) or message.get("id") is None:
        return b""  # nobody waits for an answer
    error = {"code": -32603, "message": "claude-mem: " + reason}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()


def _quoted(path: bytes) -> bytes:
    """As in a URL: a header holds no line end, and only ASCII."""
    return b"".join(
        b"%c" % byte if 0x20 < byte < 0x7F and byte != 0x25 else b"%%%02X" % byte for byte in path
    )

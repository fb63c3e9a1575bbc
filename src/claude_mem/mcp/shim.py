"""The MCP server that an agent starts: forwards each line on stdin to the worker.

Neither the shim nor the worker keeps state: every line is a separate request over the Unix socket.
If the worker was killed or replaced, the shim starts it and sends the request again. Sending twice
is safe, because tools that change something are idempotent.
"""

import _socket
import posix
import time

from claude_mem import paths
from claude_mem.hook.spooling import make_directories, write_all

TYPE_CHECKING = False  # importing typing would cost more than everything else here
if TYPE_CHECKING:
    from collections.abc import Iterator

RESPONSE_SECONDS = 60.0
START_SECONDS = 10.0  # to start a worker; agents wait three times as long for a server
MAX_ATTEMPTS = 3  # a request that makes the worker crash is not sent forever
POLL_SECONDS = 0.02
LARGEST_LINE = 32 * 1024 * 1024
# The version of the HTTP transport; client and server negotiate theirs in their messages.
PROTOCOL_VERSION = b"2025-06-18"

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
            response = _forward(data_dir, directory, line)
            if response:
                write_all(1, response + b"\n")
    except (BrokenPipeError, KeyboardInterrupt):
        pass  # the agent has ended or is ending
    return 0


def _lines() -> "Iterator[bytes]":
    buffer = bytearray()
    while chunk := posix.read(0, 1 << 16):
        buffer += chunk
        if b"\n" not in chunk:
            if len(buffer) > LARGEST_LINE:
                return
            continue
        *lines, rest = bytes(buffer).split(b"\n")
        buffer = bytearray(rest)
        yield from (line for line in lines if line.strip())


def _forward(data_dir: bytes, directory: bytes, line: bytes) -> bytes:
    """The worker's response, or a JSON-RPC error if it does not respond."""
    request = _HEAD % (PROTOCOL_VERSION, _quote(directory), len(line)) + line
    deadline = time.monotonic() + RESPONSE_SECONDS
    attempts = 0
    while attempts < MAX_ATTEMPTS and time.monotonic() < deadline:
        socket = _connect(data_dir)
        if socket is None:
            break
        attempts += 1
        try:
            socket.sendall(request)
            status, body = _receive(socket, deadline)
        except OSError:
            continue  # the worker ended before it responded
        finally:
            socket.close()
        if status == b"202" or (body.startswith(b'{"jsonrpc"') and b"\n" not in body):
            return body
        return _error(line, f"the worker responded with status {status!r}")
    return _error(line, "the worker does not respond: run claude-mem doctor")


def _connect(data_dir: bytes) -> "_socket.socket | None":
    started = False
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            # A socket path is limited to 107 bytes; relative to the data directory it always fits.
            posix.chdir(data_dir)
            socket.connect(paths.SOCKET)
        except OSError:
            socket.close()
            if not started:
                started = True
                _start_worker(data_dir)
            time.sleep(POLL_SECONDS)
        else:
            return socket
    return None


def _start_worker(data_dir: bytes) -> None:
    """Starts the worker through the launcher, which a newer installation may have replaced."""
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
        from claude_mem.hook.worker_start import start_worker

        start_worker(data_dir)
    finally:
        posix.close(null)


def _receive(socket: _socket.socket, deadline: float) -> tuple[bytes, bytes]:
    """Status and body; raises ConnectionError if the response is incomplete."""
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
        return b""  # a notification gets no response
    error = {"code": -32603, "message": "claude-mem: " + reason}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()


def _quote(path: bytes) -> bytes:
    """Percent-encodes a value: a header can hold neither line ends nor non-ASCII bytes."""
    return b"".join(
        b"%c" % byte if 0x20 < byte < 0x7F and byte != 0x25 else b"%%%02X" % byte for byte in path
    )

"""Sends a request to the worker over its Unix socket and waits for the response."""

import _socket
import posix
import time

from claude_mem import paths

MAX_RESPONSE = 32 * 1024 * 1024


def ask(data_dir: bytes, route: bytes, body: bytes, seconds: float) -> bytes | None:
    """The body of a response with status 200, or None if there is none in time."""
    deadline = time.monotonic() + seconds
    # A socket path has at most 107 bytes; a path relative to the data directory always fits.
    posix.chdir(data_dir)
    socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        socket.settimeout(seconds)
        socket.connect(paths.SOCKET)
        socket.sendall(
            b"POST %s HTTP/1.1\r\nHost: claude-mem\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (route, len(body), body)
        )
        return _body(_receive(socket, deadline))
    except OSError:
        return None
    finally:
        socket.close()


def _receive(socket: _socket.socket, deadline: float) -> bytes:
    received = bytearray()
    while len(received) < MAX_RESPONSE:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        socket.settimeout(remaining)
        chunk = socket.recv(65536)
        if not chunk:
            break
        received += chunk
        if _is_complete(received):
            break  # without waiting until the worker has closed the connection
    return bytes(received)


def _is_complete(received: bytearray) -> bool:
    end = received.find(b"\r\n\r\n")
    head = bytes(received[: max(end, 0)]).lower()
    length = head.partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0]
    is_number = length.isdigit() and len(length) < 12
    return is_number and len(received) >= end + 4 + int(length)


def _body(response: bytes) -> bytes | None:
    head, separator, body = response.partition(b"\r\n\r\n")
    status = head.split(b" ", 2)[1:2]
    return body if separator and status == [b"200"] and body else None

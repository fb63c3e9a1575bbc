"""How a hook reads the worker's response."""

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from claude_mem import paths
from claude_mem.hook.response import ask

SECONDS = 30.0


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """The current one, as `ask` makes it, until the test ends."""
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


def respond(data_dir: Path, parts: list[bytes], *, close: bool) -> bytes | None:
    """What `ask` returns for these parts; the server closes the connection after them, or only
    after `ask` has returned."""
    has_returned = threading.Event()

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            for part in parts:
                connection.sendall(part)
            if not close:
                has_returned.wait(SECONDS)

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(paths.SOCKET)  # relative: its path has at most 107 bytes
        server.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        result = ask(os.fsencode(data_dir), b"/hook/prompt", b"{}", SECONDS)
        has_returned.set()
        thread.join()
    return result


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize(
    "parts",
    [
        [HEAD + b'content-length: 8\r\n\r\n{"a": 1}'],
        [HEAD + b"Content-Length: 8\r\n", b"\r\n", b'{"a": ', b"1}"],
    ],
)
def test_a_complete_response_is_not_waited_for(data_dir: Path, parts: list[bytes]) -> None:
    assert respond(data_dir, parts, close=False) == b'{"a": 1}'


@pytest.mark.parametrize(
    "length",
    [
        b"",
        b"content-length: many\r\n",
        b"content-length: -1\r\n",
        b"content-length: " + b"9" * 5_000 + b"\r\n",  # int() refuses so many digits
    ],
)
def test_without_a_length_the_response_ends_with_the_connection(
    data_dir: Path, length: bytes
) -> None:
    assert respond(data_dir, [HEAD + length + b"\r\n", b'{"a": 1}'], close=True) == b'{"a": 1}'


def test_a_failure_has_no_body(data_dir: Path) -> None:
    parts = [b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 2\r\n\r\nno"]
    assert respond(data_dir, parts, close=False) is None

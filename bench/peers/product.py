"""What both products can be asked to do, and how a process is timed."""

import http.client
import json
import os
import time
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tests.payloads import Payload

TIMEOUT = 120.0
LIMIT = 10  # rows of a search


@dataclass(frozen=True, slots=True)
class Cost:
    seconds: float
    processor: float  # of the process and its children that ended
    output: bytes = b""


@dataclass(frozen=True, slots=True)
class Address:
    port: int
    headers: dict[str, str] = field(default_factory=dict)

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)


class Product(Protocol):
    """A product in a home of its own."""

    def start(self) -> None:
        """Starts its worker and waits until it answers."""

    def stop(self) -> None: ...

    def kill(self) -> None:
        """SIGKILL for its worker."""

    def pids(self) -> list[int]:
        """The processes of its worker and what that has started."""

    def hook(self, payload: Payload) -> Cost:
        """Runs the command that the agent runs for this event."""

    @property
    def address(self) -> Address: ...

    @property
    def database(self) -> Path: ...

    @property
    def project_dir(self) -> str: ...

    def stored_tools(self) -> int:
        """Tool uses on disk, in whatever state of processing."""

    def remembered_tools(self) -> int:
        """Tool uses that a memory was made from."""

    def is_settled(self) -> bool:
        """Whether everything that it accepted has been processed."""


def run(command: list[str], stdin: bytes, environment: dict[str, str], cwd: str) -> Cost:
    """Times a process until it has exited and its output is closed, as an agent waits for it."""
    child_input, input_end = os.pipe()
    output_end, child_output = os.pipe()
    os.write(input_end, stdin)
    os.close(input_end)
    errors = os.open(os.devnull, os.O_WRONLY)
    begun = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os.chdir(cwd)
        for source, target in ((child_input, 0), (child_output, 1), (errors, 2)):
            os.dup2(source, target)
        os.closerange(3, 256)
        os.execve(command[0], command, environment)
    os.close(child_output)
    output = b"".join(iter(lambda: os.read(output_end, 65536), b""))
    _, status, used = os.wait4(pid, 0)
    seconds = time.perf_counter() - begun
    for descriptor in (child_input, output_end, errors):
        os.close(descriptor)
    if status:
        raise RuntimeError(f"{command} exited with {os.waitstatus_to_exitcode(status)}: {output!r}")
    return Cost(seconds, used.ru_utime + used.ru_stime, output)


class Session:
    """Requests over one connection, or over a new connection each."""

    def __init__(self, address: Address, keep_alive: bool = True) -> None:
        self._address, self._keep_alive = address, keep_alive
        self._connection: http.client.HTTPConnection | None = None

    def request(self, method: str, path: str, body: Any = None) -> bytes:
        """Connects again where the server has closed an idle connection."""
        try:
            return self._request(method, path, body)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self.close()
            return self._request(method, path, body)

    def _request(self, method: str, path: str, body: Any) -> bytes:
        connection = self._connection or self._address.connect()
        self._connection = connection
        data = None if body is None else json.dumps(body).encode()
        headers = {
            **self._address.headers,
            **({"content-type": "application/json"} if data else {}),
        }
        if not self._keep_alive:
            headers["connection"] = "close"
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise RuntimeError(f"{method} {path}: {response.status} {answer[:300]!r}")
        if not self._keep_alive:
            self.close()
        return answer

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def search_path(text: str, project: str | None = None) -> str:
    parameters = {"query": text, "limit": str(LIMIT)}
    if project is not None:
        parameters["project"] = project
    return f"/api/search?{urllib.parse.urlencode(parameters)}"


def context_path(project: str) -> str:
    return f"/api/context/inject?{urllib.parse.urlencode({'project': project})}"

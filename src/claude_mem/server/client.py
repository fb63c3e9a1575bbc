"""The worker, from another process: requests over its socket, starting and stopping it."""

import http.client
import json
import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from claude_mem import __version__
from claude_mem.agents import is_agent
from claude_mem.config import Layout, refusal_message, repository_of
from claude_mem.config.pausing import current_pause
from claude_mem.errors import ClaudeMemError, NewerWorker, NotRunning, WorkerError
from claude_mem.hook.spooling import wake
from claude_mem.hook.worker_start import start_worker
from claude_mem.types import Json
from claude_mem.versions import parse_version
from claude_mem.worker.disk_space import full_disk
from claude_mem.worker.lock import is_held

START_SECONDS = 20.0
STOP_SECONDS = 10.0
COMMAND_SECONDS = 120.0
_POLL = 0.02
_LONGEST_ADDRESS = 100  # of a socket; macOS allows 103 bytes, Linux 107


class _SocketConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("claude-mem", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        if len(os.fsencode(self._path)) <= _LONGEST_ADDRESS:
            self.sock.connect(str(self._path))
            return
        # A relative path is never too long, but changes the directory of all threads.
        with _working_directory(self._path.parent):
            self.sock.connect(self._path.name)


@contextmanager
def _working_directory(directory: Path) -> Iterator[None]:
    previous = os.open(".", os.O_RDONLY)
    os.chdir(directory)
    try:
        yield
    finally:
        os.fchdir(previous)
        os.close(previous)


def ask_worker(
    layout: Layout, path: str, body: Json = None, timeout: float = 10.0, method: str = "POST"
) -> Json:
    """Sends GET, or `method` if there is a body; returns the JSON of a 200 response."""
    result: Json = json.loads(_ask(layout, path, body, timeout, method))
    return result


def ask_text(layout: Layout, path: str, timeout: float) -> str:
    """Sends GET where the response is not JSON."""
    return _ask(layout, path, None, timeout, "GET").decode()


def _ask(layout: Layout, path: str, body: Json, timeout: float, method: str) -> bytes:
    connection = _SocketConnection(layout.socket, timeout)
    try:
        if body is None:
            connection.request("GET", path)
        else:
            connection.request(method, path, json.dumps(body).encode())
        response = connection.getresponse()
        data = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise NotRunning(
            f"the worker is not running ({error}): `claude-mem worker start`"
        ) from None
    finally:
        connection.close()
    if response.status != 200:
        result: Json = json.loads(data)
        reason = result.get("error") if isinstance(result, dict) else None
        raise WorkerError(str(reason or f"the worker responded with status {response.status}"))
    return data


def request(
    layout: Layout,
    environ: Mapping[str, str],
    path: str,
    body: Json = None,
    method: str = "POST",
) -> dict[str, Any]:
    """Sends the request of a command, for which it starts the worker if needed."""
    start(layout, environ)
    result = ask_worker(layout, path, body, timeout=COMMAND_SECONDS, method=method)
    return cast("dict[str, Any]", result)


def running_worker(layout: Layout) -> dict[str, Json] | None:
    """`/api/stats` of the running worker, or None if none is running."""
    if not is_held(layout):
        return None
    try:
        stats = ask_worker(layout, "/api/stats")
    except ClaudeMemError:
        return _last_state(layout)
    return stats if isinstance(stats, dict) else None


def _last_state(layout: Layout) -> dict[str, Json] | None:
    """Reads the last state of a worker that holds the lock but does not respond: starting,
    stopping, or stuck."""
    try:
        state: Json = json.loads(layout.worker_state.read_bytes())
    except (OSError, ValueError):
        return None
    return {"worker": state} if isinstance(state, dict) else None


def start(layout: Layout, environ: Mapping[str, str]) -> tuple[dict[str, Json], bool]:
    """Starts a worker unless one of this version is running; whether this call started it."""
    current = running_worker(layout)
    if current is not None:
        running = _worker_field(current, "version")
        if parse_version(running) == parse_version(__version__):
            return current, False
        refuse_newer(current)
        stop(layout)
    if repository := repository_of(layout, environ):
        raise WorkerError(refusal_message(repository))
    _start(layout, environ)
    return _wait_until_ready(layout), True


def _start(layout: Layout, environ: Mapping[str, str]) -> None:
    layout.create()
    encoded = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
    start_worker(os.fsencode(layout.root), encoded, is_own=not is_agent(environ))


def hand_over(layout: Layout, environ: Mapping[str, str]) -> bool:
    """Has a worker do what waits in the store, and starts one, as hooks do, without waiting for it.
    False if none is running and none may be started now."""
    if wake(os.fsencode(layout.root)) or is_held(layout):
        return True
    if current_pause(layout) is not None or repository_of(layout, environ):
        return False
    _start(layout, environ)
    return True


def refuse_newer(current: dict[str, Json]) -> None:
    running = _worker_field(current, "version")
    if parse_version(running) > parse_version(__version__):
        raise NewerWorker(
            f"a newer worker is running ({running}, this is {__version__}) and is not replaced. "
            "Upgrade this installation."
        )


def _wait_until_ready(layout: Layout) -> dict[str, Json]:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            stats = ask_worker(layout, "/api/stats")
        except NotRunning:
            if not is_held(layout):
                break
            time.sleep(_POLL)
        else:
            assert isinstance(stats, dict)
            return stats
    reason = full_disk(layout) or f"see {layout.worker_log}"
    raise WorkerError(f"the worker did not start; {reason}")


def stop(layout: Layout) -> bool:
    """Stops the worker and waits until its lock is free; False if none was running."""
    if not is_held(layout):
        return False
    pid = _worker_field(running_worker(layout) or _wait_until_ready(layout), "pid")
    os.kill(int(pid), signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while is_held(layout):
        if time.monotonic() > deadline:
            raise WorkerError(f"the worker (pid {pid}) did not stop; see {layout.worker_log}")
        time.sleep(_POLL)
    return True


def _worker_field(stats: dict[str, Json], name: str) -> str:
    worker = stats.get("worker")
    value = worker.get(name) if isinstance(worker, dict) else None
    return "" if value is None else str(value)

"""A temporary home directory with a worker, for one benchmark."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.payloads import Payload, as_bytes

from claude_mem.config import Layout, Settings, load_settings, record_environment
from claude_mem.errors import NotRunning
from claude_mem.hook import spooling
from claude_mem.install.launcher import write_launcher
from claude_mem.server import client
from claude_mem.types import Json
from claude_mem.worker.lock import is_held

T = TypeVar("T")

TIMEOUT = 60.0
MAX_INPUT = 60_000  # fits into a pipe that nobody reads yet


@dataclass(frozen=True, slots=True)
class FinishedProcess:
    seconds: float
    output: bytes


def spawn(command: list[str], stdin: bytes, environment: dict[str, str]) -> FinishedProcess:
    """Time a process until it has exited and its output is closed, as a client waits for it.

    Its input is written before it starts, so that only the process is timed.
    """
    assert len(stdin) <= MAX_INPUT
    child_input, input_end = os.pipe()
    output_end, child_output = os.pipe()
    os.write(input_end, stdin)
    os.close(input_end)
    actions = [
        (os.POSIX_SPAWN_DUP2, child_input, 0),
        (os.POSIX_SPAWN_DUP2, child_output, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    started = time.perf_counter()
    pid = os.posix_spawn(command[0], command, environment, file_actions=actions)
    os.close(child_output)
    output = b"".join(iter(lambda: os.read(output_end, 65536), b""))
    _, status = os.waitpid(pid, 0)
    seconds = time.perf_counter() - started
    os.close(child_input)
    os.close(output_end)
    if status:
        raise RuntimeError(f"{command} exited with {os.waitstatus_to_exitcode(status)}")
    return FinishedProcess(seconds, output)


@dataclass(frozen=True, slots=True)
class Home:
    path: Path
    port: int

    @property
    def layout(self) -> Layout:
        return Layout(self.path / ".claude-mem")

    @property
    def project_dir(self) -> str:
        return str(self.path / "harbor")

    @property
    def environment(self) -> dict[str, str]:
        """The environment of hooks and the worker that they start."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.path),
            "CLAUDE_MEM_DATA_DIR": str(self.layout.root),
            "CLAUDE_MEM_WORKER_PORT": str(self.port),
            "CLAUDE_PROJECT_DIR": self.project_dir,
        }

    @property
    def settings(self) -> Settings:
        return load_settings(self.environment)

    def hook(self, payload: Payload) -> FinishedProcess:
        """The launcher, as hooks.json runs it."""
        command = [str(self.layout.launcher), "claude", str(payload["hook_event_name"])]
        return spawn(command, as_bytes(payload), self.environment)

    def spool(self, payload: Payload) -> None:
        """Write the spool file that a hook would write."""
        event = str(payload["hook_event_name"]).encode()
        header = spooling.header(b"claude", event, time.time_ns(), os.fsencode(self.project_dir))
        spooling.put(os.fsencode(self.layout.root), header, as_bytes(payload))

    def worker_pid(self) -> int:
        """Waits for an answer: the stored pid may be that of a dead worker."""
        stats = wait_for(self._stats, "a worker that answers")
        worker = stats["worker"]
        assert isinstance(worker, dict)
        return int(str(worker["pid"]))

    def _stats(self) -> dict[str, Json] | None:
        try:
            answer = client.ask_worker(self.layout, "/api/stats")
        except NotRunning:
            return None
        return answer if isinstance(answer, dict) else None

    def wait_until_quiet(self) -> None:
        """Wait until the spool is empty and the worker has had time to go idle."""
        wait_for(lambda: not any(self.layout.spool.glob("*.event")), "an empty spool")
        time.sleep(0.02)

    def kill_worker(self) -> None:
        """Kills the worker; its FIFO, socket and state file remain, as after a crash."""
        os.kill(self.worker_pid(), signal.SIGKILL)
        wait_for(lambda: not is_held(self.layout), "the worker's death")


@contextmanager
def temporary_home(port: int = 0) -> Iterator[Home]:
    """A home with a launcher; port 0 means that the worker has no TCP port."""
    home = Home(Path(tempfile.mkdtemp(prefix="claude-mem-bench-")), port)
    try:
        Path(home.project_dir).mkdir()
        home.layout.create()
        write_launcher(home.layout)
        record_environment(home.layout, home.environment)
        yield home
    finally:
        if is_held(home.layout):
            home.worker_pid()
            client.stop(home.layout)
        shutil.rmtree(home.path)


def wait_for(condition: Callable[[], T | None], what: str, timeout: float = TIMEOUT) -> T:
    """The first true result."""
    deadline = time.monotonic() + timeout
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout:.0f} s for {what}")
        time.sleep(0.005)
    return result

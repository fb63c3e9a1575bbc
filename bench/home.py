"""A home that goes when its benchmark ends, and its worker with it."""

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

from claude_mem.config import Layout, Settings, load_settings
from claude_mem.errors import NotRunning
from claude_mem.hook import spool
from claude_mem.install.launcher import write_launcher
from claude_mem.server import client
from claude_mem.types import Json
from claude_mem.worker.lock import is_held

T = TypeVar("T")

PATIENCE = 60.0
LARGEST_INPUT = 60_000  # what a pipe takes without a reader


@dataclass(frozen=True, slots=True)
class Ended:
    seconds: float
    output: bytes


def spawn(command: list[str], given: bytes, environment: dict[str, str]) -> Ended:
    """From the start of a process until it has ended and nobody holds its output open any more.

    That is what a client waits for. Its input lies ready, so that only the process is timed.
    """
    assert len(given) <= LARGEST_INPUT
    their_input, our_end = os.pipe()
    our_output, their_output = os.pipe()
    os.write(our_end, given)
    os.close(our_end)
    actions = [
        (os.POSIX_SPAWN_DUP2, their_input, 0),
        (os.POSIX_SPAWN_DUP2, their_output, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    begun = time.perf_counter()
    pid = os.posix_spawn(command[0], command, environment, file_actions=actions)
    os.close(their_output)
    output = b"".join(iter(lambda: os.read(our_output, 65536), b""))
    _, status = os.waitpid(pid, 0)
    seconds = time.perf_counter() - begun
    os.close(their_input)
    os.close(our_output)
    if status:
        raise RuntimeError(f"{command} ended with {os.waitstatus_to_exitcode(status)}")
    return Ended(seconds, output)


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
        """All that a hook, and a worker that it starts, know of the world."""
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

    def hook(self, payload: Payload) -> Ended:
        """The launcher, as hooks.json runs it."""
        command = [str(self.layout.launcher), "claude", str(payload["hook_event_name"])]
        return spawn(command, as_bytes(payload), self.environment)

    def spool(self, payload: Payload) -> None:
        """What a hook leaves behind, without the hook."""
        event = str(payload["hook_event_name"]).encode()
        header = spool.header(b"claude", event, time.time_ns(), os.fsencode(self.project_dir))
        spool.put(os.fsencode(self.layout.root), header, as_bytes(payload))

    def worker_pid(self) -> int:
        """Waits for an answer: until then, what lies there may be a dead worker's."""
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
        """Nothing is left in the spool, and the worker had time to go to sleep."""
        wait_for(lambda: not any(self.layout.spool.glob("*.event")), "an empty spool")
        time.sleep(0.02)

    def kill_worker(self) -> None:
        """Its FIFO, socket and state stay behind, as after a crash."""
        os.kill(self.worker_pid(), signal.SIGKILL)
        wait_for(lambda: not is_held(self.layout), "the worker's death")


@contextmanager
def temporary_home(port: int = 0) -> Iterator[Home]:
    """With a launcher; on no port unless one is asked for."""
    home = Home(Path(tempfile.mkdtemp(prefix="claude-mem-bench-")), port)
    try:
        Path(home.project_dir).mkdir()
        home.layout.create()
        write_launcher(home.layout)
        yield home
    finally:
        if is_held(home.layout):
            home.worker_pid()
            client.stop(home.layout)
        shutil.rmtree(home.path)


def wait_for(happened: Callable[[], T | None], what: str) -> T:
    """The first true answer."""
    deadline = time.monotonic() + PATIENCE
    while not (answer := happened()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE:.0f} s for {what}")
        time.sleep(0.005)
    return answer

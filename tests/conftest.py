"""Fixtures that run real processes in a temporary home and end every worker after the test."""

import json
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from claude_mem.config import SCRIPTS, Layout, change_setting, record_environment
from claude_mem.install.launcher import launcher_text, mcp_launcher_text, write_launcher
from claude_mem.server import client
from claude_mem.worker.lock import WorkerLock, is_held
from tests.command_server import hook_command, run_command
from tests.empty_database import put_empty_database
from tests.fake_api import FakeApi, running_api
from tests.legacy_database import LegacyDatabase
from tests.live_files import contents_below
from tests.payloads import PROJECT_DIR, Payload, as_bytes
from tests.rows import CommittedRows
from tests.story import Story

pytest.register_assert_rewrite("tests.real_agents")
pytest_plugins = [
    "tests.network_run",  # no process of a test run may use the network
    "tests.observer_fixtures",
    "tests.real_client_fixtures",
]

settings.register_profile(
    "here", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("here")

PATIENCE = 60.0  # seconds, of a machine that runs much else


def wait_until(happened: Callable[[], Any], what: str = "it", seconds: float = PATIENCE) -> Any:
    """Poll until the result is true and return it; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (result := happened()):
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds:.0f} s"
        time.sleep(0.01)
    return result


@dataclass
class Home(CommittedRows):
    """A data directory with a launcher, and the commands and hooks that a test runs on it."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)
    # Workers are forks of a process that has imported the package (`tests/command_server.py`). With
    # this they are interpreters of their own, as on the machine of a user: for tests of the start
    # itself, or of what the kernel shows of a worker.
    starts_cold: bool = False

    @property
    def layout(self) -> Layout:
        return Layout(self.path / ".claude-mem")

    def env(self, **more: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path),
            "CLAUDE_MEM_WORKER_PORT": "0",
            "CLAUDE_PROJECT_DIR": PROJECT_DIR,
            **self.environment,
            **more,
        }

    def record_environment(self) -> None:
        """Records the environment as `claude-mem install` in the user's own shell: hooks may have a
        session's variables."""
        if self.layout.root.is_dir():
            with suppress(OSError):
                record_environment(self.layout, self.env())

    def write_launcher_for(self, data_dir: Path) -> None:
        """Writes a launcher as `claude-mem install` does with that data directory, in place of this
        home's."""
        self.layout.launcher.write_text(launcher_text(Layout(data_dir)))
        self.layout.mcp_launcher.write_text(mcp_launcher_text(Layout(data_dir)))

    def hook(
        self, payload: Payload | bytes, event: str | None = None, **environment: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the launcher as the client does."""
        if event is None:
            assert isinstance(payload, dict)
            event = payload["hook_event_name"]
        data = payload if isinstance(payload, bytes) else as_bytes(payload)
        self.record_environment()
        return subprocess.run(
            [*self._launcher(**environment), "claude", event],
            input=data,
            capture_output=True,
            env=self.env(**environment),
            timeout=60,
        )

    def _launcher(self, **environment: str) -> list[str | Path]:
        if self.starts_cold:
            return [self.layout.launcher]
        return hook_command(self.layout, self.env(**environment))

    def command(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        environ = self.env(**environment)
        return run_command(arguments, environ, seconds=60, starts_cold=self.starts_cold)

    def start_worker(self) -> None:
        """Starts a worker as a hook does: the command takes many times as long."""
        put_empty_database(self.layout.database)
        command = [*self._launcher(), "claude", "Wake"]

        def started() -> bool:
            self.record_environment()
            # Again: a worker that is just dying may have taken the first one for itself.
            subprocess.run(
                command, env=self.env(), stdin=subprocess.DEVNULL, timeout=60, check=True
            )
            deadline = time.monotonic() + 5.0
            while time.monotonic() < deadline:
                if client.running_worker(self.layout):
                    return True
                time.sleep(0.01)
            return False

        wait_until(started, "the worker's start")

    @contextmanager
    def without_worker(self) -> Iterator[None]:
        """Hooks only spool what they are told: none can start a worker meanwhile."""
        lock = WorkerLock.acquire(self.layout)
        assert lock is not None
        try:
            yield
        finally:
            lock.release()

    def worker_pid(self) -> int | None:
        state = client.running_worker(self.layout)
        worker = state.get("worker") if state else None
        return int(str(worker["pid"])) if isinstance(worker, dict) else None

    def kill_worker(self) -> None:
        pid = self.worker_pid()
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not is_held(self.layout), "the worker's death")

    def end_worker(self) -> None:
        """Ends a worker, also one that is still starting."""
        while is_held(self.layout):
            if (pid := self.worker_pid()) is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)

    def settled(self) -> bool:
        """Whether nothing waits in the spool or the queue."""
        if any(self.layout.spool.glob("*.event")):
            return False
        try:
            waiting = self.rows(
                "SELECT 1 FROM pending_messages WHERE status IN ('pending', 'processing')"
            )
        except sqlite3.OperationalError:
            return False
        return not waiting

    def wait_settled(self) -> None:
        wait_until(self.settled, "quiet")

    def files(self) -> dict[Path, bytes]:
        """Every byte under the data directory."""
        return contents_below(self.layout.root)

    def context(self, payload: Payload) -> str:
        answer = json.loads(self.hook(payload).stdout)
        return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


@contextmanager
def temporary_home(directory: Path) -> Iterator[Home]:
    home = Home(directory / "home")
    home.path.mkdir()
    home.layout.create()
    write_launcher(home.layout)
    change_setting(home.layout.settings, SCRIPTS, "yes")  # commands of a test have no terminal
    home.record_environment()
    try:
        yield home
    finally:
        home.end_worker()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with temporary_home(tmp_path) as home:
        yield home


@pytest.fixture
def installed(home: Home) -> Home:
    """A home into which `claude-mem install --scope user` has installed."""
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    # The machine that runs the tests may have a claude-mem of its own.
    home.environment["PATH"] = os.pathsep.join(
        directory
        for directory in os.environ["PATH"].split(os.pathsep)
        if not (Path(directory) / "claude-mem").exists()
    )
    assert home.command("install", "--scope", "user", "--yes").returncode == 0
    return home


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with running_api() as api:
        yield api


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    with Story(tmp_path) as story:
        yield story


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Story]:
    """A second store."""
    (tmp_path / "other").mkdir()
    with Story(tmp_path / "other") as second:
        yield second


@pytest.fixture
def legacy(tmp_path: Path) -> LegacyDatabase:
    """An empty database of the TypeScript claude-mem."""
    return LegacyDatabase(tmp_path / "claude-mem.db")


@pytest.fixture
def no_temporary_files_remain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    yield
    assert list(directory.iterdir()) == []

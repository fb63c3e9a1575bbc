"""This claude-mem, in a temporary home, with a port."""

import os
import shutil
import signal
import socket
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.payloads import Payload, as_bytes

from bench.footprint import child_pids
from bench.home import wait_for
from bench.peers.product import Address, Cost, run
from claude_mem.config import Layout
from claude_mem.errors import WorkerError
from claude_mem.install.launcher import write_launcher
from claude_mem.server import client
from claude_mem.worker.lock import is_held

# Without record and vectors it does what the npm package does: full text over the memories.
PLAIN = {"CLAUDE_MEM_EMBEDDER": "none", "CLAUDE_MEM_RECORD_DAYS": "0"}


@dataclass(frozen=True)
class Ours:
    path: Path
    port: int
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def layout(self) -> Layout:
        return Layout(self.path / ".claude-mem")

    @property
    def database(self) -> Path:
        return self.layout.database

    @property
    def project_dir(self) -> str:
        return str(self.path / "harbor")

    @property
    def address(self) -> Address:
        token = self.layout.token.read_text("utf-8").strip()
        return Address(self.port, {"authorization": f"Bearer {token}"})

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.path),
            "CLAUDE_MEM_DATA_DIR": str(self.layout.root),
            "CLAUDE_MEM_WORKER_PORT": str(self.port),
            "CLAUDE_PROJECT_DIR": self.project_dir,
            **self.settings,
        }

    def start(self) -> None:
        with suppress(WorkerError):  # a busy machine takes longer than a command waits
            client.start(self.layout, self.environment)
        wait_for(lambda: _listens(self.port), "the port")

    def skip_backup(self) -> None:
        """That of today is there: a worker makes one when it starts first on a day."""
        self.layout.backups.mkdir(mode=0o700, exist_ok=True)
        (self.layout.backups / "memory-today.db").touch()

    def stop(self) -> None:
        if is_held(self.layout):
            self._worker_pid()
            client.stop(self.layout)

    def kill(self) -> None:
        os.kill(self._worker_pid(), signal.SIGKILL)
        wait_for(lambda: not is_held(self.layout), "the worker's death")

    def pids(self) -> list[int]:
        worker = self._worker_pid()
        return [worker, *map(int, child_pids(Path("/proc", str(worker))))]

    def _worker_pid(self) -> int:
        def pid() -> int | None:
            stats = client.running_worker(self.layout)
            worker = stats["worker"] if stats else None
            return int(str(worker["pid"])) if isinstance(worker, dict) else None

        return wait_for(pid, "a worker that answers")

    def hook(self, payload: Payload) -> Cost:
        command = [str(self.layout.launcher), "claude", str(payload["hook_event_name"])]
        return run(command, as_bytes(payload), self.environment, self.project_dir)

    def stored_tools(self) -> int:
        return self._count("tool_events WHERE event = 'PostToolUse'")

    def remembered_tools(self) -> int:
        """A turn is summarised with all of its tool uses."""
        return self._count("tool_events WHERE event = 'PostToolUse'"
                           " AND turn_id IN (SELECT turn_id FROM session_summaries)")  # fmt: skip

    def _count(self, rows: str) -> int:
        with closing(sqlite3.connect(self.database)) as connection:
            return int(connection.execute(f"SELECT count(*) FROM {rows}").fetchone()[0])

    def is_settled(self) -> bool:
        if any(self.layout.spool.glob("*.event")):
            return False
        return not self._count("pending_messages WHERE status IN ('pending', 'processing')")


def python() -> list[str]:
    return [sys.executable, "-I", "-S", "-c", "pass"]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def ours(**settings: str) -> Iterator[Ours]:
    home = Ours(Path(tempfile.mkdtemp(prefix="claude-mem-bench-")), free_port(), settings)
    try:
        Path(home.project_dir).mkdir()
        home.layout.create()
        write_launcher(home.layout)
        yield home
    finally:
        home.stop()
        shutil.rmtree(home.path, ignore_errors=True)

"""The npm package, in a temporary home: its vector store and its telemetry are off."""

import json
import os
import shutil
import signal
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.payloads import Payload, as_bytes

from bench.footprint import child_pids
from bench.home import wait_for
from bench.peers.install import Installation
from bench.peers.ours import free_port
from bench.peers.product import Address, Cost, Session, run

HOOKS = {
    "SessionStart": "context",
    "UserPromptSubmit": "session-init",
    "PostToolUse": "observation",
    "Stop": "summarize",
}
ATTEMPTS, ATTEMPT_SECONDS = 8, 20.0
NOWHERE = "http://127.0.0.1:9"  # nothing listens there: its observer cannot work


@dataclass(frozen=True)
class Peer:
    path: Path
    port: int
    installation: Installation
    api: str = NOWHERE

    @property
    def data(self) -> Path:
        return self.path / ".claude-mem"

    @property
    def database(self) -> Path:
        return self.data / "claude-mem.db"

    @property
    def project_dir(self) -> str:
        return str(self.path / "harbor")

    @property
    def address(self) -> Address:
        return Address(self.port)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": self.installation.path,
            "HOME": str(self.path),
            "CLAUDE_PLUGIN_ROOT": str(self.installation.plugin),
            "DO_NOT_TRACK": "1",
            "CLAUDE_MEM_TELEMETRY": "0",
        }

    def install(self) -> None:
        """Installs the plugin where its installer puts it: its hooks look for it there."""
        marketplaces = self.path / ".claude" / "plugins" / "marketplaces"
        marketplaces.mkdir(parents=True)
        (marketplaces / "thedotmack").symlink_to(self.installation.plugin.parent)
        self.data.mkdir()
        self.use_model(self.api)

    def use_model(self, api: str) -> None:
        """Applies to the next start of its worker."""
        settings = {
            "CLAUDE_MEM_WORKER_PORT": str(self.port),
            "CLAUDE_MEM_CHROMA_ENABLED": "false",
            "CLAUDE_MEM_TELEGRAM_ENABLED": "false",
            "CLAUDE_MEM_PROVIDER": "openrouter",
            "CLAUDE_MEM_OPENROUTER_API_KEY": "none",
            "CLAUDE_MEM_OPENROUTER_BASE_URL": f"{api}/v1",
        }
        (self.data / "settings.json").write_text(json.dumps(settings))

    def start(self) -> None:
        """Starts the worker; after it was killed, the first attempts may start none."""
        for _ in range(ATTEMPTS):
            self.run_command("start")
            with suppress(TimeoutError):
                wait_for(self._pid, "a worker that answers", ATTEMPT_SECONDS)
                return
        raise TimeoutError(f"the npm package started no worker in {ATTEMPTS} attempts")

    def stop(self) -> None:
        if self._pid():
            self.run_command("stop")

    def kill(self) -> None:
        pid = wait_for(self._pid, "a worker")
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not Path("/proc", str(pid)).exists() or _is_zombie(pid), "its death")

    def pids(self) -> list[int]:
        if not self._pid():
            self.start()
        worker = wait_for(self._pid, "a worker")
        return [worker, *map(int, child_pids(Path("/proc", str(worker))))]

    def _pid(self) -> int | None:
        try:
            Session(self.address, keep_alive=False).request("GET", "/api/health")
            return int(json.loads((self.data / "worker.pid").read_bytes())["pid"])
        except (OSError, ValueError, RuntimeError):
            return None

    def run_command(self, *arguments: str) -> Cost:
        command = self.installation.command(*arguments)
        return run(command, b"", self.environment, self.project_dir)

    def hook(self, payload: Payload) -> Cost:
        name = HOOKS[str(payload["hook_event_name"])]
        command = self.installation.command("hook", "claude-code", name)
        return run(command, as_bytes(payload), self.environment, self.project_dir)

    def stored_tools(self) -> int:
        return self._count("tool_uses")

    def remembered_tools(self) -> int:
        """It makes an observation of each."""
        return self._count("observations")

    def _count(self, table: str) -> int:
        with closing(sqlite3.connect(self.database)) as connection:
            return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])

    def is_settled(self) -> bool:
        status = json.loads(Session(self.address).request("GET", "/api/processing-status"))
        return not status["isProcessing"] and not status["queueDepth"]


def _is_zombie(pid: int) -> bool:
    return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] == "Z"


@contextmanager
def peer(installation: Installation, api: str = NOWHERE) -> Iterator[Peer]:
    path = Path(tempfile.mkdtemp(prefix="claude-mem-peer-"))
    home = Peer(path, free_port(), installation, api)
    try:
        Path(home.project_dir).mkdir()
        home.install()
        yield home
    finally:
        home.stop()
        shutil.rmtree(path, ignore_errors=True)

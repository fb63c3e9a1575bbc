"""A newer version installed while sessions run: nothing lost, and never back again."""

import json
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import venv
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import claude_mem
from claude_mem.worker.lock import is_held
from tests.conftest import Home, wait_until
from tests.live_files import unpacked
from tests.payloads import Payload, prompt, session_start, stop, tool

PACKAGE = Path(str(claude_mem.__file__)).parent
NEWER = "99.1.0"
_NEW_MIGRATION = """

MIGRATIONS = (*MIGRATIONS, ("9999_of_the_newer", lambda c: c.execute("CREATE TABLE newer (x)")))
"""


@dataclass
class Installation:
    """A virtual environment with a copy of the package; the dependencies are this one's."""

    root: Path

    @classmethod
    def make(cls, root: Path) -> "Installation":
        venv.create(root, with_pip=False, symlinks=True)
        installation = cls(root)
        (installation.site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        installation.put()
        return installation

    @property
    def python(self) -> Path:
        return self.root / "bin" / "python"

    @property
    def site(self) -> Path:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.root / "lib" / version / "site-packages"

    @property
    def package(self) -> Path:
        return self.site / "claude_mem"

    def upgrade(self) -> None:
        new = self._copy()
        entry = new / "__init__.py"
        entry.write_text(entry.read_text().replace(claude_mem.__version__, NEWER))
        migrations = new / "store" / "migrations.py"
        migrations.write_text(migrations.read_text() + _NEW_MIGRATION)
        self._replace_by(new)

    def downgrade(self) -> None:
        self._replace_by(self._copy())

    def put(self) -> None:
        self._copy().rename(self.package)

    def _copy(self) -> Path:
        """Copies the package with its bytecode: compiling all of it takes a busy machine half a
        minute."""
        new = self.site / "new"
        unfinished = shutil.ignore_patterns("*.pyc.*")  # that another process is writing
        shutil.copytree(PACKAGE, new, ignore=unfinished)
        return new

    def _replace_by(self, new: Path) -> None:
        """Replaces the package as pip does: the old files go, the new ones come. In between is the
        time to delete them: the launcher tries again for two seconds, in which a busy machine does
        not copy them."""
        while new.exists():
            shutil.rmtree(self.package, ignore_errors=True)
            with suppress(OSError):  # a hook may write its cache meanwhile
                new.rename(self.package)

    def command(self, home: Home, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([self.python, "-m", "claude_mem", *arguments], text=True,
                              capture_output=True, env=home.env(), timeout=60)  # fmt: skip


@pytest.fixture
def installation(tmp_path: Path, home: Home) -> Installation:
    installation = Installation.make(tmp_path / "installation")
    home.layout.launcher.unlink()
    done = installation.command(home, "worker", "start")
    assert done.returncode == 0, done.stderr
    assert str(installation.python) in home.layout.launcher.read_text()
    return installation


def running_version(home: Home) -> Any:
    from claude_mem.server import client

    state = client.running_worker(home.layout)
    worker = state.get("worker") if state else None
    return worker.get("version") if isinstance(worker, dict) else None


def test_an_upgrade_under_running_sessions_loses_nothing(
    home: Home, installation: Installation
) -> None:
    payloads: list[Payload] = [prompt(), *(tool() for _ in range(60)), stop()]
    with ThreadPoolExecutor(2) as pool:
        before = [pool.submit(home.hook, payload) for payload in payloads[:30]]
        installation.upgrade()
        after = [pool.submit(home.hook, payload) for payload in payloads[30:]]
        for future in [*before, *after]:
            done = future.result()
            assert (done.returncode, json.loads(done.stdout)["continue"]) == (0, True)
    wait_until(lambda: running_version(home) == NEWER, "the newer worker")
    home.wait_settled()
    stored = {row["tool_use_id"] for row in home.rows("SELECT tool_use_id FROM tool_events")}
    assert stored >= {payload["tool_use_id"] for payload in payloads[1:-1]}
    assert len(home.rows("SELECT * FROM session_summaries")) == 1
    assert home.rows("SELECT count(*) AS n FROM newer") == [{"n": 0}]
    (backup,) = home.layout.backups.glob("*before-migration.db.gz")
    with closing(sqlite3.connect(unpacked(backup))) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    assert "sdk_sessions" in tables and "newer" not in tables


def test_a_downgrade_is_refused_clearly_and_the_events_wait(
    home: Home, installation: Installation
) -> None:
    installation.upgrade()
    home.hook(prompt())
    wait_until(lambda: running_version(home) == NEWER, "the newer worker")
    home.wait_settled()
    installation.command(home, "worker", "stop")
    installation.downgrade()
    refused = installation.command(home, "worker", "start")
    assert refused.returncode == 1
    assert home.hook(tool()).returncode == 0
    wait_until(lambda: "newer claude-mem" in home.layout.worker_log.read_text(), "the reason")
    assert len(list(home.layout.spool.glob("*.event"))) == 1
    shown = installation.command(home, "sessions")
    assert shown.returncode == 1 and "databases are never downgraded" in shown.stderr
    answer = json.loads(home.hook(session_start()).stdout)
    assert "newer claude-mem" in answer["systemMessage"]
    # The worker that this hook started may be in the middle of its imports when they are swapped,
    # and die of it; what is spooled waits for whoever starts the next one.
    wait_until(lambda: not is_held(home.layout), "the end of the refused worker")
    installation.upgrade()
    home.hook(stop())
    home.wait_settled()
    assert len(home.rows("SELECT * FROM tool_events WHERE event = 'PostToolUse'")) == 1


def test_an_older_installation_leaves_a_newer_ones_launcher_alone(
    home: Home, installation: Installation
) -> None:
    installation.upgrade()
    home.hook(prompt())
    wait_until(lambda: running_version(home) == NEWER, "the newer worker")
    launcher = home.layout.launcher.read_bytes()
    assert home.command("worker", "start").returncode == 1  # this one is older
    home.command("doctor", "--fix")
    assert home.layout.launcher.read_bytes() == launcher
    assert running_version(home) == NEWER

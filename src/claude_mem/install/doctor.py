"""Each thing that can be wrong: one line, and the command that mends it."""

import os
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from claude_mem import __version__
from claude_mem.config import Settings, load_usable_settings
from claude_mem.errors import ClaudeMemError, DamagedDatabase, SettingsError
from claude_mem.install import attachment, claude_settings, mcp_server, plugin
from claude_mem.install.claude import Claude, find_claude
from claude_mem.install.hooks import EVENTS
from claude_mem.install.launcher import launcher_parts, launcher_version, write_launcher
from claude_mem.install.other_installs import find_other_installs
from claude_mem.intake import spool
from claude_mem.server import client
from claude_mem.store import StoreReader
from claude_mem.store.clock import now_ms
from claude_mem.types import Json
from claude_mem.versions import parse_version
from claude_mem.worker.lock import is_held
from claude_mem.worker.observer_status import describe, format_spending, has_spent

Verdict = Literal["ok", "warning", "wrong"]
HOUR = 3_600_000
NOT_INSTALLED = "no hook of ours is installed"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    verdict: Verdict
    found: str
    mend: str = ""  # what to type
    fix: Callable[[], None] | None = None  # where it is safe to do at once


@dataclass(frozen=True, slots=True)
class Doctor:
    settings: Settings
    environ: Mapping[str, str]

    def examine(self) -> list[Check]:
        parts: list[Callable[[], Iterator[Check]]] = [
            self._settings, self._claude_code, self._launcher, self._data_directory, self._worker,
            self._database, self._backlog, self._observer, self._another,
        ]  # fmt: skip
        found: list[Check] = []
        for part in parts:
            try:
                found += part()
            except (ClaudeMemError, OSError, sqlite3.Error, subprocess.TimeoutExpired) as error:
                name = part.__name__.strip("_").replace("_", " ")
                found.append(Check(name, "wrong", str(error), "claude-mem worker logs"))
        return found

    def _settings(self) -> Iterator[Check]:
        _, wrong = load_usable_settings(self.environ)
        for complaint in wrong:
            yield Check("settings", "wrong", complaint, "claude-mem settings NAME --unset")
        if not wrong:
            yield Check("settings", "ok", "all can be used")

    # the agent

    def _claude_code(self) -> Iterator[Check]:
        claude = find_claude(self.settings, self.environ)
        if claude is None:
            mend = "install Claude Code, or claude-mem settings CLAUDE_CODE_PATH /path/to/claude"
            yield Check("Claude Code", "warning", "not found", mend)
        else:
            version = claude.version()
            verdict: Verdict = "ok" if version else "wrong"
            mend = "" if version else "claude-mem settings CLAUDE_CODE_PATH /path/to/claude"
            text = f"{claude.path} {version or 'cannot be run'}"
            yield Check("Claude Code", verdict, text, mend)
            claude = claude if version else None
        has_plugin = claude is not None and plugin.is_enabled(claude)
        hooks = self._hooks(has_plugin)
        if hooks.found == NOT_INSTALLED and attachment.has_plugin(claude):
            enable = f"claude plugin enable {plugin.NAME}@{plugin.MARKETPLACE}"
            hooks = Check("hooks", "wrong", "the plugin is disabled in Claude Code", enable)
        yield hooks
        if claude is not None and hooks.verdict != "wrong":
            yield self._tools(claude, has_plugin)

    def _hooks(self, has_plugin: bool) -> Check:
        ways = ["the plugin"] if has_plugin else []
        launcher = self.settings.layout.launcher
        for path in attachment.settings_files(self.environ):
            try:
                events = claude_settings.has_hooks(path, launcher)
            except SettingsError as error:
                return Check("hooks", "wrong", str(error), f"look into {path}")
            missing = [event.name for event in EVENTS if event.name not in events]
            if events and missing:
                text = f"{path} lacks {', '.join(missing)}"
                return Check("hooks", "wrong", text, "claude-mem install --scope user")
            if events:
                ways.append(f"{len(events)} hooks in {path}")
        if len(ways) > 1:
            text = f"{' and '.join(ways)}: each event is told twice (and kept once)"
            return Check("hooks", "warning", text, "claude-mem install")
        if ways:
            return Check("hooks", "ok", " and ".join(ways))
        return Check("hooks", "wrong", NOT_INSTALLED, "claude-mem install")

    def _tools(self, claude: Claude, has_plugin: bool) -> Check:
        server = f"added as {mcp_server.NAME}"
        places = mcp_server.find_places(self.settings.layout, self.environ)
        here = [place for place in places if place.directory in (None, Path.cwd())]

        def fix() -> None:
            for place in here:
                mcp_server.remove_server(claude, place)

        if has_plugin and here:
            text = f"Claude Code has our MCP server twice: from the plugin, and {server}"
            mend = " ".join(("claude", "mcp", *here[0].removing))
            return Check("tools", "warning", text, mend, fix)
        if has_plugin or here:
            return Check(
                "tools", "ok", f"the MCP server is {'in the plugin' if has_plugin else server}"
            )
        text = "Claude Code knows no MCP server of ours: the agent cannot search"
        return Check("tools", "warning", text, "claude-mem install")

    def _launcher(self) -> Iterator[Check]:
        layout = self.settings.layout
        if not layout.root.is_dir():
            return  # all is yet to come
        parts = launcher_parts(layout)
        renew = "claude-mem doctor --fix"

        def fix() -> None:
            layout.create()
            write_launcher(layout)

        if parts is None:
            yield Check("launcher", "wrong", f"{layout.launcher} is missing or odd", renew, fix)
            return
        python, script = parts
        version = launcher_version(layout)
        if not python.exists() or not script.exists():
            gone = python if not python.exists() else script
            yield Check("interpreter", "wrong", f"{gone} is gone", renew, fix)
            return
        yield Check("interpreter", "ok", str(python))
        if version is None or parse_version(version) != parse_version(__version__):
            yield Check(
                "launcher", "warning", f"is of {version}, this is {__version__}", renew, fix
            )
            return
        yield self._runs(layout.launcher, renew, fix)
        server = layout.mcp_launcher
        if os.access(server, os.X_OK):
            yield Check("MCP server", "ok", f"{server} is there")
        else:
            yield Check("MCP server", "wrong", f"{server} is missing", renew, fix)

    def _runs(self, launcher: Path, renew: str, fix: Callable[[], None]) -> Check:
        environment = {**self.environ, "CLAUDE_MEM_INTERNAL": "1"}
        done = subprocess.run([launcher, "claude", "Stop"], input=b"{}", capture_output=True,
                              env=environment, timeout=30)  # fmt: skip
        if done.returncode == 0 and b'"continue":true' in done.stdout:
            return Check("launcher", "ok", f"{launcher} runs")
        return Check("launcher", "wrong", f"{launcher} does not run", renew, fix)

    # the worker

    def _data_directory(self) -> Iterator[Check]:
        layout = self.settings.layout
        if not layout.root.is_dir():
            yield Check(
                "data directory", "wrong", f"{layout.root} is missing", "claude-mem install"
            )
            return
        open_paths = [path for path in _own_files(layout.root) if _open_to_others(path)]

        def fix() -> None:
            for path in open_paths:
                path.chmod(path.stat().st_mode & 0o700)

        if open_paths:
            text = f"{len(open_paths)} files can be read by others, {open_paths[0].name} for one"
            yield Check("data directory", "wrong", text, "claude-mem doctor --fix", fix)
        elif not os.access(layout.root, os.W_OK):
            text = f"{layout.root} cannot be written"
            yield Check("data directory", "wrong", text, f"chmod u+w {layout.root}")
        else:
            yield Check("data directory", "ok", f"{layout.root}, yours alone")

    def _worker(self) -> Iterator[Check]:
        layout = self.settings.layout
        if not layout.root.is_dir():
            return
        start = "claude-mem worker start"

        def fix() -> None:
            client.start(layout, self.environ)

        running = client.running_worker(layout)
        if running is None and is_held(layout):
            yield Check("lock", "warning", "held by a worker that is starting or stuck",
                        "claude-mem worker restart")  # fmt: skip
            return
        yield Check("lock", "ok", "free" if running is None else "held by the worker")
        if running is None:
            yield Check("worker", "warning", "not running; the next hook starts it", start, fix)
            return
        worker = running["worker"]
        assert isinstance(worker, dict)
        if "queue" not in running:
            yield Check("socket", "wrong", "the worker holds the lock but does not answer",
                        "claude-mem worker restart")  # fmt: skip
            return
        if parse_version(str(worker["version"])) != parse_version(__version__):
            text = f"version {worker['version']}, this is {__version__}"
            yield Check("worker", "warning", text, "claude-mem worker restart")
        else:
            yield Check("worker", "ok", f"pid {worker['pid']}, version {worker['version']}")
        yield Check("socket", "ok", str(worker["socket"]))
        yield self._fifo()
        yield self._port(worker)

    def _fifo(self) -> Check:
        wake = self.settings.layout.wake
        if wake.exists() and stat.S_ISFIFO(wake.stat().st_mode):
            return Check("FIFO", "ok", str(wake))
        text = f"{wake} is missing: hooks cannot wake the worker"
        return Check("FIFO", "wrong", text, "claude-mem worker restart")

    def _port(self, worker: dict[str, Json]) -> Check:
        wanted = self.settings.worker.port
        if worker["port"] == wanted or (worker["port"] is None and wanted == 0):
            return Check("port", "ok", f"127.0.0.1:{wanted}" if wanted else "none wanted")
        text = f"{wanted} was taken; it serves {worker['port'] or 'the socket alone'}"
        return Check("port", "warning", text, "claude-mem settings WORKER_PORT NUMBER")

    # the memory

    def _database(self) -> Iterator[Check]:
        path = self.settings.layout.database
        if not path.exists():
            yield Check("database", "ok", "none yet: nothing was remembered so far")
            return
        try:
            with StoreReader.open_existing(path) as store:
                wrong = store.integrity()
        except (DamagedDatabase, sqlite3.DatabaseError) as error:
            wrong = str(error)
        if wrong:
            text = f"{path.name} is damaged ({wrong})"
            yield Check("database", "wrong", text, "claude-mem doctor --fix", self._restore)
        else:
            yield Check("database", "ok", f"{path}, {path.stat().st_size // 1024} KB, sound")

    def _restore(self) -> None:
        """The mark of an end that was not orderly makes the next start check the whole file."""
        layout = self.settings.layout
        client.stop(layout)
        layout.last_worker_state.touch(mode=0o600)
        client.start(layout, self.environ)

    def _backlog(self) -> Iterator[Check]:
        layout = self.settings.layout
        waiting, rejected = spool.waiting(layout), spool.rejected(layout)
        hours = (now_ms() - spool.arrival_ms(waiting[0])) // HOUR if waiting else 0
        many = len(waiting) >= spool.WARN_FILES
        long = hours >= spool.WARN_HOURS
        verdict: Verdict = "warning" if many or long else "ok"
        since = f", the oldest for {hours} hours" if long else ""
        yield Check("spool", verdict, f"{len(waiting)} events waiting{since}",
                    "claude-mem worker start" if many or long else "")  # fmt: skip
        if rejected:
            text = f"{len(rejected)} payloads could not be read; they are kept"
            yield Check("rejected", "warning", text, f"look into {layout.rejected}")
        if layout.database.exists():
            yield from self._queue()

    def _queue(self) -> Iterator[Check]:
        with StoreReader.open_existing(self.settings.layout.database) as store:
            dead, oldest = store.queue_state()["dead"], store.oldest_waiting()
        hours = (now_ms() - oldest) // HOUR if oldest is not None else 0
        if hours >= 1:
            text = f"the oldest turn waits for {hours} hours"
            yield Check("queue", "warning", text, "claude-mem worker restart")
        else:
            yield Check("queue", "ok", "nothing waits for long")
        if dead:
            text = f"{dead} turns could not be distilled; they are kept"
            yield Check("dead letters", "warning", text, "claude-mem retry")

    def _observer(self) -> Iterator[Check]:
        path = self.settings.layout.database
        with StoreReader.open_existing(path) if path.exists() else nullcontext() as store:
            found = describe(self.settings, self.environ, store, now_ms())
        if found["wanted"] == "local":
            spent = f"; {format_spending(found)}" if has_spent(found) else ""
            yield Check("observer", "ok", f"local: needs no model and no login{spent}")
            return
        text = f"{found['used']} ({found['why']}); {format_spending(found)}"
        breaker = found["breaker"]
        assert isinstance(breaker, dict)
        if found["used"] != found["wanted"]:
            yield Check("observer", "warning", text, f"claude-mem observer {found['wanted']}")
        elif breaker["state"] != "closed":
            spent = format_spending(found)
            text = f"{found['used']} is not asked for now: {breaker['reason']}; {spent}"
            yield Check("observer", "warning", text, f"claude-mem observer {found['used']}")
        else:
            yield Check("observer", "ok", text)
        if found["key"] == "settings.json":
            text = "lies in settings.json, readable by you alone"
            mend = "pip install keyring, then claude-mem settings API_KEY KEY"
            yield Check("key", "warning", text, mend)

    def _another(self) -> Iterator[Check]:
        """The TypeScript claude-mem may share our directory and our port; not our database."""
        layout, files = self.settings.layout, attachment.settings_files(self.environ)
        for other in find_other_installs(layout, self.environ, files):
            yield Check("another claude-mem", "warning", other.found, other.mend)


def _own_files(root: Path) -> list[Path]:
    return [root, *root.rglob("*")]


def _open_to_others(path: Path) -> bool:
    try:
        return bool(path.lstat().st_mode & 0o077) and not path.is_symlink()
    except FileNotFoundError:
        return False

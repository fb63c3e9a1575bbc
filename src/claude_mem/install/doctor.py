"""Checks of an installation: each reports one line and the command that fixes the problem."""

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
from claude_mem.agents import is_agent
from claude_mem.config import Settings, environment_for_worker, load_usable_settings, move_aside
from claude_mem.config.pausing import current_pause
from claude_mem.config.sources import MOVE_ASIDE
from claude_mem.distribution import lasting_command, own_passing_place, passing_place
from claude_mem.errors import (
    ClaudeMemError,
    DamagedDatabase,
    NewerDatabase,
    OtherVersion,
    SettingsError,
)
from claude_mem.hook import trouble
from claude_mem.index import indexing
from claude_mem.install import attachment, mcp_server, plugin
from claude_mem.install.claude import Claude, find_claude
from claude_mem.install.hooks import EVENTS, hooked_events
from claude_mem.install.launcher import launcher_parts, launcher_version, write_launcher
from claude_mem.install.other_agent_checks import check_agents
from claude_mem.install.other_installs import find_other_installs
from claude_mem.intake import rejected_events, spool, undeletable
from claude_mem.server import client
from claude_mem.store import StoreReader
from claude_mem.store.backups import before_upgrade, newest_first
from claude_mem.store.clock import iso, now_ms
from claude_mem.text import pluralize
from claude_mem.types import Json
from claude_mem.versions import parse_version
from claude_mem.worker.disk_space import full_disk
from claude_mem.worker.lock import is_held
from claude_mem.worker.observer_status import describe, format_spending, has_spent
from claude_mem.worker.queue_warning import queue_warning

Verdict = Literal["ok", "warning", "wrong"]
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    verdict: Verdict
    detail: str
    remedy: str = ""  # a command to type
    fix: Callable[[], None] | None = None  # for `doctor --fix`, where that is safe


@dataclass(frozen=True, slots=True)
class Doctor:
    settings: Settings
    environ: Mapping[str, str]

    def run_checks(self) -> list[Check]:
        parts: list[Callable[[], Iterator[Check]]] = [
            self._settings, self._claude_code, self._other_agents, self._launcher,
            self._data_directory, self._worker, self._database, self._capture,
            self._backlog, self._observer, self._other_installs,
        ]  # fmt: skip
        checks: list[Check] = []
        for part in parts:
            try:
                checks += part()
            except OtherVersion:
                continue  # the check of the database reports it
            except (ClaudeMemError, OSError, sqlite3.Error, subprocess.TimeoutExpired) as error:
                name = part.__name__.strip("_").replace("_", " ")
                checks.append(Check(name, "wrong", str(error), "claude-mem worker logs"))
        return checks

    def _settings(self) -> Iterator[Check]:
        _, errors = load_usable_settings(self.environ)
        path = self.settings.layout.settings

        def fix() -> None:
            move_aside(path)

        for error in errors:
            is_file = error.remedy == MOVE_ASIDE
            yield Check("settings", "wrong", str(error), error.remedy, fix if is_file else None)
        if not errors:
            yield Check("settings", "ok", "valid")
        ignored = environment_for_worker(self.environ, self.settings.layout).ignored
        if ignored and self.settings.layout.root.is_dir() and not is_agent(self.environ):
            text = f"a worker that a hook starts does not use {', '.join(ignored)} of this shell"
            yield Check("environment", "warning", text, "claude-mem worker restart")

    # the agent

    def _claude_code(self) -> Iterator[Check]:
        command = find_claude(self.settings, self.environ)
        version = command.version() if command else ""
        yield self._client(command, version)
        claude = command if version else None
        state = plugin.plugin_state(claude) if claude else "absent"
        hooks = self._hooks(state)
        yield hooks
        if claude is not None and hooks.verdict != "wrong":
            yield self._tools(claude, state == "enabled")

    def _client(self, claude: Claude | None, version: str) -> Check:
        set_path = "claude-mem settings CLAUDE_CODE_PATH /path/to/claude"
        if claude is None:
            remedy = f"install Claude Code, or {set_path}"
            return Check("Claude Code", "warning", "not found", remedy)
        if not version:
            return Check("Claude Code", "wrong", f"{claude.path} cannot be run", set_path)
        return Check("Claude Code", "ok", f"{claude.path} {version}")

    def _hooks(self, plugin_state: plugin.PluginState) -> Check:
        sources = ["the plugin"] if plugin_state == "enabled" else []
        launcher = self.settings.layout.launcher
        for path in attachment.settings_files(self.environ):
            try:
                events = hooked_events(path, launcher)
            except SettingsError as error:
                return Check("hooks", "wrong", str(error), f"edit {path}")
            missing = [event.name for event in EVENTS if event.name not in events]
            if events and missing:
                text = f"{path} has no hook for {', '.join(missing)}"
                return Check("hooks", "wrong", text, "claude-mem install --scope user")
            if events:
                sources.append(f"{pluralize(len(events), 'hook')} in {path}")
        if len(sources) > 1:
            text = f"{' and '.join(sources)}: each event arrives twice (and is stored once)"
            return Check("hooks", "warning", text, "claude-mem install")
        if sources:
            return Check("hooks", "ok", " and ".join(sources))
        if plugin_state == "disabled":
            enable = f"claude plugin enable {plugin.ID}"
            return Check("hooks", "wrong", "the plugin is disabled in Claude Code", enable)
        if any(check.is_attached for check in check_agents(self.settings.layout, self.environ)):
            return Check("hooks", "ok", "not installed in Claude Code")
        return Check("hooks", "wrong", "not installed", "claude-mem install")

    def _other_agents(self) -> Iterator[Check]:
        for check in check_agents(self.settings.layout, self.environ):
            verdict: Verdict = "ok" if check.is_complete else "wrong"
            yield Check(check.agent.title, verdict, check.detail, check.remedy)

    def _tools(self, claude: Claude, has_plugin: bool) -> Check:
        places = mcp_server.find_places(self.settings.layout, self.environ)
        here = [place for place in places if place.directory in (None, Path.cwd())]

        def fix() -> None:
            for place in here:
                mcp_server.remove_server(claude, place)

        if has_plugin and here:
            text = f"the MCP server is registered twice: by the plugin and as {mcp_server.NAME}"
            remedy = " ".join(("claude", "mcp", *here[0].remove_arguments))
            return Check("tools", "warning", text, remedy, fix)
        if has_plugin:
            return Check("tools", "ok", "MCP server of the plugin")
        if here:
            return Check("tools", "ok", f"MCP server registered as {mcp_server.NAME}")
        text = "no MCP server is registered, so the agent cannot search"
        return Check("tools", "warning", text, "claude-mem install")

    def _launcher(self) -> Iterator[Check]:
        layout = self.settings.layout
        if not layout.root.is_dir():
            return  # not installed yet: reported by the check of the data directory
        parts = launcher_parts(layout)
        renew = "claude-mem doctor --fix"

        def fix() -> None:
            layout.create()
            write_launcher(layout)

        if parts is None:
            yield Check("launcher", "wrong", f"{layout.launcher} is missing or invalid", renew, fix)
            return
        python, script = parts
        version = launcher_version(layout)
        if not python.exists() or not script.exists():
            missing = python if not python.exists() else script
            yield Check("interpreter", "wrong", f"{missing} does not exist", renew, fix)
            return
        if place := passing_place(python, script, layout.root):
            text = f"{python} is deleted when {place} is emptied, and no hook works any more"
            yield Check("interpreter", "wrong", text, self._lasting_install())
        else:
            yield Check("interpreter", "ok", str(python))
        if version is None or parse_version(version) != parse_version(__version__):
            text = f"version {version}, but this is {__version__}"
            yield Check("launcher", "warning", text, renew, fix)
            return
        yield self._runs(layout.launcher, renew, fix)
        server = layout.mcp_launcher
        if os.access(server, os.X_OK):
            yield Check("MCP server", "ok", str(server))
        else:
            yield Check("MCP server", "wrong", f"{server} is missing", renew, fix)

    def _lasting_install(self) -> str:
        if own_passing_place(self.settings.layout.root) is None:
            return "claude-mem install"
        return f"{lasting_command(self.environ)}, then its claude-mem install"

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
        open_paths = [path for path in _all_files(layout.root) if _is_accessible_to_others(path)]

        def fix() -> None:
            for path in filter(Path.exists, open_paths):  # another fix may have moved one
                path.chmod(path.stat().st_mode & 0o700)

        if open_paths:
            files, example = pluralize(len(open_paths), "file"), open_paths[0].name
            text = f"accessible to other users: {files}, such as {example}"
            yield Check("data directory", "wrong", text, "claude-mem doctor --fix", fix)
        elif not os.access(layout.root, os.W_OK):
            text = f"{layout.root} cannot be written"
            yield Check("data directory", "wrong", text, f"chmod u+w {layout.root}")
        else:
            yield Check("data directory", "ok", f"{layout.root}, accessible only to you")
        if text := full_disk(layout):
            yield Check("disk", "wrong", text, f"df -h {layout.root}")

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
        if obstacle := running.get("obstacle"):
            yield Check("recording", "wrong", str(obstacle), "claude-mem worker logs")
        if parse_version(str(worker["version"])) != parse_version(__version__):
            text = f"version {worker['version']}, but this is {__version__}"
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
        configured = self.settings.worker.port
        if worker["port"] == configured or (worker["port"] is None and configured == 0):
            return Check("port", "ok", f"127.0.0.1:{configured}" if configured else "disabled")
        text = f"{configured} is in use; the worker uses {worker['port'] or 'only its socket'}"
        return Check("port", "warning", text, "claude-mem settings WORKER_PORT NUMBER")

    # the memory

    def _database(self) -> Iterator[Check]:
        path = self.settings.layout.database
        if not path.exists():
            yield Check("database", "ok", "not created yet")
            return
        index_damage, values = None, list[str]()
        try:
            if not path.stat().st_size and newest_first(self.settings.layout.backups):
                raise DamagedDatabase("it is empty, but there are backups of it")
            with StoreReader.open_existing(path) as store:
                if (damage := store.integrity()) is None:
                    index_damage = store.read(indexing.find_damage)
                    values = store.damaged_values()
        except OtherVersion as error:
            remedy = self._return_command() if isinstance(error, NewerDatabase) else ""
            yield Check("database", "wrong", str(error), remedy)
            return
        except (DamagedDatabase, sqlite3.DatabaseError) as error:
            damage = str(error)
        if damage:
            text = f"{path.name} is damaged ({damage})"
            yield Check("database", "wrong", text, "claude-mem doctor --fix", self._restore)
        else:
            yield Check("database", "ok", f"{path}, {path.stat().st_size // 1024} KB, no errors")
        if index_damage:
            text = f"the search index is damaged ({index_damage})"
            yield Check("index", "wrong", text, "claude-mem reindex")
        if values:
            text = f"values are damaged and left out ({', '.join(values)})"
            yield Check("values", "warning", text, "claude-mem export, and restore a backup")
        yield self._backups()

    def _backups(self) -> Check:
        directory = self.settings.layout.backups
        backups, before = newest_first(directory), before_upgrade(directory)
        if before is None:
            return Check("backups", "ok", f"{len(backups)} in {directory}")
        text = f"{len(backups)} in {directory}; that from before the last upgrade: {before.name}"
        return Check("backups", "ok", text)

    def _return_command(self) -> str:
        before = before_upgrade(self.settings.layout.backups)
        return f"claude-mem worker restore {before.name if before else ''}".rstrip()

    def _restore(self) -> None:
        """Restart as after a crash: the worker then checks the database and restores a backup."""
        layout = self.settings.layout
        client.stop(layout)
        layout.last_worker_state.touch(mode=0o600)
        client.start(layout, self.environ)

    def _capture(self) -> Iterator[Check]:
        layout = self.settings.layout
        if (paused := current_pause(layout)) is not None:
            until = f" until {iso(paused.until_epoch)}" if paused.until_epoch else ""
            yield Check("recording", "warning", f"paused{until}", "claude-mem resume")
        else:
            yield Check("recording", "ok", "on")
        if excluded := self.settings.capture.excluded_projects:
            yield Check("excluded", "ok", f"not recorded: {', '.join(excluded)}")
        if lost := trouble.lost_events(os.fsencode(layout.root)):
            events = "1 event was" if lost == 1 else f"{lost} events were"
            text = f"{events} lost: they could not be written to {layout.spool}"
            yield Check("lost", "wrong", text, f"free space: df -h {layout.root}")

    def _backlog(self) -> Iterator[Check]:
        layout = self.settings.layout
        waiting, rejected = spool.waiting(layout), rejected_events.rejected(layout)
        hours = (now_ms() - spool.arrival_ms(waiting[0])) // HOUR_MS if waiting else 0
        is_long = len(waiting) >= spool.WARN_FILES
        is_old = hours >= spool.WARN_HOURS
        verdict: Verdict = "warning" if is_long or is_old else "ok"
        age = f", the oldest for {pluralize(hours, 'hour')}" if is_old else ""
        yield Check("spool", verdict, f"{pluralize(len(waiting), 'event')} waiting{age}",
                    "claude-mem worker start" if is_long or is_old else "")  # fmt: skip
        if rejected:
            text = f"{pluralize(len(rejected), 'hook payload')} could not be parsed"
            yield Check("rejected", "warning", text, f"see {layout.rejected}")
        if aside := rejected_events.records_set_aside(layout):
            events = pluralize(len(aside), "event")
            text = f"{events} set aside that made the worker hang or die"
            yield Check("set aside", "warning", text, f"see {layout.set_aside}")
        if odd := undeletable.entries(layout):
            text = f"{odd[0].name} can be neither read nor deleted and is left out"
            yield Check("set aside", "warning", text, f"delete {odd[0]}")
        if layout.database.exists():
            yield from self._queue()

    def _queue(self) -> Iterator[Check]:
        with StoreReader.open_existing(self.settings.layout.database) as store:
            queue, oldest = store.queue_state(), store.oldest_waiting()
        waiting = queue["pending"] + queue["processing"]
        age = (now_ms() - oldest) / 1000 if oldest is not None else None
        if text := queue_warning(waiting, age):
            yield Check("queue", "warning", text, "claude-mem worker restart")
        else:
            yield Check("queue", "ok", "no turn has been waiting for an hour")
        if dead := queue["dead"]:
            text = f"{pluralize(dead, 'turn')} could not be summarised"
            yield Check("dead letters", "warning", text, "claude-mem retry")

    def _observer(self) -> Iterator[Check]:
        path = self.settings.layout.database
        with StoreReader.open_existing(path) if path.exists() else nullcontext() as store:
            state = describe(self.settings, self.environ, store, now_ms())
        if state["wanted"] == "local":
            spent = f"; {format_spending(state)}" if has_spent(state) else ""
            yield Check("observer", "ok", f"local, needs no model and no login{spent}")
            return
        text = f"{state['used']} ({state['why']}); {format_spending(state)}"
        breaker = state["breaker"]
        assert isinstance(breaker, dict)
        if state["used"] != state["wanted"]:
            yield Check("observer", "warning", text, f"claude-mem observer {state['wanted']}")
        elif breaker["state"] != "closed":
            text = f"{state['used']} is paused: {breaker['reason']}; {format_spending(state)}"
            yield Check("observer", "warning", text, f"claude-mem observer {state['used']}")
        else:
            yield Check("observer", "ok", text)
        if state["key"] == "settings.json":
            text = "stored in settings.json, readable only by you"
            remedy = "pip install keyring, then claude-mem settings API_KEY KEY"
            yield Check("key", "warning", text, remedy)

    def _other_installs(self) -> Iterator[Check]:
        layout, files = self.settings.layout, attachment.settings_files(self.environ)
        for other in find_other_installs(layout, self.environ, files):
            yield Check("another claude-mem", "warning", other.detail, other.remedy)


def _all_files(root: Path) -> list[Path]:
    return [root, *root.rglob("*")]


def _is_accessible_to_others(path: Path) -> bool:
    try:
        return bool(path.lstat().st_mode & 0o077) and not path.is_symlink()
    except FileNotFoundError:
        return False

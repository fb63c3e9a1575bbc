"""Finds other installations of claude-mem: their database, command, plugin and hooks.

They are never changed. Both work side by side, but then every session is recorded twice, and the
command `claude-mem` may run the other one.
"""

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from claude_mem.config import Layout
from claude_mem.errors import BadInput
from claude_mem.install import jsonc
from claude_mem.install.claude import config_dir
from claude_mem.install.json_entries import runs
from claude_mem.text import pluralize
from claude_mem.types import Json

COMMAND = PLUGIN = "claude-mem"  # our plugin is "claudemem"
# Not any script in a directory named claude-mem: a checkout of this program has that name, too.
_FOREIGN_SCRIPTS = ("worker-service", "worker-cli", "plugin/scripts", *(
    f"/{name}-hook." for name in ("cleanup", "context", "new", "save", "summary", "user-message")
))  # fmt: skip
_OUR_MODULE = b"claude_mem.__main__"  # in the scripts that installers of Python packages write
_SHIMS = "shims"  # of pyenv, asdf etc.: they may run our command


@dataclass(frozen=True, slots=True)
class OtherInstall:
    detail: str
    remedy: str = ""


def find_other_installs(
    layout: Layout, environ: Mapping[str, str], settings_files: list[Path]
) -> Iterator[OtherInstall]:
    yield from _database(layout)
    yield from _commands(environ.get("PATH", ""))
    settings = {path: _read(path) for path in settings_files}
    yield from _plugins(config_dir(environ), list(settings.values()))
    for path, content in settings.items():
        yield from _hooks(path, content, layout.launcher)


def _database(layout: Layout) -> Iterator[OtherInstall]:
    database = layout.root / "claude-mem.db"
    if database.exists():
        yield OtherInstall(f"{database} belongs to another claude-mem; it is never changed")


def _commands(search_path: str) -> Iterator[OtherInstall]:
    directories = [Path(name) for name in search_path.split(os.pathsep) if name]
    candidates = [directory / COMMAND for directory in directories if directory.name != _SHIMS]
    commands = [path for path in dict.fromkeys(candidates) if os.access(path, os.X_OK)]
    for position, path in enumerate(commands):
        if not _is_ours(path):
            is_first = " and comes first on the PATH" if position == 0 else ""
            what = "another claude-mem" if _is_ours_elsewhere(path) else "another program"
            yield OtherInstall(f"{path} is {what}{is_first}", _remedy(path))


def _is_ours(command: Path) -> bool:
    """Whether it runs with the interpreter of this installation."""
    ours = Path(sys.executable).parent
    interpreter = _interpreter(command)
    return command.resolve().parent == ours.resolve() or (
        interpreter is not None and interpreter.parent == ours
    )


def _is_ours_elsewhere(command: Path) -> bool:
    """Whether the command is ours, of another environment; PyPI and npm have other programs of this
    name."""
    try:
        with command.open("rb") as file:
            return _OUR_MODULE in file.read(4096)
    except OSError:
        return False


def _interpreter(command: Path) -> Path | None:
    """The Python in the first line of a script."""
    try:
        with command.open("rb") as file:
            first = file.readline(512).decode("utf-8", "replace").strip()
    except OSError:
        return None
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    path = Path(words[0]) if words else None
    return path if path is not None and path.name.startswith("python") else None


def _remedy(command: Path) -> str:
    real, interpreter = command.resolve(), _interpreter(command)
    if "node_modules" in real.parts:
        return "npm uninstall --global claude-mem"
    if interpreter is not None:
        name = "claudemem" if _is_ours_elsewhere(command) else "claude-mem"
        return f"{shlex.quote(str(interpreter))} -m pip uninstall {name}"
    return f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH"


def _plugins(directory: Path, settings: list[dict[str, Json]]) -> Iterator[OtherInstall]:
    installed = _read(directory / "plugins" / "installed_plugins.json").get("plugins")
    enabled: dict[str, Json] = {}
    for content in settings:
        plugins = content.get("enabledPlugins")
        enabled |= plugins if isinstance(plugins, dict) else {}
    names = {*(installed if isinstance(installed, dict) else {}), *enabled}
    for name in sorted(names):
        if name.partition("@")[0] == PLUGIN and enabled.get(name) is not False:
            yield OtherInstall(
                f"the plugin {name} is another claude-mem", f"claude plugin uninstall {name}"
            )


def _hooks(path: Path, content: dict[str, Json], launcher: Path) -> Iterator[OtherInstall]:
    commands = [command for command in _hook_commands(content) if _is_foreign(command, launcher)]
    if commands:
        hooks = pluralize(len(commands), "hook")
        runs = "runs" if len(commands) == 1 else "run"
        yield OtherInstall(
            f"{hooks} in {path} {runs} another claude-mem: {_command_line(commands[0])[:120]}",
            f"delete them from {path}",
        )


def _hook_commands(content: dict[str, Json]) -> Iterator[dict[str, Json]]:
    events = content.get("hooks")
    for entries in events.values() if isinstance(events, dict) else []:
        for entry in entries if isinstance(entries, list) else []:
            commands = entry.get("hooks") if isinstance(entry, dict) else None
            for command in commands if isinstance(commands, list) else []:
                if isinstance(command, dict):
                    yield command


def _is_foreign(command: dict[str, Json], launcher: Path) -> bool:
    line = _command_line(command).replace("\\", "/")
    foreign = COMMAND in line and any(script in line for script in _FOREIGN_SCRIPTS)
    return foreign and not runs(command, launcher)


def _command_line(command: dict[str, Json]) -> str:
    arguments = command.get("args")
    words = [command.get("command"), *(arguments if isinstance(arguments, list) else [])]
    return " ".join(str(word) for word in words if word)


def _read(path: Path) -> dict[str, Json]:
    """Reads the file; empty if it cannot be read: the check of the hooks reports that."""
    try:
        value = jsonc.parse(path.read_text("utf-8") or "{}").value
    except (OSError, ValueError, BadInput):
        return {}
    return cast(dict[str, Json], value) if isinstance(value, dict) else {}

"""Another claude-mem on this machine: its files, its command, its plugin, its hooks.

Nothing of it is touched. Both can live side by side, but then every session is recorded twice, and
what is typed may reach the wrong one.
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
from claude_mem.install.hooks import is_our_command
from claude_mem.types import Json

COMMAND = PLUGIN = "claude-mem"  # our plugin has another name: the client reserves this one's start
_RUN_BY_OTHERS = ("worker-service", "worker-cli", "plugin/scripts", "-hook.js", "-hook.cjs")
_SHIMS = "shims"  # of pyenv and its kin: they run whichever is chosen, perhaps ours


@dataclass(frozen=True, slots=True)
class OtherInstall:
    found: str
    mend: str = ""


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
    theirs = layout.root / "claude-mem.db"
    if theirs.exists():
        yield OtherInstall(
            f"{theirs.name} of another claude-mem lies beside ours; it is not touched"
        )


def _commands(search_path: str) -> Iterator[OtherInstall]:
    directories = [Path(name) for name in search_path.split(os.pathsep) if name]
    places = [directory / COMMAND for directory in directories if directory.name != _SHIMS]
    there = [place for place in dict.fromkeys(places) if os.access(place, os.X_OK)]
    for position, place in enumerate(there):
        if _is_ours(place):
            continue
        typed = ", and it is the one that you type" if position == 0 else ""
        yield OtherInstall(f"{place} is another claude-mem{typed}", _without(place))


def _is_ours(command: Path) -> bool:
    """Whether this installation's interpreter runs it."""
    ours = Path(sys.executable).parent
    interpreter = _interpreter(command)
    return command.resolve().parent == ours.resolve() or (
        interpreter is not None and interpreter.parent == ours
    )


def _interpreter(command: Path) -> Path | None:
    """The Python that a script names in its first line."""
    try:
        with command.open("rb") as file:
            first = file.readline(512).decode("utf-8", "replace").strip()
    except OSError:
        return None
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    found = Path(words[0]) if words else None
    return found if found is not None and found.name.startswith("python") else None


def _without(command: Path) -> str:
    real, interpreter = command.resolve(), _interpreter(command)
    if "node_modules" in real.parts:
        return "npm uninstall --global claude-mem"
    if interpreter is not None:
        return f"{shlex.quote(str(interpreter))} -m pip uninstall claudemem"
    return f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH"


def _plugins(directory: Path, settings: list[dict[str, Json]]) -> Iterator[OtherInstall]:
    installed = _read(directory / "plugins" / "installed_plugins.json").get("plugins")
    switches: dict[str, Json] = {}
    for content in settings:
        chosen = content.get("enabledPlugins")
        switches |= chosen if isinstance(chosen, dict) else {}
    known = {*(installed if isinstance(installed, dict) else {}), *switches}
    for name in sorted(known):
        if name.partition("@")[0] == PLUGIN and switches.get(name) is not False:
            yield OtherInstall(
                f"the plugin {name} remembers, too", f"claude plugin uninstall {name}"
            )


def _hooks(path: Path, content: dict[str, Json], launcher: Path) -> Iterator[OtherInstall]:
    commands = [command for command in _hook_commands(content) if _is_theirs(command, launcher)]
    if commands:
        hooks = "1 hook" if len(commands) == 1 else f"{len(commands)} hooks"
        yield OtherInstall(
            f"{hooks} in {path} run another claude-mem: {_words(commands[0])[:120]}",
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


def _is_theirs(command: dict[str, Json], launcher: Path) -> bool:
    words = _words(command).replace("\\", "/")
    theirs = COMMAND in words and any(mark in words for mark in _RUN_BY_OTHERS)
    return theirs and not is_our_command(command, launcher)


def _words(command: dict[str, Json]) -> str:
    arguments = command.get("args")
    words = [command.get("command"), *(arguments if isinstance(arguments, list) else [])]
    return " ".join(str(word) for word in words if word)


def _read(path: Path) -> dict[str, Json]:
    """Empty where there is nothing that can be read; what is wrong with it others say."""
    try:
        value = jsonc.parse(path.read_text("utf-8") or "{}").value
    except (OSError, ValueError, BadInput):
        return {}
    return cast(dict[str, Json], value) if isinstance(value, dict) else {}

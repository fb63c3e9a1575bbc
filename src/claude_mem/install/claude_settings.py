"""Adds our hooks to Claude Code's settings.json and removes them; nothing else changes."""

import os
from dataclasses import dataclass
from pathlib import Path

from claude_mem.errors import BadInput, SettingsError
from claude_mem.install import jsonc
from claude_mem.install.hooks import (
    EVENTS,
    HookEvent,
    hook_entry,
    is_our_command,
    is_our_entry,
)
from claude_mem.types import Json


@dataclass(frozen=True, slots=True)
class Change:
    """A file before and after; None means no file."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def is_empty(self) -> bool:
        return self.before == self.after


def with_hooks(path: Path, launcher: Path, events: tuple[HookEvent, ...] = EVENTS) -> Change:
    """Hooks of ours for other events are removed."""
    before = read(path)
    text = _add_all(path, _decode(path, before or b""), launcher, events)
    wanted = frozenset(event.name for event in events)
    while (shorter := _remove_next(path, text, launcher, frozenset(), wanted)) is not None:
        text = shorter
    return Change(path, before, text.encode())


def without_hooks(path: Path, launcher: Path, existed: frozenset[str] = frozenset()) -> Change:
    """`existed` names the containers() that the file had before install: they stay."""
    before = read(path)
    if before is None or not before.strip():
        return Change(path, before, before)
    text = _decode(path, before)
    while (shorter := _remove_next(path, text, launcher, existed)) is not None:
        text = shorter
    return Change(path, before, text.encode())


def containers(data: bytes | None) -> frozenset[str]:
    """Which of `hooks` and `hooks.<Event>` the file has."""
    if not data or not data.strip():
        return frozenset()
    root = jsonc.parse(data.decode("utf-8"))
    names = {f"hooks.{name}" for name in _events(root)}
    return frozenset(names | ({"hooks"} if "hooks" in (root.members or {}) else set()))


def hooked_events(path: Path, launcher: Path) -> list[str]:
    """The events for which the file has our hook."""
    before = read(path)
    if before is None or not before.strip():
        return []
    root = _parse(path, _decode(path, before))
    return [
        name
        for name, array in _events(root).items()
        if any(is_our_entry(element.value, launcher) for element in array.elements or [])
    ]


def apply(change: Change) -> None:
    """Write the file atomically, following links and keeping its mode."""
    if change.is_empty:
        return
    check_writable(change.path)
    target = change.path.resolve()
    try:
        if change.after is None:
            target.unlink()
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
        temporary = target.with_name(f".{target.name}.claude-mem")
        temporary.write_bytes(change.after)
        temporary.chmod(mode)
        temporary.replace(target)
    except OSError as error:
        raise SettingsError(f"{change.path} cannot be written: {error.strerror}") from None


def check_writable(path: Path) -> None:
    """Check the file and the directory in which it is replaced or created."""
    target = path.resolve()
    directory = next(parent for parent in target.parents if parent.exists())
    for required in (target, directory) if target.exists() else (directory,):
        if not os.access(required, os.W_OK):
            raise SettingsError(f"{path} cannot be written: {required} is read-only")


def read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from None


def _decode(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is not UTF-8; the file was not changed") from None


def _parse(path: Path, text: str) -> jsonc.Node:
    try:
        node = jsonc.parse(text)
    except BadInput as error:
        raise SettingsError(f"{path}, {error}; the file was not changed") from None
    if node.members is None:
        raise SettingsError(f"{path} must contain a JSON object; the file was not changed")
    return node


def _add_all(path: Path, text: str, launcher: Path, events: tuple[HookEvent, ...]) -> str:
    if not text.strip():
        text = "{}\n"
    for event in events:
        text = _add(path, text, event.name, hook_entry(event, str(launcher)), launcher)
    return text


def _add(path: Path, text: str, name: str, entry: dict[str, Json], launcher: Path) -> str:
    root = _parse(path, text)
    assert root.members is not None
    hooks = root.members.get("hooks")
    if hooks is None:
        return jsonc.add_member(text, root, "hooks", {name: [entry]})
    if hooks.members is None:
        raise SettingsError(f"{path}: hooks must be an object; the file was not changed")
    array = hooks.members.get(name)
    if array is None:
        return jsonc.add_member(text, hooks, name, [entry])
    if array.elements is None:
        raise SettingsError(f"{path}: hooks.{name} must be a list; the file was not changed")
    if any(element.value == entry for element in array.elements):
        return text
    for element in array.elements:
        if is_our_entry(element.value, launcher):
            return _replace_ours(text, element, entry, launcher)
    return jsonc.append_element(text, array, entry)


def _replace_ours(text: str, element: jsonc.Node, entry: dict[str, Json], launcher: Path) -> str:
    """Update an older form of our entry, unless the user added commands to it."""
    commands = element.value["hooks"]  # type: ignore[index]
    if all(is_our_command(command, launcher) for command in commands):
        return jsonc.replace(text, element, entry)
    return text


def _remove_next(
    path: Path,
    text: str,
    launcher: Path,
    existed: frozenset[str],
    wanted: frozenset[str] = frozenset(),
) -> str | None:
    """Remove the first entry of ours, with the list or object that only held it; None: no entry.
    Those of `wanted` events stay."""
    root = _parse(path, text)
    for name, array in _events(root).items():
        if name in wanted:
            continue
        elements = array.elements or []
        for element in elements:
            if not is_our_entry(element.value, launcher):
                continue
            commands = element.members["hooks"] if element.members else element
            ours = [c for c in commands.elements or [] if is_our_command(c.value, launcher)]
            if len(ours) < len(commands.elements or []):
                return jsonc.remove_child(text, commands, ours[0])
            if len(elements) > 1 or f"hooks.{name}" in existed:
                return jsonc.remove_child(text, array, element)
            return _remove_event(text, root, name, existed)
    return None


def _events(root: jsonc.Node) -> dict[str, jsonc.Node]:
    """The member `hooks`: a list of entries for each event."""
    hooks = (root.members or {}).get("hooks")
    return (hooks.members if hooks else None) or {}


def _remove_event(text: str, root: jsonc.Node, name: str, existed: frozenset[str]) -> str:
    assert root.members is not None
    hooks = root.members["hooks"]
    assert hooks.members is not None
    if len(hooks.members) == 1 and "hooks" not in existed:
        return jsonc.remove_child(text, root, hooks)
    return jsonc.remove_child(text, hooks, hooks.members[name])

"""Our hooks in Claude Code's settings.json: put in and taken out, and nothing else touched."""

import os
from dataclasses import dataclass
from pathlib import Path

from claude_mem.errors import BadInput, SettingsError
from claude_mem.install import jsonc
from claude_mem.install.hooks import EVENTS, hook_entry, is_our_command, is_our_entry
from claude_mem.types import Json


@dataclass(frozen=True, slots=True)
class Change:
    """A file before and after; None stands for no file."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def is_empty(self) -> bool:
        return self.before == self.after


def with_hooks(path: Path, launcher: Path) -> Change:
    before = read(path)
    text = _decode(path, before or b"")
    return Change(path, before, _add_all(path, text, launcher).encode())


def without_hooks(path: Path, launcher: Path, existed: frozenset[str] = frozenset()) -> Change:
    """`existed` names the containers (containers()) that were there before us: they stay."""
    before = read(path)
    if before is None or not before.strip():
        return Change(path, before, before)
    text = _decode(path, before)
    while (shorter := _remove_one(path, text, launcher, existed)) is not None:
        text = shorter
    return Change(path, before, text.encode())


def containers(data: bytes | None) -> frozenset[str]:
    """`hooks` and `hooks.<Event>`, as far as a file has them."""
    if not data or not data.strip():
        return frozenset()
    root = jsonc.parse(data.decode("utf-8"))
    found = {f"hooks.{name}" for name, _ in _event_arrays(root)}
    return frozenset(found | ({"hooks"} if "hooks" in (root.members or {}) else set()))


def has_hooks(path: Path, launcher: Path) -> list[str]:
    """The events that the file has our hook for."""
    before = read(path)
    if before is None or not before.strip():
        return []
    root = _parse(path, _decode(path, before))
    found = []
    for name, array in _event_arrays(root):
        elements = array.value if isinstance(array.value, list) else []
        if any(is_our_entry(element, launcher) for element in elements):
            found.append(name)
    return found


def apply(change: Change) -> None:
    """Writes the file as it shall be, through links, with the mode it had; or changes nothing."""
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
        unfinished = target.with_name(f".{target.name}.claude-mem")
        unfinished.write_bytes(change.after)
        unfinished.chmod(mode)
        unfinished.replace(target)
    except OSError as error:
        raise SettingsError(f"{change.path} cannot be written: {error.strerror}") from None


def check_writable(path: Path) -> None:
    """The file, and the directory in which it is replaced; or that in which it will be made."""
    target = path.resolve()
    place = next(parent for parent in target.parents if parent.exists())
    for needed in (target, place) if target.exists() else (place,):
        if not os.access(needed, os.W_OK):
            raise SettingsError(f"{path} cannot be written: {needed} is read-only")


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
        raise SettingsError(f"{path} is not UTF-8; it was left as it is") from None


def _parse(path: Path, text: str) -> jsonc.Node:
    try:
        node = jsonc.parse(text)
    except BadInput as error:
        raise SettingsError(f"{path}, {error}; it was left as it is") from None
    if node.members is None:
        raise SettingsError(f"{path} does not hold an object; it was left as it is")
    return node


def _add_all(path: Path, text: str, launcher: Path) -> str:
    if not text.strip():
        text = "{}\n"
    for event in EVENTS:
        text = _add(path, text, event.name, hook_entry(event, str(launcher)), launcher)
    return text


def _add(path: Path, text: str, name: str, entry: dict[str, Json], launcher: Path) -> str:
    root = _parse(path, text)
    assert root.members is not None
    hooks = root.members.get("hooks")
    if hooks is None:
        return jsonc.add_member(text, root, "hooks", {name: [entry]})
    if hooks.node.members is None:
        raise SettingsError(f"{path}: hooks is not an object; it was left as it is")
    array = hooks.node.members.get(name)
    if array is None:
        return jsonc.add_member(text, hooks.node, name, [entry])
    if array.node.elements is None:
        raise SettingsError(f"{path}: hooks.{name} is not a list; it was left as it is")
    for element in array.node.elements:
        if element.value == entry:
            return text
    for element in array.node.elements:
        if is_our_entry(element.value, launcher):
            return _replace_ours(text, element, entry, launcher)
    return jsonc.append_element(text, array.node, entry)


def _replace_ours(text: str, element: jsonc.Node, entry: dict[str, Json], launcher: Path) -> str:
    """An older form of our entry; commands that the person put beside it stay."""
    commands = element.value["hooks"]  # type: ignore[index]
    if all(is_our_command(command, launcher) for command in commands):
        return jsonc.replace(text, element, entry)
    return text


def _remove_one(path: Path, text: str, launcher: Path, existed: frozenset[str]) -> str | None:
    """The text with one thing of ours less; a list or object that only we filled goes with it."""
    root = _parse(path, text)
    for name, array in _event_arrays(root):
        elements = array.elements or []
        for element in elements:
            if not is_our_entry(element.value, launcher):
                continue
            commands = element.members["hooks"].node if element.members else element
            ours = [c for c in commands.elements or [] if is_our_command(c.value, launcher)]
            if len(ours) < len(commands.elements or []):
                return _without(text, commands.elements or [], ours[0])
            if len(elements) > 1 or f"hooks.{name}" in existed:
                return _without(text, elements, element)
            return _without_event(text, root, name, existed)
    return None


def _event_arrays(root: jsonc.Node) -> list[tuple[str, jsonc.Node]]:
    hooks = (root.members or {}).get("hooks")
    members = hooks.node.members if hooks else None
    return [(name, member.node) for name, member in (members or {}).items()]


def _without(text: str, siblings: list[jsonc.Node], node: jsonc.Node) -> str:
    at = siblings.index(node)
    return jsonc.remove(text, node.start, node.end, siblings[at - 1].end if at else None)


def _without_event(text: str, root: jsonc.Node, name: str, existed: frozenset[str]) -> str:
    assert root.members is not None
    hooks = root.members["hooks"]
    assert hooks.node.members is not None
    if len(hooks.node.members) == 1 and "hooks" not in existed:
        return _without_member(text, root.members, "hooks")
    return _without_member(text, hooks.node.members, name)


def _without_member(text: str, members: dict[str, jsonc.Member], name: str) -> str:
    member = members[name]
    before = [m.node.end for m in members.values() if m.node.end <= member.start]
    return jsonc.remove(text, member.start, member.node.end, max(before, default=None))

"""Inserts our entries into a JSON file of another agent and removes them; nothing else changes.

An entry is an element of a list, such as `hooks.Stop`, or a member of an object, such as
`mcpServers.claude-mem`. It is ours if it runs one of our launchers.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from claude_mem.errors import BadInput, SettingsError
from claude_mem.install import jsonc
from claude_mem.types import Json


@dataclass(frozen=True, slots=True)
class Entry:
    place: tuple[str, ...]  # of the list, or of the member itself
    value: Json
    is_element: bool = True
    is_default: bool = False  # only where the file has no such member; it stays at the end


@dataclass(frozen=True, slots=True)
class Editor:
    """Edits the text of one file."""

    path: Path
    launchers: tuple[Path, ...]

    def with_entries(self, text: str, entries: tuple[Entry, ...]) -> str:
        text = text if text.strip() else "{}\n"
        for entry in entries:
            text = self._add(text, entry)
        return text

    def without_entries(
        self, text: str, entries: tuple[Entry, ...], existed: frozenset[tuple[str, ...]]
    ) -> str:
        """`existed`: the containers that the file had before install; they stay."""
        if not text.strip():
            return text
        for entry in entries:
            while (shorter := self._remove(text, entry, existed)) is not None:
                text = shorter
        return text

    def missing(self, text: str, entries: tuple[Entry, ...]) -> list[tuple[str, ...]]:
        """The places where the file has no entry of ours."""
        root = self._parse(text if text.strip() else "{}")
        return [
            entry.place
            for entry in entries
            if not entry.is_default and not any(True for _ in self._ours(root, entry))
        ]

    def is_ours(self, value: object) -> bool:
        text = json.dumps(value, ensure_ascii=False)
        return any(str(launcher) in text for launcher in self.launchers)

    def _parse(self, text: str) -> jsonc.Node:
        try:
            node = jsonc.parse(text)
        except BadInput as error:
            raise SettingsError(f"{self.path}, {error}; the file was not changed") from None
        if node.members is None:
            raise SettingsError(f"{self.path} must contain a JSON object; the file was not changed")
        return node

    def _add(self, text: str, entry: Entry) -> str:
        root = self._parse(text)
        node: jsonc.Node = root
        for depth, name in enumerate(entry.place):
            if node.members is None:
                raise self._wrong_type(entry.place[:depth], "an object")
            child = node.members.get(name)
            if child is None:
                return jsonc.add_member(text, node, name, _nested(entry, depth))
            node = child
        if entry.is_default:
            return text
        if not entry.is_element:
            return self._replace_member(text, node, entry)
        if node.elements is None:
            raise self._wrong_type(entry.place, "a list")
        for element in node.elements:
            if self.is_ours(element.value):
                is_shared = len(_commands(element.value)) > 1  # the user added to it
                same = element.value == entry.value
                return text if same or is_shared else jsonc.replace(text, element, entry.value)
        return jsonc.append_element(text, node, entry.value)

    def _replace_member(self, text: str, node: jsonc.Node, entry: Entry) -> str:
        if not self.is_ours(node.value):
            name = ".".join(entry.place)
            raise SettingsError(
                f"{self.path} has another {name}; rename it and run the command again"
            )
        return text  # as it is: the user may have added to it

    def _ours(self, root: jsonc.Node, entry: Entry) -> Iterator[tuple[list[jsonc.Node], int]]:
        """The nodes from the root to the container, and the position of our element in it."""
        nodes = [root]
        for name in entry.place:
            child = (nodes[-1].members or {}).get(name)
            if child is None:
                return
            nodes.append(child)
        if not entry.is_element:
            if self.is_ours(nodes[-1].value):
                yield nodes, -1
            return
        for position, element in enumerate(nodes[-1].elements or []):
            if self.is_ours(element.value):
                yield nodes, position

    def _remove(self, text: str, entry: Entry, existed: frozenset[tuple[str, ...]]) -> str | None:
        root = self._parse(text)
        ours = None if entry.is_default else next(self._ours(root, entry), None)
        if ours is None:
            return None
        nodes, position = ours
        if entry.is_element:
            elements = nodes[-1].elements or []
            element = elements[position]
            if (command := self._shared_command(element)) is not None:
                return jsonc.remove_child(text, *command)
            if len(elements) > 1 or entry.place in existed:
                return jsonc.remove_child(text, nodes[-1], element)
        return _remove_member(text, nodes, entry.place, existed)

    def _shared_command(self, element: jsonc.Node) -> tuple[jsonc.Node, jsonc.Node] | None:
        """Our command in an entry to which the user added others."""
        commands = (element.members or {}).get("hooks")
        if commands is None or len(commands.elements or []) < 2:
            return None
        ours = (node for node in commands.elements or [] if self.is_ours(node.value))
        return commands, next(ours)

    def _wrong_type(self, place: tuple[str, ...], expected: str) -> SettingsError:
        name = ".".join(place)
        return SettingsError(f"{self.path}: {name} must be {expected}; the file was not changed")


def containers(text: str, entries: tuple[Entry, ...]) -> frozenset[tuple[str, ...]]:
    """Which objects and lists around the entries the file has."""
    if not text.strip():
        return frozenset()
    root = jsonc.parse(text)
    present = set()
    for entry in entries:
        node: jsonc.Node | None = root
        for depth, name in enumerate(entry.place, 1):
            node = (node.members or {}).get(name) if node is not None else None
            if node is not None:
                present.add(entry.place[:depth])
    return frozenset(present)


def _nested(entry: Entry, depth: int) -> Json:
    value: Json = [entry.value] if entry.is_element else entry.value
    for name in reversed(entry.place[depth + 1 :]):
        value = {name: value}
    return value


def _commands(entry: object) -> list[object]:
    commands = entry.get("hooks") if isinstance(entry, dict) else None
    return commands if isinstance(commands, list) else []


def _remove_member(
    text: str,
    nodes: list[jsonc.Node],
    place: tuple[str, ...],
    existed: frozenset[tuple[str, ...]],
) -> str:
    """With the objects that only held it and did not exist before."""
    depth = len(place)
    while (
        depth > 1 and len(nodes[depth - 1].members or {}) == 1 and place[: depth - 1] not in existed
    ):
        depth -= 1
    return jsonc.remove_child(text, nodes[depth - 1], nodes[depth])

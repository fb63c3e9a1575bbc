"""Inserts our entries into a JSON file of an agent and removes them; nothing else changes.

An entry is ours if it runs one of our launchers, even if the user edited it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from claude_mem.agents.agent import Entry
from claude_mem.errors import BadInput, SettingsError
from claude_mem.install import jsonc
from claude_mem.json_objects import strings_in
from claude_mem.types import Json

Place = tuple[str, ...]
_IN_A_PATH = r"[\w./-]"


def runs(value: object, launcher: Path) -> bool:
    """Whether a text in the value names the launcher."""
    whole_path = re.compile(rf"(?<!{_IN_A_PATH}){re.escape(str(launcher))}(?!{_IN_A_PATH})")
    return any(whole_path.search(text) for text in strings_in(cast(Json, value)))


@dataclass(frozen=True, slots=True)
class Editor:
    """Edits the text of one file."""

    path: Path
    launchers: tuple[Path, ...]

    def with_entries(self, text: str, entries: tuple[Entry, ...]) -> str:
        """Elements of ours in lists next to these are removed: they are of another version."""
        text = text if text.strip() else "{}\n"
        for entry in entries:
            text = self._add(text, entry)
        return self._without_ours(text, entries, kept=frozenset(entry.place for entry in entries))

    def without_entries(
        self, text: str, entries: tuple[Entry, ...], existed: frozenset[Place] = frozenset()
    ) -> str:
        """`existed`: the containers that the file had before install; they stay."""
        return self._without_ours(text, entries, existed) if text.strip() else text

    def places(self, text: str, entries: tuple[Entry, ...]) -> list[Place]:
        """Where the file has an entry of ours."""
        root = self._parse(text if text.strip() else "{}")
        return list(dict.fromkeys(nodes.place for nodes, _ in self._ours(root, entries)))

    def is_ours(self, value: object) -> bool:
        return any(runs(value, launcher) for launcher in self.launchers)

    def _parse(self, text: str) -> jsonc.Node:
        try:
            node = jsonc.parse(text)
        except BadInput as error:
            raise SettingsError(f"{self.path}, {error}; the file was not changed") from None
        if node.members is None:
            raise SettingsError(f"{self.path} must contain a JSON object; the file was not changed")
        return node

    def _add(self, text: str, entry: Entry) -> str:
        node = self._parse(text)
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
            return self._checked_member(text, node, entry)
        if node.elements is None:
            raise self._wrong_type(entry.place, "a list")
        if any(element.value == entry.value for element in node.elements):
            return text
        for element in node.elements:
            if self.is_ours(element.value):
                commands = _commands(element)
                is_shared = not all(self.is_ours(command.value) for command in commands)
                # Of an older form, unless the user added to it.
                return text if is_shared else jsonc.replace(text, element, entry.value)
        return jsonc.append_element(text, node, entry.value)

    def _checked_member(self, text: str, node: jsonc.Node, entry: Entry) -> str:
        if not self.is_ours(node.value):
            name = ".".join(entry.place)
            raise SettingsError(
                f"{self.path} has another {name}; rename it and run the command again"
            )
        return text  # as it is: the user may have added to it

    def _ours(
        self, root: jsonc.Node, entries: tuple[Entry, ...]
    ) -> Iterator[tuple["_Nodes", jsonc.Node | None]]:
        """The members of ours, and the elements with their lists."""
        for nodes in _lists(root, entries):
            for element in nodes.last.elements or []:
                if self.is_ours(element.value):
                    yield nodes, element
        for entry in entries:
            if not entry.is_element and not entry.is_default:
                member = _find(root, entry.place)
                if member is not None and self.is_ours(member.last.value):
                    yield member, None

    def _without_ours(
        self,
        text: str,
        entries: tuple[Entry, ...],
        existed: frozenset[Place] = frozenset(),
        kept: frozenset[Place] = frozenset(),
    ) -> str:
        while True:
            ours = self._ours(self._parse(text), entries)
            nodes, element = next((o for o in ours if o[0].place not in kept), (None, None))
            if nodes is None:
                return text
            text = self._without(text, nodes, element, existed)

    def _without(
        self, text: str, nodes: "_Nodes", element: jsonc.Node | None, existed: frozenset[Place]
    ) -> str:
        if element is None:
            return _remove_member(text, nodes, existed)
        commands = _commands(element)
        ours = [command for command in commands if self.is_ours(command.value)]
        if ours and len(ours) < len(commands):  # the user added others
            return jsonc.remove_child(text, (element.members or {})["hooks"], ours[0])
        if len(nodes.last.elements or []) > 1 or nodes.place in existed:
            return jsonc.remove_child(text, nodes.last, element)
        return _remove_member(text, nodes, existed)

    def _wrong_type(self, place: Place, expected: str) -> SettingsError:
        name = ".".join(place)
        return SettingsError(f"{self.path}: {name} must be {expected}; the file was not changed")


@dataclass(frozen=True, slots=True)
class _Nodes:
    """The nodes from the root to a place."""

    place: Place
    nodes: tuple[jsonc.Node, ...]

    @property
    def last(self) -> jsonc.Node:
        return self.nodes[-1]


def containers(text: str, entries: tuple[Entry, ...]) -> frozenset[Place]:
    """Which objects and lists around the entries the file has."""
    if not text.strip():
        return frozenset()
    root = jsonc.parse(text)
    prefixes = {
        entry.place[:depth] for entry in entries for depth in range(1, len(entry.place) + 1)
    }
    lists = {nodes.place for nodes in _lists(root, entries)}
    return frozenset(lists | {place for place in prefixes if _find(root, place) is not None})


def _find(root: jsonc.Node, place: Place) -> _Nodes | None:
    nodes = [root]
    for name in place:
        child = (nodes[-1].members or {}).get(name)
        if child is None:
            return None
        nodes.append(child)
    return _Nodes(place, tuple(nodes))


def _lists(root: jsonc.Node, entries: tuple[Entry, ...]) -> Iterator[_Nodes]:
    """All members of the objects in which the entries have their lists."""
    for parent in dict.fromkeys(entry.place[:-1] for entry in entries if entry.is_element):
        found = _find(root, parent)
        for name, member in (found.last.members or {}).items() if found else ():
            yield _Nodes((*parent, name), (*found.nodes, member))  # type: ignore[union-attr]


def _nested(entry: Entry, depth: int) -> Json:
    value: Json = [entry.value] if entry.is_element else entry.value
    for name in reversed(entry.place[depth + 1 :]):
        value = {name: value}
    return value


def _commands(element: jsonc.Node) -> list[jsonc.Node]:
    """Returns the commands of an element that runs several; empty if it is a command itself."""
    hooks = (element.members or {}).get("hooks")
    return (hooks.elements if hooks else None) or []


def _remove_member(text: str, nodes: _Nodes, existed: frozenset[Place]) -> str:
    """Removes a member, with the objects that only held it and did not exist before."""
    depth = len(nodes.place)
    while (
        depth > 1
        and len(nodes.nodes[depth - 1].members or {}) == 1
        and nodes.place[: depth - 1] not in existed
    ):
        depth -= 1
    return jsonc.remove_child(text, nodes.nodes[depth - 1], nodes.nodes[depth])

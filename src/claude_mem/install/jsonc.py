"""JSON with comments, edited in place: what is not touched keeps its bytes.

A settings file belongs to the person. Parsing and writing it anew would lose comments, order and
layout; so this finds where values stand in the text, and changes only there.
"""

import json
import re
from dataclasses import dataclass, field

from claude_mem.errors import BadInput

_SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*[\s\S]*?\*/)*")
_SCALAR = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
DEEPEST = 100


@dataclass(slots=True)
class Node:
    """A value and where it stands: text[start:end]."""

    start: int
    end: int
    value: object = None
    members: dict[str, "Member"] | None = None  # of an object
    elements: list["Node"] | None = None  # of an array


@dataclass(slots=True)
class Member:
    start: int  # where its name begins
    node: Node


@dataclass(slots=True)
class _Parser:
    text: str
    at: int = 0
    depth: int = field(default=0)

    def fail(self, what: str) -> BadInput:
        line = self.text.count("\n", 0, self.at) + 1
        return BadInput(f"line {line}: {what}")

    def space(self) -> None:
        match = _SPACE.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def take(self, character: str) -> bool:
        self.space()
        if self.text[self.at : self.at + 1] == character:
            self.at += 1
            return True
        return False

    def value(self) -> Node:
        self.space()
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.fail("nested too deeply")
        head = self.text[self.at : self.at + 1]
        if head == "{":
            node = self.object()
        elif head == "[":
            node = self.array()
        elif head == '"':
            node = self.string()
        else:
            node = self.scalar()
        self.depth -= 1
        return node

    def string(self) -> Node:
        match = _STRING.match(self.text, self.at)
        if match is None:
            raise self.fail("a text is not closed")
        self.at = match.end()
        try:
            return Node(match.start(), match.end(), json.loads(match[0]))
        except ValueError:
            raise self.fail("a text holds a bad escape") from None

    def scalar(self) -> Node:
        match = _SCALAR.match(self.text, self.at)
        if match is None:
            found = self.text[self.at : self.at + 10] or "the end"
            raise self.fail(f"a value was expected, not {found!r}")
        self.at = match.end()
        try:
            return Node(match.start(), match.end(), json.loads(match[0]))
        except ValueError:
            raise self.fail(f"{match[0]!r} is not a number") from None

    def object(self) -> Node:
        start = self.at
        self.at += 1
        members: dict[str, Member] = {}
        while not self.take("}"):
            self.space()
            name_at = self.at
            if self.text[name_at : name_at + 1] != '"':
                raise self.fail("a name in quotes was expected")
            name = str(self.string().value)
            if not self.take(":"):
                raise self.fail(f"':' was expected after {name!r}")
            members[name] = Member(name_at, self.value())
            if not self.take(",") and self.text[self.at : self.at + 1] != "}":
                raise self.fail("',' or '}' was expected")
        value = {name: member.node.value for name, member in members.items()}
        return Node(start, self.at, value, members=members)

    def array(self) -> Node:
        start = self.at
        self.at += 1
        elements: list[Node] = []
        while not self.take("]"):
            elements.append(self.value())
            if not self.take(",") and self.text[self.at : self.at + 1] != "]":
                raise self.fail("',' or ']' was expected")
        return Node(start, self.at, [element.value for element in elements], elements=elements)


def parse(text: str) -> Node:
    parser = _Parser(text)
    node = parser.value()
    parser.space()
    if parser.at != len(text):
        raise parser.fail("something stands behind the end")
    return node


def append_element(text: str, array: Node, value: object) -> str:
    assert array.elements is not None
    last = array.elements[-1] if array.elements else None
    return _append(text, array, last, "", value)


def add_member(text: str, parent: Node, name: str, value: object) -> str:
    assert parent.members is not None
    nodes = [member.node for member in parent.members.values()]
    last = max(nodes, key=lambda node: node.end, default=None)
    return _append(text, parent, last, f"{json.dumps(name)}: ", value)


def _append(text: str, parent: Node, last: Node | None, name: str, value: object) -> str:
    """Behind the last child and in its layout, or as the first child of an empty parent."""
    outer = _indent_of_line(text, parent.start)
    inner = outer + _unit(text)
    written = name + _laid_out(text, value, inner)
    if last is not None:
        return f"{text[: last.end]},\n{inner}{written}{text[last.end :]}"
    rest = text[parent.start + 1 :].lstrip()
    return f"{text[: parent.start + 1]}\n{inner}{written}\n{outer}{rest}"


def _laid_out(text: str, value: object, indent: str) -> str:
    return json.dumps(value, indent=_unit(text)).replace("\n", "\n" + indent)


def _unit(text: str) -> str:
    """What this file indents by."""
    match = re.search(r"\n([ \t]+)\S", text)
    return match[1] if match else "  "


def _indent_of_line(text: str, at: int) -> str:
    line_start = text.rfind("\n", 0, at) + 1
    rest = text[line_start:at]
    return rest[: len(rest) - len(rest.lstrip())]


def replace(text: str, node: Node, value: object) -> str:
    indent = _indent_of_line(text, node.start)
    return text[: node.start] + _laid_out(text, value, indent) + text[node.end :]


def remove(text: str, start: int, end: int, previous_end: int | None) -> str:
    """Without the child text[start:end] and the comma that parted it from its neighbour.

    `previous_end` is where the child before it ends. Comments stay.
    """
    if previous_end is not None:
        comma = _behind_space(text, previous_end)
        between = text[comma + 1 : start]
        return text[:comma] + (between.rstrip() if between.strip() else "") + text[end:]
    comma = _behind_space(text, end)
    if text[comma : comma + 1] == ",":
        return text[:start] + text[end:comma].strip() + text[comma + 1 :].lstrip()
    head = text[:start]
    if head.rstrip().endswith(("{", "[")):
        head = head.rstrip()
    return head + text[end:].lstrip()


def _behind_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()

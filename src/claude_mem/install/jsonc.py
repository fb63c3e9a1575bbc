"""JSON with comments, edited in place: everything outside the edit keeps its bytes.

A settings file belongs to the user. Parsing it and writing it again would lose comments, order and
layout, so this module locates values in the text and changes only those ranges.

It is our own because most readers of JSON with comments drop the comments, and json-five, which
keeps them, accepts all of JSON5 and prints the document again from its own model.
"""

import json
import re
from dataclasses import dataclass

from claude_mem.errors import BadInput

_COMMENT = r"//[^\n]*|/\*[\s\S]*?\*/"
_SPACE = re.compile(rf"(?:\s+|{_COMMENT})*")
# One that is not closed ends with the text: then no text is scanned twice.
_COMMENTS = re.compile(r"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)")
_SCALAR = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
MAX_DEPTH = 100


@dataclass(slots=True)
class Node:
    """A value and its range: text[start:end]."""

    start: int
    end: int
    value: object = None
    members: dict[str, "Node"] | None = None  # of an object; of a repeated name, the last
    elements: list["Node"] | None = None  # of an array
    children: tuple["Span", ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """The range of an element, or of a member with its name."""

    start: int
    end: int


@dataclass(slots=True)
class _Parser:
    text: str
    position: int = 0
    depth: int = 0

    def error(self, message: str) -> BadInput:
        line = self.text.count("\n", 0, self.position) + 1
        return BadInput(f"line {line}: {message}")

    def peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def skip_space(self) -> None:
        self.position = _after_space(self.text, self.position)

    def accept(self, character: str) -> bool:
        self.skip_space()
        if self.peek() == character:
            self.position += 1
            return True
        return False

    def value(self) -> Node:
        self.skip_space()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error("nested too deeply")
        head = self.peek()
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
        match = _STRING.match(self.text, self.position)
        if match is None:
            raise self.error("unterminated string")
        self.position = match.end()
        try:
            return Node(match.start(), match.end(), json.loads(match[0]))
        except ValueError:
            raise self.error("invalid escape in a string") from None

    def scalar(self) -> Node:
        match = _SCALAR.match(self.text, self.position)
        if match is None:
            actual = self.text[self.position : self.position + 10] or "end of file"
            raise self.error(f"expected a value, got {actual!r}")
        self.position = match.end()
        try:
            return Node(match.start(), match.end(), json.loads(match[0]))
        except ValueError:
            raise self.error(f"{match[0]!r} is not a number") from None

    def object(self) -> Node:
        start = self.position
        self.position += 1
        members: dict[str, Node] = {}
        children: list[Span] = []
        while not self.accept("}"):
            name_start = self.position
            if self.peek() != '"':
                raise self.error("expected a name in double quotes")
            name = str(self.string().value)
            if not self.accept(":"):
                raise self.error(f"expected ':' after {name!r}")
            members[name] = self.value()
            children.append(Span(name_start, members[name].end))
            if not self.accept(",") and self.peek() != "}":
                raise self.error("expected ',' or '}'")
        value = {name: member.value for name, member in members.items()}
        return Node(start, self.position, value, members=members, children=tuple(children))

    def array(self) -> Node:
        start = self.position
        self.position += 1
        elements: list[Node] = []
        while not self.accept("]"):
            elements.append(self.value())
            if not self.accept(",") and self.peek() != "]":
                raise self.error("expected ',' or ']'")
        values = [element.value for element in elements]
        children = tuple(Span(element.start, element.end) for element in elements)
        return Node(start, self.position, values, elements=elements, children=children)


def parse(text: str) -> Node:
    parser = _Parser(text)
    node = parser.value()
    parser.skip_space()
    if parser.position != len(text):
        raise parser.error("unexpected text after the end")
    return node


def append_element(text: str, array: Node, value: object) -> str:
    return _append(text, array, "", value)


def add_member(text: str, parent: Node, name: str, value: object) -> str:
    return _append(text, parent, f"{json.dumps(name)}: ", value)


def _append(text: str, parent: Node, name: str, value: object) -> str:
    """Adds a child after the last one and in its layout, or as the first of an empty parent."""
    outer = _line_indent(text, parent.start)
    inner = outer + _indent_unit(text)
    child = name + _format(text, value, inner)
    if parent.children:
        last_end = parent.children[-1].end
        return f"{text[:last_end]},\n{inner}{child}{text[last_end:]}"
    rest = text[parent.start + 1 :].lstrip()
    return f"{text[: parent.start + 1]}\n{inner}{child}\n{outer}{rest}"


def _format(text: str, value: object, indent: str) -> str:
    return json.dumps(value, indent=_indent_unit(text)).replace("\n", "\n" + indent)


def _indent_unit(text: str) -> str:
    """The indentation step of this file."""
    match = re.search(r"\n([ \t]+)\S", text)
    return match[1] if match else "  "


def _line_indent(text: str, position: int) -> str:
    line_start = text.rfind("\n", 0, position) + 1
    line = text[line_start:position]
    return line[: len(line) - len(line.lstrip())]


def replace(text: str, node: Node, value: object) -> str:
    indent = _line_indent(text, node.start)
    return text[: node.start] + _format(text, value, indent) + text[node.end :]


def remove_child(text: str, parent: Node, node: Node) -> str:
    """Remove an element, or a member with its name, and the comma between it and its neighbour.

    Comments around it stay.
    """
    index = next(i for i, span in enumerate(parent.children) if span.end == node.end)
    child = parent.children[index]
    head, tail = text[: child.start], text[child.end :]
    if index > 0:
        comma = _after_space(text, parent.children[index - 1].end)
        return text[:comma] + _comments(text[comma + 1 : child.start], tail) + tail
    comma = _after_space(text, child.end)
    if text[comma : comma + 1] == ",":
        rest = text[comma + 1 :].lstrip()
        return head + _comments(text[child.end : comma].lstrip(), rest) + rest
    opening = text[: parent.start + 1]
    return (head if head[len(opening) :].strip() else opening) + tail.lstrip()


def _comments(gap: str, tail: str) -> str:
    """The comments between two values; a line comment keeps its line end, or it swallows `tail`."""
    comments = _COMMENTS.findall(gap)
    if not comments:
        return ""
    ends_line = comments[-1].startswith("//") and not tail.startswith(("\n", "\r\n"))
    return gap.rstrip() + ("\n" if ends_line else "")


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    assert match is not None
    return match.end()

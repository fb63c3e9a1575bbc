"""Every regular expression of the package, and texts that make a slow one show itself.

The texts are made from a pattern's own syntax tree: for each repetition in it, what leads up to
it, what it repeats many times over, and something that cannot follow.
"""

import ast
import importlib
import pkgutil
import re
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import string
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import claude_mem

# Importing these runs them.
ENTRY_POINTS = ("claude_mem.__main__", "claude_mem.hook.__main__", "claude_mem.mcp.__main__")
_COMMON = " \n\t\"'`aA0_-.:/@=<>()[]{}\\,;éИ中"
_UNLIKELY = ("", "\x00", "!", "\n", "(")
_PLAIN = frozenset({str, bytes, int, float, bool, type(None)})
_LONG = 20  # a bounded repetition from which on it counts as one


@dataclass(frozen=True)
class Use:
    """A pattern, and whether it is only tried at the beginning of a text."""

    name: str
    pattern: re.Pattern[Any]
    anchored: bool

    def run(self, text: str) -> None:
        data = text.encode("utf-8") if isinstance(self.pattern.pattern, bytes) else text
        if self.anchored:
            self.pattern.match(data)
        else:
            for _ in self.pattern.finditer(data):
                pass


@dataclass(frozen=True)
class Attack:
    head: str
    body: str
    tail: str
    again: bool  # the head is repeated with the body

    def text(self, size: int) -> str:
        piece = self.head + self.body if self.again else self.body
        count = max(1, size // len(piece))
        return ("" if self.again else self.head) + piece * count + self.tail


# Finding the patterns


def modules() -> Iterator[ModuleType]:
    for info in pkgutil.walk_packages(claude_mem.__path__, "claude_mem."):
        if info.name in ENTRY_POINTS:
            continue
        try:
            yield importlib.import_module(info.name)
        except ModuleNotFoundError as error:
            if str(error.name).startswith("claude_mem"):
                raise
            # It needs an extra, such as the team server; `make test-all` has them all.


def uses() -> list[Use]:
    """Lists the uses of the patterns that modules hold, and of those that are written where they
    are used."""
    collected: dict[tuple[Any, int], Use] = {}
    for module in modules():
        source = Path(str(module.__file__)).read_text("utf-8")
        for name, value in vars(module).items():
            for pattern in _patterns_in(value, module.__name__, set()):
                if (key := (pattern.pattern, pattern.flags)) not in collected:
                    anchored = _is_anchored(name, source)
                    collected[key] = Use(f"{module.__name__}.{name}", pattern, anchored)
    for path in sorted(Path(claude_mem.__file__).parent.rglob("*.py")):
        for line, pattern in inline_patterns(path.read_text("utf-8")):
            use = Use(f"{path.stem}, line {line}", pattern, anchored=False)
            collected.setdefault((pattern.pattern, pattern.flags), use)
    return list(collected.values())


def _is_anchored(name: str, source: str) -> bool:
    methods = set(re.findall(rf"\b{re.escape(name)}\.(\w+)", source))
    return bool(methods) and methods <= {"match", "fullmatch"}


def _patterns_in(value: object, module: str, visited: set[int]) -> Iterator[re.Pattern[Any]]:
    if id(value) in visited:
        return
    visited.add(id(value))
    inner: Iterable[object] = ()
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        inner = (*value.keys(), *value.values())
    elif isinstance(value, list | tuple | set | frozenset):
        inner = value
    elif isinstance(value, type) and value.__module__.startswith("claude_mem"):
        inner = vars(value).values()
    elif is_dataclass(value) and not isinstance(value, type):
        inner = [getattr(value, field.name) for field in fields(value)]
    elif type(value).__module__.startswith("claude_mem"):
        inner = getattr(value, "__dict__", {}).values()
    elif callable(value) and getattr(value, "__module__", None) == module:
        inner = (*(getattr(value, "__defaults__", None) or ()),
                 *(_cell(cell) for cell in getattr(value, "__closure__", None) or ()))  # fmt: skip
    for item in inner:
        if type(item) not in _PLAIN:  # most of them, in large tables
            yield from _patterns_in(item, module, visited)


def _cell(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def inline_patterns(source: str) -> Iterator[tuple[int, re.Pattern[str]]]:
    """The patterns that functions write down themselves; what they fill in becomes a word."""
    if re.search(r"\bre\s*\.", source) is None:
        return
    functions = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)]
    for node in (node for function in functions for node in ast.walk(function)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re"):
            continue
        if node.func.attr == "escape":
            continue
        written = node.args[0]
        if isinstance(written, ast.Constant) and isinstance(written.value, str):
            yield node.lineno, re.compile(written.value)
        elif isinstance(written, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "word" for p in written.values]
            yield node.lineno, re.compile("".join(map(str, parts)))


# Making the texts


def attacks(pattern: re.Pattern[Any]) -> list[Attack]:
    source, flags = pattern.pattern, pattern.flags
    text = source.decode("latin-1") if isinstance(source, bytes) else source
    if isinstance(source, bytes):
        flags = (flags & ~re.ASCII) | re.ASCII
    tree = parser.parse(text, flags)
    alphabet = "".join(dict.fromkeys([*_COMMON, *(c for c in text if c.isprintable())]))
    made: dict[Attack, None] = {}
    for head, body in _repetitions(tree, "", _distinct(alphabet[:60], tree)):
        for tail in _UNLIKELY:
            made[Attack(head, body, tail, again=False)] = None
        if head:
            made[Attack(head, body, "", again=True)] = None
            made[Attack(head, body, "\x00", again=True)] = None
    begin = _sample(tree, alphabet)
    if begin:
        made[Attack("", begin, "\x00", again=False)] = None
        made[Attack("", begin[: max(1, len(begin) // 2)], "", again=False)] = None
    return list(made)


def _repetitions(tree: Any, head: str, alphabet: str) -> Iterator[tuple[str, str]]:
    """(what leads up to a repetition, what it repeats), for each of them and each way to do so."""
    for operation, argument in tree:
        if operation in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            low, high, inner = argument
            if high == sre.MAXREPEAT or high >= _LONG:
                for body in _bodies(inner, alphabet):
                    yield head, body
            yield from _repetitions(inner, head, alphabet)
            head += _sample(inner, alphabet) * min(max(low, 1), 60)
        elif operation is sre.SUBPATTERN:
            yield from _repetitions(argument[3], head, alphabet)
            head += _sample(argument[3], alphabet)
        elif operation is sre.ATOMIC_GROUP:
            yield from _repetitions(argument, head, alphabet)
            head += _sample(argument, alphabet)
        elif operation is sre.BRANCH:
            for branch in argument[1]:
                yield from _repetitions(branch, head, alphabet)
            head += _sample(argument[1][0], alphabet)
        elif operation in (sre.ASSERT, sre.ASSERT_NOT):
            yield from _repetitions(argument[1], head, alphabet)
        else:
            head += _sample([(operation, argument)], alphabet)


def _distinct(alphabet: str, tree: Any) -> str:
    """One of the characters that the pattern treats alike, for each way to treat them."""
    atoms = list(_atoms(tree))
    first: dict[tuple[bool, ...], str] = {}
    for character in alphabet:
        first.setdefault(tuple(_accepts(*atom, character) for atom in atoms), character)
    return "".join(first.values())


def _atoms(tree: Any) -> Iterator[tuple[Any, Any]]:
    """What matches a single character, wherever it stands in the pattern."""
    for operation, argument in tree:
        if operation in (sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY):
            yield operation, argument
        elif operation in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            yield from _atoms(argument[2])
        elif operation is sre.SUBPATTERN:
            yield from _atoms(argument[3])
        elif operation is sre.ATOMIC_GROUP:
            yield from _atoms(argument)
        elif operation is sre.BRANCH:
            for branch in argument[1]:
                yield from _atoms(branch)
        elif operation in (sre.ASSERT, sre.ASSERT_NOT):
            yield from _atoms(argument[1])


def _bodies(inner: Any, alphabet: str) -> set[str]:
    bodies = {_sample(inner, alphabet)}
    if len(inner) == 1:  # one character: each of those that it may be
        operation, argument = inner[0]
        if operation in (sre.IN, sre.ANY, sre.NOT_LITERAL):
            bodies |= {c for c in alphabet if _accepts(operation, argument, c)}
    else:
        bodies |= {_sample(inner, alphabet[start:]) for start in (1, 5, 9)}
    return {body for body in bodies if body}


def _sample(tree: Any, alphabet: str) -> str:
    """A short text that this matches, or nearly."""
    text = ""
    for operation, argument in tree:
        if operation is sre.LITERAL:
            text += chr(argument)
        elif operation in (sre.IN, sre.ANY, sre.NOT_LITERAL):
            letters = string.ascii_lowercase + string.digits + alphabet
            text += next((c for c in letters if _accepts(operation, argument, c)), "")
        elif operation in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            text += _sample(argument[2], alphabet) * min(max(argument[0], 1), 60)
        elif operation is sre.SUBPATTERN:
            text += _sample(argument[3], alphabet)
        elif operation is sre.ATOMIC_GROUP:
            text += _sample(argument, alphabet)
        elif operation is sre.BRANCH:
            text += _sample(argument[1][0], alphabet)
    return text


_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    sre.CATEGORY_DIGIT: str.isdigit,
    sre.CATEGORY_SPACE: str.isspace,
    sre.CATEGORY_WORD: lambda c: c.isalnum() or c == "_",
}
_OPPOSITE = {
    sre.CATEGORY_NOT_DIGIT: sre.CATEGORY_DIGIT,
    sre.CATEGORY_NOT_SPACE: sre.CATEGORY_SPACE,
    sre.CATEGORY_NOT_WORD: sre.CATEGORY_WORD,
}


def _accepts(operation: Any, argument: Any, character: str) -> bool:
    if operation is sre.LITERAL:
        return bool(ord(character) == argument)
    if operation is sre.ANY:
        return character != "\n"
    if operation is sre.NOT_LITERAL:
        return bool(ord(character) != argument)
    negated, code = False, ord(character)
    for kind, detail in argument:
        if kind is sre.NEGATE:
            negated = True
        elif (
            (kind is sre.LITERAL and detail == code)
            or (kind is sre.RANGE and detail[0] <= code <= detail[1])
            or (kind is sre.CATEGORY and _in_category(detail, character))
        ):
            return not negated
    return negated


def _in_category(category: Any, character: str) -> bool:
    if category in _OPPOSITE:
        return not _CATEGORIES[_OPPOSITE[category]](character)
    return bool(_CATEGORIES[category](character))

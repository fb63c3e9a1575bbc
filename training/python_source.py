"""Python source: docstrings, comments, tests and errors, each with the code it describes."""

import ast
import re
from collections.abc import Iterator

from prose import TextPair, comments, cut, paragraph, plain, sentences, title

_NAME = re.compile(r"[A-Za-z_]\w{2,}")
_RAISED = re.compile(
    r"((?:^.*\n){0,2})^[ \t]*raise (\w+)\(\s*f?([\"'])((?:(?!\3).){15,300})\3", re.MULTILINE
)
_FIELD = re.compile(
    r"(?m)^\s*(?::\w+[^:\n]*:|@\w+|Args:|Returns:|Raises:|Parameters|Returns|-{3,}$)"
)
_COMMON = frozenset(
    [
        "def",
        "class",
        "return",
        "self",
        "cls",
        "for",
        "not",
        "None",
        "True",
        "False",
        "import",
        "from",
        "with",
        "try",
        "except",
        "else",
        "elif",
        "and",
        "isinstance",
        "len",
        "str",
        "int",
        "raise",
        "the",
        "pass",
        "yield",
        "assert",
        "lambda",
        "super",
        "args",
        "kwargs",
        "async",
        "await",
    ]
)
MAX_NAMES = 40
MAX_CHARACTERS = 200_000


def python_source(text: str, is_test: bool) -> Iterator[TextPair]:
    if len(text) > MAX_CHARACTERS:
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines = text.split("\n")
    for node in _definitions(tree):
        yield from _definition(node, lines, is_test)
    yield from comments(text, "#")
    for before, kind, _, message in _RAISED.findall(text):
        error, condition = cut(f"{kind}: {message}"), cut(before)
        if error:
            yield (condition, error) if condition else (error, None)


Node = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _definitions(tree: ast.AST) -> Iterator[Node]:
    if isinstance(tree, Node):
        yield tree
    for child in getattr(tree, "body", ()):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _definitions(child)


def _definition(node: Node, lines: list[str], is_test: bool) -> Iterator[TextPair]:
    docstring = ast.get_docstring(node) if node.body else None
    if docstring:
        yield from _docstring(docstring, node, lines)
    elif is_test and not isinstance(node, ast.Module) and node.name.lower().startswith("test"):
        name = title(node.name.replace("_", " "))
        body = cut("\n".join(lines[node.lineno : node.end_lineno]))
        if name.count(" ") >= 2 and body:
            yield name, body


def _docstring(docstring: str, node: Node, lines: list[str]) -> Iterator[TextPair]:
    described = plain(_FIELD.split(docstring, maxsplit=1)[0])
    summary = cut(sentences(described.split("\n\n")[0])[0])
    if not summary:
        return
    rest = cut(described.replace("\n", " ").strip()[len(summary) :])
    if not isinstance(node, ast.Module):
        signature = cut(_signature(node, lines))
        if signature:
            yield summary, signature
    if rest:
        yield summary, rest
    for block in plain(docstring).split("\n\n")[1:6]:
        yield from paragraph(block)


def _signature(
    node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]
) -> str:
    first = node.body[0]
    heading = " ".join(line.strip() for line in lines[node.lineno - 1 : first.lineno - 1])
    body = "\n".join(lines[first.end_lineno or first.lineno : (node.end_lineno or 0)][:60])
    names = [name for name in dict.fromkeys(_NAME.findall(body)) if name not in _COMMON]
    return f"{heading[:200]} {' '.join(names[:MAX_NAMES])}"

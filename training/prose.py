"""Texts and pairs of documentation (sections, paragraphs, sentences) and of code comments."""

import html
import re
from collections.abc import Iterator

TextPair = tuple[str, str | None]  # a text and one that is related to it, if any

MAX_TEXT = 500
_UNDERLINE = re.compile(r"""^([=\-~^"'#*+.`:_])\1{2,}\s*$""")
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$")
_FENCE = re.compile(r"^\s*(```|~~~)")
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(`])")
_ROLE = re.compile(r":[\w:+-]+:`~?([^`<]+?)(?:\s*<[^>]*>)?`")
_LINKED = re.compile(r"`([^`<]+?)\s*<[^>]*>`_*")
_MD_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ADDRESS = re.compile(r"https?://\S+")
_TAG = re.compile(r"<[^>]{1,300}>")
_SKIPPED = re.compile(r"(?is)<(script|style|head|nav|footer)\b.*?</\1>")
_HTML_HEADING = re.compile(r"(?is)<(?:h[1-6]|title|dt)\b[^>]*>(.*?)</(?:h[1-6]|title|dt)>")
_HTML_BLOCK = re.compile(
    r"(?i)</?(?:p|div|li|ul|ol|dl|dd|pre|table|tr|td|section|note|item|br)\b[^>]*>"
)
_WORDS = re.compile(r"[A-Za-z]{2,}")


def cut(text: str) -> str:
    """One line of at most 500 characters, in complete words; empty unless it is prose or code."""
    line = " ".join(text.split())
    if len(line) > MAX_TEXT:
        line = line[:MAX_TEXT].rsplit(" ", 1)[0]
    letters = sum(character.isascii() and character.isalpha() for character in line)
    enough = len(_WORDS.findall(line)) >= 3 and letters * 2 > len(line)
    return line if enough else ""


def title(text: str) -> str:
    """Like cut, for texts that may be short."""
    line = " ".join(text.split())[:MAX_TEXT]
    return line if _WORDS.search(line) else ""


def plain(text: str) -> str:
    text = _ADDRESS.sub("", _MD_LINK.sub(r"\1", _LINKED.sub(r"\1", _ROLE.sub(r"\1", text))))
    return _TAG.sub("", text).replace("``", "").replace("**", "").replace("`", "")


def sentences(text: str) -> list[str]:
    return _SENTENCE.split(" ".join(text.split()))


def paragraph(text: str) -> Iterator[TextPair]:
    """The first sentence and the rest, or all of it as one text."""
    shortened = cut(text)
    if not shortened:
        return
    parts = sentences(text)
    first, rest = cut(parts[0]), cut(" ".join(parts[1:]))
    if first and rest and len(rest) > 40:
        yield first, rest
        if len(text) > MAX_TEXT:
            yield from ((sentence, None) for sentence in map(cut, parts[3:12:2]) if sentence)
    else:
        yield shortened, None


def document(text: str) -> Iterator[TextPair]:
    """Markdown or reStructuredText: headings with their section, then its paragraphs."""
    path: list[str] = []
    body: list[str] = []
    lines = text.replace("\r", "").split("\n")
    fenced = False
    at = 0
    while at < len(lines):
        line = lines[at]
        following = lines[at + 1] if at + 1 < len(lines) else ""
        if _FENCE.match(line):
            fenced = not fenced
            at += 1
            continue
        heading = None if fenced else _heading(line, following)
        if heading:
            yield from section(path, body)
            path, body = [*path[-1:], heading[0]], []
            at += heading[1]
            continue
        body.append(line)
        at += 1
    yield from section(path, body)


def _heading(line: str, following: str) -> tuple[str, int] | None:
    match = _HEADING.match(line)
    if match:
        return match[1], 1
    if line.strip() and not line[0].isspace() and len(line) < 90 and _UNDERLINE.match(following):
        return (line, 2) if len(following.strip()) >= min(len(line.strip()), 4) else None
    return None


def section(path: list[str], body: list[str]) -> Iterator[TextPair]:
    blocks = list(_blocks(body))
    if path and blocks:
        content = cut(" ".join(blocks))
        name = title(plain(": ".join(path[-2:])))
        if content and name:
            yield name, content
    for before, block in zip(["", *blocks], blocks, strict=False):
        if _is_code(block):
            introduction, code = cut(before), cut(block)
            if introduction and code and not _is_code(before):
                yield introduction, code
        else:
            yield from paragraph(block)


def _blocks(body: list[str]) -> list[str]:
    blocks: list[str] = []
    gathered: list[str] = []
    for line in [*body, ""]:
        if line.lstrip().startswith((".. ", "|", "<!--")) or _UNDERLINE.match(line):
            line = ""
        if (not line.strip() or _BULLET.match(line)) and gathered:
            blocks.append("\n".join(gathered))
            gathered = []
        if line.strip():
            gathered.append(_BULLET.sub("", line))
    return [block if _is_code(block) else plain(block) for block in blocks]


def _is_code(block: str) -> bool:
    symbols = sum(block.count(symbol) for symbol in "(){}[]=<>;_$/|")
    return symbols * 14 > len(block)


def web_page(text: str) -> Iterator[TextPair]:
    """HTML, DocBook or Mallard: headings are kept, other tags removed."""
    text = _HTML_HEADING.sub(lambda match: f"\n\n# {_flat(match[1])}\n\n", _SKIPPED.sub("", text))
    text = html.unescape(_TAG.sub("", _HTML_BLOCK.sub("\n\n", text)))
    return document(text.replace("¶", ""))


def _flat(inner: str) -> str:
    return " ".join(_TAG.sub("", inner).split())


_COMMENTS = {
    "#": re.compile(r"(?m)^[ \t]*#(?!!)[ \t]?(.*)$"),
    "//": re.compile(r"(?m)^[ \t]*//[/!]?[ \t]?(.*)$"),
}
_STARRED = re.compile(r"(?s)/\*\*?(?!/)(.{20,4000}?)\*/")
_STAR = re.compile(r"(?m)^[ \t]*\*[ \t]?")
_LICENCE = re.compile(r"(?i)copyright|licen[sc]e|SPDX|eslint|noqa|pylint|type: ignore|prettier")


def comments(text: str, mark: str) -> Iterator[TextPair]:
    """Each block of comment lines with the lines after it."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        comment: list[str] = []
        while at < len(lines) and (match := _COMMENTS[mark].match(lines[at])):
            comment.append(match[1])
            at += 1
        if comment:
            yield from _about("\n".join(comment), "\n".join(lines[at : at + 4]))
        at += 1


def starred_comments(text: str) -> Iterator[TextPair]:
    for match in _STARRED.finditer(text):
        after = "\n".join(text[match.end() : match.end() + 400].lstrip().split("\n")[:4])
        yield from _about(_STAR.sub("", match[1]), after)


def _about(comment: str, code: str) -> Iterator[TextPair]:
    comment = plain(comment.replace("@param", "").replace("{@link", "").replace("@returns", ""))
    if len(comment) < 20 or _LICENCE.search(comment):
        return
    first = cut(sentences(comment.split("\n\n")[0])[0])
    code = cut(code)
    if first and code:
        yield first, code
    if len(comment) > len(first) + 40:
        yield from paragraph(comment)

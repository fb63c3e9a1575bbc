"""Splits Markdown into passages: sentences, list items, table rows and short code.

Each passage has the heading and the label above it. Long code is dropped, because it is in the
files. A parser of our own, because agents and users write Markdown loosely and paste anything:
every step takes time linear in the text.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from claude_mem.text import shorten

Kind = Literal["prose", "item", "row", "code"]

LONGEST_CODE_LINES, LONGEST_CODE = 4, 240
LONGEST_PASSAGE = 420
LONGEST_LABEL_LINE = 160
LONGEST_LINE = 8_000
LARGEST_TEXT = 200_000  # a longer text is a dump, not a message

_FENCES = ("```", "~~~")
_RULES = "-*_="
# First characters of lines with structure; every other line is prose.
_STRUCTURE = frozenset("#|:-*_=+•‣–0123456789")
_LABEL_LINE = re.compile(r"(?:\d+[.)]\s+)?\*\*(.+?)\*\*\s*+(?:\([^)]{0,160}+\)\s*+)?[:：]?$")
_ITEM = re.compile(r"(\s*)(?:[-*+•‣–]|\d{1,2}[.)])\s+(?:\[[ xX]\]\s+)?(.*)$")
_BOLD_LABEL = re.compile(
    r"(?:\*\*)?([^\W\d_][\w `'/&().-]{1,60}?)(?:\*\*\s*[:：]|[:：]\*\*|\*\*\s+[—–-])\s*"
)
_PLAIN_LABEL = re.compile(r"([A-Z][\w'-]{0,40}(?: [\w'-]{1,40}){0,3}):\s+(?=\S)")
_NUMBERED = re.compile(r"\d{1,2}[.)]\s+")
_LINK = re.compile(r"!?\[([^\]\n]{0,200})\]\((?:[^()\s]|\([^()\s]{0,100}\)){0,400}\)")
_CODE_LINK = re.compile(r"\[(`[^`\n]{1,200}`)\]\((?:[^()\s]|\([^()\s]{0,100}\)){0,400}\)")
_BOLD = re.compile(r"(?<!/)\*\*(?![/.])")  # but not `**/*.md`
_ITALICS = re.compile(r"(?<![\w*/.\\])\*([^\s*./][^*\n]{0,200})\*(?![\w*])")
_TAGS = re.compile(r"</?(?:br|b|i|em|strong|details|summary)\s{0,3}/?>")
_EMOJI = " \t✅✓✔☑❌✗⚠🎉🚀👍🔧📝🐛➡•·\ufe0f"
_STOP = re.compile(r"[.!?؟][\"')\]*»”]{0,3}\s+|[。！？।۔][」』”）]?\s*")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|z\.B|vs|cf|ca|approx|no|nr|fig|al)|\b[A-Za-z])$")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")


class MessagePassage(NamedTuple):  # made in a fifth of the time of a frozen dataclass
    text: str
    kind: Kind = "prose"
    heading: str = ""
    label: str = ""  # what its list or paragraph is about: a file, a component
    own_label: bool = False  # the text itself starts with the label
    lead: str = ""  # the sentence before its list, where it ends with a colon


def split_passages(markdown: str) -> list[MessagePassage]:
    return list(passages_in(markdown))


def passages_in(markdown: str) -> Iterator[MessagePassage]:
    """Gives the passages one after the other, for a caller that needs the first ones only."""
    return _Splitter().split(markdown[:LARGEST_TEXT])


class _Splitter:
    def __init__(self) -> None:
        self.passages: list[MessagePassage] = []
        self.heading = ""
        self.label = ""
        self._paragraph: list[str] = []
        self._item: list[str] | None = None
        self._code: list[str] | None = None
        self._fence = ""
        self._header: list[str] = []
        self._nesting: list[tuple[int, str]] = []
        self._lead = ""

    def split(self, markdown: str) -> Iterator[MessagePassage]:
        lines = [line[:LONGEST_LINE] for line in markdown.expandtabs(4).splitlines()]
        for line, following in zip(lines, [*lines[1:], ""], strict=False):
            self._add_line(line, following)
            if self.passages:
                yield from self.passages
                self.passages.clear()
        self._flush()
        yield from self.passages

    def _add_line(self, line: str, following: str) -> None:
        text = line.strip()
        if self._code is not None:
            self._add_code_line(text)
        elif not text:
            self._flush()
        elif text.startswith(_FENCES):
            self._flush()
            self._fence, self._code = text[:3], []
        elif text[0] not in _STRUCTURE or not self._add_structure(line, text, following):
            (self._paragraph if self._item is None else self._item).append(text)

    def _add_structure(self, line: str, text: str, following: str) -> bool:
        if _is_rule(text):
            self._flush()
        elif heading := heading_of(text):
            self._flush()
            self._nesting.clear()
            self.heading, self.label, self._lead = heading, "", ""
        elif text[0] == "|" or _is_table_rule(text):
            self._flush()
            self._add_row(text, following.strip())
        elif len(text) <= LONGEST_LABEL_LINE and (label := _LABEL_LINE.match(text)):
            self._flush()
            self.label = as_label(label[1])
        elif item := _ITEM.match(line):
            self._flush()
            self._begin_item(len(item[1]), item[2])
        else:
            return False
        return True

    def _add_code_line(self, text: str) -> None:
        assert self._code is not None
        if not text.startswith(self._fence):
            self._code.append(text)
            return
        code, self._code = self._code, None
        if len(code) <= LONGEST_CODE_LINES:
            joined = "; ".join(part for part in code if part)
            if 0 < len(joined) <= LONGEST_CODE:
                self._add(f"`{joined}`" if "`" not in joined else joined, "code")

    def _add_row(self, text: str, following: str) -> None:
        if _is_table_rule(text):
            return
        cells = [without_markup(cell) for cell in text.strip("|").split("|")]
        if _is_table_rule(following):
            self._header = cells
            return
        first, rest = cells[0], self._named_cells(cells)
        if first and rest:
            self._add(f"{first}: {'; '.join(rest)}", "row")
        elif first or rest:
            self._add(first or "; ".join(rest), "row")

    def _named_cells(self, cells: list[str]) -> list[str]:
        """Names the cells of a row with more than two: each needs the name of its column."""
        if len(cells) <= 2 or len(cells) != len(self._header):
            return [cell for cell in cells[1:] if cell]
        pairs = zip(self._header[1:], cells[1:], strict=True)
        return [f"{name} {cell}".strip() for name, cell in pairs if cell.strip("—–- ")]

    def _begin_item(self, indent: int, text: str) -> None:
        while self._nesting and self._nesting[-1][0] >= indent:
            self._nesting.pop()
        self._item = [text]
        self._nesting.append((indent, text))

    def _flush(self) -> None:
        if self._item is not None:
            text = " ".join(self._item).strip()
            self._item = None
            parent = self._nesting[-2][1] if len(self._nesting) > 1 else ""
            self._add(text, "item", as_label(parent) if len(parent) <= 80 else "")
        elif self._paragraph:
            text = " ".join(self._paragraph)
            self._paragraph = []
            self._nesting.clear()
            label = self._lead = ""
            for sentence in sentences(text):
                label = self._add(sentence, "prose", label)
            if text.endswith((":", "：")):
                self._lead = as_label(sentence)

    def _add(self, text: str, kind: Kind, label: str = "") -> str:
        """Returns the label, which also holds for the sentences that follow."""
        if match := _match_label(text):
            label = as_label(match[1])
            if rest := without_markup(text[match.end() :]):
                self._append(f"{label}: {rest}", kind, label, own_label=True)
        elif text := without_markup(text):
            self._append(text, kind, label or self.label)
        return label

    def _append(self, text: str, kind: Kind, label: str, own_label: bool = False) -> None:
        if len(text) <= LONGEST_PASSAGE:
            lead = self._lead if kind in ("item", "row") else ""
            self.passages.append(MessagePassage(text, kind, self.heading, label, own_label, lead))
            return
        for sentence in sentences(text):
            short = shorten(sentence, LONGEST_PASSAGE)
            self.passages.append(MessagePassage(short, kind, self.heading, label))


def _match_label(text: str) -> re.Match[str] | None:
    """Matches a label; most passages have neither mark, and need no pattern."""
    match = _BOLD_LABEL.match(text) if "**" in text else None
    return match or (_PLAIN_LABEL.match(text) if ":" in text else None)


def _is_rule(text: str) -> bool:
    if text[0] not in _RULES:
        return False
    marks = text.replace(" ", "")
    return len(marks) >= 3 and marks == marks[0] * len(marks)


def _is_table_rule(text: str) -> bool:
    return text[:1] in ("|", ":", "-") and "|" in text and "-" in text and not text.strip("|:- ")


def without_fences(markdown: str) -> Iterator[str]:
    """The lines outside of code, in which "#" begins a comment."""
    fence = ""
    for line in markdown.splitlines():
        text = line.lstrip()
        if fence:
            fence = "" if text.startswith(fence) else fence
        elif text.startswith(_FENCES):
            fence = text[:3]
        else:
            yield line


def heading_of(line: str) -> str:
    """The text of a heading line; empty if the line is no heading."""
    if not line.startswith("#"):
        return ""
    text = line.lstrip("#")
    is_heading = len(line) - len(text) <= 6 and text[:1] == " "
    return without_markup(text.strip().rstrip("#")) if is_heading else ""


def as_label(text: str) -> str:
    """Returns the text as a label, without the number and the colon."""
    return without_markup(_NUMBERED.sub("", text, count=1)).rstrip(":： ")


def sentences(text: str) -> list[str]:
    parts: list[str] = []
    start = counted = ticks = 0
    for stop in _STOP.finditer(text):
        position = stop.start()
        ticks += text.count("`", counted, position)
        counted = position
        if ticks % 2 or not _ends_sentence(text, stop):
            continue
        end = position + len(stop[0].rstrip())
        parts.append(text[start:end].strip())
        start, counted, ticks = stop.end(), stop.end(), 0
    parts.append(text[start:].strip())
    return [sentence for sentence in parts if sentence]


def _ends_sentence(text: str, stop: re.Match[str]) -> bool:
    continues = text[stop.end() : stop.end() + 1].islower()
    if stop[0][0] != ".":
        return not continues or stop[0][1:2].isspace()  # a quoted question does not end it
    return not continues and not _ABBREVIATION.search(text, max(0, stop.start() - 8), stop.start())


def without_markup(text: str) -> str:
    """Removes Markdown for emphasis and links; code stays as it is."""
    if "`](" in text:
        text = _CODE_LINK.sub(r"\1", text)
    if "*" in text or "<" in text or "](" in text:
        parts = text.split("`")
        parts[::2] = map(_without_emphasis, parts[::2])
        text = "`".join(parts)
    return " ".join(text.lstrip(_EMOJI).split())


def _without_emphasis(text: str) -> str:
    text = _BOLD.sub("", _LINK.sub(r"\1", text))
    return _TAGS.sub("", _ITALICS.sub(r"\1", text))


def width(text: str) -> int:
    """The length, where a character of a script without spaces counts as half a word."""
    return len(text) + 2 * len(_WIDE.findall(text)) if not text.isascii() else len(text)

"""Markdown, as people and agents write it, cut into passages that stand on their own.

A passage is a sentence, a list item, a table row or a short piece of code, with the heading and the
label that it stands under. Long code is left out: it is in the files.
"""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["prose", "item", "row", "code"]

LONGEST_CODE_LINES, LONGEST_CODE = 4, 240
LONGEST_PASSAGE = 420
LARGEST_TEXT = 200_000  # beyond that it is a dump, not a message

_FENCE = re.compile(r"^\s*(```+|~~~+)")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.*?)\s*#*$")
_LABEL_LINE = re.compile(r"^(?:\d+[.)]\s+)?\*\*(.+?)\*\*\s*(\([^)]*\))?\s*[:：]?$")
_ITEM = re.compile(r"^(\s*)(?:[-*+•‣–]|\d{1,2}[.)])\s+(?:\[[ xX]\]\s+)?(.*)$")
_RULE = re.compile(r"^\s*(?:[-*_=]\s*){3,}$")
_TABLE_RULE = re.compile(r"^\s*\|?(?:\s*:?-{2,}:?\s*\|)+\s*:?-*:?\s*\|?\s*$")
_LABEL = re.compile(
    r"^(?:\*\*)?(?P<label>[^\W\d_][\w `'/&().-]{1,60}?)(?:\*\*\s*[:：]|[:：]\*\*|\*\*\s+[—–-])\s+"
    r"|^(?P<plain>[A-Z][\w'-]*(?: [\w'-]+){0,3}):\s+(?=\S)"
)
_LINK = re.compile(r"!?\[([^\]\n]*)\]\((?:[^()\s]|\([^()]*\))*\)")
_MARKS = re.compile(r"\*\*|__(?=\S)|(?<=\S)__|</?(?:br|b|i|em|strong|details|summary)\s*/?>")
_EMOJI = re.compile(r"^[\s✅✓✔☑❌✗⚠️🎉🚀👍🔧📝🐛➡️•·]+")
_SENTENCE_END = re.compile(
    r"(?<=[.!?])[\"')\]*]*\s+(?=[\"'(\[*`«A-ZÀ-ÞА-ЯΑ-Ω0-9~./@#-])|(?<=[。！？])"
)
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|al)|\b[A-Z])\.$", re.I)


@dataclass(frozen=True, slots=True)
class Passage:
    text: str
    kind: Kind = "prose"
    heading: str = ""
    label: str = ""  # of the list or paragraph it belongs to: a file, a part


def cut_passages(markdown: str) -> list[Passage]:
    return _Cutter().cut(markdown[:LARGEST_TEXT])


class _Cutter:
    def __init__(self) -> None:
        self.found: list[Passage] = []
        self.heading = ""
        self.label = ""
        self._paragraph: list[str] = []
        self._item: list[str] | None = None
        self._code: list[str] | None = None
        self._fence = ""
        self._header: list[str] = []
        self._nesting: list[tuple[int, str]] = []

    def cut(self, markdown: str) -> list[Passage]:
        lines = markdown.expandtabs(4).splitlines()
        for number, line in enumerate(lines):
            following = lines[number + 1] if number + 1 < len(lines) else ""
            self._take(line, following)
        self._flush()
        return self.found

    def _take(self, line: str, following: str) -> None:
        if self._code is not None:
            self._in_code(line)
        elif fence := _FENCE.match(line):
            self._flush()
            self._fence, self._code = fence[1][:3], []
        elif not line.strip() or _RULE.match(line):
            self._flush()
        elif heading := _HEADING.match(line):
            self._flush()
            self.heading, self.label = plain(heading[1]), ""
        elif line.lstrip().startswith("|") or _TABLE_RULE.match(line):
            self._flush()
            self._row(line, following)
        elif label := _LABEL_LINE.match(line.strip()):
            self._flush()
            self.label = plain(label[1]).rstrip(":")
        elif item := _ITEM.match(line):
            self._flush()
            self._begin_item(len(item[1]), item[2])
        else:
            (self._paragraph if self._item is None else self._item).append(line.strip())

    def _in_code(self, line: str) -> None:
        assert self._code is not None
        if line.strip().startswith(self._fence):
            code, self._code = self._code, None
            text = "; ".join(part.strip() for part in code if part.strip())
            if len(code) <= LONGEST_CODE_LINES and 0 < len(text) <= LONGEST_CODE:
                self._add(f"`{text}`" if "`" not in text else text, "code")
        else:
            self._code.append(line)

    def _row(self, line: str, following: str) -> None:
        if _TABLE_RULE.match(line):
            return
        cells = [plain(cell) for cell in line.strip().strip("|").split("|")]
        if _TABLE_RULE.match(following):
            self._header = cells
            return
        first, rest = cells[0], self._told_cells(cells)
        if first and rest:
            self._add(f"{first}: {'; '.join(rest)}", "row")
        elif first or rest:
            self._add(first or "; ".join(rest), "row")

    def _told_cells(self, cells: list[str]) -> list[str]:
        """With more than two columns a cell means nothing without the name of its own."""
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
            self._add(text, "item", plain(parent) if len(parent) <= 80 else "")
        elif self._paragraph:
            text = " ".join(self._paragraph)
            self._paragraph = []
            self._nesting.clear()
            for sentence in sentences(text):
                self._add(sentence, "prose")

    def _add(self, text: str, kind: Kind, parent: str = "") -> None:
        label = parent or self.label
        if named := _LABEL.match(text):
            own = plain(named["label"] or named["plain"])
            rest = plain(text[named.end() :])
            if rest:
                self._keep(f"{own}: {rest}", kind, own)
            return
        text = plain(text)
        if text:
            self._keep(text, kind, label)

    def _keep(self, text: str, kind: Kind, label: str) -> None:
        if len(text) <= LONGEST_PASSAGE:
            self.found.append(Passage(text, kind, self.heading, label))
            return
        for sentence in sentences(text):
            whole = sentence if len(sentence) <= LONGEST_PASSAGE else shorten(sentence)
            self.found.append(Passage(whole, kind, self.heading, label))


def sentences(text: str) -> list[str]:
    found: list[str] = []
    start = 0
    for end in _SENTENCE_END.finditer(text):
        piece = text[start : end.start()]
        if _ABBREVIATION.search(piece) or piece.count("`") % 2:
            continue
        found.append(piece.strip())
        start = end.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def plain(text: str) -> str:
    """Without the marks that only a renderer wants; code stays as it is."""
    if "*" in text or "_" in text or "<" in text or "](" in text:
        parts = text.split("`")
        parts[::2] = [_MARKS.sub("", _LINK.sub(r"\1", part)) for part in parts[::2]]
        text = "`".join(parts)
    return " ".join(_EMOJI.sub("", text).split())


def shorten(text: str, limit: int = LONGEST_PASSAGE) -> str:
    """At most `limit` characters, ending at a word."""
    text = text.strip()
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    space = head.rfind(" ")
    return (head[:space] if space > limit // 2 else head).rstrip(" ,;:—–-(") + "…"

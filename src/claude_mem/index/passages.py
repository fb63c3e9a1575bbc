"""A turn cut into passages: the unit that a search compares with a question.

Neighbouring paragraphs are packed together up to a size at which a vector is still about one
thing. Short notes (descriptions of commands, tasks) are packed with each other.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from claude_mem.types import RecordPart

SIZE = 450  # characters of a passage, about
MOST = 1 << 10  # of a turn: its number takes ten bits of a passage's id
NOTES = ("description", "task")
MEMORY = "memory"  # the kind of passages that are not of the record
_LIMITS = {"prompt": 6_000, "report": 12_000, "compaction": 12_000, "statement": 20_000}
_DEFAULT_LIMIT = 20_000

_PARAGRAPHS = re.compile(r"\n[ \t]*\n\s*")
# Space after the end of a sentence, or the end of a line. It begins with what it matches: a pattern
# that begins with a condition is tried at every character.
_SENTENCES = re.compile(r"[ \t\n](?:(?<=\n)|(?<=[.!?;:][ \t])[ \t]*)")


# Where the text of a passage is: the notes of the record, a part of it (less than 0), or a memory
# (its document, doubled; one more for the names of its files and concepts).
NOTES_SOURCE = 0


@dataclass(frozen=True, slots=True)
class Passage:
    kind: str  # of the part of the record, or MEMORY
    text: str
    source: int = field(default=NOTES_SOURCE, compare=False)
    place: int = field(default=0, compare=False)  # among the passages of its source


def cut_parts(parts: Sequence[RecordPart]) -> list[Passage]:
    """The passages of a record, each text once."""
    passages: dict[str, Passage] = {}
    for number, part in enumerate(parts):
        if part.kind not in NOTES:
            source = part_source(number)
            for passage in cut(part.kind, source_text(parts, source), source):
                passages.setdefault(passage.text, passage)
    for passage in cut("description", source_text(parts, NOTES_SOURCE), NOTES_SOURCE):
        passages.setdefault(passage.text, passage)
    return list(passages.values())


def part_source(number: int) -> int:
    return -1 - number


def source_text(parts: Sequence[RecordPart], source: int) -> str:
    """Of a part of a record, or of its notes."""
    if source == NOTES_SOURCE:
        return "\n".join(dict.fromkeys(part.text for part in parts if part.kind in NOTES))
    part = parts[-1 - source]
    return _shorten(part.text, _LIMITS.get(part.kind, _DEFAULT_LIMIT))


def cut(kind: str, text: str, source: int) -> Iterator[Passage]:
    for place, packed in enumerate(pack(text)):
        yield Passage(kind, packed, source, place)


def pack(text: str) -> Iterator[str]:
    """Paragraphs, as many together as fit; a long one is cut at the ends of its sentences."""
    packed = ""
    for piece in _pieces(text):
        if packed and len(packed) + len(piece) > SIZE:
            yield packed
            packed = ""
        packed = f"{packed}\n{piece}" if packed else piece
    if packed:
        yield packed


def _pieces(text: str) -> Iterator[str]:
    for paragraph in _PARAGRAPHS.split(text):
        pieces = [paragraph] if len(paragraph) <= SIZE else _SENTENCES.split(paragraph)
        for piece in pieces:
            stripped = piece.strip()
            for start in range(0, len(stripped), SIZE) if len(stripped) > 2 * SIZE else (0,):
                part = stripped[start : start + SIZE] if len(stripped) > 2 * SIZE else stripped
                if part:
                    yield part


def _shorten(text: str, limit: int) -> str:
    """A pasted log says what it is at its beginning and how it ended at its end."""
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2]}\n\n{text[-(limit // 2) :]}"

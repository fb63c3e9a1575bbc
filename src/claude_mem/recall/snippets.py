"""The part of a passage that matches a query, short enough for one line."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

from claude_mem.index.text.words import parts_of, pieces, stem, stems
from claude_mem.recall.parsed_query import STOP_WORDS, ParsedQuery

LENGTH = 160
# Of a search that shows several turns, the answer is mostly in one of the first.
FIRST_ROWS, LATER_LENGTH = 4, 100


def snippet_length(row: int) -> int:
    """Of so many rows before it."""
    return LENGTH if row < FIRST_ROWS else LATER_LENGTH


def snippet(text: str, parsed: ParsedQuery, length: int = LENGTH) -> str:
    """About `length` characters around the place where most words of the query are."""
    words = text.split()
    line = " ".join(words)
    if len(line) <= length:
        return line
    ends = _ends(words)
    start, end = _best_window(ends, _hits(line, ends, stems_of(parsed)), length)
    before, after = "…" if start else "", "…" if end < len(words) else ""
    return f"{before}{' '.join(words[start:end])}{after}"


def mark_words(text: str, parsed: ParsedQuery) -> list[tuple[str, bool]]:
    """The text in pieces, and whether each is a word of the query."""
    words = text.split()
    ends = _ends(words)
    hits = set(_hits(" ".join(words), ends, stems_of(parsed))) if words else set()
    parts: list[tuple[str, bool]] = []
    for number, word in enumerate(words):
        separator = " " if number else ""
        if number in hits:
            parts += [(separator, False), (word, True)]
        else:
            parts.append((f"{separator}{word}", False))
    return parts


def _ends(words: Sequence[str]) -> list[int]:
    """Where the next word begins, in the text on one line."""
    return list(accumulate(map((1).__add__, map(len, words))))


def stems_of(parsed: ParsedQuery) -> frozenset[str]:
    return frozenset(stem(piece) for word in parsed.words for piece in word.pieces)


def content_stems(text: str) -> frozenset[str]:
    """Of the words that say something."""
    words = {piece.lower() for piece in pieces(text) if len(piece) > 2} - STOP_WORDS
    return frozenset(stems(words).values())


def holds_any(text: str, stems: frozenset[str]) -> bool:
    """Whether one of its words has one of these stems."""
    words = text.split()
    return bool(words) and bool(_hits(" ".join(words), _ends(words), stems))


def _hits(line: str, ends: Sequence[int], stems: frozenset[str]) -> list[int]:
    """The numbers of the words whose stem is one of these, in order."""
    beginnings = _beginnings(stems)
    if line.isascii():
        lower = line.lower()
        places = (place for text in beginnings for place in _places(lower, text))
        numbers = sorted({bisect_right(ends, place) for place in places})
    else:
        numbers = [
            number
            for number, word in enumerate(line.split(" "))
            if not word.isascii() or any(text in word.lower() for text in beginnings)
        ]
    return [n for n in numbers if stems & _stems(line[ends[n - 1] if n else 0 : ends[n] - 1])]


@lru_cache(maxsize=64)
def _beginnings(stems: frozenset[str]) -> tuple[str, ...]:
    """What a word of these stems holds: this spares most words of a passage the stemming, which
    changes two letters at most."""
    return tuple({form[: max(2, min(4, len(form) - 2))] for form in stems if form})


def _places(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


@lru_cache(maxsize=10_000)
def _stems(word: str) -> frozenset[str]:
    stems: set[str] = set()
    for piece in pieces(word):
        stems.add(stem(piece.lower()))
        stems.update(stem(part.lower()) for part in parts_of(piece))
    return frozenset(stems)


def _best_window(ends: Sequence[int], hits: Sequence[int], length: int) -> tuple[int, int]:
    """The words from one to another that hold the most hits and fit; of equals the first.

    Such a window begins the text, or it is the first that reaches as far as one of the hits.
    """
    best, best_hits = (0, len(ends)), -1
    for start in (0, *(_first_start(ends, hit, length) for hit in hits)):
        before = ends[start - 1] if start else 0
        end = max(start + 1, bisect_right(ends, before + length))
        count = bisect_left(hits, end) - bisect_left(hits, start)
        if count > best_hits:
            best, best_hits = (start, end), count
    return best


def _first_start(ends: Sequence[int], last: int, length: int) -> int:
    """Of the words up to this one that fit, the first."""
    return min(last, bisect_left(ends, ends[last] - length) + 1)

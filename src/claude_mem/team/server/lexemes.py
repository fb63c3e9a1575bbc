"""Texts and queries for PostgreSQL's full text, split and stemmed as the local index does it.

PostgreSQL gets finished lexemes with their positions and never parses a text itself, so both sides
find the same words: parts of identifiers, paths, versions, scripts without spaces.
"""

import math
from collections.abc import Iterable, Sequence

from claude_mem.index.text.words import pieces, searchable, stems

MAX_POSITION = 16_383  # of a tsvector
MAX_LEXEME = 500  # bytes; a tsvector holds up to 2046
K1, B = 1.2, 0.75  # as FTS5


def lexemes_of(text: str) -> tuple[str, ...]:
    """Returns the lexemes in the order of the text; the parts of identifiers follow at its end."""
    words = pieces(searchable(text))
    stemmed = stems(words)
    return tuple(stemmed[word].replace("\0", "")[:MAX_LEXEME] for word in words)


def tsvector(text: str) -> str:
    positions: dict[str, list[int]] = {}
    for at, lexeme in enumerate(lexemes_of(text), 1):
        if len(lexeme.encode()) <= MAX_LEXEME:
            positions.setdefault(lexeme, []).append(min(at, MAX_POSITION))
    return " ".join(
        f"{quoted(lexeme)}:{','.join(map(str, places[:255]))}"
        for lexeme, places in positions.items()
    )


def quoted(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def phrase_query(words: Sequence[str]) -> str:
    """The words in this order; empty where there are none."""
    lexemes = [lexeme for word in words for lexeme in _query_lexemes(word)]
    return "(" + " <-> ".join(map(quoted, lexemes)) + ")" if lexemes else ""


def _query_lexemes(word: str) -> list[str]:
    split = pieces(word)
    stemmed = stems(split)
    return [stemmed[piece][:MAX_LEXEME] for piece in split]


def any_of(queries: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(filter(None, queries)))


class Frequencies:
    """How often words are in a passage, from its tsvector as PostgreSQL writes it."""

    def __init__(self, vector: str) -> None:
        self._vector = vector

    @property
    def length(self) -> int:
        """The number of words of the passage, roughly."""
        return self._vector.count("':") + self._vector.count(",")

    def of(self, lexeme: str) -> int:
        start = f" {self._vector}".find(f" {quoted(lexeme)}:")
        if start < 0:
            return 0
        end = self._vector.find(" ", start + len(quoted(lexeme)))
        return self._vector[start : end if end >= 0 else None].count(",") + 1


def bm25(passage: Frequencies, counts: dict[str, int], total: int, average_length: float) -> float:
    """Computes the bm25 of a passage for terms with these counts, as FTS5 does."""
    length = K1 * (1 - B + B * passage.length / max(1.0, average_length))
    score = 0.0
    for term, count in counts.items():
        frequency = passage.of(term)
        if frequency:
            inverse = math.log((total - count + 0.5) / (count + 0.5))
            score += max(1e-6, inverse) * frequency * (K1 + 1) / (frequency + length)
    return score

"""The bm25 of passages whose lengths FTS5 does not know.

FTS5 keeps the length of each row in a table, and its bm25 looks up that of every match: four fifths
of the time of a search for a common word. The ids of our rows end with their length instead. FTS5
(k1 = 1.2, b = 0.75) then counts each as a row of -1 words; this is corrected here: exactly for a
query of one word, else as if each of its words occurred once in the passage.
"""

import math
from typing import NamedTuple

LENGTH_BITS = 7
MAX_LENGTH = (1 << LENGTH_BITS) - 1  # in words; few passages are longer

_BY_LENGTH = 0.9  # k1 * b
_FIXED = 0.3  # k1 * (1 - b)
_MIN_UNKNOWN = 0.05  # below, passages have hardly more than a word: nothing can be derived
_LEAST_IDF = 1e-6


class Score(NamedTuple):
    """An SQL expression over rows of `passage_text`, and the values of its parameters."""

    sql: str
    values: tuple[float, ...]


def score(number: int, length: int, occurrences: int | None = None) -> Score:
    """Makes the bm25 of `number` passages of together `length` words; `occurrences`: how many of
    them hold the only word of the query."""
    each = _BY_LENGTH * number / max(1, length)  # for each word of a passage
    unknown = _FIXED - each
    known = f"(? + ? * (passage_text.rowid & {MAX_LENGTH}))"
    if occurrences is None or unknown < _MIN_UNKNOWN:
        # NULL, where passages have three words on average: FTS5 then divides zero by zero.
        bm25 = "coalesce(-bm25(passage_text), 1.0)"
        return Score(f"{bm25} * ? / {known}", (1 + unknown, 1 + _FIXED, each))
    most = (1 + 1.2) * _idf(number, occurrences)  # what infinitely many occurrences would give
    return Score(
        # With f occurrences bm25 is most * f / (f + unknown); this is most * f / (f + known).
        f"? / max(?, ? + {known} * (? / -bm25(passage_text) - 1))",
        (most * unknown, unknown, unknown, _FIXED, each, most),
    )


def of_single_occurrence(number: int, length: int, occurrences: int) -> list[float]:
    """Returns, by the length of a passage, the bm25 of a word that occurs in it once and in
    `occurrences` of `number` passages of together `length` words."""
    each = _BY_LENGTH * number / max(1, length)
    most = (1 + 1.2) * _idf(number, occurrences)
    return [most / (1 + _FIXED + each * words) for words in range(MAX_LENGTH + 1)]


def _idf(number: int, occurrences: int) -> float:
    """Computes the inverse document frequency as FTS5 does."""
    ratio = (number - occurrences + 0.5) / (occurrences + 0.5)
    return max(_LEAST_IDF, math.log(ratio)) if ratio > 0 else _LEAST_IDF

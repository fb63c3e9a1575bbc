"""The best passages by words that hundreds of thousands of passages hold, without reading all.

FTS5's bm25 reads every match of a word, and counts them first. In a large memory only so many are
read: all matches of rare words, the newest of common ones, and those that hold two of these. A word
counts as if it occurred once in its passage.
"""

import json
import sqlite3
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from claude_mem.index.text.filters import Condition, all_of
from claude_mem.index.text.passage_index import PROJECT_SHIFT, TURN_SQL, passage_count, rowids
from claude_mem.index.text.passage_scores import LENGTH_BITS, MAX_LENGTH, of_single_occurrence
from claude_mem.index.text.term_hashes import hashed, holds_term

LARGE = 1_000_000  # passages; in a smaller memory all matches are read
MAX_SCORED = 100_000  # matches that are read in any memory
READ = 2_000  # matches of a word
MIN_READ = 100  # in each project
MAX_JOINED = 250_000  # matches of a word that is looked up together with others
JOINED = 3  # common words
COMPLETED = 500  # passages that are looked through for the other words

Row = int  # a passage, then its length


class CountedWord(NamedTuple):
    """A word of a query as an FTS5 expression, and in how many passages it is, about."""

    expression: str
    matches: int
    stem: str | None = None  # where it is a single word


Matches = dict[CountedWord, set[Row]]


def are_many(
    connection: sqlite3.Connection, words: Sequence[CountedWord], phrases: Sequence[str]
) -> bool:
    """Whether the matches are too many to read all of them. Those of phrases are not counted."""
    if not phrases and sum(word.matches for word in words) <= MAX_SCORED:
        return False
    return passage_count(connection) > LARGE


def best_passages(
    connection: sqlite3.Connection,
    words: Sequence[CountedWord],
    phrases: Sequence[str],
    project_id: int | None,
    limit: int,
    condition: Condition,
) -> dict[int, float]:
    """Those that hold all of the phrases, or any of the words if there are none: their scores by
    id, best first."""
    reader = _Reader(connection, project_id, condition)
    if phrases:
        rows = reader.all_rows(all_of(phrases))
        matches: Matches = {word: set() for word in words}
        matches[CountedWord(all_of(phrases), len(rows))] = rows
    else:
        matches = _matches_of(reader, sorted(words, key=lambda word: word.matches), limit)
    number, length = connection.execute("SELECT number, length FROM passage_count").fetchone()
    values = {word: of_single_occurrence(number, length, word.matches) for word in matches}
    likely = _best(matches, values, max(COMPLETED, limit))
    _complete(connection, matches, list(likely))
    likely_matches = {word: rows.intersection(likely) for word, rows in matches.items()}
    best = _best(likely_matches, values, limit)
    return {row >> LENGTH_BITS: score for row, score in best.items()}


def _matches_of(reader: "_Reader", words: Sequence[CountedWord], limit: int) -> Matches:
    """`words`: the rarest first."""
    matches = {word: reader.newest(word.expression) for word in words}
    common = [word for word in words if READ < word.matches <= MAX_JOINED][:JOINED]
    together = reader.newest(all_of(word.expression for word in common)) if common[1:] else set()
    for word in common:
        matches[word] |= together
    if len(together) < limit:
        for pair in combinations(common, 2) if len(common) > 2 else ():
            rows = reader.newest(all_of(word.expression for word in pair))
            for word in pair:
                matches[word] |= rows
    return matches


def _complete(connection: sqlite3.Connection, matches: Matches, rows: Sequence[Row]) -> None:
    """Adds these rows to the words that they hold."""
    terms: dict[int, bytes] = {
        row[0]: row[1]
        for row in connection.execute(
            "SELECT p.id, terms FROM json_each(?) i CROSS JOIN passages p ON p.id = i.value",
            (json.dumps(sorted(row >> LENGTH_BITS for row in rows)),),
        )
    }
    for word, of_word in matches.items():
        if word.stem is not None:
            term = hashed(word.stem)
            of_word.update(r for r in rows if holds_term(terms.get(r >> LENGTH_BITS, b""), term))


def _best(matches: Matches, values: dict[CountedWord, list[float]], count: int) -> dict[Row, float]:
    """With their scores, the highest first, then the newest."""
    scores: dict[Row, float] = {}
    for word, rows in matches.items():
        of_length = values[word]
        for row in rows:
            scores[row] = scores.get(row, 0.0) + of_length[row & MAX_LENGTH]
    best = sorted(sorted(scores, reverse=True), key=scores.__getitem__, reverse=True)
    return {row: scores[row] for row in best[:count]}


class _Reader:
    def __init__(
        self, connection: sqlite3.Connection, project_id: int | None, condition: Condition
    ) -> None:
        self._cursor = connection.cursor()
        self._cursor.row_factory = None
        self._condition = condition
        self._all = rowids(project_id)
        self._by_project = [self._all]
        if project_id is None:
            projects = self._cursor.execute("SELECT id FROM projects").fetchall()
            self._by_project = [rowids(row[0]) for row in projects]

    def newest(self, expression: str) -> set[Row]:
        """Of each project: rows are ordered by project, then by time."""
        count = max(MIN_READ, READ // max(1, len(self._by_project)))
        return {
            row for ends in self._by_project for row in self._read(expression, ends, count, "DESC")
        }

    def all_rows(self, expression: str) -> set[Row]:
        """Or the newest of many. FTS5 reads a phrase forwards faster than backwards."""
        rows = set(self._read(expression, self._all, READ, "ASC"))
        return rows if len(rows) < READ else self.newest(expression)

    def _read(
        self, expression: str, ends: tuple[int, int], count: int, direction: str
    ) -> list[Row]:
        condition, join = self._condition, ""
        if condition.sql != "TRUE":
            join = f" CROSS JOIN indexed_turns t ON t.id = {TURN_SQL}"
        rows = self._cursor.execute(
            f"SELECT passage_text.rowid & {(1 << PROJECT_SHIFT) - 1} FROM passage_text{join}"
            " WHERE passage_text MATCH ? AND passage_text.rowid BETWEEN ? AND ?"
            f" AND {condition.sql} ORDER BY passage_text.rowid {direction} LIMIT ?",
            (expression, *ends, *condition.values, count),
        )
        return [row[0] for row in rows]

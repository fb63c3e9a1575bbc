"""The best passages by words that hundreds of thousands of passages hold, without reading all.

FTS5's bm25 reads every match of a word, and counts them first. In a large memory only so many are
read: all matches of the rarest words, which decide the most. Common words then count for the best
of these passages, as if they occurred in them once. Where rare words have few matches, or there are
none, the newest matches of common words are read as well, and those that hold two of them.
"""

import json
import sqlite3
from collections.abc import Sequence
from itertools import accumulate, combinations
from typing import NamedTuple

from claude_mem.index.text.filters import Condition, all_of, any_of
from claude_mem.index.text.passage_queries import (
    PROJECT_SHIFT,
    TURN_SQL,
    passage_count,
    passage_totals,
    rowids,
)
from claude_mem.index.text.passage_scores import (
    LENGTH_BITS,
    MAX_LENGTH,
    Score,
    of_single_occurrence,
    score,
)
from claude_mem.index.text.term_hashes import hashed, holds_term

LARGE = 300_000  # passages; in a smaller memory all matches are read
MAX_SCORED = 30_000  # matches that are read in any memory
MAX_MATCHES_PER_WORD = 2_000  # matches of a word
MIN_READ = 100  # in each project
MAX_JOINED = 250_000  # matches of a word that is looked up together with others
MAX_JOINED_WORDS = 3  # common words
MAX_COMPLETED_PASSAGES = 2_000  # passages that are looked through for the other words
_ROUNDED = 1 - 1e-9  # sums in another order

Row = int  # a passage, then its length
_ROW_SQL = f"passage_text.rowid & {(1 << PROJECT_SHIFT) - 1}"


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
    """Scores the passages that hold all of the phrases, or any of the words if there are none: by
    id, best first."""
    number, length = passage_totals(connection)
    reader = _Reader(connection, project_id, condition)
    by_count = sorted(words, key=lambda word: word.matches)
    scored: dict[Row, float] = {}
    if phrases:
        rows = reader.all_rows(all_of(phrases))
        matches: Matches = {word: set() for word in words}
        matches[CountedWord(all_of(phrases), len(rows))] = rows
    else:
        rare = _rarest(by_count)
        scored = (
            reader.best(rare, score(number, length), max(MAX_COMPLETED_PASSAGES, limit))
            if rare
            else {}
        )
        common = by_count[len(rare) :]
        matches = {word: set() for word in common}
        if len(scored) < limit:
            matches = _matches_of(reader, common, limit)
    values = {word: of_single_occurrence(number, length, word.matches) for word in matches}
    likely = _best(scored, matches, values, max(MAX_COMPLETED_PASSAGES, limit))
    _complete(connection, matches, _rising(likely, matches, values, limit))
    best = _best(
        {row: scored[row] for row in likely if row in scored},
        {word: rows.intersection(likely) for word, rows in matches.items()},
        values,
        limit,
    )
    return {row >> LENGTH_BITS: value for row, value in best.items()}


def _rarest(by_count: Sequence[CountedWord]) -> Sequence[CountedWord]:
    """Returns as many words as have no more than MAX_SCORED matches together."""
    totals = accumulate(word.matches for word in by_count)
    return by_count[: sum(total <= MAX_SCORED for total in totals)]


def _matches_of(reader: "_Reader", words: Sequence[CountedWord], limit: int) -> Matches:
    """`words`: the rarest first."""
    matches = {word: reader.newest(word.expression) for word in words}
    common = [word for word in words if MAX_MATCHES_PER_WORD < word.matches <= MAX_JOINED][
        :MAX_JOINED_WORDS
    ]
    together = reader.newest_of_few(all_of(w.expression for w in common)) if common[1:] else set()
    for word in common:
        matches[word] |= together
    if len(together) < limit:
        for pair in combinations(common, 2) if len(common) > 2 else ():
            rows = reader.newest_of_few(all_of(word.expression for word in pair))
            for word in pair:
                matches[word] |= rows
    return matches


def _rising(
    scores: dict[Row, float], matches: Matches, values: dict[CountedWord, list[float]], count: int
) -> list[Row]:
    """Returns the rows that would be among the first `count` if they held every word that can be
    looked up."""
    least = list(scores.values())[count - 1] if len(scores) > count else 0.0
    most: dict[Row, float] = {}
    for word, rows in matches.items():
        if word.stem is not None:
            of_length = values[word]
            for row in scores.keys() - rows:
                most[row] = most.get(row, scores[row]) + of_length[row & MAX_LENGTH]
    return [row for row, score in most.items() if score >= least * _ROUNDED]


def _complete(connection: sqlite3.Connection, matches: Matches, rows: Sequence[Row]) -> None:
    """Adds these rows to the words that they hold."""
    if not rows:
        return
    by_passage = {row >> LENGTH_BITS: row for row in rows}
    cursor = connection.cursor()
    cursor.row_factory = None  # rows are not accessed by name
    terms: list[tuple[int, bytes]] = cursor.execute(
        "SELECT p.id, terms FROM json_each(?) i CROSS JOIN passages p ON p.id = i.value",
        (json.dumps(sorted(by_passage)),),
    ).fetchall()
    for word, of_word in matches.items():
        if word.stem is not None:
            of_term = hashed(word.stem)
            of_word.update(
                by_passage[passage] for passage, held in terms if holds_term(held, of_term)
            )


def _best(
    scored: dict[Row, float],
    matches: Matches,
    values: dict[CountedWord, list[float]],
    count: int,
) -> dict[Row, float]:
    """Returns rows with their scores, the highest first, then the newest. `scored`: by words that
    are not among these."""
    scores = scored.copy()
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
        turns = f" CROSS JOIN indexed_turns t ON t.id = {TURN_SQL}"
        self._matching = (
            f" FROM passage_text{turns if condition.sql != 'TRUE' else ''} WHERE passage_text"
            f" MATCH ? AND passage_text.rowid BETWEEN ? AND ? AND {condition.sql}"
        )
        self._all = rowids(project_id)
        self._by_project = [self._all]
        if project_id is None:
            projects = self._cursor.execute("SELECT id FROM projects").fetchall()
            self._by_project = [rowids(row[0]) for row in projects]
        self._of_each = max(MIN_READ, MAX_MATCHES_PER_WORD // max(1, len(self._by_project)))

    def newest(self, expression: str) -> set[Row]:
        """Returns the newest rows of each project: rows are ordered by project, then by time."""
        return {
            row
            for ends in self._by_project
            for row in self._read(expression, ends, self._of_each, "DESC")
        }

    def newest_of_few(self, expression: str) -> set[Row]:
        """The same, faster where a project has no more than are read. FTS5 reads what several words
        have in common faster forwards than backwards."""
        rows: set[Row] = set()
        for ends in self._by_project:
            of_project = self._read(expression, ends, self._of_each, "ASC")
            if len(of_project) == self._of_each:
                of_project = self._read(expression, ends, self._of_each, "DESC")
            rows.update(of_project)
        return rows

    def all_rows(self, expression: str) -> set[Row]:
        """Returns all rows, or the newest of many, of each project."""
        rows = set(self._read(expression, self._all, MAX_MATCHES_PER_WORD, "ASC"))
        return rows if len(rows) < MAX_MATCHES_PER_WORD else self.newest(expression)

    def best(self, words: Sequence[CountedWord], bm25: Score, count: int) -> dict[Row, float]:
        """Scores all rows that hold any of the words, by the bm25 of these."""
        expression = any_of(word.expression for word in words)
        rows = self._cursor.execute(
            f"SELECT {_ROW_SQL}, {bm25.sql} AS score{self._matching} ORDER BY score DESC LIMIT ?",
            (*bm25.values, expression, *self._all, *self._condition.values, count),
        )
        return dict(rows.fetchall())

    def _read(
        self, expression: str, ends: tuple[int, int], count: int, direction: str
    ) -> list[Row]:
        rows = self._cursor.execute(
            f"SELECT {_ROW_SQL}{self._matching} ORDER BY passage_text.rowid {direction} LIMIT ?",
            (expression, *ends, *self._condition.values, count),
        )
        return [row[0] for row in rows]

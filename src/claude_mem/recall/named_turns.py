"""Earlier turns that worked on what a prompt names.

A name counts the more the fewer turns have it, and twice for a turn that edited the file of that
name, or where it is the number of an issue. Turns that changed nothing count half: they may be a
tour of everything.
"""

import json
import math
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from claude_mem.index.text import passage_queries
from claude_mem.index.text.documents import DOCUMENT_BITS, KINDS, text_id
from claude_mem.index.text.filters import Filters, phrase, result_condition, within
from claude_mem.index.text.passage_queries import TurnRow
from claude_mem.index.text.term_counts import term_counts
from claude_mem.index.text.words import pieces, stem
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.recall.hint_prompt import Name
from claude_mem.store.stored_json import parse_stored

SURE, UNCHANGED = 2.0, 0.5  # factors
MOST_TURNS = 12  # that are compared with the text of the prompt
MOST_EDITS = 400  # summaries that name a file, the latest
MAX_WORD_PASSAGES = 3_000  # passages: such a word says nothing, and takes long to look up
_SUMMARY = KINDS.index("summary")
_DOCUMENT = f"(memory_text.rowid & {(1 << DOCUMENT_BITS) - 1})"
# Other numbers are line numbers and amounts.
_REQUEST_NUMBER = re.compile(
    r"(?:#|/(?:pull|issues|merge_requests|pull-requests)/|\b(?:PR|MR|issue|pull request) )"
    r"(\d{2,7})\b",
    re.IGNORECASE,
)
_SUBSTANCE = ("memory", "commit", "statement", "report", "prompt")


@dataclass(frozen=True, slots=True)
class NamedTurn:
    turn: TurnRow
    weight: float  # of the names that it has
    share: float  # of the weight of all names of the prompt that any turn has
    cosine: float  # of its nearest passage and the text of the prompt
    names: tuple[str, ...]  # rarest first

    @property
    def evidence(self) -> float:
        return self.share + self.cosine


def find_named_turns(
    connection: sqlite3.Connection,
    names: Sequence[Name],
    typed: str,
    filters: Filters,
    without: Iterable[int],
    semantic_index: SemanticIndex,
) -> list[NamedTurn]:
    """Finds turns, best first; `without` turns of these sessions."""
    names = _rare(connection, names)
    holding = {name: _turns_with(connection, name, filters.project_id) for name in names}
    edited = {name: _edited(connection, name, filters.project_id) for name in names if name.is_file}
    ids = {turn for turns in (*holding.values(), *edited.values()) for turn in turns}
    condition = result_condition(connection, filters)
    rows = passage_queries.turn_rows(connection, ids, condition.sql, condition.values)
    sessions = set(without)
    turns = {turn: row for turn, row in rows.items() if row.session_id not in sessions}
    count = _count_turns(connection, filters)
    weights: defaultdict[int, float] = defaultdict(float)
    shared: defaultdict[int, dict[str, float]] = defaultdict(dict)
    total = 0.0
    for name in names:
        edits = edited.get(name, set())
        having = (holding[name] | edits) & turns.keys()
        if not having:
            continue
        weight = math.log((count + 1) / (len(having) + 0.5))
        total += max(0.0, weight)
        for turn in having if weight > 0 else ():
            weights[turn] += weight * (SURE if turn in edits or name.is_number else 1.0)
            shared[turn][name.text] = weight
    changed = _changed(connection, weights)
    for turn in weights.keys() - changed:
        weights[turn] *= UNCHANGED
    best = sorted(weights, key=lambda t: (-weights[t], -turns[t].created_at_epoch))[:MOST_TURNS]
    result = [
        NamedTurn(
            turns[turn],
            weights[turn],
            weights[turn] / max(1.0, total),
            nearest_passage(connection, turn, typed, semantic_index),
            tuple(sorted(shared[turn], key=shared[turn].__getitem__, reverse=True)),
        )
        for turn in best
    ]
    return sorted(result, key=lambda named: -named.evidence)


def _rare(connection: sqlite3.Connection, names: Sequence[Name]) -> list[Name]:
    """Returns the names that are in the index, and not everywhere."""
    stems = {name: [stem(piece.lower()) for piece in pieces(name.text)] for name in names}
    total = passage_queries.passage_count(connection)
    counts = term_counts(connection, {form for forms in stems.values() for form in forms}, total)
    return [
        name
        for name, forms in stems.items()
        if forms and 0 < min(counts.get(form, 0) for form in forms) <= MAX_WORD_PASSAGES
    ]


def _turns_with(connection: sqlite3.Connection, name: Name, project_id: int | None) -> set[int]:
    turns = passage_queries.turns_holding(connection, phrase(name.text), project_id)
    if not name.is_number:
        return turns
    return {
        turn
        for turn in turns
        if any(
            name.text in _REQUEST_NUMBER.findall(passage.text)
            for passage in passage_queries.texts_of_turn(connection, turn)
        )
    }


def _edited(connection: sqlite3.Connection, name: Name, project_id: int | None) -> set[int]:
    """Turns that edited a file of this name."""
    first = text_id(project_id, 0) if project_id is not None else 0
    last = text_id(project_id + 1, 0) - 1 if project_id is not None else (1 << 63) - 1
    rows = connection.execute(
        f"SELECT s.turn_id, s.files_edited FROM memory_text CROSS JOIN session_summaries s"
        f" ON s.id = {_DOCUMENT} / 4 WHERE memory_text MATCH ? AND memory_text.rowid BETWEEN ?"
        f" AND ? AND {_DOCUMENT} % 4 = {_SUMMARY} ORDER BY memory_text.rowid DESC LIMIT ?",
        (
            within("files", phrase(name.text)),
            first,
            last,
            MOST_EDITS,
        ),
    )
    wanted = name.text.lower()
    return {
        turn
        for turn, files in rows
        if any(f"/{path}".replace("\\", "/").lower().endswith(f"/{wanted}")
               for path in parse_stored(files, []))
    }  # fmt: skip


def _changed(connection: sqlite3.Connection, turns: Iterable[int]) -> set[int]:
    rows = connection.execute(
        "SELECT turn_id FROM session_summaries WHERE files_edited != '[]'"
        " AND turn_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(turns)),),
    )
    return {row[0] for row in rows}


def _count_turns(connection: sqlite3.Connection, filters: Filters) -> int:
    row = connection.execute(
        "SELECT count(*) FROM indexed_turns WHERE (?1 IS NULL OR project_id = ?1)"
        " AND (?2 IS NULL OR created_at_epoch < ?2)",
        (filters.project_id, filters.until),
    ).fetchone()
    return int(row[0])


def nearest_passage(
    connection: sqlite3.Connection, turn: int, typed: str, semantic_index: SemanticIndex
) -> float:
    """Returns the cosine of the nearest passage with the text."""
    ids = [
        row.id for row in passage_queries.rows_of_turn(connection, turn) if row.kind in _SUBSTANCE
    ]
    if not typed:
        return 0.0
    vectors = semantic_index.load().vector_search
    cosines = vectors.passage_cosines(connection, typed, ids)
    return max(0.0, *cosines.values()) if cosines else 0.0

"""What search reads from the index of turns: passages by their words, rows of turns and passages,
the memories of a turn, and the text of a passage.

A turn is one document of many passages: what was said in it, and what was remembered of it. Their
text is not stored again: `passages` says where it is (`texts_of_passages`). The FTS5 table does not
have the lengths of passages: they are in the ids of its rows (`passage_scores`).
"""

import json
import math
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from claude_mem.index.text.documents import (
    MEMORY,
    MOST_PASSAGES,
    NOTES_SOURCE,
    PLACES,
    TURN,
    Passage,
    document_id,
    load,
    load_texts,
    memory_id_of,
    memory_texts,
    pack,
    prompt_record,
    source_text,
)
from claude_mem.index.text.filters import Filters, where
from claude_mem.index.text.passage_scores import LENGTH_BITS, Score, score
from claude_mem.index.text.term_hashes import holds_term
from claude_mem.store.stored_json import parse_stored
from claude_mem.store.turn_records import load_records
from claude_mem.types import RecordPart

PASSAGE_BITS = 10
# The id of a row of `passage_text`: project, turn, passage, length.
TURN_BITS = 28
PROJECT_SHIFT = TURN_BITS + PASSAGE_BITS + LENGTH_BITS
PASSAGE_SQL = f"(passage_text.rowid >> {LENGTH_BITS} & {(1 << TURN_BITS + PASSAGE_BITS) - 1})"
TURN_SQL = f"({PASSAGE_SQL} >> {PASSAGE_BITS})"
_KIND = f"coalesce(kind, '{MEMORY}')"


class TurnRow(NamedTuple):
    """What decides the rank of a turn. A search reads many: another column takes its time."""

    id: int
    session_id: int
    number: int
    created_at_epoch: int
    shown: int  # the document of the memory that stands for the turn
    title: str
    title_stems: str
    words: int


class PassageRow(NamedTuple):
    id: int
    kind: str
    words: int
    names_time: bool
    terms: bytes
    pieces: bytes | None

    @property
    def turn(self) -> int:
        return self.id >> PASSAGE_BITS


class PassageTotals(NamedTuple):
    number: int
    words: int


def passage_totals(connection: sqlite3.Connection) -> PassageTotals:
    return PassageTotals(*connection.execute("SELECT number, length FROM passage_count").fetchone())


def passage_count(connection: sqlite3.Connection) -> int:
    return passage_totals(connection).number


def first_of_newest(connection: sqlite3.Connection, project_id: int, passages: int) -> int:
    """The first of the latest turns of a project that have about so many passages together; 0
    where all turns have no more."""
    total = passage_count(connection)
    if total <= passages:
        return 0
    (turns,) = connection.execute("SELECT count(*) FROM indexed_turns").fetchone()
    row = connection.execute(
        "SELECT id FROM indexed_turns WHERE project_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?",
        (project_id, passages * turns // total),
    ).fetchone()
    return int(row[0]) if row is not None else 0


def holds(row: PassageRow, term_hash: bytes) -> bool:
    """Whether the passage holds a term, given by its hash."""
    return holds_term(row.terms, term_hash)


def inverse_frequency(total: int, count: int) -> float:
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def _score(connection: sqlite3.Connection, occurrences: int | None) -> Score:
    return score(*passage_totals(connection), occurrences)


def passages_by_words(
    connection: sqlite3.Connection,
    expression: str,
    project_id: int | None,
    limit: int,
    condition: str = "TRUE",
    values: Iterable[object] = (),
    occurrences: int | None = None,
) -> dict[int, float]:
    """The best passages by bm25, by id; `condition` is on the turn as `t`. `occurrences`: how many
    passages hold the only word of the expression."""
    bm25 = _score(connection, occurrences)
    join = f" CROSS JOIN indexed_turns t ON t.id = {TURN_SQL}" if condition != "TRUE" else ""
    within = "" if project_id is None else " AND passage_text.rowid BETWEEN ? AND ?"
    ends = () if project_id is None else rowids(project_id)
    rows = _tuples(
        connection,
        f"SELECT {PASSAGE_SQL}, {bm25.sql} AS score FROM passage_text"
        f"{join} WHERE passage_text MATCH ?{within} AND {condition} ORDER BY score DESC LIMIT ?",
        (*bm25.values, expression, *ends, *values, limit),
    )
    return {row[0]: row[1] for row in rows}


def scores_in_turn(
    connection: sqlite3.Connection, expression: str, turn_id: int, occurrences: int | None = None
) -> dict[int, float]:
    """The bm25 of the passages of a turn that match, by id."""
    row = connection.execute(
        "SELECT project_id FROM indexed_turns WHERE id = ?", (turn_id,)
    ).fetchone()
    if row is None:
        return {}
    bm25 = _score(connection, occurrences)
    first = row[0] << PROJECT_SHIFT | turn_id << PASSAGE_BITS + LENGTH_BITS
    rows = connection.execute(
        f"SELECT {PASSAGE_SQL}, {bm25.sql} FROM passage_text"
        " WHERE passage_text MATCH ? AND rowid BETWEEN ? AND ?",
        (*bm25.values, expression, first, first + (MOST_PASSAGES << LENGTH_BITS) - 1),
    )
    return {row[0]: row[1] for row in rows}


def turns_holding(
    connection: sqlite3.Connection, expression: str, project_id: int | None
) -> set[int]:
    first, last = rowids(project_id)
    rows = connection.execute(
        f"SELECT DISTINCT {TURN_SQL} FROM passage_text WHERE passage_text MATCH ?"
        " AND passage_text.rowid BETWEEN ? AND ?",
        (expression, first, last),
    )
    return {row[0] for row in rows}


def rowids(project_id: int | None) -> tuple[int, int]:
    """The first and the last of the rows of `passage_text` of a project, or of all."""
    if project_id is None:
        return 0, (1 << 63) - 1
    return project_id << PROJECT_SHIFT, (project_id + 1 << PROJECT_SHIFT) - 1


# A turn that waits for the index may be deleted or changed by now.
_INDEXED = "t.id * 4 + 3 NOT IN (SELECT document FROM unindexed)"


def is_any_waiting(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM unindexed LIMIT 1").fetchone() is not None


def _indexed(connection: sqlite3.Connection) -> str:
    """The condition on `t`, if any turn waits: it is looked up for each row."""
    return _INDEXED if is_any_waiting(connection) else "TRUE"


_TURN_COLUMNS = ", ".join(f"t.{name}" for name in TurnRow._fields)


def turn_rows(
    connection: sqlite3.Connection,
    turn_ids: Iterable[int],
    condition: str = "TRUE",
    values: Iterable[object] = (),
) -> dict[int, TurnRow]:
    rows = _tuples(
        connection,
        f"SELECT {_TURN_COLUMNS} FROM json_each(?) i CROSS JOIN indexed_turns t ON t.id = i.value"
        f" WHERE {_indexed(connection)} AND {condition}",
        (json.dumps(sorted(turn_ids)), *values),
    )
    return {row[0]: row for row in map(TurnRow._make, rows)}


def passages_of_turns(
    connection: sqlite3.Connection,
    ids: Iterable[int],
    condition: str = "TRUE",
    values: Iterable[object] = (),
    *,
    with_pieces: bool = True,
) -> tuple[list[PassageRow], dict[int, TurnRow]]:
    """Passages in the order of their ids, and their turns; without those of other turns than the
    condition on `t` lets pass. One statement takes a little less time than two."""
    rows = _tuples(
        connection,
        f"SELECT p.id, {_KIND}, p.words, names_time, terms, {'pieces' if with_pieces else 'NULL'},"
        f" {_TURN_COLUMNS} FROM json_each(?) i CROSS JOIN passages p ON p.id = i.value"
        f" CROSS JOIN indexed_turns t ON t.id = p.id >> {PASSAGE_BITS}"
        f" WHERE {_indexed(connection)} AND {condition}",
        (json.dumps(sorted(ids)), *values),
    )
    width = len(PassageRow._fields)
    passages = [PassageRow._make(row[:width]) for row in rows]
    return passages, {row[width]: TurnRow._make(row[width:]) for row in rows}


def _tuples(
    connection: sqlite3.Connection, sql: str, values: Iterable[object]
) -> list[tuple[Any, ...]]:
    """Rows that are not accessed by name: `sqlite3.Row` would be made for each, for nothing."""
    cursor = connection.cursor()
    cursor.row_factory = None
    return cursor.execute(sql, tuple(values)).fetchall()


def rows_of_turn(connection: sqlite3.Connection, turn_id: int) -> list[PassageRow]:
    """None while the turn waits for the index."""
    rows = connection.execute(
        f"SELECT id, {_KIND}, words, names_time, terms, pieces FROM passages"
        " WHERE id BETWEEN ?1 << ?2 AND (?1 + 1 << ?2) - 1"
        " AND ?1 * 4 + 3 NOT IN (SELECT document FROM unindexed) ORDER BY id",
        (turn_id, PASSAGE_BITS),
    )
    return [PassageRow._make(row) for row in rows]


def neighbours(
    connection: sqlite3.Connection, turns: Iterable[TurnRow], reach: int
) -> list[tuple[int, int, int]]:
    """The turns within reach in the same session, the nearest first: (of which turn, how far, which
    turn)."""
    if not reach:
        return []
    ids = json.dumps(sorted(turn.id for turn in turns))
    rows = _tuples(connection, _neighbours_sql(reach), (ids,))
    return [
        (row[0], distance, other)
        for column, distance in enumerate(_distances(reach), start=1)
        for row in rows
        if (other := row[column]) is not None
    ]


def _distances(reach: int) -> list[int]:
    return [sign * distance for distance in range(1, reach + 1) for sign in (1, -1)]


def _neighbours_sql(reach: int) -> str:
    columns = [
        f"(SELECT n.id FROM indexed_turns n WHERE n.session_id = t.session_id"
        f" AND n.number {'>' if distance > 0 else '<'} t.number ORDER BY n.number"
        f" {'ASC' if distance > 0 else 'DESC'} LIMIT 1 OFFSET {abs(distance) - 1})"
        for distance in _distances(reach)
    ]
    return (
        f"SELECT {', '.join(['t.id', *columns])} FROM json_each(?) i"
        " CROSS JOIN indexed_turns t ON t.id = i.value"
    )


# Memories: of turns, and their duplicates

MATCH_COLUMNS = (
    "d.id, d.project_id, d.session_id, d.place, d.created_at_epoch, d.type, d.title,"
    " d.files, d.size"
)
# A document that waits for the index may be deleted or changed by now.
INDEXED_DOCUMENT = "d.id NOT IN (SELECT document FROM unindexed)"


class Match(NamedTuple):
    """What a search result shows of a document."""

    document: int
    project_id: int
    session_id: int
    place: int
    created_at_epoch: int
    type: str
    title: str
    files: str | None  # as JSON, those that were changed first
    size: int

    @property
    def file(self) -> str | None:
        """The first that was changed, or read."""
        names: list[str] = parse_stored(self.files or "[]", [])
        return names[0] if names else None


def get_matches(connection: sqlite3.Connection, documents: list[int]) -> list[Match]:
    """Returns the matches in the order of the documents; those that do not exist are left out."""
    rows = connection.execute(
        f"SELECT {MATCH_COLUMNS} FROM documents d WHERE d.id IN (SELECT value FROM json_each(?))"
        f" AND {INDEXED_DOCUMENT}",
        (json.dumps(documents),),
    )
    by_document = {row[0]: Match._make(row) for row in rows}
    return [by_document[document] for document in documents if document in by_document]


def duplicates_of(connection: sqlite3.Connection, documents: Iterable[int]) -> dict[int, list[int]]:
    """The duplicates of each of these documents that has any."""
    duplicates: dict[int, list[int]] = {}
    for document, duplicate in connection.execute(
        "SELECT document, twin FROM twins"
        " WHERE document IN (SELECT value FROM json_each(?)) ORDER BY document, twin",
        (json.dumps(list(documents)),),
    ):
        duplicates.setdefault(document, []).append(duplicate)
    return duplicates


Place = tuple[int, int]  # a session and the number of a turn in it
_NUMBER_BITS = 31


def memories_of_turns(
    connection: sqlite3.Connection, turns: Iterable[Place], filters: Filters
) -> dict[Place, list[Match]]:
    """Returns by turn the memories that pass: observations, the summary, the prompt."""
    # Project and session are those of the turn.
    condition = where(replace(filters, project_id=None, session_id=None, skip_open_turns=False))
    places = list(turns)
    rows = _tuples(
        connection,
        # A place as one number: SQLite would parse a pair again for each of its uses.
        f"SELECT w.key, {MATCH_COLUMNS} FROM json_each(?) w CROSS JOIN documents d"
        f" ON d.session_id = w.value >> {_NUMBER_BITS} AND d.place BETWEEN"
        f" (w.value & {(1 << _NUMBER_BITS) - 1}) * {PLACES}"
        f" AND (w.value & {(1 << _NUMBER_BITS) - 1}) * {PLACES} + {PLACES - 1}"
        f" WHERE {INDEXED_DOCUMENT} AND {condition.sql} ORDER BY d.id % 4, d.place",
        (json.dumps([session << _NUMBER_BITS | n for session, n in places]), *condition.values),
    )
    matches: dict[Place, list[Match]] = {}
    for key, *columns in rows:
        matches.setdefault(places[key], []).append(Match._make(columns))
    return matches


# Texts: each is cut again from the memory, or the part of the record, that it was cut from when it
# was indexed.


def texts_of_passages(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, str]:
    """Returns the texts by id, for passages of turns that have not changed since they were indexed
    (`turn_rows`)."""
    rows = connection.execute(
        "SELECT p.id, source, place FROM json_each(?) i CROSS JOIN passages p ON p.id = i.value",
        (json.dumps(list(ids)),),
    ).fetchall()
    sources = {row[1] for row in rows if row[1] > NOTES_SOURCE}
    named = {source >> 1 for source in sources if source & 1}
    memories = load_texts(connection, {source >> 1 for source in sources}, named)
    turns = {row[0] >> PASSAGE_BITS for row in rows if row[1] <= NOTES_SOURCE}
    records = _records_of(connection, turns) if turns else {}
    result: dict[int, str] = {}
    for id_, source, place in rows:
        if source > NOTES_SOURCE:
            memory = memories.get(source >> 1)
            text = memory_texts(memory)[source & 1] if memory is not None else ""
        else:
            text = source_text(records[id_ >> PASSAGE_BITS], source)
        result[id_] = next(islice(pack(text), place, None), "")
    return result


def texts_of_turn(connection: sqlite3.Connection, turn_id: int) -> Sequence[Passage]:
    """All passages, in their order; none while the turn waits for the index."""
    return texts_of_turns(connection, [turn_id]).get(turn_id, ())


def texts_of_turns(
    connection: sqlite3.Connection, turn_ids: Iterable[int]
) -> dict[int, Sequence[Passage]]:
    """Returns the passages by turn, without those that wait for the index."""
    indexed = turn_rows(connection, turn_ids)
    documents = load(connection, [document_id(TURN, turn_id) for turn_id in indexed])
    return {memory_id_of(document.id): document.passages for document in documents}


def _records_of(
    connection: sqlite3.Connection, turns: set[int]
) -> dict[int, tuple[RecordPart, ...]]:
    records = load_records(connection, turns)
    rows = connection.execute(
        "SELECT id, prompt_text FROM user_prompts WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(turns.difference(records))),),
    )
    return records | {row[0]: prompt_record(row[1]) for row in rows}

"""The full-text index of turns: the passages of what was said in a turn and remembered of it.

A turn is one document of many passages. Their text is not stored again: `passages` says where it is
(`texts_of_passages`). The FTS5 table has no content either: a passage is removed with the text that
it was indexed with (`previous_passages`).

Nor does it have the lengths of passages, which are in the ids of its rows (`passage_scores`).
"""

import json
import math
import sqlite3
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import Any, NamedTuple
from zlib import crc32

from claude_mem.index.passages import MEMORY, MOST, NOTES_SOURCE, Passage, pack, source_text
from claude_mem.index.text.documents import (
    TURN,
    Document,
    document_id,
    load,
    load_texts,
    memory_id_of,
    memory_texts,
    names_time,
    prompt_record,
)
from claude_mem.index.text.passage_scores import LENGTH_BITS, MAX_LENGTH, Score, score
from claude_mem.index.text.words import (
    MAX_CACHED,
    TOKENIZER,
    grams,
    is_unspaced,
    parts_of,
    pieces,
    plain_text,
    searchable,
    stem,
    stems,
    word_count,
)
from claude_mem.store.records import load_records
from claude_mem.types import RecordPart

PASSAGE_BITS = 10
# The id of a row of `passage_text`: project, turn, passage, length.
TURN_BITS = 28
PROJECT_SHIFT = TURN_BITS + PASSAGE_BITS + LENGTH_BITS
TABLES = f"""
CREATE TABLE indexed_turns (
  id INTEGER PRIMARY KEY,
  project_id INTEGER NOT NULL,
  session_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  created_at_epoch INTEGER NOT NULL,
  shown INTEGER NOT NULL,
  type TEXT NOT NULL,
  title TEXT NOT NULL,
  title_stems TEXT NOT NULL,
  words INTEGER NOT NULL,
  size INTEGER NOT NULL
);
CREATE INDEX turns_by_place ON indexed_turns(session_id, number);
CREATE INDEX turns_by_project ON indexed_turns(project_id, created_at_epoch);
CREATE TABLE passages (
  id INTEGER PRIMARY KEY,
  kind TEXT, -- NULL: "memory", as of most passages
  words INTEGER NOT NULL,
  names_time INTEGER NOT NULL,
  source INTEGER NOT NULL,
  place INTEGER NOT NULL,
  terms BLOB NOT NULL,
  pieces BLOB
);
CREATE VIRTUAL TABLE passage_text USING fts5(
  text, content='', columnsize=0, tokenize="{TOKENIZER}"
);
CREATE VIRTUAL TABLE passage_terms USING fts5vocab(passage_text, row);
CREATE TABLE passage_count (number INTEGER NOT NULL, length INTEGER NOT NULL);
INSERT INTO passage_count VALUES (0, 0)
"""
NAMES = ("indexed_turns", "passages", "passage_text", "passage_terms", "passage_count")

_hashes: dict[str, tuple[int, ...]] = {}  # of the terms of words that were indexed lately
PASSAGE_SQL = f"(passage_text.rowid >> {LENGTH_BITS} & {(1 << TURN_BITS + PASSAGE_BITS) - 1})"
TURN_SQL = f"({PASSAGE_SQL} >> {PASSAGE_BITS})"


_KIND = f"coalesce(kind, '{MEMORY}')"


def _stored_kind(kind: str) -> str | None:
    return None if kind == MEMORY else kind


class PassagesDiffer(LookupError):
    """The words of a turn cannot be removed: the index has to be rebuilt."""


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


# As `_make`, without a call of Python for each row.
_turn_row = partial(tuple.__new__, TurnRow)
_passage_row = partial(tuple.__new__, PassageRow)


def insert(connection: sqlite3.Connection, turn: Document) -> None:
    turn_id = memory_id_of(turn.id)
    connection.execute(
        "INSERT INTO indexed_turns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (turn_id, turn.project_id, turn.session_id, turn.place, turn.created_at_epoch, turn.shown,
         turn.type, turn.title, turn.title_stems,
         sum(len(passage.text.split()) for passage in turn.passages), turn.size),
    )  # fmt: skip
    rows = [
        (turn_id << PASSAGE_BITS | number, passage)
        for number, passage in enumerate(turn.passages[:MOST])
    ]
    connection.executemany(
        "INSERT INTO passages (id, kind, words, names_time, source, place, terms)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (row_id, _stored_kind(passage.kind), len(passage.text.split()),
             names_time(passage.text), passage.source, passage.place, hashed_terms(passage.text))
            for row_id, passage in rows
        ],
    )  # fmt: skip
    add_texts(
        connection,
        turn.project_id,
        [(row_id, searchable(passage.text)) for row_id, passage in rows],
    )


def add_texts(
    connection: sqlite3.Connection, project_id: int, texts: Sequence[tuple[int, str]]
) -> None:
    """Passages by their ids, with their text as it is indexed."""
    rows = _text_rows(project_id, texts)
    connection.executemany("INSERT INTO passage_text (rowid, text) VALUES (?, ?)", rows)
    _count(connection, 1, rows)


def delete(connection: sqlite3.Connection, turn_id: int, passages: Sequence[Passage]) -> None:
    """Removes a turn, whose passages these are; raises PassagesDiffer where it has others."""
    row = connection.execute(
        "DELETE FROM indexed_turns WHERE id = ? RETURNING project_id", (turn_id,)
    ).fetchone()
    if row is None:
        return
    first = turn_id << PASSAGE_BITS
    stored = connection.execute(
        "DELETE FROM passages WHERE id BETWEEN ? AND ? RETURNING id, words, source, place",
        (first, first + MOST - 1),
    ).fetchall()
    expected = [(first | number, len(p.text.split()), p.source, p.place)
                for number, p in enumerate(passages)]  # fmt: skip
    if sorted(map(tuple, stored)) != expected:
        raise PassagesDiffer(f"the index has other passages of turn {turn_id}")
    texts = [(first | number, searchable(p.text)) for number, p in enumerate(passages)]
    rows = _text_rows(row[0], texts)
    connection.executemany(
        "INSERT INTO passage_text (passage_text, rowid, text) VALUES ('delete', ?, ?)", rows
    )
    _count(connection, -1, rows)


def _text_rows(project_id: int, texts: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    return [
        (project_id << PROJECT_SHIFT | passage << LENGTH_BITS | min(word_count(text), MAX_LENGTH),
         text)
        for passage, text in texts
    ]  # fmt: skip


def _count(connection: sqlite3.Connection, sign: int, rows: list[tuple[int, str]]) -> None:
    length = sum(rowid & MAX_LENGTH for rowid, _ in rows)
    connection.execute(
        "UPDATE passage_count SET number = number + ?, length = length + ?",
        (sign * len(rows), sign * length),
    )


def passage_count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT number FROM passage_count").fetchone()[0])


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


def hashed_terms(text: str) -> bytes:
    """The stems of a text, each as 16 bits: whether a passage holds a word, without its text."""
    words = set(pieces(plain_text(text)))
    stems(part for word in words.difference(_hashes) for part in _forms(word))
    if len(_hashes) > MAX_CACHED:
        _hashes.clear()
    hashes: set[int] = set()
    for word in words:
        of_word = _hashes.get(word)
        if of_word is None:
            of_word = _hashes[word] = tuple(map(_hash, _terms_of_word(word)))
        hashes.update(of_word)
    return array("H", sorted(hashes)).tobytes()


def hashed(term: str) -> bytes:
    return _hash(term).to_bytes(2, sys.byteorder)


def holds(row: PassageRow, term_hash: bytes) -> bool:
    """Whether the passage holds a term, given by its hash."""
    return holds_term(row.terms, term_hash)


def holds_term(terms: bytes, term_hash: bytes) -> bool:
    """The same, of the hashed terms of a passage."""
    at = terms.find(term_hash)
    while at > 0 and at % 2:  # between two hashes
        at = terms.find(term_hash, at + 1)
    return at >= 0


def places_of_term(terms: bytes, ends: Sequence[int], term_hash: bytes) -> list[int]:
    """The numbers of the passages that hold a term. Their hashed terms follow each other, up to
    these ends: one search through all of them takes less time than one for each."""
    places: list[int] = []
    at = terms.find(term_hash)
    while at >= 0:
        if at % 2:  # between two hashes
            at = terms.find(term_hash, at + 1)
        else:
            place = bisect_right(ends, at)
            places.append(place)
            at = terms.find(term_hash, ends[place])
    return places


def terms_of(text: str) -> set[str]:
    return {term for word in set(pieces(plain_text(text))) for term in _terms_of_word(word)}


def _terms_of_word(word: str) -> list[str]:
    return grams(word) if is_unspaced(word) else [stem(form) for form in _forms(word)]


def _forms(word: str) -> list[str]:
    """A word and the words within it, in lower case."""
    if is_unspaced(word):
        return []
    return [word.lower(), *(part.lower() for part in parts_of(word) if len(part) > 1)]


def _hash(term: str) -> int:
    return crc32(term.encode("utf-8", "replace")) & 0xFFFF


def inverse_frequency(total: int, count: int) -> float:
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def _score(connection: sqlite3.Connection, occurrences: int | None) -> Score:
    number, length = connection.execute("SELECT number, length FROM passage_count").fetchone()
    return score(number, length, occurrences)


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
        (*bm25.values, expression, first, first + (MOST << LENGTH_BITS) - 1),
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


def _indexed(connection: sqlite3.Connection) -> str:
    """The condition on `t`, if any turn waits: it is looked up for each row."""
    row = connection.execute("SELECT 1 FROM unindexed LIMIT 1").fetchone()
    return "TRUE" if row is None else _INDEXED


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
    return {row[0]: row for row in map(_turn_row, rows)}


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
    if not rows:
        return [], {}
    columns = list(zip(*rows, strict=True))
    width = len(PassageRow._fields)
    passages = list(map(_passage_row, zip(*columns[:width], strict=True)))
    turns = map(_turn_row, zip(*columns[width:], strict=True))
    return passages, dict(zip(columns[width], turns, strict=True))


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


def set_pieces(connection: sqlite3.Connection, turn_id: int, pieces_: Iterable[bytes]) -> None:
    connection.executemany(
        "UPDATE passages SET pieces = ? WHERE id = ?",
        [(blob, turn_id << PASSAGE_BITS | number) for number, blob in enumerate(pieces_)],
    )


def neighbours(
    connection: sqlite3.Connection, turns: Iterable[TurnRow], reach: int
) -> list[tuple[int, int, int]]:
    """The turns within reach in the same session: (of which turn, how far, which turn)."""
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


@lru_cache(maxsize=8)
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


# Texts: each is cut again from the memory, or the part of the record, that it was cut from when it
# was indexed.


def texts_of_passages(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, str]:
    """By id; for passages of turns that have not changed since they were indexed (`turn_rows`)."""
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
    """By turn, without those that wait for the index."""
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

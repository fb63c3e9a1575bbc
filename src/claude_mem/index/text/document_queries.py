"""Filters of documents, and the documents that pass them, by time and by turn.

Expressions are in FTS5's language and come from `phrase`, `any_of`, `all_of` and `within` alone,
never from a user's text.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from claude_mem.index.text.documents import DOCUMENT_BITS, KINDS, PLACES, load, text_id
from claude_mem.index.text.words import TOKENIZER, grams, is_unspaced, pieces

_MATCH = (
    "d.id, d.project_id, d.session_id, d.place, d.created_at_epoch, d.type, d.title,"
    " d.files, d.size"
)
_DOCUMENT = f"(memory_text.rowid & {(1 << DOCUMENT_BITS) - 1})"
# A document that waits for the index may be deleted or changed by now.
_INDEXED = "d.id NOT IN (SELECT document FROM unindexed)"
_OF_CLOSED_TURNS = (
    f"d.id NOT IN (SELECT id * 4 + {KINDS.index('prompt')} FROM user_prompts WHERE closed = 0)"
)

_NOT_WRONG = "d.id NOT IN (SELECT document FROM wrong_documents)"
# Of a turn: the memory that stands for it, and its prompt.
_TURN_NOT_WRONG = (
    "t.shown NOT IN (SELECT document FROM wrong_documents)"
    f" AND t.id * 4 + {KINDS.index('prompt')} NOT IN (SELECT document FROM wrong_documents)"
)


EXCLUDING = 200  # documents that are looked through at once for excluded words


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
        names: list[str] = json.loads(self.files or "[]")
        return names[0] if names else None


@dataclass(frozen=True, slots=True)
class Filters:
    """What a memory must be, whatever its text. Empty means any."""

    project_id: int | None = None
    kinds: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None  # exclusive
    session_id: int | None = None
    statuses: tuple[str, ...] = ()
    skip_open_turns: bool = False  # without the prompts of turns that are not finished
    with_wrong: bool = False  # also what is marked as wrong

    def __bool__(self) -> bool:
        return self != NO_FILTERS


NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class Condition:
    sql: str
    values: tuple[object, ...] = ()


def phrase(text: str) -> str:
    """The words of a text in this order, as an FTS5 string; empty when there are none."""
    words: list[str] = []
    for piece in pieces(text):
        # A lone character of an unspaced script begins a pair, or is the last one: see `grams`.
        words += grams(piece)[:-1] or [piece] if is_unspaced(piece) else [piece]
    if not words:
        return ""
    lone = len(words) == 1 and len(words[0]) == 1 and is_unspaced(words[0])
    return f'"{" ".join(words)}"' + ("*" if lone else "")


def any_of(expressions: Iterable[str]) -> str:
    return f"({' OR '.join(expressions)})"


def all_of(expressions: Iterable[str]) -> str:
    return f"({' AND '.join(expressions)})"


def within(column: str, expression: str) -> str:
    return f"{column} : {expression}"


def _texts_of(project_id: int | None) -> Condition:
    """Texts of a project are stored together, so that those of others are not even read."""
    if project_id is None:
        return Condition("TRUE")
    ends = text_id(project_id, 0), text_id(project_id + 1, 0) - 1
    return Condition("memory_text.rowid BETWEEN ? AND ?", ends)


def newest(
    connection: sqlite3.Connection,
    filters: Filters,
    limit: int,
    offset: int,
    *,
    oldest: bool = False,
    without: tuple[str, ...] = (),
) -> list[Match]:
    """By time alone; `without` those that match any of these expressions."""
    if not without:
        return _by_time(connection, filters, limit, offset, oldest)
    passing: list[Match] = []
    start = 0
    while len(passing) < offset + limit:
        matches = _by_time(connection, filters, EXCLUDING, start, oldest)
        holding = _holding(connection, [match.document for match in matches], any_of(without))
        passing += [match for match in matches if match.document not in holding]
        start += EXCLUDING
        if len(matches) < EXCLUDING:
            break
    return passing[offset : offset + limit]


def _by_time(
    connection: sqlite3.Connection, filters: Filters, limit: int, offset: int, oldest: bool
) -> list[Match]:
    condition = where(filters)
    down = "" if oldest else " DESC"
    expression = required(filters)
    source, values = "documents d", condition.values
    if expression:
        source = f"memory_text CROSS JOIN documents d ON d.id = {_DOCUMENT}"
        condition = Condition(f"memory_text MATCH ? AND {condition.sql}", (expression, *values))
    rows = connection.execute(
        f"SELECT {_MATCH} FROM {source} WHERE {_INDEXED} AND {condition.sql}"
        f" ORDER BY d.created_at_epoch{down}, d.session_id{down}, d.place{down} LIMIT ? OFFSET ?",
        (*condition.values, limit, offset),
    )
    return [Match._make(row) for row in rows]


def _holding(connection: sqlite3.Connection, documents: list[int], expression: str) -> set[int]:
    """Those whose text matches. The index has the text of turns, not of each memory: these few
    are indexed for the moment."""
    with closing(sqlite3.connect(":memory:")) as memory:
        memory.execute(f'CREATE VIRTUAL TABLE texts USING fts5(text, tokenize="{TOKENIZER}")')
        memory.executemany(
            "INSERT INTO texts (rowid, text) VALUES (?, ?)",
            [(document.id, document.searchable_text) for document in load(connection, documents)],
        )
        rows = memory.execute("SELECT rowid FROM texts WHERE texts MATCH ?", (expression,))
        return {row[0] for row in rows}


def newest_named(
    connection: sqlite3.Connection, forms: list[str], project_id: int | None
) -> int | None:
    """The time of the newest memory whose title holds all of these."""
    if not forms:
        return None
    in_project = _texts_of(project_id)
    row = connection.execute(
        f"SELECT max(d.created_at_epoch) FROM memory_text CROSS JOIN documents d"
        f" ON d.id = {_DOCUMENT} WHERE memory_text MATCH ? AND {in_project.sql} AND {_INDEXED}",
        (within("title", all_of(forms)), *in_project.values),
    ).fetchone()
    moment: int | None = row[0]
    return moment


def in_order(
    connection: sqlite3.Connection,
    anchor: Match,
    filters: Filters,
    limit: int,
    *,
    backwards: bool = False,
) -> list[Match]:
    """The documents after this one, or before it, nearest first."""
    condition = where(filters)
    compare, down = ("<", " DESC") if backwards else (">", "")
    rows = connection.execute(
        f"SELECT {_MATCH} FROM documents d WHERE (d.created_at_epoch, d.session_id, d.place)"
        f" {compare} (?, ?, ?) AND {_INDEXED} AND {condition.sql}"
        f" ORDER BY d.created_at_epoch{down}, d.session_id{down}, d.place{down} LIMIT ?",
        (anchor.created_at_epoch, anchor.session_id, anchor.place, *condition.values, limit),
    )
    return [Match._make(row) for row in rows]


def passing(connection: sqlite3.Connection, documents: list[int], filters: Filters) -> set[int]:
    """Those of the documents that pass the filters."""
    condition = where(filters)
    rows = connection.execute(
        "SELECT d.id FROM documents d WHERE d.id IN (SELECT value FROM json_each(?))"
        f" AND {_INDEXED} AND {condition.sql}",
        (json.dumps(documents), *condition.values),
    )
    return {row[0] for row in rows}


def get(connection: sqlite3.Connection, documents: list[int]) -> list[Match]:
    """In this order; those that do not exist are left out."""
    rows = connection.execute(
        f"SELECT {_MATCH} FROM documents d WHERE d.id IN (SELECT value FROM json_each(?))"
        f" AND {_INDEXED}",
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


def required(filters: Filters) -> str:
    """The full-text part of the filters: it looks up files and concepts without a table scan."""
    expressions = [
        within(column, any_of(phrases))
        for column, values in (("files", filters.files), ("concepts", filters.concepts))
        if (phrases := [text for value in values if (text := phrase(value))])
    ]
    return all_of(expressions) if expressions else ""


@lru_cache(maxsize=64)
def where(filters: Filters) -> Condition:
    conditions: list[str] = []
    values: list[object] = []
    for column, operator, value in (
        ("d.project_id", "=", filters.project_id),
        ("d.session_id", "=", filters.session_id),
        ("d.created_at_epoch", ">=", filters.since),
        ("d.created_at_epoch", "<", filters.until),
    ):
        if value is not None:
            conditions.append(f"{column} {operator} ?")
            values.append(value)
    parts: list[Condition] = []
    if filters.kinds or filters.types:
        parts.append(_of_type(filters))
    if filters.statuses:
        parts.append(_with_status(filters.statuses))
    if filters.skip_open_turns:
        parts.append(Condition(_OF_CLOSED_TURNS))
    if not filters.with_wrong:
        parts.append(Condition(_NOT_WRONG))
    if filters.concepts:
        parts.append(_with_concept(filters.concepts))
    if filters.files:
        parts.append(_with_file(filters.files))
    conditions += [condition.sql for condition in parts]
    values += [value for condition in parts for value in condition.values]
    return Condition(" AND ".join(conditions) or "TRUE", tuple(values))


@lru_cache(maxsize=64)
def turn_condition(filters: Filters) -> Condition:
    """What a turn `t` must be: one of its memories passes. The project is left to the caller."""
    conditions: list[Condition] = []
    if filters.session_id is not None:
        conditions.append(Condition("t.session_id = ?", (filters.session_id,)))
    if filters.skip_open_turns:
        conditions.append(Condition("t.id NOT IN (SELECT id FROM user_prompts WHERE closed = 0)"))
    of_memory = where(
        replace(filters, project_id=None, session_id=None, skip_open_turns=False, with_wrong=True)
    )
    if of_memory.sql != "TRUE":
        conditions.append(Condition(
            "EXISTS (SELECT 1 FROM documents d WHERE d.session_id = t.session_id AND d.place"
            f" BETWEEN t.number * {PLACES} AND t.number * {PLACES} + {PLACES - 1}"
            f" AND {of_memory.sql})", of_memory.values,
        ))  # fmt: skip
    return Condition(
        " AND ".join(condition.sql for condition in conditions) or "TRUE",
        tuple(value for condition in conditions for value in condition.values),
    )


def result_condition(connection: sqlite3.Connection, filters: Filters) -> Condition:
    """What a turn `t` must be to be shown. Passages are looked up by `turn_condition` alone: few
    turns are wrong, and a condition on each passage costs more, even where none is."""
    condition = turn_condition(filters)
    if filters.with_wrong or not _is_any_wrong(connection):
        return condition
    return Condition(f"{condition.sql} AND {_TURN_NOT_WRONG}", condition.values)


def _is_any_wrong(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM wrong_documents LIMIT 1").fetchone() is not None


Place = tuple[int, int]  # a session and the number of a turn in it
_NUMBER_BITS = 31


def memories_of_turns(
    connection: sqlite3.Connection, turns: Iterable[Place], filters: Filters
) -> dict[Place, list[Match]]:
    """By turn the memories that pass: observations, the summary, the prompt."""
    matches: dict[Place, list[Match]] = {}
    for place, *columns in _in_turns(connection, turns, filters, _MATCH):
        matches.setdefault(place, []).append(Match._make(columns))
    return matches


def documents_of_turns(
    connection: sqlite3.Connection, turns: Iterable[Place], filters: Filters
) -> dict[Place, list[int]]:
    """The same, without reading more than an index of them."""
    documents: dict[Place, list[int]] = {}
    for place, document in _in_turns(connection, turns, filters, "d.id"):
        documents.setdefault(place, []).append(document)
    return documents


@lru_cache(maxsize=64)
def _in_turn(filters: Filters) -> Condition:
    """What a memory of a turn that passes must be."""
    return where(replace(filters, project_id=None, session_id=None, skip_open_turns=False))


def _in_turns(
    connection: sqlite3.Connection, turns: Iterable[Place], filters: Filters, columns: str
) -> Iterator[tuple[Any, ...]]:
    condition = _in_turn(filters)
    places = list(turns)
    cursor = connection.cursor()
    cursor.row_factory = None  # rows are not accessed by name
    rows = cursor.execute(
        # A place as one number: SQLite would parse a pair again for each of its uses.
        f"SELECT w.key, {columns} FROM json_each(?) w CROSS JOIN documents d"
        f" ON d.session_id = w.value >> {_NUMBER_BITS} AND d.place BETWEEN"
        f" (w.value & {(1 << _NUMBER_BITS) - 1}) * {PLACES}"
        f" AND (w.value & {(1 << _NUMBER_BITS) - 1}) * {PLACES} + {PLACES - 1}"
        f" WHERE {_INDEXED} AND {condition.sql} ORDER BY d.id % 4, d.place",
        (json.dumps([session << _NUMBER_BITS | n for session, n in places]), *condition.values),
    )
    return ((places[key], *values) for key, *values in rows)


def _of_type(filters: Filters) -> Condition:
    """Any of the kinds, or an observation of any of the types."""
    codes = [KINDS.index(kind) for kind in filters.kinds]
    return Condition(
        "(d.id % 4 IN (SELECT value FROM json_each(?))"
        " OR d.type IN (SELECT value FROM json_each(?)))",
        (json.dumps(codes), json.dumps(filters.types)),
    )


def _with_status(statuses: tuple[str, ...]) -> Condition:
    return Condition(
        "d.session_id IN (SELECT s.id FROM sdk_sessions s"
        " WHERE s.status IN (SELECT value FROM json_each(?)))",
        (json.dumps(statuses),),
    )


def _with_concept(concepts: tuple[str, ...]) -> Condition:
    return Condition(
        "EXISTS (SELECT 1 FROM json_each(d.concepts) c"
        " WHERE c.value IN (SELECT value FROM json_each(?)))",
        (json.dumps(concepts),),
    )


def _with_file(files: tuple[str, ...]) -> Condition:
    """By its path, the end of its path, or a folder above it."""
    names = [name.replace("\\", "/").strip("/") for name in files]
    return Condition(
        "EXISTS (SELECT 1 FROM json_each(d.files) f, json_each(?) w WHERE"
        " instr('/' || replace(f.value, '\\', '/') || '/', '/' || w.value || '/') > 0)",
        (json.dumps(names),),
    )

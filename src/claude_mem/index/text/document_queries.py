"""Documents that are not ranked: the newest, those before and after another one, and which of some
pass filters."""

import json
import sqlite3
from contextlib import closing

from claude_mem.index.text.documents import DOCUMENT_BITS, load, text_id
from claude_mem.index.text.filters import (
    Condition,
    Filters,
    all_of,
    any_of,
    required,
    where,
    within,
)
from claude_mem.index.text.passage_queries import INDEXED_DOCUMENT, MATCH_COLUMNS, Match
from claude_mem.index.text.words import TOKENIZER

_DOCUMENT = f"(memory_text.rowid & {(1 << DOCUMENT_BITS) - 1})"
EXCLUDING = 200  # documents that are looked through at once for excluded words


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
    """Lists memories by time alone; `without` those that match any of these expressions."""
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
        f"SELECT {MATCH_COLUMNS} FROM {source} WHERE {INDEXED_DOCUMENT} AND {condition.sql}"
        f" ORDER BY d.created_at_epoch{down}, d.session_id{down}, d.place{down} LIMIT ? OFFSET ?",
        (*condition.values, limit, offset),
    )
    return [Match._make(row) for row in rows]


def _holding(connection: sqlite3.Connection, documents: list[int], expression: str) -> set[int]:
    """Returns the documents whose text matches. The index has the text of turns, not of each
    memory: these few are indexed for the moment."""
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
        f" ON d.id = {_DOCUMENT} WHERE memory_text MATCH ? AND {in_project.sql}"
        f" AND {INDEXED_DOCUMENT}",
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
        f"SELECT {MATCH_COLUMNS} FROM documents d WHERE (d.created_at_epoch, d.session_id, d.place)"
        f" {compare} (?, ?, ?) AND {INDEXED_DOCUMENT} AND {condition.sql}"
        f" ORDER BY d.created_at_epoch{down}, d.session_id{down}, d.place{down} LIMIT ?",
        (anchor.created_at_epoch, anchor.session_id, anchor.place, *condition.values, limit),
    )
    return [Match._make(row) for row in rows]


def passing(connection: sqlite3.Connection, documents: list[int], filters: Filters) -> set[int]:
    """Returns those of the documents that pass the filters."""
    condition = where(filters)
    rows = connection.execute(
        "SELECT d.id FROM documents d WHERE d.id IN (SELECT value FROM json_each(?))"
        f" AND {INDEXED_DOCUMENT} AND {condition.sql}",
        (json.dumps(documents), *condition.values),
    )
    return {row[0] for row in rows}

"""Writes the index of turns: their rows, their passages and the words of these.

The FTS5 table has no content: a passage is removed with the text that it was indexed with
(`previous_passages`).
"""

import sqlite3
from collections.abc import Iterable, Sequence

from claude_mem.index.text.documents import (
    MEMORY,
    MOST_PASSAGES,
    Document,
    Passage,
    memory_id_of,
    names_time,
)
from claude_mem.index.text.passage_queries import PASSAGE_BITS, PROJECT_SHIFT
from claude_mem.index.text.passage_scores import LENGTH_BITS, MAX_LENGTH
from claude_mem.index.text.term_hashes import hashed_terms
from claude_mem.index.text.words import TOKENIZER, searchable, word_count

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


def _stored_kind(kind: str) -> str | None:
    return None if kind == MEMORY else kind


class PassagesDiffer(LookupError):
    """The words of a turn cannot be removed: the index has to be rebuilt."""


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
        for number, passage in enumerate(turn.passages[:MOST_PASSAGES])
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
        (first, first + MOST_PASSAGES - 1),
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


def set_pieces(connection: sqlite3.Connection, turn_id: int, pieces_: Iterable[bytes]) -> None:
    connection.executemany(
        "UPDATE passages SET pieces = ? WHERE id = ?",
        [(blob, turn_id << PASSAGE_BITS | number) for number, blob in enumerate(pieces_)],
    )

"""The table of vectors: for each document its passages in the numbers of one model.

A row is inserted without a vector in the transaction that indexes its document (`mark`), and
filled later by an embedder (`fill`). A vector never outlives its text: a change removes it in the
same transaction. Caches read only what is new: every change gets a new revision, and transactions
that removed documents are counted.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from claude_mem.index.text.documents import Document

NO_VECTOR = 0  # instead of the number of a model
CHUNK = 4_096

TABLES = """
CREATE TABLE vector_models (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  dimension INTEGER NOT NULL
);
CREATE TABLE vectors (
  revision INTEGER PRIMARY KEY AUTOINCREMENT,
  document INTEGER NOT NULL UNIQUE,
  project_id INTEGER NOT NULL,
  model INTEGER NOT NULL,
  vector BLOB
);
CREATE INDEX vectors_by_project ON vectors(project_id, revision);
CREATE INDEX vectors_by_model ON vectors(model, revision);
CREATE TABLE vector_losses (number INTEGER NOT NULL);
INSERT INTO vector_losses VALUES (0)
"""
NAMES = ("vectors", "vector_models", "vector_losses")


class Row(NamedTuple):
    document: int
    project_id: int
    model: int
    vector: bytes | None


class Waiting(NamedTuple):
    revision: int
    document: int
    project_id: int


class Progress(NamedTuple):
    """How many documents have a vector of a model, and how many there are."""

    done: int
    all: int


def mark(
    connection: sqlite3.Connection, documents: Iterable[int], present: Sequence[Document]
) -> None:
    """Removes the vectors of changed documents; those that still exist wait for a new one."""
    existing = {document.id for document in present}
    _delete(connection, [document for document in documents if document not in existing])
    _replace(connection, [(d.id, d.project_id, NO_VECTOR, None) for d in present])


def _delete(connection: sqlite3.Connection, documents: list[int]) -> None:
    deleted = connection.execute(
        "DELETE FROM vectors WHERE document IN (SELECT value FROM json_each(?))",
        (json.dumps(documents),),
    )
    if deleted.rowcount:
        connection.execute("UPDATE vector_losses SET number = number + 1")


def _replace(
    connection: sqlite3.Connection, rows: Iterable[tuple[int, int, int, bytes | None]]
) -> None:
    connection.executemany(
        "REPLACE INTO vectors (document, project_id, model, vector) VALUES (?, ?, ?, ?)", rows
    )


def number_of(connection: sqlite3.Connection, model: str, dimension: int | None = None) -> int:
    """Of a model, as its vectors are stored; NO_VECTOR when it has none of this dimension."""
    row = connection.execute(
        "SELECT number FROM vector_models WHERE id = ? AND dimension = coalesce(?, dimension)",
        (model, dimension),
    ).fetchone()
    return NO_VECTOR if row is None else int(row[0])


def register(connection: sqlite3.Connection, model: str, dimension: int) -> int:
    """The number of a model; a new one when its dimension has changed."""
    connection.execute(
        "UPDATE vector_models SET id = id || '#' || number WHERE id = ? AND dimension <> ?",
        (model, dimension),
    )
    connection.execute(
        "INSERT OR IGNORE INTO vector_models (id, dimension) VALUES (?, ?)", (model, dimension)
    )
    return number_of(connection, model)


def waiting(connection: sqlite3.Connection, model: int, limit: int) -> list[Waiting]:
    """Documents without a vector of this model: those with none, then those of other models."""
    other_models = connection.execute(
        "SELECT number FROM vector_models WHERE number <> ?", (model,)
    )
    documents: list[Waiting] = []
    for number in (NO_VECTOR, *(row[0] for row in other_models)):
        rows = connection.execute(
            "SELECT revision, document, project_id FROM vectors WHERE model = ?"
            " ORDER BY revision DESC LIMIT ?",
            (number, limit - len(documents)),
        )
        documents += [Waiting._make(row) for row in rows]
    return documents


def fill(
    connection: sqlite3.Connection, model: int, vectors: Iterable[tuple[Waiting, bytes | None]]
) -> set[int]:
    """Stores the vectors of texts that have not changed since (None: without a text); whose."""
    filled: set[int] = set()
    for row, vector in vectors:
        unchanged = connection.execute(
            "DELETE FROM vectors WHERE revision = ? AND document = ?", (row.revision, row.document)
        )
        if unchanged.rowcount and vector is not None:
            _replace(connection, [(row.document, row.project_id, model, vector)])
            filled.add(row.document)
    return filled


def unchanged(connection: sqlite3.Connection, documents: Iterable[int], since: int) -> set[int]:
    """The documents whose text is the same as at that revision."""
    rows = connection.execute(
        "SELECT document FROM vectors WHERE revision <= ?"
        " AND document IN (SELECT value FROM json_each(?))",
        (since, json.dumps(list(documents))),
    )
    return {row[0] for row in rows}


def losses(connection: sqlite3.Connection) -> int:
    """How many transactions have removed documents."""
    row = connection.execute("SELECT number FROM vector_losses").fetchone()
    return int(row[0])


def revision(connection: sqlite3.Connection) -> int:
    """Of the latest change."""
    row = connection.execute("SELECT max(revision) FROM vectors").fetchone()
    return int(row[0] or 0)


def changes(
    connection: sqlite3.Connection, after: int, project_id: int | None = None
) -> Iterator[list[Row]]:
    """The rows of a project, or of all, after a revision, in chunks."""
    rows = connection.execute(
        "SELECT document, project_id, model, vector FROM vectors WHERE revision > :after"
        + ("" if project_id is None else " AND project_id = :project")
        + " ORDER BY revision",
        {"after": after, "project": project_id},
    )
    while chunk := rows.fetchmany(CHUNK):
        yield [Row._make(row) for row in chunk]


def stored(connection: sqlite3.Connection, model: int, documents: list[int]) -> list[Row]:
    """The rows of these documents that have a vector of this model."""
    rows = connection.execute(
        # The plus keeps SQLite from reading the whole index of a model.
        "SELECT document, project_id, model, vector FROM vectors WHERE +model = ?"
        " AND document IN (SELECT value FROM json_each(?)) ORDER BY document",
        (model, json.dumps(documents)),
    )
    return [Row._make(row) for row in rows]


def documents_of(connection: sqlite3.Connection, project_id: int) -> list[int]:
    rows = connection.execute("SELECT document FROM vectors WHERE project_id = ?", (project_id,))
    return [row[0] for row in rows]


def projects(connection: sqlite3.Connection) -> list[int]:
    return [row[0] for row in connection.execute("SELECT id FROM projects ORDER BY id")]


def count(connection: sqlite3.Connection, project_id: int | None) -> int:
    """Of a project, or of all."""
    condition = "" if project_id is None else " WHERE project_id = :project"
    row = connection.execute(
        f"SELECT count(*) FROM vectors{condition}", {"project": project_id}
    ).fetchone()
    return int(row[0])


def progress(connection: sqlite3.Connection, model: int | None = None) -> Progress:
    """Of this model; without one, of the model with the most vectors."""
    counts = dict(
        connection.execute("SELECT model, count(*) FROM vectors GROUP BY model").fetchall()
    )
    total = sum(counts.values())
    counts.pop(NO_VECTOR, None)
    done = max(counts.values(), default=0) if model is None else counts.get(model, 0)
    return Progress(done, total)

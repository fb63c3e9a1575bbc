"""The table of vectors: what a document means, in the numbers of one model.

A row comes with its document, without a vector, in the transaction that indexes it (`mark`); an
embedder fills it in later (`fill`). It never outlives the text: a change takes the vector away in
the same transaction. Whoever holds vectors in memory reads only what is new: every change has a
new revision, and losses are counted.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from claude_mem.index.text.documents import Document

NO_VECTOR = 0  # in the place of a model's number
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
    """How many documents a model has read, and how many there are."""

    done: int
    all: int


def mark(
    connection: sqlite3.Connection, documents: Iterable[int], present: Sequence[Document]
) -> None:
    """Takes away the vectors of what has changed; what is still there waits for a new one."""
    here = {document.id for document in present}
    _lose(connection, [document for document in documents if document not in here])
    _put(connection, [(one.id, one.project_id, NO_VECTOR, None) for one in present])


def _lose(connection: sqlite3.Connection, documents: list[int]) -> None:
    lost = connection.execute(
        "DELETE FROM vectors WHERE document IN (SELECT value FROM json_each(?))",
        (json.dumps(documents),),
    )
    if lost.rowcount:
        connection.execute("UPDATE vector_losses SET number = number + 1")


def _put(
    connection: sqlite3.Connection, rows: Iterable[tuple[int, int, int, bytes | None]]
) -> None:
    connection.executemany(
        "REPLACE INTO vectors (document, project_id, model, vector) VALUES (?, ?, ?, ?)", rows
    )


def number_of(connection: sqlite3.Connection, model: str, dimension: int | None = None) -> int:
    """Under which a model's vectors are stored; NO_VECTOR when it has none of this length."""
    row = connection.execute(
        "SELECT number FROM vector_models WHERE id = ? AND dimension = coalesce(?, dimension)",
        (model, dimension),
    ).fetchone()
    return NO_VECTOR if row is None else int(row[0])


def register(connection: sqlite3.Connection, model: str, dimension: int) -> int:
    """The number of a model; another one when its vectors have become longer or shorter."""
    connection.execute(
        "UPDATE vector_models SET id = id || '#' || number WHERE id = ? AND dimension <> ?",
        (model, dimension),
    )
    connection.execute(
        "INSERT OR IGNORE INTO vector_models (id, dimension) VALUES (?, ?)", (model, dimension)
    )
    return number_of(connection, model)


def waiting(connection: sqlite3.Connection, model: int, limit: int) -> list[Waiting]:
    """Documents without a vector of this model: those that have none, then those of another."""
    others = connection.execute("SELECT number FROM vector_models WHERE number <> ?", (model,))
    found: list[Waiting] = []
    for number in (NO_VECTOR, *(row[0] for row in others)):
        rows = connection.execute(
            "SELECT revision, document, project_id FROM vectors WHERE model = ?"
            " ORDER BY revision DESC LIMIT ?",
            (number, limit - len(found)),
        )
        found += [Waiting._make(row) for row in rows]
    return found


def fill(
    connection: sqlite3.Connection, model: int, made: Iterable[tuple[Waiting, bytes | None]]
) -> set[int]:
    """Stores what was made of texts that have not changed since; None: there was no text."""
    stored: set[int] = set()
    for row, vector in made:
        same = connection.execute(
            "DELETE FROM vectors WHERE revision = ? AND document = ?", (row.revision, row.document)
        )
        if same.rowcount and vector is not None:
            _put(connection, [(row.document, row.project_id, model, vector)])
            stored.add(row.document)
    return stored


def unchanged(connection: sqlite3.Connection, documents: Iterable[int], since: int) -> set[int]:
    """Those whose text is the one that it was at that revision."""
    rows = connection.execute(
        "SELECT document FROM vectors WHERE revision <= ?"
        " AND document IN (SELECT value FROM json_each(?))",
        (since, json.dumps(list(documents))),
    )
    return {row[0] for row in rows}


def losses(connection: sqlite3.Connection) -> int:
    """How often documents have gone."""
    row = connection.execute("SELECT number FROM vector_losses").fetchone()
    return int(row[0])


def revision(connection: sqlite3.Connection) -> int:
    """Of the latest change."""
    row = connection.execute("SELECT max(revision) FROM vectors").fetchone()
    return int(row[0] or 0)


def changes(
    connection: sqlite3.Connection, after: int, project_id: int | None = None
) -> Iterator[list[Row]]:
    """The rows of a project, or of all, that came after a revision, in pieces."""
    rows = connection.execute(
        "SELECT document, project_id, model, vector FROM vectors WHERE revision > :after"
        + ("" if project_id is None else " AND project_id = :project")
        + " ORDER BY revision",
        {"after": after, "project": project_id},
    )
    while some := rows.fetchmany(CHUNK):
        yield [Row._make(row) for row in some]


def stored(connection: sqlite3.Connection, model: int, documents: list[int]) -> list[Row]:
    """What there is of these."""
    rows = connection.execute(
        "SELECT document, project_id, model, vector FROM vectors WHERE model = ?"
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
    """Of this model; without one, of the model that has read the most."""
    counts = dict(
        connection.execute("SELECT model, count(*) FROM vectors GROUP BY model").fetchall()
    )
    every = sum(counts.values())
    counts.pop(NO_VECTOR, None)
    done = max(counts.values(), default=0) if model is None else counts.get(model, 0)
    return Progress(done, every)

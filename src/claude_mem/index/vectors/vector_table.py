"""The table of vectors: for each document its passages in the numbers of one model.

A row is inserted without a vector in the transaction that indexes its document (`mark`), and
filled later by an embedder (`fill`). A vector never outlives its text: a change removes it in the
same transaction. Every change gets a new revision, and documents that were removed are listed, so
that copies (`vector_search`, `chroma`) read only what is new since their `TableState`.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from claude_mem.index.text.documents import Document

NO_VECTOR = 0  # instead of the number of a model

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
-- Their entries end with the revision, as it is the id of a row.
CREATE INDEX vectors_by_project ON vectors(project_id);
CREATE INDEX vectors_by_model ON vectors(model);
CREATE TABLE vector_losses (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  document INTEGER NOT NULL
)
"""
NAMES = ("vectors", "vector_models", "vector_losses")
_NUMBER_OF = "SELECT number FROM vector_models WHERE id = ? AND dimension = coalesce(?, dimension)"


class TableState(NamedTuple):
    """What a copy of the table is compared with: which index and model, the latest change and the
    latest loss."""

    generation: int  # of the index
    model: int
    revision: int
    loss: int


class VectorRow(NamedTuple):
    revision: int
    document: int
    project_id: int
    model: int
    vector: bytes | None


class Waiting(NamedTuple):
    revision: int
    document: int
    project_id: int


class VectorCounts(NamedTuple):
    """How many documents have a vector of a model, and how many there are."""

    done: int
    all: int


def read_state(
    connection: sqlite3.Connection, generation: int, model: str, dimension: int | None
) -> TableState:
    row = connection.execute(
        f"SELECT coalesce(({_NUMBER_OF}), {NO_VECTOR}),"
        " coalesce((SELECT max(revision) FROM vectors), 0),"
        " coalesce((SELECT max(number) FROM vector_losses), 0)",
        (model, dimension),
    ).fetchone()
    return TableState(generation, *row)


def mark(
    connection: sqlite3.Connection, documents: Iterable[int], present: Sequence[Document]
) -> None:
    """Removes the vectors of changed documents; those that still exist wait for a new one."""
    existing = {document.id for document in present}
    _delete(connection, [document for document in documents if document not in existing])
    connection.execute(
        "INSERT INTO vector_losses (document) SELECT v.document FROM vectors v"
        " JOIN json_each(?) d ON v.document = d.value ->> 0 AND v.project_id <> d.value ->> 1",
        (json.dumps([(d.id, d.project_id) for d in present]),),
    )
    _replace(connection, [(d.id, d.project_id, NO_VECTOR, None) for d in present])


def _delete(connection: sqlite3.Connection, documents: list[int]) -> None:
    deleted = connection.execute(
        "DELETE FROM vectors WHERE document IN (SELECT value FROM json_each(?)) RETURNING document",
        (json.dumps(documents),),
    ).fetchall()
    connection.executemany("INSERT INTO vector_losses (document) VALUES (?)", map(tuple, deleted))


def _replace(
    connection: sqlite3.Connection, rows: Iterable[tuple[int, int, int, bytes | None]]
) -> None:
    connection.executemany(
        "REPLACE INTO vectors (document, project_id, model, vector) VALUES (?, ?, ?, ?)", rows
    )


def number_of(connection: sqlite3.Connection, model: str, dimension: int | None = None) -> int:
    """Returns the number of a stored model; NO_VECTOR when it has none of this dimension."""
    row = connection.execute(_NUMBER_OF, (model, dimension)).fetchone()
    return NO_VECTOR if row is None else int(row[0])


def dimension_of(connection: sqlite3.Connection, model: int) -> int:
    row = connection.execute("SELECT dimension FROM vector_models WHERE number = ?", (model,))
    return int(row.fetchone()[0])


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


def progress(connection: sqlite3.Connection, model: int) -> VectorCounts:
    """Counts the vectors of a model by those that are missing: there are mostly fewer of them."""
    (total,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
    if model == NO_VECTOR:
        return VectorCounts(0, total)
    (others,) = connection.execute(
        "SELECT sum((SELECT count(*) FROM vectors WHERE model = m.number)) FROM (SELECT"
        f" {NO_VECTOR} AS number UNION ALL SELECT number FROM vector_models WHERE number <> ?) m",
        (model,),
    ).fetchone()
    return VectorCounts(total - others, total)

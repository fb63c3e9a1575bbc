"""The vectors of a project in memory, and how they follow the table of vectors."""

import sqlite3
import threading
from collections.abc import Callable, Sequence

import numpy as np

from claude_mem.index.text.documents import TURN, Document, load, memory_id_of
from claude_mem.index.text.passage_index import PASSAGE_BITS
from claude_mem.index.vectors import vector_table
from claude_mem.index.vectors.blocks import Ids, Rows, VectorBlocks
from claude_mem.index.vectors.vector_table import TableState

CHUNK = 2_048  # rows that are read in a transaction

Embed = Callable[[Sequence[Document]], list[Rows]]


def passage_ids(document: int, count: int) -> Ids:
    """Of the first passages of a turn."""
    ids: Ids = np.arange(count, dtype=np.int64) + (memory_id_of(document) << PASSAGE_BITS)
    return ids


class ProjectVectors:
    """Of documents of one kind: the passages of turns, or observations."""

    def __init__(self, project_id: int, kind: str, dimension: int, state: TableState) -> None:
        self.blocks = VectorBlocks(dimension, PASSAGE_BITS if kind == TURN else 0)
        self.lock = threading.Lock()  # of whoever adds vectors; scans need none
        self.revision = 0
        self.read_state: TableState | None = None  # when a search last caught up
        self.embedded: dict[int, Rows] = {}  # by document, ahead of the table
        self._project_id, self._kind, self._dimension = project_id, kind, dimension
        self._model, self._first_revision, self._loss = state.model, state.revision, state.loss
        self._waiting: dict[int, None] = {}  # documents without a vector

    def catch_up(self, connection: sqlite3.Connection, state: TableState) -> None:
        lost = vector_table.losses(connection, self._project_id, self._loss)
        self._remove(lost)
        self._loss = max(self._loss, state.loss)
        while rows := vector_table.changes(
            connection, self._project_id, self._kind, self.revision, CHUNK
        ):
            self._apply(rows)
            self.revision = rows[-1].revision
        self.revision = max(self.revision, state.revision)

    def embed_waiting(self, connection: sqlite3.Connection, embed: Embed, limit: int) -> None:
        """The newest first, up to the limit."""
        ids = list(self._waiting)[-limit:] if limit else []
        if not ids:
            return
        documents = load(connection, ids)
        for document, rows in zip(documents, embed(documents), strict=True):
            self.embedded[document.id] = rows
            self.blocks.add(self.ids(document.id, len(rows)), rows)
        for waiting in ids:
            del self._waiting[waiting]

    def ids(self, document: int, count: int) -> Ids:
        """Of the vectors of a document."""
        if self._kind != TURN:
            return np.full(count, document, np.int64)
        return passage_ids(document, count)

    def _apply(self, rows: list[vector_table.VectorRow]) -> None:
        self._remove([row.document for row in rows if row.revision > self._first_revision])
        ids: list[Ids] = []
        vectors: list[bytes] = []
        for row in rows:
            if row.vector and row.model == self._model:
                ids.append(self.ids(row.document, len(row.vector) // self._dimension))
                vectors.append(row.vector)
            else:
                self._waiting[row.document] = None
        if ids:
            flat = np.frombuffer(b"".join(vectors), np.int8)
            self.blocks.add(np.concatenate(ids), flat.reshape(-1, self._dimension))

    def _remove(self, documents: list[int]) -> None:
        for document in documents:
            self._waiting.pop(document, None)
            self.embedded.pop(document, None)
        owners = map(memory_id_of, documents) if self._kind == TURN else documents
        self.blocks.remove(owners)

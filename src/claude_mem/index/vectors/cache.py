"""The vectors of projects in memory: read at the first question, kept in step with the table.

Documents that still wait for their vector are read here and now, so that the newest are never
missing, unless there are too many of them.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from claude_mem.index.embedders.embedder import Embedder
from claude_mem.index.text import full_text
from claude_mem.index.text.documents import Document, load
from claude_mem.index.vectors import storage
from claude_mem.index.vectors.blocks import (
    NOTHING,
    Ids,
    QueryVector,
    Rows,
    Similarities,
    VectorBlocks,
    together,
    whole_numbers,
)
from claude_mem.index.vectors.passages import passages

IN_FULL = 150_000  # documents whose vectors are held in memory; of more, only their signs
RESCORED = 2_000


class State(NamedTuple):
    """Of the table, when it was read."""

    generation: int
    model: int
    revision: int
    losses: int


class VectorCache:
    def __init__(self, embedder: Embedder, read_ahead: int) -> None:
        self._embedder, self._ahead = embedder, read_ahead
        self._shelves: dict[int, VectorBlocks] = {}  # by project; what was asked last stands last
        self._sizes: dict[int | None, int] = {}
        self._unread: dict[int, int] = {}  # documents without a vector, and their projects
        self._state = State(0, 0, 0, 0)

    def similarities(
        self, connection: sqlite3.Connection, text: str, project_id: int | None, also: Iterable[int]
    ) -> Similarities:
        (row,) = self.encode([text])
        if not row.any():
            return NOTHING
        self._catch_up(connection)
        asked = QueryVector(row)
        in_full = self._size(connection, project_id) <= IN_FULL
        shelves = self._take(connection, project_id, in_full)
        self._read_ahead(connection)
        if in_full:
            return together([NOTHING, *(shelf.compare(asked) for shelf in shelves)])
        nearest = together([NOTHING, *(shelf.distances(asked) for shelf in shelves)])
        chosen = {document for document, _ in nearest.best(RESCORED)}.union(also)
        rows = storage.stored(connection, self._state.model, sorted(chosen))
        return together([NOTHING, asked.compare(*self._as_arrays(rows))])

    def alike(
        self,
        connection: sqlite3.Connection,
        documents: Sequence[Document],
        rows: list[Rows],
        least: float,
        most: int,
    ) -> tuple[list[tuple[int, int]], int]:
        """Pairs of these, of whom a row each is given, with each other and with all of their
        projects; and the revision up to which those were read. Of a project that is too large to
        be held there are none."""
        self._catch_up(connection)
        found: list[tuple[int, int]] = []
        for project in dict.fromkeys(document.project_id for document in documents):
            if self._size(connection, project) > IN_FULL:
                continue
            (shelf,) = self._take(connection, project, in_full=True)
            mine = [at for at, one in enumerate(documents) if one.project_id == project]
            ids = np.array([documents[at].id for at in mine], np.int64)
            ours = np.array([rows[at] for at in mine])
            among = VectorBlocks(self._embedder.dimension, in_full=True)
            among.put(ids, ours)
            for there in (shelf, among):
                found += there.pairs(ids, ours, least, most)
        return found, self._state.revision

    def encode(self, texts: Sequence[str]) -> Rows:
        return whole_numbers(self._embedder.encode(texts))

    def read(self, documents: Sequence[Document]) -> list[Rows]:
        """A row for each passage of each."""
        texts = [passages(document) for document in documents]
        rows = self.encode([passage for some in texts for passage in some])
        ends = np.cumsum([len(some) for some in texts])
        return np.split(rows, ends[:-1]) if texts else []

    def _size(self, connection: sqlite3.Connection, project_id: int | None) -> int:
        if project_id not in self._sizes:
            self._sizes[project_id] = storage.count(connection, project_id)
        return self._sizes[project_id]

    def _catch_up(self, connection: sqlite3.Connection) -> None:
        before, now = self._state, self._read_state(connection)
        if now[:2] != before[:2]:
            self._shelves.clear()
            self._unread.clear()
        if now == before:
            return
        self._state = now
        self._sizes.clear()
        for project, shelf in self._shelves.items() if now.losses != before.losses else ():
            shelf.keep(storage.documents_of(connection, project))
        for changed in storage.changes(connection, before.revision) if self._shelves else ():
            for shelf in self._shelves.values():
                shelf.take_out([row.document for row in changed])
            self._put(changed)

    def _read_state(self, connection: sqlite3.Connection) -> State:
        return State(
            full_text.generation(connection),
            storage.number_of(connection, self._embedder.id, self._embedder.dimension),
            storage.revision(connection),
            storage.losses(connection),
        )

    def _take(
        self, connection: sqlite3.Connection, project_id: int | None, in_full: bool
    ) -> list[VectorBlocks]:
        """Those of a project or of all, from the table where they are not there yet."""
        wanted = storage.projects(connection) if project_id is None else [project_id]
        for project in wanted:
            shelf = self._shelves.pop(project, None)
            if shelf is not None and shelf.in_full >= in_full:
                self._shelves[project] = shelf
                continue
            self._shelves[project] = VectorBlocks(self._embedder.dimension, in_full)
            for rows in storage.changes(connection, 0, project):
                self._put(rows)
        self._make_room(set(wanted))
        return [self._shelves[project] for project in wanted]

    def _make_room(self, wanted: set[int]) -> None:
        for project in [project for project in self._shelves if project not in wanted]:
            if sum(len(shelf) for shelf in self._shelves.values() if shelf.in_full) <= IN_FULL:
                return
            del self._shelves[project]
            self._unread = {one: of for one, of in self._unread.items() if of != project}

    def _put(self, rows: list[storage.Row]) -> None:
        """On the shelves that there are."""
        ready: dict[int, list[storage.Row]] = {}
        for row in rows:
            self._unread.pop(row.document, None)
            if row.project_id in self._shelves:
                if row.vector and row.model == self._state.model:
                    ready.setdefault(row.project_id, []).append(row)
                else:
                    self._unread[row.document] = row.project_id
        for project, chosen in ready.items():
            self._shelves[project].put(*self._as_arrays(chosen))

    def _read_ahead(self, connection: sqlite3.Connection) -> None:
        """Some of those without a vector, the newest first."""
        chosen = list(self._unread)[-self._ahead :] if self._ahead else []
        found = load(connection, chosen)
        made = self.read(found)
        self._put([
            storage.Row(document.id, document.project_id, self._state.model, row.tobytes())
            for document, row in zip(found, made, strict=True)
        ])  # fmt: skip
        for document in chosen:
            self._unread.pop(document, None)

    def _as_arrays(self, rows: list[storage.Row]) -> tuple[Ids, Rows]:
        """A document's id as often as it has passages."""
        made = [row.vector or b"" for row in rows]
        counts = [len(vector) // self._embedder.dimension for vector in made]
        ids = np.repeat(np.array([row.document for row in rows], np.int64), counts)
        return ids, np.frombuffer(b"".join(made), np.int8).reshape(len(ids), -1)

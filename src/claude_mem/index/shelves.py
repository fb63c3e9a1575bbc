"""The vectors of projects in memory: read at the first question, kept in step with the table.

Documents that still wait for their vector are read here and now, so that the newest are never
missing, unless there are too many of them.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from claude_mem.index import full_text, vectors
from claude_mem.index.documents import load
from claude_mem.index.embedder import Embedder
from claude_mem.index.shelf import NOTHING, Asked, Likeness, Rows, Shelf, together, whole_numbers

IN_FULL = 200_000  # vectors that are held in memory; of more, only their signs
RESCORED = 2_000


class State(NamedTuple):
    """Of the table, when it was read."""

    generation: int
    model: int
    revision: int
    losses: int


class Shelves:
    def __init__(self, embedder: Embedder, read_ahead: int) -> None:
        self._embedder, self._read_ahead = embedder, read_ahead
        self._shelves: dict[int, Shelf] = {}  # by project; what was asked last stands last
        self._sizes: dict[int | None, int] = {}
        self._state = State(0, 0, 0, 0)

    def likeness(
        self, connection: sqlite3.Connection, text: str, project_id: int | None, also: Iterable[int]
    ) -> Likeness:
        (row,) = self.encode([text])
        if not row.any():
            return NOTHING
        self._catch_up(connection)
        asked = Asked(row)
        in_full = self._size(connection, project_id) <= IN_FULL
        shelves = self._take(connection, project_id, in_full)
        if in_full:
            return together([NOTHING, *(shelf.compare(asked) for shelf in shelves)])
        nearest = together([NOTHING, *(shelf.distances(asked) for shelf in shelves)])
        chosen = {document for document, _ in nearest.best(RESCORED)}.union(also)
        rows = vectors.stored(connection, self._state.model, sorted(chosen))
        return asked.compare(*self._as_arrays(rows))

    def encode(self, texts: Sequence[str]) -> Rows:
        return whole_numbers(self._embedder.encode(texts))

    def _size(self, connection: sqlite3.Connection, project_id: int | None) -> int:
        if project_id not in self._sizes:
            self._sizes[project_id] = vectors.count(connection, project_id)
        return self._sizes[project_id]

    def _catch_up(self, connection: sqlite3.Connection) -> None:
        before, now = self._state, self._read_state(connection)
        if now[:2] != before[:2]:
            self._shelves.clear()
        if now == before:
            return
        self._state = now
        self._sizes.clear()
        for project, shelf in self._shelves.items() if now.losses != before.losses else ():
            shelf.keep(vectors.documents_of(connection, project))
        for changed in vectors.changes(connection, before.revision) if self._shelves else ():
            for shelf in self._shelves.values():
                shelf.take_out([row.document for row in changed])
            self._put(connection, changed)

    def _read_state(self, connection: sqlite3.Connection) -> State:
        return State(
            full_text.generation(connection),
            vectors.number_of(connection, self._embedder.id, self._embedder.dimension),
            vectors.revision(connection),
            vectors.losses(connection),
        )

    def _take(
        self, connection: sqlite3.Connection, project_id: int | None, in_full: bool
    ) -> list[Shelf]:
        """Those of a project or of all, from the table where they are not there yet."""
        wanted = vectors.projects(connection) if project_id is None else [project_id]
        for project in wanted:
            shelf = self._shelves.pop(project, None)
            if shelf is not None and shelf.in_full >= in_full:
                self._shelves[project] = shelf
                continue
            self._shelves[project] = Shelf(self._embedder.dimension, in_full)
            for rows in vectors.changes(connection, 0, project):
                self._put(connection, rows)
        self._make_room(set(wanted))
        return [self._shelves[project] for project in wanted]

    def _make_room(self, wanted: set[int]) -> None:
        for project in [project for project in self._shelves if project not in wanted]:
            if sum(len(shelf) for shelf in self._shelves.values() if shelf.in_full) <= IN_FULL:
                return
            del self._shelves[project]

    def _put(self, connection: sqlite3.Connection, rows: list[vectors.Row]) -> None:
        here = [row for row in rows if row.project_id in self._shelves]
        ready = [row for row in here if row.vector and row.model == self._state.model]
        rest = [row.document for row in here if not row.vector or row.model != self._state.model]
        self._put_by_project(ready)
        if self._read_ahead:
            self._put_by_project(self._read_now(connection, rest[-self._read_ahead :]))

    def _put_by_project(self, rows: list[vectors.Row]) -> None:
        for project in dict.fromkeys(row.project_id for row in rows):
            chosen = [row for row in rows if row.project_id == project]
            self._shelves[project].put(*self._as_arrays(chosen))

    def _read_now(self, connection: sqlite3.Connection, documents: list[int]) -> list[vectors.Row]:
        found = load(connection, documents)
        made = self.encode([document.told for document in found])
        return [
            vectors.Row(document.id, document.project_id, self._state.model, row.tobytes())
            for document, row in zip(found, made, strict=True)
            if document.project_id in self._shelves
        ]

    def _as_arrays(self, rows: list[vectors.Row]) -> tuple[np.ndarray, Rows]:
        ids = np.array([row.document for row in rows], np.int64)
        made = np.frombuffer(b"".join(row.vector or b"" for row in rows), np.int8)
        return ids, made.reshape(-1, self._embedder.dimension)

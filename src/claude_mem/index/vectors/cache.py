"""The vectors of projects in memory: loaded at the first search, kept in step with the table.

Documents that still wait for their vector are embedded at once, so that the newest are never
missing, unless there are too many of them.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from claude_mem.index import maintenance
from claude_mem.index.embedders.embedder import Embedder
from claude_mem.index.text.documents import TURN, Document, document_id, load
from claude_mem.index.text.turn_text import PASSAGE_BITS
from claude_mem.index.vectors import storage
from claude_mem.index.vectors.blocks import (
    NO_SIMILARITIES,
    Ids,
    QueryVector,
    Rows,
    Similarities,
    VectorBlocks,
    merge,
    quantise,
)
from claude_mem.index.vectors.embedding_texts import passages

MAX_DOCUMENTS = 150_000  # whose vectors are held; of larger projects only their signs
RESCORED = 2_000


class State(NamedTuple):
    """Of the table, when it was last read."""

    generation: int
    model: int
    revision: int
    losses: int


class VectorCache:
    def __init__(self, embedder: Embedder, read_ahead: int) -> None:
        self._embedder, self._read_ahead = embedder, read_ahead
        self._projects: dict[int, VectorBlocks] = {}  # least recently used first
        self._sizes: dict[int | None, int] = {}
        self._waiting: dict[int, int] = {}  # documents without a vector, and their projects
        self._state = State(0, 0, 0, 0)

    def similarities(
        self,
        connection: sqlite3.Connection,
        text: str,
        project_id: int | None,
        include: Iterable[int],
    ) -> Similarities:
        (row,) = self.encode([text])
        if not row.any():
            return NO_SIMILARITIES
        self._refresh(connection)
        query = QueryVector(row)
        signs_only = self._size(connection, project_id) > MAX_DOCUMENTS
        blocks = self._load(connection, project_id, signs_only)
        self._embed_waiting(connection)
        if not signs_only:
            return merge([NO_SIMILARITIES, *(part.compare(query) for part in blocks)])
        by_signs = merge([NO_SIMILARITIES, *(part.compare_signs(query) for part in blocks)])
        documents = {document for document, _ in by_signs.best(RESCORED)}.union(include)
        rows = storage.stored(connection, self._state.model, sorted(documents))
        return merge([NO_SIMILARITIES, query.compare(*self._as_arrays(rows))])

    def passage_cosines(
        self,
        connection: sqlite3.Connection,
        text: str,
        turns: Iterable[int],
        include: Iterable[int],
        limit: int,
    ) -> dict[int, float]:
        """By id the nearest passages of these turns, and those of `include` that have a vector."""
        (row,) = self.encode([text])
        self._refresh(connection)
        documents = sorted(document_id(TURN, turn) for turn in turns)
        stored = storage.stored(connection, self._state.model, documents)
        stored = [row for row in stored if row.vector]
        waiting = set(documents).difference(row.document for row in stored)
        stored += self._embed_now(connection, sorted(waiting)[-self._read_ahead :])
        ids, rows = self._as_arrays(stored)
        if not len(ids):
            return {}
        cosines = QueryVector(row).compare(ids, rows).cosines
        starts = np.flatnonzero(np.diff(ids, prepend=-1))
        numbers = np.arange(len(ids)) - np.repeat(starts, np.diff([*starts, len(ids)]))
        passages = (ids // 4 << PASSAGE_BITS) | numbers
        selected = np.isin(passages, np.fromiter(include, np.int64))
        if limit:
            order = np.argsort(-cosines, kind="stable")[:limit]
            selected[order] = True
        return dict(zip(passages[selected].tolist(), cosines[selected].tolist(), strict=True))

    def similar_pairs(
        self,
        connection: sqlite3.Connection,
        documents: Sequence[Document],
        rows: list[Rows],
        min_cosine: float,
        limit: int,
    ) -> tuple[list[tuple[int, int]], int]:
        """Pairs of these documents, which have a row each, with each other and with all of their
        projects; and the revision of the table that they were compared with. None of projects
        that are too large to be held."""
        self._refresh(connection)
        pairs: list[tuple[int, int]] = []
        for project in dict.fromkeys(document.project_id for document in documents):
            if self._size(connection, project) > MAX_DOCUMENTS:
                continue
            (blocks,) = self._load(connection, project, signs_only=False)
            of_project = [at for at, d in enumerate(documents) if d.project_id == project]
            new_ids = np.array([documents[at].id for at in of_project], np.int64)
            new_rows = np.array([rows[at] for at in of_project])
            new_blocks = VectorBlocks(self._embedder.dimension)
            new_blocks.add(new_ids, new_rows)
            for compared in (blocks, new_blocks):
                pairs += compared.similar_pairs(new_ids, new_rows, min_cosine, limit)
        return pairs, self._state.revision

    def encode(self, texts: Sequence[str]) -> Rows:
        return quantise(self._embedder.encode(texts))

    def embed(self, documents: Sequence[Document]) -> list[Rows]:
        """For each document a row for each of its passages."""
        texts = [passages(document) for document in documents]
        rows = self.encode([passage for parts in texts for passage in parts])
        ends = np.cumsum([len(parts) for parts in texts])
        return np.split(rows, ends[:-1]) if texts else []

    def _size(self, connection: sqlite3.Connection, project_id: int | None) -> int:
        if project_id not in self._sizes:
            self._sizes[project_id] = storage.count(connection, project_id)
        return self._sizes[project_id]

    def _refresh(self, connection: sqlite3.Connection) -> None:
        """Applies what has changed in the table."""
        previous, state = self._state, self._read_state(connection)
        if state[:2] != previous[:2]:
            self._projects.clear()
            self._waiting.clear()
        if state == previous:
            return
        self._state = state
        self._sizes.clear()
        if state.losses != previous.losses:
            for project, blocks in self._projects.items():
                blocks.keep_only(storage.documents_of(connection, project))
        for rows in storage.changes(connection, previous.revision) if self._projects else ():
            for blocks in self._projects.values():
                blocks.remove([row.document for row in rows])
            self._add(rows)

    def _read_state(self, connection: sqlite3.Connection) -> State:
        return State(
            maintenance.generation(connection),
            storage.number_of(connection, self._embedder.id, self._embedder.dimension),
            storage.revision(connection),
            storage.losses(connection),
        )

    def _load(
        self, connection: sqlite3.Connection, project_id: int | None, signs_only: bool
    ) -> list[VectorBlocks]:
        """Of a project or of all, from the table where they are not in memory yet."""
        projects = storage.projects(connection) if project_id is None else [project_id]
        for project in projects:
            blocks = self._projects.pop(project, None)
            if blocks is not None and (signs_only or not blocks.signs_only):
                self._projects[project] = blocks
                continue
            self._projects[project] = VectorBlocks(self._embedder.dimension, signs_only)
            for rows in storage.changes(connection, 0, project):
                self._add(rows)
        self._evict(keep=set(projects))
        return [self._projects[project] for project in projects]

    def _evict(self, keep: set[int]) -> None:
        for project in [project for project in self._projects if project not in keep]:
            loaded = [blocks for blocks in self._projects.values() if not blocks.signs_only]
            if sum(map(len, loaded)) <= MAX_DOCUMENTS:
                return
            del self._projects[project]
            self._waiting = {d: of for d, of in self._waiting.items() if of != project}

    def _add(self, rows: list[storage.Row]) -> None:
        """To the projects that are loaded."""
        ready: dict[int, list[storage.Row]] = {}
        for row in rows:
            self._waiting.pop(row.document, None)
            if row.project_id in self._projects:
                if row.vector and row.model == self._state.model:
                    ready.setdefault(row.project_id, []).append(row)
                else:
                    self._waiting[row.document] = row.project_id
        for project, of_project in ready.items():
            self._projects[project].add(*self._as_arrays(of_project))

    def _embed_waiting(self, connection: sqlite3.Connection) -> None:
        """The newest first, as many as may be read ahead."""
        ids = list(self._waiting)[-self._read_ahead :]
        self._add(self._embed_now(connection, ids))
        for document in ids:
            self._waiting.pop(document, None)

    def _embed_now(self, connection: sqlite3.Connection, ids: list[int]) -> list[storage.Row]:
        documents = load(connection, ids) if self._read_ahead else []
        return [
            storage.Row(document.id, document.project_id, self._state.model, rows.tobytes())
            for document, rows in zip(documents, self.embed(documents), strict=True)
        ]

    def _as_arrays(self, rows: list[storage.Row]) -> tuple[Ids, Rows]:
        """A document's id is repeated for each of its passages."""
        vectors = [row.vector or b"" for row in rows]
        counts = [len(vector) // self._embedder.dimension for vector in vectors]
        ids = np.repeat(np.array([row.document for row in rows], np.int64), counts)
        flat = np.frombuffer(b"".join(vectors), np.int8)
        return ids, flat.reshape(len(ids), self._embedder.dimension)

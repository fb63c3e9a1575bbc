"""The vectors of projects in memory: read at the first search, and dropped when others need room.

Small projects are read by the search that needs them. Large ones are read by a thread of their
own; until it is done, searches compare only what they have found by words. Nothing that takes long
happens under a lock that another search needs.

Documents that still wait for their vector are embedded at once, so that the newest are never
missing, unless there are too many of them. What has changed is read in chunks, each in a
transaction of its own, so that a long load holds up neither the writer nor the journal.
"""

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from claude_mem.index import indexing
from claude_mem.index.embedders.embedder import Embedder
from claude_mem.index.text.documents import TURN, Document, document_id, load, memory_id_of
from claude_mem.index.text.passage_index import PASSAGE_BITS
from claude_mem.index.vectors import vector_table
from claude_mem.index.vectors.blocks import (
    NO_SIMILARITIES,
    Ids,
    QueryVector,
    Rows,
    RowsDropped,
    Similarities,
    VectorBlocks,
    merge,
    quantise,
)
from claude_mem.index.vectors.embedding_texts import passages
from claude_mem.store.database import Open, open_readonly

MAX_ROWS = 32_768  # vectors that are held in full; beyond, the largest projects keep codes alone
MAX_CODES = 2_000_000  # beyond, the projects that were not searched lately are dropped
MAX_READ_AT_ONCE = 4_000  # documents; more are read by a thread of their own
NEAREST = 1_024  # of the vectors that are held in full, those that are compared
RESCORED = 1_000  # candidates by their codes, whose vectors are read from the disk
# Signs in which two vectors of a cosine of 0.85 differ: 18%, and some deviations more.
MAX_DIFFERENT_SIGNS, MAX_SIMILAR = 0.28, 64
CHUNK = 2_048  # rows that are read in a transaction

Embed = Callable[[Sequence[Document]], list[Rows]]


class TableState(NamedTuple):
    """Of the table, when it was last read."""

    generation: int
    model: int
    revision: int
    loss: int


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
        documents = load(connection, ids) if ids else []
        for document, rows in zip(documents, embed(documents), strict=True):
            self.embedded[document.id] = rows
            self.blocks.add(self.ids(document.id, len(rows)), rows)
        for waiting in ids:
            del self._waiting[waiting]

    def ids(self, document: int, count: int) -> Ids:
        """Of the vectors of a document."""
        if self._kind != TURN:
            return np.full(count, document, np.int64)
        return np.arange(count, dtype=np.int64) + (memory_id_of(document) << PASSAGE_BITS)

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


class VectorCache:
    def __init__(self, embedder: Embedder, read_ahead: int, open_: Open = open_readonly) -> None:
        self._embedder, self._read_ahead, self._open = embedder, read_ahead, open_
        self._lock = threading.Lock()  # of the fields below
        self._projects: dict[tuple[int, str], ProjectVectors] = {}  # least recently used first
        self._threads: list[threading.Thread] = []
        self._epoch = (0, 0)  # generation of the index and number of the model

    def similarities(
        self,
        connection: sqlite3.Connection,
        text: str,
        project_id: int | None,
        kind: str,
        include: Collection[int] = (),
        exhaustive: bool = False,
    ) -> Similarities:
        (row,) = self.encode([text])
        if not row.any():
            return NO_SIMILARITIES
        query = QueryVector(row)
        state = self._read_state(connection)
        loaded = self._loaded(connection, project_id, kind, state)
        count = sum(len(vectors.blocks) for vectors in loaded) if exhaustive else NEAREST
        included = np.fromiter(include, np.int64, len(include))
        try:
            parts = [vectors.blocks.nearest(query, count, included) for vectors in loaded]
        except RowsDropped:
            parts = [self._compare_by_codes(connection, query, loaded, kind, state.model)]
        compared = parts[0] if len(parts) == 1 else merge(parts)
        missing = set(include).difference(compared.of(include)) if kind == TURN else set()
        if not missing:
            return compared
        return merge([compared, self._compare_passages(connection, query, missing, state.model)])

    def passage_cosines(
        self, connection: sqlite3.Connection, text: str, passage_ids: Iterable[int]
    ) -> dict[int, float]:
        (row,) = self.encode([text])
        model = self._read_state(connection).model
        compared = self._compare_passages(connection, QueryVector(row), set(passage_ids), model)
        return dict(zip(compared.ids.tolist(), compared.cosines.tolist(), strict=True))

    def similar_pairs(
        self,
        connection: sqlite3.Connection,
        documents: Sequence[Document],
        rows: list[Rows],
        min_cosine: float,
        limit: int,
    ) -> tuple[list[tuple[int, int]], int]:
        """Pairs of these observations, which have a row each, with each other and with all of
        their projects; and the revision of the table that they were compared with."""
        state = self._read_state(connection)
        pairs: list[tuple[int, int]] = []
        for project in dict.fromkeys(document.project_id for document in documents):
            vectors = self._vectors(project, "observation", state)
            with vectors.lock:
                vectors.catch_up(connection, state)
            self._make_room({project})
            of_project = [at for at, d in enumerate(documents) if d.project_id == project]
            new_ids = np.array([documents[at].id for at in of_project], np.int64)
            new_rows = np.array([rows[at] for at in of_project])
            new_blocks = VectorBlocks(self._embedder.dimension)
            new_blocks.add(new_ids, new_rows)
            stored = vectors.blocks
            if not stored.has_rows:
                stored = self._similar_by_code(connection, vectors, new_rows, state.model)
            for compared in (stored, new_blocks):
                pairs += compared.similar_pairs(new_ids, new_rows, min_cosine, limit)
        return pairs, state.revision

    def encode(self, texts: Sequence[str]) -> Rows:
        return quantise(self._embedder.encode(texts))

    def embed(self, documents: Sequence[Document]) -> list[Rows]:
        """For each document a row for each of its passages."""
        texts = [passages(document) for document in documents]
        rows = self.encode([passage for parts in texts for passage in parts])
        ends = np.cumsum([len(parts) for parts in texts])
        return np.split(rows, ends[:-1]) if texts else []

    def settle(self) -> None:
        """Waits for the threads that read large projects."""
        with self._lock:
            threads, self._threads = self._threads, []
        for thread in threads:
            thread.join()

    # What is in memory

    def _read_state(self, connection: sqlite3.Connection) -> TableState:
        return TableState(
            indexing.generation(connection),
            vector_table.number_of(connection, self._embedder.id, self._embedder.dimension),
            vector_table.revision(connection),
            vector_table.last_loss(connection),
        )

    def _vectors(self, project_id: int, kind: str, state: TableState) -> ProjectVectors:
        with self._lock:
            if self._epoch != state[:2]:
                self._epoch = state[:2]
                self._projects.clear()
            key = project_id, kind
            vectors = self._projects.pop(key, None)
            if vectors is None:
                vectors = ProjectVectors(project_id, kind, self._embedder.dimension, state)
            self._projects[key] = vectors
            return vectors

    def _loaded(
        self, connection: sqlite3.Connection, project_id: int | None, kind: str, state: TableState
    ) -> list[ProjectVectors]:
        """Of a project or of all, those that are in memory now."""
        projects = vector_table.projects(connection) if project_id is None else [project_id]
        loaded: list[ProjectVectors] = []
        for project in projects:
            vectors = self._vectors(project, kind, state)
            if vectors.read_state == state:
                loaded.append(vectors)
                continue
            changed = vector_table.change_count(
                connection, project, vectors.revision, MAX_READ_AT_ONCE + 1
            )
            if changed > MAX_READ_AT_ONCE:
                self._load_in_background(connection, vectors, state)
                continue
            with vectors.lock:
                vectors.catch_up(connection, state)
                vectors.embed_waiting(connection, self.embed, self._read_ahead)
                vectors.read_state = state
            loaded.append(vectors)
        self._make_room(set(projects))
        return loaded

    def _load_in_background(
        self, connection: sqlite3.Connection, vectors: ProjectVectors, state: TableState
    ) -> None:
        if not vectors.lock.acquire(blocking=False):
            return  # another search has started it
        path = Path(connection.execute("PRAGMA database_list").fetchone()[2])

        def work() -> None:
            try:
                with closing(self._open(path)) as own_connection:
                    vectors.catch_up(own_connection, state)
            finally:
                vectors.lock.release()
            self._make_room(set())

        thread = threading.Thread(target=work, name="claude-mem-vectors", daemon=True)
        with self._lock:
            self._threads.append(thread)
        thread.start()

    def _make_room(self, searched: set[int]) -> None:
        with self._lock:
            sizes = {key: len(vectors.blocks) for key, vectors in self._projects.items()}
            for key in [key for key in sizes if key[0] not in searched]:
                if sum(sizes.values()) > MAX_CODES:
                    del self._projects[key], sizes[key]
            held = {key: size for key, size in sizes.items() if self._projects[key].blocks.has_rows}
            for key in sorted(held, key=lambda key: held[key], reverse=True):
                if sum(held.values()) > MAX_ROWS:
                    self._projects[key].blocks.drop_rows()
                    del held[key]

    # What is on the disk

    def _compare_by_codes(
        self,
        connection: sqlite3.Connection,
        query: QueryVector,
        loaded: list[ProjectVectors],
        kind: str,
        model: int,
    ) -> Similarities:
        parts = [vectors.blocks.candidates(query, RESCORED) for vectors in loaded]
        ids = np.concatenate([part.ids for part in parts])
        order = np.argsort(-np.concatenate([part.scores for part in parts]), kind="stable")
        nearest = {int(id_) for id_ in ids[order[:RESCORED]]}
        if kind == TURN:
            return self._compare_passages(connection, query, nearest, model, loaded)
        return merge(self._compare_documents(connection, query, nearest, model))

    def _compare_passages(
        self,
        connection: sqlite3.Connection,
        query: QueryVector,
        passage_ids: set[int],
        model: int,
        loaded: Sequence[ProjectVectors] = (),
    ) -> Similarities:
        """Of passages of turns; those that have no vector yet are embedded if they may be."""
        dimension = self._embedder.dimension
        stored = vector_table.passage_vectors(connection, model, dimension, passage_ids)
        ids = [passage for passage, _ in stored]
        vectors = [vector for _, vector in stored]
        missing = passage_ids.difference(ids)
        for turn, rows in self._ahead(connection, missing, loaded).items():
            first = turn << PASSAGE_BITS
            wanted = [n for n in range(len(rows)) if first | n in missing]
            ids += [first | number for number in wanted]
            vectors += [rows[number].tobytes() for number in wanted]
        flat = np.frombuffer(b"".join(vectors), np.int8).reshape(-1, dimension)
        return query.compare(np.array(ids, np.int64), flat)

    def _ahead(
        self,
        connection: sqlite3.Connection,
        passage_ids: set[int],
        loaded: Sequence[ProjectVectors],
    ) -> dict[int, Rows]:
        """By turn the vectors of these passages that the table does not have."""
        turns = {passage >> PASSAGE_BITS for passage in passage_ids}
        ahead: dict[int, Rows] = {}
        for vectors in loaded:
            for turn in turns:
                rows = vectors.embedded.get(document_id(TURN, turn))
                if rows is not None:
                    ahead[turn] = rows
        remaining = sorted(turns.difference(ahead))[-self._read_ahead :] if self._read_ahead else []
        documents = load(connection, [document_id(TURN, turn) for turn in remaining])
        for document, rows in zip(documents, self.embed(documents), strict=True):
            ahead[memory_id_of(document.id)] = rows
        return ahead

    def _compare_documents(
        self, connection: sqlite3.Connection, query: QueryVector, documents: set[int], model: int
    ) -> list[Similarities]:
        rows = vector_table.stored(connection, model, documents)
        return [
            query.compare(np.full(len(vectors), row.document, np.int64), vectors)
            for row in rows
            for vectors in (self._rows(row.vector or b""),)
        ]

    def _similar_by_code(
        self,
        connection: sqlite3.Connection,
        vectors: ProjectVectors,
        rows: Rows,
        model: int,
    ) -> VectorBlocks:
        """Of a project whose codes alone are held, the vectors that may be similar to these."""
        distance = int(MAX_DIFFERENT_SIGNS * self._embedder.dimension)
        documents: set[int] = set()
        for row in rows:
            query = QueryVector(row)
            documents.update(vectors.blocks.with_similar_codes(query, distance, MAX_SIMILAR))
        similar = VectorBlocks(self._embedder.dimension)
        for stored in vector_table.stored(connection, model, documents):
            stored_rows = self._rows(stored.vector or b"")
            similar.add(np.full(len(stored_rows), stored.document, np.int64), stored_rows)
        return similar

    def _rows(self, vector: bytes) -> Rows:
        return np.frombuffer(vector, np.int8).reshape(-1, self._embedder.dimension)

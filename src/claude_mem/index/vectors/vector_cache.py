"""The vectors of projects in memory: read at the first search, and dropped when others need room.

Small projects are read by the search that needs them. Large ones are read by a thread of their
own; until it is done, searches compare only what they have found by words. Nothing that takes long
happens under a lock that another search needs.

Documents that still wait for their vector are embedded at once, so that the newest are never
missing, unless there are too many of them. What has changed is read in chunks, each in a
transaction of its own, so that a long load holds up neither the writer nor the journal.
"""

import sqlite3
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from claude_mem.errors import RequestFailed
from claude_mem.index.embedders.embedder import Embedder
from claude_mem.index.text.documents import TURN, Document, document_id, kind_of, load, memory_id_of
from claude_mem.index.text.passage_index import PASSAGE_BITS
from claude_mem.index.vectors import vector_table
from claude_mem.index.vectors.blocks import (
    NO_SIMILARITIES,
    QueryVector,
    Rows,
    Similarities,
    VectorBlocks,
    merge,
    quantise,
)
from claude_mem.index.vectors.chroma import ChromaCollection, ChromaVectors, CopyBehind
from claude_mem.index.vectors.embedding_texts import passages
from claude_mem.index.vectors.local_scan import LocalScan
from claude_mem.index.vectors.project_vectors import ProjectVectors, passage_ids
from claude_mem.index.vectors.table_state import TableState, read_state
from claude_mem.index.vectors.vector_store import RESCORED, VectorStore
from claude_mem.store.database import Open, open_readonly

MAX_ROWS = 32_768  # vectors that are held in full; beyond, the largest projects keep codes alone
MAX_CODES = 2_000_000  # beyond, the projects that were not searched lately are dropped
MAX_READ_AT_ONCE = 4_000  # documents; more are read by a thread of their own
NEAREST = 1_024  # of the vectors that are held in full, those that are compared
NEAREST_BY_CHROMA = 300
MAX_WAITING = 64  # turns that a search with Chroma embeds itself
# Signs in which two vectors of a cosine of 0.85 differ: 18%, and some deviations more.
MAX_DIFFERENT_SIGNS, MAX_SIMILAR = 0.28, 64


class VectorCache:
    def __init__(
        self,
        embedder: Embedder,
        read_ahead: int,
        open_: Open = open_readonly,
        chroma: ChromaCollection | None = None,
    ) -> None:
        self._embedder, self._read_ahead, self._open = embedder, read_ahead, open_
        self._chroma = chroma
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
        rescored: int = RESCORED,
    ) -> Similarities:
        (row,) = self.encode([text])
        if not row.any():
            return NO_SIMILARITIES
        query = QueryVector(row)
        projects = vector_table.projects(connection) if project_id is None else [project_id]
        included = np.fromiter(include, np.int64, len(include))
        scan = LocalScan(self, connection, kind, included, rescored)
        if exhaustive:
            compared = scan.nearest(query, projects, sys.maxsize)
        else:
            compared = self._nearest(connection, scan, query, projects, kind)
        missing = set(include).difference(compared.of(include)) if kind == TURN else set()
        if not missing:
            return compared
        model = self.read_state(connection).model
        return merge([compared, self.compare_passages(connection, query, missing, model)])

    def _nearest(
        self,
        connection: sqlite3.Connection,
        scan: VectorStore,
        query: QueryVector,
        projects: Sequence[int],
        kind: str,
    ) -> Similarities:
        """By Chroma where the settings say so, and it answers."""
        if self._chroma is not None and kind == TURN and self._chroma.is_available:
            try:
                store: VectorStore = ChromaVectors(self._chroma, self, connection)
                return store.nearest(query, projects, NEAREST_BY_CHROMA)
            except CopyBehind:
                pass
            except RequestFailed as error:
                self._chroma.failed(error)
        return scan.nearest(query, projects, NEAREST)

    def passage_cosines(
        self, connection: sqlite3.Connection, text: str, passage_ids: Iterable[int]
    ) -> dict[int, float]:
        (row,) = self.encode([text])
        model = self.read_state(connection).model
        compared = self.compare_passages(connection, QueryVector(row), set(passage_ids), model)
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
        state = self.read_state(connection)
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

    def read_state(self, connection: sqlite3.Connection) -> TableState:
        return read_state(connection, self._embedder.id, self._embedder.dimension)

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

    def loaded(
        self,
        connection: sqlite3.Connection,
        projects: Sequence[int],
        kind: str,
        state: TableState,
    ) -> list[ProjectVectors]:
        """Of these projects, those that are in memory now."""
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
        def work(own_connection: sqlite3.Connection) -> None:
            vectors.catch_up(own_connection, state)

        self._in_background(connection, vectors.lock, work)

    def copy_in_background(
        self, connection: sqlite3.Connection, collection: ChromaCollection
    ) -> None:
        def work(own_connection: sqlite3.Connection) -> None:
            try:
                collection.catch_up(own_connection, self.read_state(own_connection))
            except RequestFailed as error:
                collection.failed(error)

        self._in_background(connection, collection.lock, work)

    def compare_waiting(
        self, connection: sqlite3.Connection, query: QueryVector, projects: Sequence[int]
    ) -> list[Similarities]:
        """To turns of these projects that have no vector in the table yet."""
        if not self._read_ahead:
            return []
        model = self.read_state(connection).model
        rows = vector_table.waiting(connection, model, MAX_WAITING)
        ids = [r.document for r in rows if kind_of(r.document) == TURN and r.project_id in projects]
        documents = load(connection, ids)
        return [
            query.compare(passage_ids(document.id, len(rows)), rows)
            for document, rows in zip(documents, self.embed(documents), strict=True)
        ]

    def _in_background(
        self,
        connection: sqlite3.Connection,
        lock: threading.Lock,
        work: Callable[[sqlite3.Connection], None],
    ) -> None:
        """With a connection of its own, unless a thread does it already."""
        if not lock.acquire(blocking=False):
            return
        path = Path(connection.execute("PRAGMA database_list").fetchone()[2])

        def run() -> None:
            try:
                with closing(self._open(path)) as own_connection:
                    work(own_connection)
            finally:
                lock.release()
            self._make_room(set())

        thread = threading.Thread(target=run, name="claude-mem-vectors", daemon=True)
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

    def compare_by_codes(
        self,
        connection: sqlite3.Connection,
        query: QueryVector,
        loaded: list[ProjectVectors],
        kind: str,
        model: int,
        rescored: int = RESCORED,
    ) -> Similarities:
        parts = [vectors.blocks.candidates(query, rescored) for vectors in loaded]
        ids = np.concatenate([part.ids for part in parts])
        order = np.argsort(-np.concatenate([part.scores for part in parts]), kind="stable")
        nearest = {int(id_) for id_ in ids[order[:rescored]]}
        if kind == TURN:
            return self.compare_passages(connection, query, nearest, model, loaded)
        return merge(self._compare_documents(connection, query, nearest, model))

    def compare_passages(
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

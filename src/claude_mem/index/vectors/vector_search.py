"""The search by vector: which passages and observations are nearest to a text.

The vectors of projects are in memory (`VectorCache`): read at the first search, and dropped when
others need room. Of small projects, all vectors are. Of large ones only their codes are: the codes
select candidates, whose vectors are read from the table. The vectors are compared here
(`LocalScan`), or by a Chroma server where the settings say so, and it answers.

Small projects are read by the search that needs them. Large ones are read by a thread of their
own; until it is done, searches compare only what they have found by words. Nothing that takes long
happens under a lock that another search needs.

Documents that still wait for their vector are embedded at once, so that the newest are never
missing, unless there are too many of them. That thread reads what has changed in chunks, each in a
transaction of its own, so that a long load holds up neither the writer nor the journal.
"""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from claude_mem.errors import RequestFailed
from claude_mem.index import indexing
from claude_mem.index.embedders.embedder import Embedder
from claude_mem.index.text.documents import TURN, Document, document_id, kind_of, load, memory_id_of
from claude_mem.index.text.passage_queries import PASSAGE_BITS, first_of_newest
from claude_mem.index.vectors import malloc, vector_table
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
from claude_mem.index.vectors.vector_backend import RESCORED, VectorBackend
from claude_mem.index.vectors.vector_table import TableState, VectorRow, read_state
from claude_mem.store.database import Open, open_reader

if TYPE_CHECKING:
    from claude_mem.index.vectors.chroma import ChromaCollection

NEAREST_BY_CHROMA = 300
# Signs in which two vectors of a cosine of 0.85 differ: 18%, and some deviations more.
MAX_DIFFERENT_SIGNS, MAX_SIMILAR = 0.28, 64
MAX_ROWS = 32_768  # vectors that are held in full; beyond, the largest projects keep codes alone
MAX_CODES = 2_000_000  # beyond, the projects that were not searched lately are dropped
MAX_OF_PROJECT = 1_000_000  # passages, about; older turns are found by words
MAX_READ_AT_ONCE = 4_000  # documents; more are read by a thread of their own
MAX_WAITING = 64  # turns that a search with Chroma embeds itself
CHUNK = 2_048  # rows that are read in a transaction

Embed = Callable[[Sequence[Document]], list[Rows]]


def passage_ids(document: int, count: int) -> Ids:
    """Makes the ids of the first passages of a turn."""
    ids: Ids = np.arange(count, dtype=np.int64) + (memory_id_of(document) << PASSAGE_BITS)
    return ids


class ProjectVectors:
    """The vectors of a project's documents of one kind: the passages of turns, or observations."""

    def __init__(self, project_id: int, kind: str, dimension: int, state: TableState) -> None:
        self.blocks = VectorBlocks(dimension, PASSAGE_BITS if kind == TURN else 0)
        self.lock = threading.Lock()  # of whoever adds vectors; scans need none
        self.revision = 0
        self.read_state: TableState | None = None  # when a search last caught up
        self.embedded: dict[int, Rows] = {}  # by document, ahead of the table
        self._project_id, self._kind, self._dimension = project_id, kind, dimension
        self._model, self._first_revision, self._loss = state.model, state.revision, state.loss
        self._waiting: dict[int, None] = {}  # documents without a vector
        self._first = 0  # document

    def catch_up(self, connection: sqlite3.Connection, state: TableState) -> None:
        if not self.revision and self._kind == TURN:
            turn = first_of_newest(connection, self._project_id, MAX_OF_PROJECT)
            self._first = document_id(TURN, turn)
        lost = _losses(connection, self._project_id, self._loss)
        # The numbers of observations are also those of other turns.
        self._remove([document for document in lost if kind_of(document) == self._kind])
        self._loss = max(self._loss, state.loss)
        while rows := _changes(
            connection, self._project_id, self._kind, self.revision, CHUNK, self._first
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
        """Returns the ids of the vectors of a document."""
        if self._kind != TURN:
            return np.full(count, document, np.int64)
        return passage_ids(document, count)

    def _apply(self, rows: list[VectorRow]) -> None:
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
    def __init__(
        self, embedder: Embedder, read_ahead: int, open_connection: Open = open_reader
    ) -> None:
        self._embedder, self._read_ahead = embedder, read_ahead
        self._open_connection = open_connection
        self._lock = threading.Lock()  # of the fields below
        self._projects: dict[tuple[int, str], ProjectVectors] = {}  # least recently used first
        self._threads: list[threading.Thread] = []
        self._epoch = (0, 0)  # generation of the index and number of the model
        malloc.limit_heaps()

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    def read_state(self, connection: sqlite3.Connection) -> TableState:
        generation = indexing.generation(connection)
        return read_state(connection, generation, self._embedder.id, self.dimension)

    def encode(self, texts: Sequence[str]) -> Rows:
        return quantise(self._embedder.encode(texts))

    def embed(self, documents: Sequence[Document]) -> list[Rows]:
        """Makes for each document a row for each of its passages."""
        texts = [passages(document) for document in documents]
        rows = self.encode([passage for parts in texts for passage in parts])
        ends = np.cumsum([len(parts) for parts in texts])
        return np.split(rows, ends[:-1]) if texts else []

    def loaded(
        self,
        connection: sqlite3.Connection,
        projects: Sequence[int],
        kind: str,
        state: TableState,
    ) -> list[ProjectVectors]:
        """Returns the vectors of those of these projects that are in memory now."""
        loaded: list[ProjectVectors] = []
        for project in projects:
            vectors = self._of_project(project, kind, state)
            if vectors.read_state == state:
                loaded.append(vectors)
                continue
            changed = _change_count(connection, project, vectors.revision, MAX_READ_AT_ONCE + 1)
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

    def caught_up(
        self, connection: sqlite3.Connection, project_id: int, kind: str, state: TableState
    ) -> ProjectVectors:
        """Returns the vectors of a project with all that the table has of it."""
        vectors = self._of_project(project_id, kind, state)
        with vectors.lock:
            vectors.catch_up(connection, state)
        self._make_room({project_id})
        return vectors

    def _of_project(self, project_id: int, kind: str, state: TableState) -> ProjectVectors:
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

    def passage_vectors(
        self,
        connection: sqlite3.Connection,
        passage_ids: set[int],
        model: int,
        loaded: Sequence[ProjectVectors] = (),
    ) -> tuple[Ids, Rows]:
        """Returns the vectors of passages of turns; embeds those that have none yet, if it may."""
        stored = _passage_vectors(connection, model, self.dimension, passage_ids)
        ids = [passage for passage, _ in stored]
        vectors = [vector for _, vector in stored]
        missing = passage_ids.difference(ids)
        for turn, rows in self._ahead(connection, missing, loaded).items():
            first = turn << PASSAGE_BITS
            wanted = [n for n in range(len(rows)) if first | n in missing]
            ids += [first | number for number in wanted]
            vectors += [rows[number].tobytes() for number in wanted]
        flat = np.frombuffer(b"".join(vectors), np.int8).reshape(-1, self.dimension)
        return np.array(ids, np.int64), flat

    def _ahead(
        self,
        connection: sqlite3.Connection,
        passage_ids: set[int],
        loaded: Sequence[ProjectVectors],
    ) -> dict[int, Rows]:
        """Returns by turn the vectors of these passages that the table does not have."""
        if not passage_ids:
            return {}
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

    def waiting_vectors(
        self, connection: sqlite3.Connection, projects: Sequence[int]
    ) -> list[tuple[Ids, Rows]]:
        """Returns the vectors of turns of these projects that have none in the table yet."""
        if not self._read_ahead:
            return []
        model = self.read_state(connection).model
        rows = vector_table.waiting(connection, model, MAX_WAITING)
        ids = [r.document for r in rows if kind_of(r.document) == TURN and r.project_id in projects]
        documents = load(connection, ids)
        return [
            (passage_ids(document.id, len(rows)), rows)
            for document, rows in zip(documents, self.embed(documents), strict=True)
        ]

    # Threads

    def _load_in_background(
        self, connection: sqlite3.Connection, vectors: ProjectVectors, state: TableState
    ) -> None:
        def work(own_connection: sqlite3.Connection) -> None:
            vectors.catch_up(own_connection, state)

        self.in_background(connection, vectors.lock, work)

    def in_background(
        self,
        connection: sqlite3.Connection,
        lock: threading.Lock,
        work: Callable[[sqlite3.Connection], None],
    ) -> None:
        """Works in a thread with a connection of its own, unless a thread does it already."""
        if not lock.acquire(blocking=False):
            return

        def run() -> None:
            try:
                with closing(self._open_connection(path)) as own_connection:
                    work(own_connection)
            finally:
                lock.release()
            self._make_room(set())
            malloc.give_back()

        try:
            path = Path(connection.execute("PRAGMA database_list").fetchone()[2])
            thread = threading.Thread(target=run, name="claude-mem-vectors", daemon=True)
            thread.start()
        except BaseException:
            lock.release()
            raise
        with self._lock:
            self._threads.append(thread)

    def wait_until_loaded(self) -> None:
        """Waits for the threads that read large projects."""
        with self._lock:
            threads, self._threads = self._threads, []
        for thread in threads:
            thread.join()

    # Room

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


class VectorSearch:
    def __init__(self, cache: VectorCache, chroma: "ChromaCollection | None" = None) -> None:
        self._cache, self._chroma = cache, chroma
        self._last_query: tuple[str, QueryVector] | None = None

    def similarities(
        self,
        connection: sqlite3.Connection,
        text: str,
        project_id: int | None = None,
        kind: str = TURN,
        exhaustive: bool = False,
        rescored: int = RESCORED,
    ) -> Similarities:
        """Compares a text with the passages of turns (or the observations) of a project, or of all:
        with all whose vectors are held in full, and of others with the nearest, `rescored` of them.
        `exhaustive`: not by Chroma. While many vectors are being read, it compares with none."""
        query = self._query(text)
        if not query.row.any():
            return NO_SIMILARITIES
        projects = _project_ids(connection) if project_id is None else [project_id]
        scan = LocalScan(self._cache, connection, kind)
        if exhaustive or kind != TURN:
            return scan.nearest(query, projects, rescored)
        return self._nearest(connection, scan, query, projects, rescored)

    def _nearest(
        self,
        connection: sqlite3.Connection,
        scan: VectorBackend,
        query: QueryVector,
        projects: Sequence[int],
        rescored: int,
    ) -> Similarities:
        """Compares by Chroma where the settings say so, and it answers."""
        if self._chroma is not None and self._chroma.is_available:
            from claude_mem.index.vectors.chroma import ChromaVectors, CopyBehind

            try:
                backend: VectorBackend = ChromaVectors(self._chroma, self._cache, connection)
                return backend.nearest(query, projects, NEAREST_BY_CHROMA)
            except CopyBehind:
                pass
            except RequestFailed as error:
                self._chroma.failed(error)
        return scan.nearest(query, projects, rescored)

    def passage_cosines(
        self, connection: sqlite3.Connection, text: str, passage_ids: Iterable[int]
    ) -> dict[int, float]:
        query = self._query(text)
        if not query.row.any():
            return {}
        compared = self._compare_passages(connection, query, set(passage_ids))
        return dict(zip(compared.ids.tolist(), compared.cosines.tolist(), strict=True))

    def _query(self, text: str) -> QueryVector:
        """Returns the vector of a text, made once for what compares the same text several times."""
        last = self._last_query
        if last is None or last[0] != text:
            last = self._last_query = text, QueryVector(self._cache.encode([text])[0])
        return last[1]

    def _compare_passages(
        self, connection: sqlite3.Connection, query: QueryVector, passage_ids: set[int]
    ) -> Similarities:
        model = self._cache.read_state(connection).model
        return query.compare(*self._cache.passage_vectors(connection, passage_ids, model))

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
        state = self._cache.read_state(connection)
        pairs: list[tuple[int, int]] = []
        for project in dict.fromkeys(document.project_id for document in documents):
            vectors = self._cache.caught_up(connection, project, "observation", state)
            of_project = [at for at, d in enumerate(documents) if d.project_id == project]
            new_ids = np.array([documents[at].id for at in of_project], np.int64)
            new_rows = np.array([rows[at] for at in of_project])
            new_blocks = VectorBlocks(self._cache.dimension)
            new_blocks.add(new_ids, new_rows)
            stored = vectors.blocks
            if not stored.has_rows:
                stored = self._similar_by_code(connection, vectors, new_rows, state.model)
            for blocks in (stored, new_blocks):
                pairs += blocks.similar_pairs(new_ids, new_rows, min_cosine, limit)
        return pairs, state.revision

    def _similar_by_code(
        self,
        connection: sqlite3.Connection,
        vectors: ProjectVectors,
        rows: Rows,
        model: int,
    ) -> VectorBlocks:
        """Reads the vectors that may be similar to these, of a project with codes alone."""
        distance = int(MAX_DIFFERENT_SIGNS * self._cache.dimension)
        documents: set[int] = set()
        for row in rows:
            query = QueryVector(row)
            documents.update(vectors.blocks.with_similar_codes(query, distance, MAX_SIMILAR))
        similar = VectorBlocks(self._cache.dimension)
        for stored in stored_vectors(connection, model, documents):
            stored_rows = _as_rows(stored, self._cache.dimension)
            similar.add(np.full(len(stored_rows), stored.document, np.int64), stored_rows)
        return similar


class LocalScan:
    """The backend that needs nothing else: a scan of the vectors in memory."""

    def __init__(
        self, cache: VectorCache, connection: sqlite3.Connection, kind: str = TURN
    ) -> None:
        self._cache, self._connection, self._kind = cache, connection, kind

    def nearest(self, query: QueryVector, projects: Sequence[int], count: int) -> Similarities:
        state = self._cache.read_state(self._connection)
        loaded = self._cache.loaded(self._connection, projects, self._kind, state)
        try:
            similarities = [vectors.blocks.compare(query) for vectors in loaded]
        except RowsDropped:
            similarities = [self._by_codes(query, loaded, state.model, count)]
        return similarities[0] if len(similarities) == 1 else merge(similarities)

    def _by_codes(
        self, query: QueryVector, loaded: Sequence[ProjectVectors], model: int, count: int
    ) -> Similarities:
        candidates = [vectors.blocks.candidates(query, count) for vectors in loaded]
        ids = np.concatenate([of_project.ids for of_project in candidates])
        scores = np.concatenate([of_project.scores for of_project in candidates])
        order = np.argsort(-scores, kind="stable")
        nearest = {int(id_) for id_ in ids[order[:count]]}
        if self._kind == TURN:
            vectors = self._cache.passage_vectors(self._connection, nearest, model, loaded)
            return query.compare(*vectors)
        return merge(self._compare_documents(query, nearest, model))

    def _compare_documents(
        self, query: QueryVector, documents: set[int], model: int
    ) -> list[Similarities]:
        return [
            query.compare(np.full(len(vectors), row.document, np.int64), vectors)
            for row in stored_vectors(self._connection, model, documents)
            for vectors in (_as_rows(row, self._cache.dimension),)
        ]


def _as_rows(row: VectorRow, dimension: int) -> Rows:
    return np.frombuffer(row.vector or b"", np.int8).reshape(-1, dimension)


# What is read of the table of vectors


def _losses(connection: sqlite3.Connection, project_id: int, after: int) -> list[int]:
    """The documents that were removed after that one and are not in the project."""
    rows = connection.execute(
        "SELECT l.document FROM vector_losses l WHERE l.number > ? AND NOT EXISTS"
        " (SELECT 1 FROM vectors v WHERE v.document = l.document AND v.project_id = ?)",
        (after, project_id),
    )
    return [row[0] for row in rows]


def _change_count(connection: sqlite3.Connection, project_id: int, after: int, limit: int) -> int:
    """Counts the changes of a project's documents of all kinds, up to the limit."""
    row = connection.execute(
        "SELECT count(*) FROM"
        " (SELECT 1 FROM vectors WHERE project_id = ? AND revision > ? LIMIT ?)",
        (project_id, after, limit),
    ).fetchone()
    return int(row[0])


def _changes(
    connection: sqlite3.Connection,
    project_id: int,
    kind: str,
    after: int,
    limit: int,
    first: int = 0,
) -> list[VectorRow]:
    """The oldest changes of a project's documents of a kind after a revision; `first`: of these,
    the first document."""
    rows = connection.execute(
        "SELECT revision, document, project_id, model, vector FROM vectors WHERE project_id = ?"
        " AND revision > ? AND document % 4 = ? AND document >= ? ORDER BY revision LIMIT ?",
        (project_id, after, document_id(kind, 0), first, limit),
    )
    return [VectorRow._make(row) for row in rows]


def stored_vectors(
    connection: sqlite3.Connection, model: int, documents: Iterable[int]
) -> list[VectorRow]:
    """The rows of these documents that have a vector of this model."""
    rows = connection.execute(
        # The plus keeps SQLite from reading the whole index of a model.
        "SELECT revision, document, project_id, model, vector FROM vectors WHERE +model = ?"
        " AND document IN (SELECT value FROM json_each(?)) ORDER BY document",
        (model, json.dumps(sorted(documents))),
    )
    return [VectorRow._make(row) for row in rows]


def _passage_vectors(
    connection: sqlite3.Connection, model: int, dimension: int, passages: Iterable[int]
) -> list[tuple[int, bytes]]:
    """Reads by id the vectors of passages of turns that have one of this model."""
    cursor = connection.cursor()
    cursor.row_factory = None  # rows are not accessed by name
    rows: list[tuple[int, bytes]] = cursor.execute(
        "SELECT p.value, substr(v.vector, (p.value & :ordinals) * :dimension + 1, :dimension)"
        " FROM json_each(:passages) p"
        " CROSS JOIN vectors v ON v.document = (p.value >> :bits) * 4 + 3"
        " WHERE v.model = :model AND length(v.vector) > (p.value & :ordinals) * :dimension",
        {
            "ordinals": (1 << PASSAGE_BITS) - 1,
            "bits": PASSAGE_BITS,
            "dimension": dimension,
            "passages": json.dumps(sorted(passages)),
            "model": model,
        },
    ).fetchall()
    return rows


def _project_ids(connection: sqlite3.Connection) -> list[int]:
    return [row[0] for row in connection.execute("SELECT id FROM projects ORDER BY id")]

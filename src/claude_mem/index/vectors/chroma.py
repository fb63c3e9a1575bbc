"""A Chroma server on this machine as a vector backend: it gets our vectors, never a text.

What it holds is a copy of the vectors of turns. It is brought up to date from the table of vectors,
as far as a record in the collection says; deletions come first. Its answers are candidates: their
cosines are computed here from the table, so that nothing outdated or deleted is among them. A
server that fails is not asked for a while, and the local scan answers.
"""

import hashlib
import logging
import sqlite3
import threading
from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from claude_mem.errors import RequestFailed
from claude_mem.http_client import send_json_blocking
from claude_mem.index.text.documents import TURN, document_id, kind_of, memory_id_of
from claude_mem.index.text.passage_queries import PASSAGE_BITS
from claude_mem.index.vectors.vector_table import NO_VECTOR, TableState, VectorRow, dimension_of
from claude_mem.store.clock import Clock
from claude_mem.types import Json

if TYPE_CHECKING:
    from claude_mem.index.vectors.blocks import QueryVector, Similarities
    from claude_mem.index.vectors.vector_search import VectorCache

log = logging.getLogger("claude_mem.vectors")

COLLECTIONS = "/api/v2/tenants/default_tenant/databases/default_database/collections"
SEARCH_SECONDS, COPY_SECONDS = 1.0, 30.0  # of a request
COPY_AT_SEARCH_SECONDS = 3.0
PAUSE_MS = 30_000  # after a failure
CHUNK = 256  # documents that are copied with a request
MAX_AT_SEARCH = CHUNK  # changes that a search copies itself; more are copied by a thread
_STATE = "state"  # the id of the record that says how far the copy is


class CopyBehind(Exception):
    """A thread brings the copy up to date."""


class ChromaCollection:
    def __init__(self, url: str, clock: Clock) -> None:
        self._base, self._clock = url.rstrip("/") + COLLECTIONS, clock
        self.lock = threading.Lock()  # of whoever copies
        self.copied: TableState | None = None
        self._id, self._dimension = "", 0
        self._copy_seconds = COPY_SECONDS  # of a request that copies
        self._not_before = 0

    @property
    def is_available(self) -> bool:
        return self._clock() >= self._not_before

    def failed(self, error: RequestFailed) -> None:
        log.warning("the Chroma server: %s; vectors are compared here", error)
        self.copied, self._id = None, ""
        self._not_before = self._clock() + PAUSE_MS

    def follow(self, connection: sqlite3.Connection, state: TableState) -> None:
        """Copies the changes of the table, unless a thread does it already."""
        if not self.lock.acquire(blocking=False):
            return
        try:
            self.catch_up(connection, state)
        except RequestFailed as error:
            self.failed(error)
        finally:
            self.lock.release()

    def catch_up(
        self, connection: sqlite3.Connection, state: TableState, seconds: float = COPY_SECONDS
    ) -> None:
        """Needs the lock. Without a vector of this model there is nothing to copy."""
        self._copy_seconds = seconds
        if state.model == NO_VECTOR:
            return
        if self.copied is None or self.copied[:2] != state[:2]:
            self._open(connection, state)
        assert self.copied is not None
        lost = _lost_documents(connection, self.copied.loss)
        lost = [document for document in lost if kind_of(document) == TURN]
        for first in range(0, len(lost), CHUNK):
            self._delete(lost[first : first + CHUNK])
        while rows := _changes_of_kind(connection, TURN, self.copied.revision, CHUNK):
            self._delete([row.document for row in rows])
            self._add([row for row in rows if row.vector and row.model == state.model])
            self._save(self.copied._replace(revision=rows[-1].revision))
        if (self.copied.revision, self.copied.loss) != (state.revision, state.loss):
            self._save(state)

    def query(self, row: Sequence[int], projects: Sequence[int], count: int) -> list[int]:
        body: dict[str, Json] = {
            "query_embeddings": [list(row)], "n_results": count, "include": [],
            "where": {"project": {"$in": list(projects)}},
        }  # fmt: skip
        answer = self._call("POST", f"/{self._id}/query", body, SEARCH_SECONDS)
        return [int(id_) for id_ in answer["ids"][0]]

    def _open(self, connection: sqlite3.Connection, state: TableState) -> None:
        """A collection of another index, model or database state is deleted."""
        self._dimension = dimension_of(connection, state.model)
        path = connection.execute("PRAGMA database_list").fetchone()[2]
        name = f"claude-mem-{hashlib.sha256(path.encode()).hexdigest()[:16]}"
        create: dict[str, Json] = {
            "name": name, "get_or_create": True, "configuration": {"hnsw": {"space": "cosine"}},
        }  # fmt: skip
        self._id = str(self._call("POST", "", create)["id"])
        body: dict[str, Json] = {"ids": [_STATE], "include": ["metadatas"]}
        records = self._call("POST", f"/{self._id}/get", body)["metadatas"]
        copied = TableState(**records[0]) if records else None
        if copied and copied[:2] == state[:2] and copied <= state:
            self.copied = copied
            return
        self._call("DELETE", f"/{name}", {})
        self._id = str(self._call("POST", "", create)["id"])
        self._save(TableState(state.generation, state.model, 0, state.loss))

    def _delete(self, documents: Sequence[int]) -> None:
        turns: list[Json] = [memory_id_of(document) for document in documents]
        self._call("POST", f"/{self._id}/delete", {"where": {"turn": {"$in": turns}}})

    def _add(self, rows: Sequence[VectorRow]) -> None:
        ids: list[Json] = []
        metadatas: list[Json] = []
        vectors: list[Json] = []
        for row in rows:
            turn = memory_id_of(row.document)
            numbers = array("b", row.vector or b"").tolist()
            for place, first in enumerate(range(0, len(numbers), self._dimension)):
                ids.append(str(turn << PASSAGE_BITS | place))
                metadatas.append({"project": row.project_id, "turn": turn})
                vectors.append([*numbers[first : first + self._dimension]])
        if ids:
            body: dict[str, Json] = {"ids": ids, "embeddings": vectors, "metadatas": metadatas}
            self._call("POST", f"/{self._id}/upsert", body)

    def _save(self, copied: TableState) -> None:
        vector: list[Json] = [1.0] * self._dimension  # a record needs one
        body: dict[str, Json] = {
            "ids": [_STATE], "embeddings": [vector], "metadatas": [copied._asdict()],
        }  # fmt: skip
        self._call("POST", f"/{self._id}/upsert", body)
        self.copied = copied

    def _call(
        self, method: str, path: str, body: Mapping[str, Json], seconds: float | None = None
    ) -> dict[str, Any]:
        limit = self._copy_seconds if seconds is None else seconds
        response = send_json_blocking(method, self._base + path, body, limit)
        if response.status not in (200, 201):
            raise RequestFailed(f"status {response.status}")
        return response.json_object()


class ChromaVectors:
    def __init__(
        self, collection: ChromaCollection, cache: "VectorCache", connection: sqlite3.Connection
    ) -> None:
        self._collection, self._cache, self._connection = collection, cache, connection

    def nearest(self, query: "QueryVector", projects: Sequence[int], count: int) -> "Similarities":
        """Raises RequestFailed, or CopyBehind while much is to be copied."""
        from claude_mem.index.vectors.blocks import merge

        state = self._cache.read_state(self._connection)
        if self._collection.copied is None or self._collection.copied != state:
            self._catch_up(state)
        ids = self._collection.query(query.row.tolist(), projects, count)
        return merge([
            query.compare(*self._cache.passage_vectors(self._connection, set(ids), state.model)),
            *(query.compare(*vectors)
              for vectors in self._cache.waiting_vectors(self._connection, projects)),
        ])  # fmt: skip

    def _copy(self, own_connection: sqlite3.Connection) -> None:
        try:
            self._collection.catch_up(own_connection, self._cache.read_state(own_connection))
        except RequestFailed as error:
            self._collection.failed(error)

    def _catch_up(self, state: TableState) -> None:
        collection, connection = self._collection, self._connection
        copied = collection.copied
        behind = MAX_AT_SEARCH + 1
        if copied is not None and copied[:2] == state[:2]:
            behind = _changes_after(connection, copied.revision, behind)
        if behind > MAX_AT_SEARCH:
            self._cache.in_background(connection, collection.lock, self._copy)
            raise CopyBehind
        if not collection.lock.acquire(blocking=False):
            raise CopyBehind
        try:
            collection.catch_up(connection, state, COPY_AT_SEARCH_SECONDS)
        finally:
            collection.lock.release()


# What is read of the table of vectors


def _lost_documents(connection: sqlite3.Connection, after: int) -> list[int]:
    """The documents that were removed after that one."""
    rows = connection.execute("SELECT document FROM vector_losses WHERE number > ?", (after,))
    return [row[0] for row in rows]


def _changes_of_kind(
    connection: sqlite3.Connection, kind: str, after: int, limit: int
) -> list[VectorRow]:
    """The oldest changes of documents of a kind after a revision, of all projects."""
    rows = connection.execute(
        "SELECT revision, document, project_id, model, vector FROM vectors"
        " WHERE revision > ? AND document % 4 = ? ORDER BY revision LIMIT ?",
        (after, document_id(kind, 0), limit),
    )
    return [VectorRow._make(row) for row in rows]


def _changes_after(connection: sqlite3.Connection, after: int, limit: int) -> int:
    """How many documents changed after a revision, up to the limit."""
    row = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM vectors WHERE revision > ? LIMIT ?)", (after, limit)
    ).fetchone()
    return int(row[0])

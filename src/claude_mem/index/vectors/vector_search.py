"""The search by vector: which passages and observations are nearest to a text.

The vectors are compared here (`LocalScan`), or by a Chroma server where the settings say so, and it
answers. Of small projects, all vectors are in memory. Of large ones only their codes are: the codes
select candidates, whose vectors are read from the table.
"""

import sqlite3
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from claude_mem.errors import RequestFailed
from claude_mem.index.text.documents import TURN, Document
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
)
from claude_mem.index.vectors.vector_backend import RESCORED, VectorBackend
from claude_mem.index.vectors.vector_cache import ProjectVectors, VectorCache

if TYPE_CHECKING:
    from claude_mem.index.vectors.chroma import ChromaCollection

NEAREST = 1_024  # of the vectors that are held in full, those that are compared
NEAREST_BY_CHROMA = 300
# Signs in which two vectors of a cosine of 0.85 differ: 18%, and some deviations more.
MAX_DIFFERENT_SIGNS, MAX_SIMILAR = 0.28, 64
NO_IDS: Ids = np.empty(0, np.int64)


class VectorSearch:
    def __init__(self, cache: VectorCache, chroma: "ChromaCollection | None" = None) -> None:
        self._cache, self._chroma = cache, chroma
        self._last_query: tuple[str, QueryVector] | None = None

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
        query = self._query(text)
        if not query.row.any():
            return NO_SIMILARITIES
        projects = vector_table.projects(connection) if project_id is None else [project_id]
        included = np.fromiter(include, np.int64, len(include))
        scan = LocalScan(self._cache, connection, kind, included, rescored)
        if exhaustive:
            return scan.nearest(query, projects, sys.maxsize)
        return self._nearest(connection, scan, query, projects, kind)

    def _nearest(
        self,
        connection: sqlite3.Connection,
        scan: VectorBackend,
        query: QueryVector,
        projects: Sequence[int],
        kind: str,
    ) -> Similarities:
        """By Chroma where the settings say so, and it answers."""
        if self._chroma is not None and kind == TURN and self._chroma.is_available:
            from claude_mem.index.vectors.chroma import ChromaVectors, CopyBehind

            try:
                backend: VectorBackend = ChromaVectors(self._chroma, self._cache, connection)
                return backend.nearest(query, projects, NEAREST_BY_CHROMA)
            except CopyBehind:
                pass
            except RequestFailed as error:
                self._chroma.failed(error)
        return scan.nearest(query, projects, NEAREST)

    def passage_cosines(
        self, connection: sqlite3.Connection, text: str, passage_ids: Iterable[int]
    ) -> dict[int, float]:
        query = self._query(text)
        if not query.row.any():
            return {}
        compared = self._compare_passages(connection, query, set(passage_ids))
        return dict(zip(compared.ids.tolist(), compared.cosines.tolist(), strict=True))

    def _query(self, text: str) -> QueryVector:
        """Made once for what compares the same text several times."""
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
        """Of a project whose codes alone are held, the vectors that may be similar to these."""
        distance = int(MAX_DIFFERENT_SIGNS * self._cache.dimension)
        documents: set[int] = set()
        for row in rows:
            query = QueryVector(row)
            documents.update(vectors.blocks.with_similar_codes(query, distance, MAX_SIMILAR))
        similar = VectorBlocks(self._cache.dimension)
        for stored in vector_table.stored(connection, model, documents):
            stored_rows = _as_rows(stored, self._cache.dimension)
            similar.add(np.full(len(stored_rows), stored.document, np.int64), stored_rows)
        return similar


class LocalScan:
    """The backend that needs nothing else: a scan of the vectors in memory."""

    def __init__(
        self,
        cache: VectorCache,
        connection: sqlite3.Connection,
        kind: str = TURN,
        include: Ids = NO_IDS,
        rescored: int = RESCORED,
    ) -> None:
        """`include`: what is compared in any case."""
        self._cache, self._connection = cache, connection
        self._kind, self._include, self._rescored = kind, include, rescored

    def nearest(self, query: QueryVector, projects: Sequence[int], count: int) -> Similarities:
        state = self._cache.read_state(self._connection)
        loaded = self._cache.loaded(self._connection, projects, self._kind, state)
        try:
            similarities = [
                vectors.blocks.nearest(query, count, self._include) for vectors in loaded
            ]
        except RowsDropped:
            similarities = [self._by_codes(query, loaded, state.model)]
        return similarities[0] if len(similarities) == 1 else merge(similarities)

    def _by_codes(
        self, query: QueryVector, loaded: Sequence[ProjectVectors], model: int
    ) -> Similarities:
        candidates = [vectors.blocks.candidates(query, self._rescored) for vectors in loaded]
        ids = np.concatenate([of_project.ids for of_project in candidates])
        scores = np.concatenate([of_project.scores for of_project in candidates])
        order = np.argsort(-scores, kind="stable")
        nearest = {int(id_) for id_ in ids[order[: self._rescored]]}
        if self._kind == TURN:
            nearest.update(self._include.tolist())
            vectors = self._cache.passage_vectors(self._connection, nearest, model, loaded)
            return query.compare(*vectors)
        return merge(self._compare_documents(query, nearest, model))

    def _compare_documents(
        self, query: QueryVector, documents: set[int], model: int
    ) -> list[Similarities]:
        return [
            query.compare(np.full(len(vectors), row.document, np.int64), vectors)
            for row in vector_table.stored(self._connection, model, documents)
            for vectors in (_as_rows(row, self._cache.dimension),)
        ]


def _as_rows(row: vector_table.VectorRow, dimension: int) -> Rows:
    return np.frombuffer(row.vector or b"", np.int8).reshape(-1, dimension)

"""The vector store that needs nothing else: a scan of the vectors in the memory of the worker."""

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from claude_mem.index.text.documents import TURN
from claude_mem.index.vectors.blocks import Ids, QueryVector, RowsDropped, Similarities, merge
from claude_mem.index.vectors.vector_store import RESCORED

if TYPE_CHECKING:
    from claude_mem.index.vectors.vector_cache import VectorCache

NO_IDS: Ids = np.empty(0, np.int64)


class LocalScan:
    def __init__(
        self,
        cache: "VectorCache",
        connection: sqlite3.Connection,
        kind: str = TURN,
        include: Ids = NO_IDS,
        rescored: int = RESCORED,
    ) -> None:
        """`include`: what is compared, too, if its vector is in memory."""
        self._cache, self._connection = cache, connection
        self._kind, self._include, self._rescored = kind, include, rescored

    def nearest(self, query: QueryVector, projects: Sequence[int], count: int) -> Similarities:
        cache, connection, kind = self._cache, self._connection, self._kind
        state = cache.read_state(connection)
        loaded = cache.loaded(connection, projects, kind, state)
        try:
            parts = [vectors.blocks.nearest(query, count, self._include) for vectors in loaded]
        except RowsDropped:
            parts = [
                cache.compare_by_codes(connection, query, loaded, kind, state.model, self._rescored)
            ]
        return parts[0] if len(parts) == 1 else merge(parts)

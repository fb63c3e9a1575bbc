"""The vectors of shared passages: PostgreSQL with pgvector as a vector backend."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from claude_mem.index.text.passage_queries import PASSAGE_BITS
from claude_mem.index.vectors.blocks import QueryVector, Similarities
from claude_mem.team.server.embedding import as_text

if TYPE_CHECKING:
    from claude_mem.team.server.database import Connection

COMPARED = 1_000  # passages of a project, by their codes, whose vectors are compared; as locally

Key = tuple[int, int, int]  # project, turn, number of a passage


class PgVectors:
    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self._keys: dict[int, Key] = {}

    def nearest(self, query: QueryVector, projects: Sequence[int], count: int) -> Similarities:
        rows = self._connection.execute(
            "SELECT * FROM nearest_passages(%s, %s::halfvec, %s, %s)",
            (list(projects), as_text(query.row), max(COMPARED, 4 * count), count),
        ).fetchall()
        ids = [turn << PASSAGE_BITS | number for _, turn, number, _ in rows]
        self._keys |= {i: row[:3] for i, row in zip(ids, rows, strict=True)}
        cosines = np.array([row[3] for row in rows], np.float32)
        return Similarities(np.array(ids, np.int64), cosines)

    def keys(self, ids: Iterable[int]) -> set[Key]:
        """Returns the keys of passages that were near."""
        return {self._keys[i] for i in ids}

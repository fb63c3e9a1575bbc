"""The seam of vector search: which passages are nearest to a vector.

`LocalScan` (`vector_search`) scans the memory of the worker, `ChromaVectors` (`chroma`) asks a
Chroma server, and `PgVectors` (`team/server/vectors.py`) asks PostgreSQL with pgvector. One suite
tests them all (`tests/test_vector_conformance.py`).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from claude_mem.index.vectors.blocks import QueryVector, Similarities

RESCORED = 1_000  # candidates by their codes, whose vectors are read from the disk


class VectorBackend(Protocol):
    def nearest(self, query: "QueryVector", projects: Sequence[int], count: int) -> "Similarities":
        """Returns the similarities to the nearest passages of these projects: at least to `count`,
        where there are so many.

        A passage has the id that the index of passages gives it. What was deleted is not among
        them.
        """
        ...

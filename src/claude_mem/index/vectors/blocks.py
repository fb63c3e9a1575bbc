"""Vectors in memory: int8 numbers in blocks, scanned one block after the other with numpy.

Ours and not a vector database's: at 100,000 vectors an exact scan takes milliseconds, while the
extensions of SQLite cannot be loaded by many Pythons and an approximate index would be a second
store to keep in step. Sums of integers are exact, so a cosine is the same on every platform, in
every order and with any number of threads. Where there are too many vectors to hold, signs alone,
one bit each, select the few that are worth reading.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

BLOCK = 8_192
MAX_INT8 = 127
REMOVED = -1  # in the place of an id

Ids = NDArray[np.int64]
Rows = NDArray[np.int8]
Floats = NDArray[np.float32]
Bits = NDArray[np.uint64]


def normalise(vectors: Floats) -> Floats:
    """To length 1; zeros stay zeros."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    normalised: Floats = (vectors / lengths).astype(np.float32)
    return normalised


def quantise(vectors: Floats) -> Rows:
    """The same directions in int8, each scaled by its largest number."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    largest[largest == 0] = 1
    rows: Rows = np.rint(vectors / largest * MAX_INT8).astype(np.int8)
    return rows


@dataclass(frozen=True, slots=True)
class Similarities:
    """The documents that were compared, and their cosines."""

    documents: Ids
    cosines: Floats

    def best(self, count: int) -> list[tuple[int, float]]:
        """Highest cosine first, then lower id."""
        cosines = self.cosines
        if 0 < count < len(cosines):
            smallest = np.partition(cosines, len(cosines) - count)[len(cosines) - count]
            selected = np.flatnonzero(cosines >= smallest)
        else:
            selected = np.arange(len(cosines))
        order = np.lexsort((self.documents[selected], -cosines[selected]))
        return [(int(self.documents[at]), float(cosines[at])) for at in selected[order][:count]]

    def of(self, documents: list[int]) -> dict[int, float]:
        """Of these documents, where they were compared."""
        places = np.flatnonzero(np.isin(self.documents, np.array(documents, np.int64)))
        return {int(self.documents[at]): float(self.cosines[at]) for at in places}


NO_SIMILARITIES = Similarities(np.empty(0, np.int64), np.empty(0, np.float32))


def merge(parts: list[Similarities]) -> Similarities:
    """Without removed rows; the cosine of a document is that of its nearest passage."""
    documents = np.concatenate([part.documents for part in parts])
    cosines = np.concatenate([part.cosines for part in parts])
    present = documents != REMOVED
    if not present.all():
        documents, cosines = documents[present], cosines[present]
    firsts = np.flatnonzero(np.diff(documents, prepend=REMOVED))  # passages of one are adjacent
    if len(firsts) == len(documents):
        return Similarities(documents, cosines)
    return Similarities(documents[firsts], np.maximum.reduceat(cosines, firsts))


class QueryVector:
    """A vector that others are compared with."""

    def __init__(self, row: Rows) -> None:
        self.row = row
        self._inverse_length = _inverse_lengths(row[None])[0]

    def cosines(self, rows: Rows, inverse_lengths: Floats) -> Floats:
        products = np.einsum("ij,j->i", rows, self.row, dtype=np.int32)
        cosines: Floats = products.astype(np.float32) * inverse_lengths * self._inverse_length
        return cosines

    def compare(self, ids: Ids, rows: Rows) -> Similarities:
        return Similarities(ids, self.cosines(rows, _inverse_lengths(rows)))


def _inverse_lengths(rows: Rows) -> Floats:
    """Zero for a row of zeros."""
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.int32)
    inverse = np.zeros(len(rows), np.float64)
    np.divide(1.0, np.sqrt(squares), out=inverse, where=squares > 0)
    return inverse.astype(np.float32)


def _signs(rows: Rows) -> Bits:
    """A bit for each number, in planes of 64."""
    bits = np.packbits(rows > 0, axis=1)
    missing = -bits.shape[1] % 8
    padded = np.pad(bits, ((0, 0), (0, missing)))
    return np.ascontiguousarray(padded.view(np.uint64).T)


@dataclass(slots=True)
class _Block:
    ids: Ids
    inverse_lengths: Floats
    rows: Rows | None  # where the vectors are held
    signs: Bits | None  # where only their signs are
    used: int = 0

    def planes(self) -> Bits:
        if self.signs is not None:
            return self.signs[:, : self.used]
        assert self.rows is not None
        return _signs(self.rows[: self.used])


@dataclass(slots=True)
class VectorBlocks:
    """The vectors of a project, or their signs alone."""

    dimension: int
    signs_only: bool = False
    _blocks: list[_Block] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(block.used for block in self._blocks)

    def add(self, ids: Ids, rows: Rows) -> None:
        """The rows of one document must be adjacent."""
        at = 0
        while at < len(ids):
            block = self._block_with_room()
            count = min(len(ids) - at, BLOCK - block.used)
            target, source = slice(block.used, block.used + count), slice(at, at + count)
            block.ids[target] = ids[source]
            block.inverse_lengths[target] = _inverse_lengths(rows[source])
            if block.rows is not None:
                block.rows[target] = rows[source]
            if block.signs is not None:
                block.signs[:, target] = _signs(rows[source])
            block.used += count
            at += count

    def remove(self, documents: list[int]) -> None:
        ids = np.array(documents, np.int64)
        self._remove_where(lambda block: np.isin(block, ids))

    def keep_only(self, documents: list[int]) -> None:
        ids = np.array(documents, np.int64)
        self._remove_where(lambda block: np.isin(block, ids, invert=True))

    def _remove_where(self, condition: Callable[[Ids], NDArray[np.bool_]]) -> None:
        for block in self._blocks:
            block.ids[: block.used][condition(block.ids[: block.used])] = REMOVED

    def compare(self, query: QueryVector) -> Similarities:
        """Exact cosines of all vectors."""
        parts = [NO_SIMILARITIES]
        for block in self._blocks:
            assert block.rows is not None
            used = slice(block.used)
            cosines = query.cosines(block.rows[used], block.inverse_lengths[used])
            parts.append(Similarities(block.ids[used], cosines))
        return merge(parts)

    def compare_signs(self, query: QueryVector) -> Similarities:
        """By the number of equal signs instead of cosines."""
        parts = [NO_SIMILARITIES]
        signs = _signs(query.row[None])[:, 0]
        for block in self._blocks:
            used = slice(block.used)
            distance = np.zeros(block.used, np.uint16)
            for plane, sign in zip(block.planes(), signs, strict=True):
                distance += np.bitwise_count(plane ^ sign)
            parts.append(Similarities(block.ids[used], -distance.astype(np.float32)))
        return merge(parts)

    def similar_pairs(
        self, ids: Ids, rows: Rows, min_cosine: float, limit: int
    ) -> list[tuple[int, int]]:
        """Each of these ids with up to `limit` other documents of the blocks, nearest first."""
        floats, inverse = rows.astype(np.float32), _inverse_lengths(rows)
        similar: list[list[Similarities]] = [[NO_SIMILARITIES] for _ in ids]
        for block in self._blocks:
            assert block.rows is not None
            used = slice(block.used)
            cosines = floats @ block.rows[used].astype(np.float32).T
            cosines *= inverse[:, None] * block.inverse_lengths[used]
            cosines[ids[:, None] == block.ids[used]] = 0
            for at in np.flatnonzero((cosines >= min_cosine).any(axis=1)):
                near = np.flatnonzero(cosines[at] >= min_cosine)
                similar[at].append(Similarities(block.ids[used][near], cosines[at][near]))
        return [
            (int(document), other)
            for document, parts in zip(ids, similar, strict=True)
            for other, _ in merge(parts).best(limit)
        ]

    def _block_with_room(self) -> _Block:
        if not self._blocks or self._blocks[-1].used == BLOCK:
            self._blocks.append(self._new_block())
        return self._blocks[-1]

    def _new_block(self) -> _Block:
        planes = -(-self.dimension // 64)
        return _Block(
            ids=np.empty(BLOCK, np.int64),
            inverse_lengths=np.empty(BLOCK, np.float32),
            rows=None if self.signs_only else np.empty((BLOCK, self.dimension), np.int8),
            signs=np.empty((planes, BLOCK), np.uint64) if self.signs_only else None,
        )

"""Vectors in memory: whole numbers from -127 to 127, in blocks that are scanned one by one.

Sums of whole numbers are exact, so a cosine is the same on every platform, in every order and with
any number of threads. Signs alone, a bit each, choose the few that are worth reading where there
are too many to hold them in full.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

BLOCK = 8_192
LARGEST = 127
NOBODY = -1

Ids = NDArray[np.int64]
Rows = NDArray[np.int8]
Floats = NDArray[np.float32]
Bits = NDArray[np.uint64]


def of_length_one(vectors: Floats) -> Floats:
    """Zeros stay zeros."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    made: Floats = (vectors / lengths).astype(np.float32)
    return made


def whole_numbers(vectors: Floats) -> Rows:
    """The same directions, each as fine as its largest number allows."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    largest[largest == 0] = 1
    made: Rows = np.rint(vectors / largest * LARGEST).astype(np.int8)
    return made


@dataclass(frozen=True, slots=True)
class Similarities:
    """Who was compared, and the cosines."""

    documents: Ids
    cosines: NDArray[np.float32]

    def best(self, count: int) -> list[tuple[int, float]]:
        """The nearest first; of two that are equally like, the one with the lower id."""
        cosines = self.cosines
        if 0 < count < len(cosines):
            least = np.partition(cosines, len(cosines) - count)[len(cosines) - count]
            chosen = np.flatnonzero(cosines >= least)
        else:
            chosen = np.arange(len(cosines))
        order = np.lexsort((self.documents[chosen], -cosines[chosen]))
        return [(int(self.documents[at]), float(cosines[at])) for at in chosen[order][:count]]

    def of(self, documents: list[int]) -> dict[int, float]:
        """Of these, those that were compared."""
        at = np.flatnonzero(np.isin(self.documents, np.array(documents, np.int64)))
        return {int(self.documents[i]): float(self.cosines[i]) for i in at}


NOTHING = Similarities(np.empty(0, np.int64), np.empty(0, np.float32))


def together(found: list[Similarities]) -> Similarities:
    """All of them, without gaps; a document is as like as its nearest passage."""
    documents = np.concatenate([one.documents for one in found])
    cosines = np.concatenate([one.cosines for one in found])
    there = documents != NOBODY
    if not there.all():
        documents, cosines = documents[there], cosines[there]
    firsts = np.flatnonzero(np.diff(documents, prepend=NOBODY))  # passages stand side by side
    if len(firsts) == len(documents):
        return Similarities(documents, cosines)
    return Similarities(documents[firsts], np.maximum.reduceat(cosines, firsts))


class QueryVector:
    """A vector that others are compared with."""

    def __init__(self, row: Rows) -> None:
        self.row = row
        self._inverse = _inverse_lengths(row[None])[0]

    def cosines(self, rows: Rows, inverse: NDArray[np.float32]) -> NDArray[np.float32]:
        products = np.einsum("ij,j->i", rows, self.row, dtype=np.int32)
        found: NDArray[np.float32] = products.astype(np.float32) * inverse * self._inverse
        return found

    def compare(self, ids: Ids, rows: Rows) -> Similarities:
        return Similarities(ids, self.cosines(rows, _inverse_lengths(rows)))


def _inverse_lengths(rows: Rows) -> NDArray[np.float32]:
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
    inverse: NDArray[np.float32]
    rows: Rows | None  # of a shelf that holds them in full
    signs: Bits | None  # of another
    used: int = 0

    def planes(self) -> Bits:
        if self.signs is not None:
            return self.signs[:, : self.used]
        assert self.rows is not None
        return _signs(self.rows[: self.used])


@dataclass(slots=True)
class VectorBlocks:
    """The vectors of a project."""

    dimension: int
    in_full: bool
    _blocks: list[_Block] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(block.used for block in self._blocks)

    def put(self, ids: Ids, rows: Rows) -> None:
        """Who has several rows has them one after the other."""
        at = 0
        while at < len(ids):
            block = self._block_with_room()
            count = min(len(ids) - at, BLOCK - block.used)
            here, there = slice(block.used, block.used + count), slice(at, at + count)
            block.ids[here] = ids[there]
            block.inverse[here] = _inverse_lengths(rows[there])
            if block.rows is not None:
                block.rows[here] = rows[there]
            if block.signs is not None:
                block.signs[:, here] = _signs(rows[there])
            block.used += count
            at += count

    def take_out(self, documents: list[int]) -> None:
        """Leaves gaps."""
        ids = np.array(documents, np.int64)
        self._empty(lambda block: np.isin(block, ids))

    def keep(self, documents: list[int]) -> None:
        """Takes out all others."""
        ids = np.array(documents, np.int64)
        self._empty(lambda block: np.isin(block, ids, invert=True))

    def _empty(self, which: Callable[[Ids], NDArray[np.bool_]]) -> None:
        for block in self._blocks:
            block.ids[: block.used][which(block.ids[: block.used])] = NOBODY

    def compare(self, asked: QueryVector) -> Similarities:
        """All of them, exactly."""
        found = [NOTHING]
        for block in self._blocks:
            assert block.rows is not None
            used = slice(block.used)
            cosines = asked.cosines(block.rows[used], block.inverse[used])
            found.append(Similarities(block.ids[used], cosines))
        return together(found)

    def pairs(self, ids: Ids, rows: Rows, least: float, most: int) -> list[tuple[int, int]]:
        """Who of these is at least so like whom of the shelf, the nearest of each; nobody is like
        itself."""
        ours, inverse = rows.astype(np.float32), _inverse_lengths(rows)
        found: list[list[Similarities]] = [[NOTHING] for _ in ids]
        for block in self._blocks:
            assert block.rows is not None
            used = slice(block.used)
            cosines = ours @ block.rows[used].astype(np.float32).T
            cosines *= inverse[:, None] * block.inverse[used]
            cosines[ids[:, None] == block.ids[used]] = 0
            for at in np.flatnonzero((cosines >= least).any(axis=1)):
                like = np.flatnonzero(cosines[at] >= least)
                found[at].append(Similarities(block.ids[used][like], cosines[at][like]))
        return [
            (int(one), other)
            for one, nearest in zip(ids, found, strict=True)
            for other, _ in together(nearest).best(most)
        ]

    def distances(self, asked: QueryVector) -> Similarities:
        """All of them, by how many signs are others."""
        found = [NOTHING]
        signs = _signs(asked.row[None])[:, 0]
        for block in self._blocks:
            used = slice(block.used)
            distance = np.zeros(block.used, np.uint16)
            for plane, sign in zip(block.planes(), signs, strict=True):
                distance += np.bitwise_count(plane ^ sign)
            found.append(Similarities(block.ids[used], -distance.astype(np.float32)))
        return together(found)

    def _block_with_room(self) -> _Block:
        if not self._blocks or self._blocks[-1].used == BLOCK:
            self._blocks.append(self._new_block())
        return self._blocks[-1]

    def _new_block(self) -> _Block:
        planes = -(-self.dimension // 64)
        return _Block(
            ids=np.empty(BLOCK, np.int64),
            inverse=np.empty(BLOCK, np.float32),
            rows=np.empty((BLOCK, self.dimension), np.int8) if self.in_full else None,
            signs=None if self.in_full else np.empty((planes, BLOCK), np.uint64),
        )

"""Vectors in memory, in blocks that are scanned one after the other with numpy.

Ours and not a vector database's: at 100,000 vectors a scan takes milliseconds, while the
extensions of SQLite cannot be loaded by many Pythons and an approximate index would be a second
store to keep in step. Sums of integers are exact, so a cosine is the same on every platform, in
every order and with any number of threads.

Of many vectors only a code is held, one bit for each number: its sign. Two passes over the codes
select the few vectors that are worth reading from the disk: the first counts equal signs, which
is fast; the second adds up the numbers of the query with the signs of the vector.
"""

import math
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

BLOCK = 16_384
MAX_INT8 = 127
MAX_EXACT = (1 << 24) // MAX_INT8**2  # numbers of a vector whose products float32 adds exactly
REMOVED = -1  # in the place of an id
CODES_FOR_EACH = 16  # of the first pass over the codes, for each of the second
_VALUES = (1, 2, 4, 8, 16, 32, 64, -128)  # of the bits of an int8

Ids = NDArray[np.int64]
Rows = NDArray[np.int8]
Floats = NDArray[np.float32]
Bits = NDArray[np.uint64]
N = TypeVar("N", bound=np.generic)


def normalise(vectors: Floats) -> Floats:
    """Scales vectors to length 1; zeros stay zeros."""
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
    """The ids that were compared, and their cosines."""

    ids: Ids
    cosines: Floats

    def best(self, count: int) -> list[tuple[int, float]]:
        """Returns the best, highest cosine first, then lower id."""
        cosines = self.cosines
        if 0 < count < len(cosines):
            smallest = np.partition(cosines, len(cosines) - count)[len(cosines) - count]
            selected = np.flatnonzero(cosines >= smallest)
        else:
            selected = np.arange(len(cosines))
        order = selected[np.lexsort((self.ids[selected], -cosines[selected]))][:count]
        return list(zip(self.ids[order].tolist(), cosines[order].tolist(), strict=True))

    def of(self, ids: Iterable[int]) -> dict[int, float]:
        """Returns the similarities of these ids, where they were compared."""
        places = np.flatnonzero(_is_any_of(self.ids, ids))
        return dict(zip(self.ids[places].tolist(), self.cosines[places].tolist(), strict=True))


NO_SIMILARITIES = Similarities(np.empty(0, np.int64), np.empty(0, np.float32))


def merge(parts: list[Similarities]) -> Similarities:
    """Joins similarities without removed rows; of rows with the same id the nearest."""
    parts = [part for part in parts if len(part.ids)] or [NO_SIMILARITIES]
    ids, cosines = _joined([part.ids for part in parts]), _joined([part.cosines for part in parts])
    present = ids != REMOVED
    if not present.all():
        ids, cosines = ids[present], cosines[present]
    is_repeated = ids[1:] == ids[:-1]  # rows of one id are adjacent
    if not is_repeated.any():
        return Similarities(ids, cosines)
    firsts = np.concatenate([[0], np.flatnonzero(~is_repeated) + 1])
    return Similarities(ids[firsts], np.maximum.reduceat(cosines, firsts))


def _joined(parts: list[NDArray[N]]) -> NDArray[N]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _is_any_of(ids: Ids, values: Iterable[int]) -> NDArray[np.bool_]:
    """Whether each id is among the values, as np.isin tells it, which would sort all of the ids."""
    sorted_values = np.fromiter(values, np.int64)
    sorted_values.sort()
    if not len(sorted_values):
        return np.zeros(len(ids), np.bool_)
    places = np.searchsorted(sorted_values, ids)
    places[places == len(sorted_values)] = 0
    matches: NDArray[np.bool_] = sorted_values[places] == ids
    return matches


class QueryVector:
    """A vector that others are compared with."""

    def __init__(self, row: Rows) -> None:
        self.row = row
        self.code = codes_of(row[None])[:, 0]
        self._as_floats = row.astype(np.float32)
        self._inverse_length = _inverse_length(row)

    def cosines(self, rows: Rows, inverse_lengths: Floats | None = None) -> Floats:
        if inverse_lengths is None:
            inverse_lengths = _inverse_lengths(rows)
        cosines: Floats = self._products(rows) * inverse_lengths * self._inverse_length
        return cosines

    def _products(self, rows: Rows) -> Floats:
        """Sums of integers, which are exact in the faster type as long as they are small."""
        if rows.shape[1] <= MAX_EXACT:
            products: Floats = np.vecdot(rows.astype(np.float32), self._as_floats)
            return products
        sums: NDArray[np.int32] = np.einsum("ij,j->i", rows, self.row, dtype=np.int32)
        return sums.astype(np.float32)

    def compare(self, ids: Ids, rows: Rows) -> Similarities:
        return Similarities(ids, self.cosines(rows))


def _inverse_lengths(rows: Rows) -> Floats:
    """Returns the inverse length of each row; zero for a row of zeros."""
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.int32)
    inverse = np.zeros(len(rows), np.float64)
    np.divide(1.0, np.sqrt(squares), out=inverse, where=squares > 0)
    return inverse.astype(np.float32)


def _inverse_length(row: Rows) -> np.float32:
    """The same, of one row."""
    numbers = row.astype(np.int64)
    squares = int(numbers @ numbers)
    return np.float32(1 / math.sqrt(squares) if squares else 0.0)


def codes_of(rows: Rows | Floats) -> Bits:
    """A bit for each number, in planes of 64."""
    bits = np.packbits(rows > 0, axis=1)
    missing = -bits.shape[1] % 8
    if missing:
        bits = np.pad(bits, ((0, 0), (0, missing)))
    return np.ascontiguousarray(bits.view(np.uint64).T)


class RowsDropped(LookupError):
    """The blocks hold codes alone, perhaps since a moment ago."""


class NearestIds(NamedTuple):
    """The ids whose codes are nearest to a query, with a score that only orders them."""

    ids: Ids
    scores: Floats


@dataclass(slots=True)
class _Block:
    ids: Ids
    codes: Bits
    rows: Rows | None  # while all vectors are held
    inverse_lengths: Floats | None
    used: int = 0
    lowest: int = sys.maxsize  # of the ids that were ever in it
    highest: int = -1
    has_removed: bool = False

    def remove(self, is_removed: NDArray[np.bool_]) -> None:
        self.has_removed = True
        self.ids[: len(is_removed)][is_removed] = REMOVED


@dataclass(slots=True)
class VectorBlocks:
    """The vectors of a project. An id, shifted, is its owner: what is removed as a whole."""

    dimension: int
    owner_shift: int = 0
    has_rows: bool = True
    _blocks: list[_Block] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(block.used for block in self._blocks)

    def add(self, ids: Ids, rows: Rows) -> None:
        """Rows of the same id must be adjacent."""
        at = 0
        while at < len(ids):
            block = self._block_with_room()
            count = min(len(ids) - at, BLOCK - block.used)
            target, source = slice(block.used, block.used + count), slice(at, at + count)
            block.ids[target] = ids[source]
            block.codes[:, target] = codes_of(rows[source])
            # A search may drop the rows meanwhile.
            block_rows, inverse_lengths = block.rows, block.inverse_lengths
            if block_rows is not None and inverse_lengths is not None:
                block_rows[target] = rows[source]
                inverse_lengths[target] = _inverse_lengths(rows[source])
            block.lowest = min(block.lowest, int(ids[source].min()))
            block.highest = max(block.highest, int(ids[source].max()))
            block.used += count  # last: a search may be scanning the block
            at += count

    def drop_rows(self) -> None:
        """Keeps the codes alone."""
        self.has_rows = False
        for block in self._blocks:
            block.rows = block.inverse_lengths = None

    def remove(self, owners: Iterable[int]) -> None:
        values = sorted(owners)
        for block in self._blocks:
            # What changes is mostly new, and in one block.
            first = bisect_left(values, block.lowest >> self.owner_shift)
            last = bisect_right(values, block.highest >> self.owner_shift)
            if first < last:
                owners_of_rows = block.ids[: block.used] >> self.owner_shift
                block.remove(_is_any_of(owners_of_rows, values[first:last]))

    def compare(self, query: QueryVector) -> Similarities:
        """Computes the exact cosines of all vectors."""
        parts = [
            Similarities(ids, query.cosines(rows, inverse_lengths))
            for ids, rows, inverse_lengths in self._held_rows()
        ]
        return merge(parts)

    def candidates(self, query: QueryVector, count: int) -> NearestIds:
        """Selects the nearest ids by the codes alone, in no order."""
        most = 64 * len(query.code)  # signs that can differ
        counts = np.zeros(most + 2, np.intp)
        scanned: list[tuple[_Block, Ids, NDArray[np.uint16]]] = []
        for block in self._blocks:
            distances = distances_of(block.codes[:, : block.used], query.code)
            ids = block.ids[: len(distances)]
            if block.has_removed:
                ids = ids.copy()
                distances[ids == REMOVED] = most + 1  # else they keep others out
            counts += np.bincount(distances, minlength=len(counts))
            scanned.append((block, ids, distances))
        enough = int(np.searchsorted(np.cumsum(counts), CODES_FOR_EACH * count))
        near, codes = [np.empty(0, np.int64)], [np.empty((len(query.code), 0), np.uint64)]
        for block, ids, distances in scanned:
            places = np.flatnonzero(distances <= min(enough, most))
            near.append(ids[places])
            codes.append(block.codes.take(places, axis=1))
        near_ids = np.concatenate(near)
        scores = _sum_signed(np.concatenate(codes, axis=1), _bit_planes(query.row))
        present = near_ids != REMOVED  # a row may have been removed meanwhile
        near_ids, scores = near_ids[present], scores[present]
        selected = _smallest(-scores, count)
        return NearestIds(near_ids[selected], scores[selected].astype(np.float32))

    def similar_pairs(
        self, ids: Ids, rows: Rows, min_cosine: float, limit: int
    ) -> list[tuple[int, int]]:
        """Each of these ids with up to `limit` other ids of the blocks, nearest first."""
        floats, inverse = rows.astype(np.float32), _inverse_lengths(rows)
        similar: list[list[Similarities]] = [[NO_SIMILARITIES] for _ in ids]
        for block_ids, block_rows, block_inverse in self._held_rows():
            cosines = floats @ block_rows.astype(np.float32).T
            cosines *= inverse[:, None] * block_inverse
            cosines[ids[:, None] == block_ids] = 0
            for at in np.flatnonzero((cosines >= min_cosine).any(axis=1)):
                near = np.flatnonzero(cosines[at] >= min_cosine)
                similar[at].append(Similarities(block_ids[near], cosines[at][near]))
        return [
            (int(id_), other)
            for id_, parts in zip(ids, similar, strict=True)
            for other, _ in merge(parts).best(limit)
        ]

    def with_similar_codes(self, query: QueryVector, max_distance: int, limit: int) -> list[int]:
        """The ids of up to `limit` codes that differ in at most so many signs."""
        near = [np.empty(0, np.int64)]
        for block in self._blocks:
            ids = block.ids[: block.used]
            distances = distances_of(block.codes[:, : block.used], query.code)
            near.append(ids[(distances <= max_distance) & (ids != REMOVED)][:limit])
        return list(dict.fromkeys(np.concatenate(near).tolist()))[:limit]

    def _held_rows(self) -> Iterator[tuple[Ids, Rows, Floats]]:
        for block in self._blocks:
            used, rows, inverse_lengths = slice(block.used), block.rows, block.inverse_lengths
            if rows is None or inverse_lengths is None:
                raise RowsDropped
            yield block.ids[used], rows[used], inverse_lengths[used]

    def _block_with_room(self) -> _Block:
        if not self._blocks or self._blocks[-1].used == BLOCK:
            self._blocks.append(self._new_block())
        return self._blocks[-1]

    def _new_block(self) -> _Block:
        planes = -(-self.dimension // 64)
        rows = np.empty((BLOCK, self.dimension), np.int8) if self.has_rows else None
        lengths = np.empty(BLOCK, np.float32) if self.has_rows else None
        ids = np.empty(BLOCK, np.int64)
        return _Block(ids, np.empty((planes, BLOCK), np.uint64), rows, lengths)


def distances_of(planes: Bits, code: Bits) -> NDArray[np.uint16]:
    """How many signs differ."""
    distances: NDArray[np.uint16] = np.add.reduce(
        np.bitwise_count(planes ^ code[:, None]), axis=0, dtype=np.uint16
    )
    return distances


def _smallest(values: NDArray[np.int32], count: int) -> NDArray[np.intp]:
    """The places of the smallest values, in no order."""
    if count >= len(values):
        return np.arange(len(values))
    return np.argpartition(values, count)[:count]


def _bit_planes(row: Rows) -> Bits:
    """Splits each number of a row into its lowest bit, its second, and so on: a column for each, in
    planes of 64 as a code."""
    bits = (row.view(np.uint8) >> np.arange(8, dtype=np.uint8)[:, None]) & 1
    return codes_of(bits.view(np.int8))


def _sum_signed(codes: Bits, bit_planes: Bits) -> NDArray[np.int32]:
    """Sums the numbers whose bit is set in a code. In two's complement the highest bit is
    negative."""
    sums = np.zeros(codes.shape[1], np.int32)
    for bit, of_row in enumerate(bit_planes.T):
        counts = np.bitwise_count(codes & of_row[:, None])
        sums += np.add.reduce(counts, axis=0, dtype=np.int32) * np.int32(_VALUES[bit])
    return sums

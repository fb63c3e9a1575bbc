"""Words that mean nearly the same: each word of a query compared with the words of a passage.

The vectors are those of the shipped static model, one for each word piece; a passage is stored as
the numbers of its pieces, so that no text has to be split at search time.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from claude_mem.index.embedders.static_model import StaticModel

MIN_SIMILARITY = 0.35  # below it two words have nothing to do with each other
# Vectors of words times vectors of pieces: with 256 numbers each, what fits into the cache of a
# processor, and what OpenBLAS does not share out to threads, for which it waits busily.
MAX_PRODUCT = 1_000
MAX_COMPARED = 1_000_000  # cosines at once, of 4 bytes each

Floats = NDArray[np.float32]
Places = NDArray[np.intp]


class SimilarWords:
    def __init__(self, model: StaticModel) -> None:
        self._model = model
        self._rows = model.rows
        self._inverse_lengths = _inverse_lengths(model.rows)

    def pieces(self, text: str) -> bytes:
        """The numbers of the pieces of a text, each once."""
        return np.unique(np.array(self._model.pieces.rows(text), np.uint16)).tobytes()

    def similar_weights(
        self,
        words: Sequence[str],
        weights: Sequence[float],
        passages: Sequence[bytes | None],
        holding: Sequence[Sequence[int]],
    ) -> list[float]:
        """Returns by passage the weight of the words that it does not hold, as far as it has
        similar ones. `holding`: for each word the numbers of the passages that hold it."""
        weighted = self.similarities(words, passages) * np.array(weights, np.float64)[:, None]
        for of_word, places in zip(weighted, holding, strict=True):
            of_word[places] = 0
        as_list: list[float] = np.add.reduce(weighted, axis=0).tolist()  # word by word
        return as_list

    def similarities(self, words: Sequence[str], passages: Sequence[bytes | None]) -> Floats:
        """Returns for each word and each passage how near the nearest piece of the passage is, from
        0 to 1; 0 below MIN_SIMILARITY, and for a passage without pieces."""
        filled = slice(None) if all(passages) else [n for n, blob in enumerate(passages) if blob]
        blobs = [blob for blob in passages if blob]
        best: Floats = np.zeros((len(words), len(passages)), np.float32)
        if not blobs or not words:
            return best
        # As the type of an index: it would be converted at each use.
        flat = np.frombuffer(b"".join(blobs), np.uint16).astype(np.intp)
        used, places = self._distinct(flat)
        lengths = np.fromiter(map(len, blobs), np.intp, len(blobs)) // 2
        starts = np.cumsum(lengths) - lengths
        cosines = self._cosines(self._model.encode(words), used)
        cosines[cosines < MIN_SIMILARITY] = 0
        size = max(1, MAX_COMPARED // len(places))
        for start in range(0, len(words), size):
            chunk = slice(start, start + size)
            nearest = np.maximum.reduceat(cosines[chunk].take(places, axis=1), starts, axis=1)
            best[chunk, filled] = nearest
        return best

    def _cosines(self, vectors: Floats, pieces: Places) -> Floats:
        cosines: Floats = np.empty((len(vectors), len(pieces)), np.float32)
        size = max(1, MAX_PRODUCT // len(vectors))
        buffer: Floats = np.empty((size, self._rows.shape[1]), np.float32)
        for start in range(0, len(pieces), size):
            chunk = slice(start, start + size)
            of_chunk = pieces[chunk]
            rows = buffer[: len(of_chunk)]
            rows[...] = self._rows.take(of_chunk, axis=0)
            np.matmul(vectors, rows.T, out=cosines[:, chunk])
        cosines *= self._inverse_lengths[pieces]
        return cosines

    def _distinct(self, pieces: Places) -> tuple[Places, Places]:
        """Each piece once, and the place of each among them; np.unique would sort."""
        present = np.zeros(len(self._inverse_lengths), np.bool_)
        present[pieces] = True
        used = np.flatnonzero(present)
        place_of = np.empty(len(present), np.intp)
        place_of[used] = np.arange(len(used))
        return used, place_of[pieces]


def _inverse_lengths(rows: NDArray[np.int8]) -> Floats:
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.int32)
    lengths: Floats = np.sqrt(np.maximum(squares, 1)).astype(np.float32)
    return np.reciprocal(lengths)

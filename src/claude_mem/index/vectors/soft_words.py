"""Words that mean nearly the same: each word of a query compared with the words of a passage.

The vectors are those of the shipped static model, one for each word piece; a passage is stored as
the numbers of its pieces, so that no text has to be split at search time.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from claude_mem.index.embedders.static_model import StaticModel
from claude_mem.index.vectors.blocks import codes_of, distances_of

MIN_SIMILARITY = 0.35  # below it two words have nothing to do with each other
# Signs in which two vectors of this similarity differ: 39%, and two deviations more. Of
# unrelated pieces one in eight has so few; only these are compared in full.
MAX_DIFFERENT_SIGNS = 0.46

Floats = NDArray[np.float32]
Places = NDArray[np.intp]


class SoftWords:
    def __init__(self, model: StaticModel) -> None:
        self._model = model
        self._rows = np.asarray(model.rows)  # a memmap is slower to index
        self._inverse_lengths = _inverse_lengths(model.rows)
        self._codes = codes_of(self._rows)
        self._max_distance = int(MAX_DIFFERENT_SIGNS * model.dimension)

    def pieces(self, text: str) -> bytes:
        """The numbers of the pieces of a text, each once."""
        return np.unique(np.array(self._model.pieces.rows(text), np.uint16)).tobytes()

    def similarities(self, words: Sequence[str], passages: Sequence[bytes | None]) -> Floats:
        """For each passage and each word how near the nearest piece of the passage is, from 0 to
        1; 0 below MIN_SIMILARITY, and for a passage without pieces."""
        best = np.zeros((len(passages), len(words)), np.float32)
        filled = [number for number, blob in enumerate(passages) if blob]
        if not filled or not words:
            return best
        blobs = [passages[number] or b"" for number in filled]
        flat = np.frombuffer(b"".join(blobs), np.uint16)
        used, places = self._distinct(flat)
        codes = self._codes.take(used, axis=1)
        lengths = np.fromiter(map(len, blobs), np.intp, len(blobs)) // 2
        starts = np.cumsum(lengths) - lengths
        similar = np.zeros(len(used), np.float32)
        vectors = self._model.encode(words)
        for number, (word, code) in enumerate(zip(vectors, codes_of(vectors).T, strict=True)):
            near = np.flatnonzero(distances_of(codes, code) <= self._max_distance)
            similar[near] = self._compare(used[near], word)
            best[filled, number] = np.maximum.reduceat(similar[places], starts)
            similar[near] = 0
        return best

    def _compare(self, pieces: Places, word: Floats) -> Floats:
        rows = self._rows.take(pieces, axis=0).astype(np.float32)
        cosines: Floats = rows @ word * self._inverse_lengths[pieces]
        cosines[cosines < MIN_SIMILARITY] = 0
        return cosines

    def _distinct(self, pieces: NDArray[np.uint16]) -> tuple[Places, NDArray[np.int32]]:
        """Each piece once, and the place of each among them; np.unique would sort."""
        present = np.zeros(len(self._inverse_lengths), np.bool_)
        present[pieces] = True
        used = np.flatnonzero(present)
        place_of = np.empty(len(present), np.int32)
        place_of[used] = np.arange(len(used), dtype=np.int32)
        return used, place_of[pieces]


def _inverse_lengths(rows: NDArray[np.int8]) -> Floats:
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.int32)
    lengths: Floats = np.sqrt(np.maximum(squares, 1)).astype(np.float32)
    return np.reciprocal(lengths)

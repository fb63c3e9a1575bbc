"""Words that mean nearly the same: each word of a query compared with the words of a passage.

The vectors are those of the shipped static model, one for each word piece; a passage is stored as
the numbers of its pieces, so that no text has to be split at search time.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from claude_mem.index.embedders.static_model import StaticModel

STEP = 128  # pieces
MIN_SIMILARITY = 0.35  # below it two words have nothing to do with each other

Floats = NDArray[np.float32]


class SoftWords:
    def __init__(self, model: StaticModel) -> None:
        self._model = model
        self._rows = np.asarray(model.rows)  # a memmap is slower to index
        self._inverse_lengths = _inverse_lengths(model.rows)

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
        cosines = self._compare(used, self._model.encode(words))
        starts = np.cumsum([0, *(len(blob) // 2 for blob in blobs[:-1])])
        best[filled] = np.maximum.reduceat(cosines[places], starts, axis=0)
        return best

    def _compare(self, pieces: NDArray[np.intp], words: Floats) -> Floats:
        """The cosine of each piece with each word. In small steps: they stay in the cache of the
        processor, and cost no new pages."""
        cosines = np.empty((len(pieces), len(words)), np.float32)
        columns = np.ascontiguousarray(words.T)
        floats = np.empty((STEP, self._rows.shape[1]), np.float32)
        for start in range(0, len(pieces), STEP):
            step = pieces[start : start + STEP]
            rows = floats[: len(step)]
            rows[:] = self._rows[step]
            np.matmul(rows, columns, out=cosines[start : start + STEP])
        cosines *= self._inverse_lengths[pieces, None]
        cosines[cosines < MIN_SIMILARITY] = 0
        return cosines

    def _distinct(self, pieces: NDArray[np.uint16]) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
        """Each piece once, and the place of each among them; np.unique would sort."""
        present = np.zeros(len(self._inverse_lengths), np.bool_)
        present[pieces] = True
        used = np.flatnonzero(present)
        place_of = np.zeros(len(present), np.int32)
        place_of[used] = np.arange(len(used), dtype=np.int32)
        return used, place_of[pieces]


def _inverse_lengths(rows: NDArray[np.int8]) -> Floats:
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.int32)
    lengths: Floats = np.sqrt(np.maximum(squares, 1)).astype(np.float32)
    return np.reciprocal(lengths)

"""Words that mean nearly the same: each word of a query compared with the words of a passage.

The vectors are those of the shipped static model, one for each word piece; a passage is stored as
the numbers of its pieces, so that no text has to be split at search time.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from claude_mem.index.embedders.static_model import StaticModel

MIN_SIMILARITY = 0.35  # below it two words have nothing to do with each other

Floats = NDArray[np.float32]


class SoftWords:
    def __init__(self, model: StaticModel) -> None:
        self._model = model

    def pieces(self, text: str) -> bytes:
        """The numbers of the pieces of a text, each once."""
        return np.unique(np.array(self._model.pieces.rows(text), np.uint16)).tobytes()

    def similarities(self, words: Sequence[str], passages: Sequence[bytes | None]) -> Floats:
        """For each passage and each word how near the nearest piece of the passage is, from 0 to
        1; 0 below MIN_SIMILARITY, and for a passage without pieces."""
        best = np.zeros((len(passages), len(words)), np.float32)
        arrays = [np.frombuffer(blob or b"", np.uint16) for blob in passages]
        flat = np.concatenate([*arrays, np.empty(0, np.uint16)])
        if not len(flat) or not words:
            return best
        used, places = np.unique(flat, return_inverse=True)
        cosines = self._model.encode(words) @ self._directions(used).T
        cosines[cosines < MIN_SIMILARITY] = 0
        by_place = cosines[:, places]
        filled = [number for number, blob in enumerate(arrays) if len(blob)]
        starts = np.cumsum([0, *(len(arrays[number]) for number in filled[:-1])])
        best[filled] = np.maximum.reduceat(by_place, starts, axis=1).T
        return best

    def _directions(self, pieces: NDArray[np.uint16]) -> Floats:
        rows = self._model.rows[pieces].astype(np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        lengths[lengths == 0] = 1
        directions: Floats = rows / lengths[:, None]
        return directions

"""The model that ships with the package: a text is the normalised sum of its word pieces' rows.

A model is a directory, written by training/pack.py:

    rows.npy        int8 (pieces, dimension): the direction of each piece
    scales.npy      uint16 (pieces), below 2^12: row times scale is the piece's vector
    vocabulary.txt  one piece a line, in the order of the rows; "##" continues a word
    model.json      {"name", "dimension", "sha256"}; sha256 over the three files, in this order

Sums are of integers, and 512 rows of at most 2^12 times the longest row fit (pack.py checks it),
so they are exact: the same vector on every platform, in every order. The rows are memory-mapped:
they cost no private memory.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from claude_mem.index.embedders.wordpieces import Wordpieces

SHIPPED = Path(__file__).parent / "model"
HASHED = ("rows.npy", "scales.npy", "vocabulary.txt")
BATCH_PIECES = 8_192  # summed at once: they stay in the CPU cache

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class StaticModel:
    id: str
    dimension: int
    rows: NDArray[np.int8]
    scales: NDArray[np.int32]
    pieces: Wordpieces

    @classmethod
    def load(cls, path: Path = SHIPPED) -> "StaticModel":
        metadata = json.loads((path / "model.json").read_text("utf-8"))
        vocabulary = (path / "vocabulary.txt").read_text("utf-8").splitlines()
        return cls(
            id=f"{metadata['name']}-{metadata['sha256'][:12]}",
            dimension=metadata["dimension"],
            # As a plain array: of a memmap every part is another one, made in Python.
            rows=np.asarray(np.load(path / "rows.npy", mmap_mode="r")),
            scales=np.load(path / "scales.npy").astype(np.int32),
            pieces=Wordpieces(vocabulary),
        )

    def encode(self, texts: Sequence[str]) -> Vectors:
        """A vector of length 1 for each text; zeros where no word is in the vocabulary."""
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        numbers: list[int] = []
        flat: list[int] = []
        starts: list[int] = []
        for number, text in enumerate(texts):
            rows = self.pieces.rows(text)
            if not rows:
                continue
            numbers.append(number)
            starts.append(len(flat))
            flat += rows
            if len(flat) >= BATCH_PIECES:
                vectors[numbers] = self._sum(flat, starts)
                numbers, flat, starts = [], [], []
        if flat:
            vectors[numbers] = self._sum(flat, starts)
        return vectors

    def _sum(self, flat: list[int], starts: list[int]) -> Vectors:
        at = np.array(flat, np.intp)
        weighted = self.rows[at] * self.scales[at, None]
        sums = np.add.reduceat(weighted, starts, axis=0, dtype=np.int32).astype(np.int64)
        lengths = np.sqrt((sums * sums).sum(axis=1).astype(np.float64))
        lengths[lengths == 0] = 1
        vectors: Vectors = (sums / lengths[:, None]).astype(np.float32)
        return vectors


def content_hash(path: Path) -> str:
    digest = hashlib.sha256()
    for name in HASHED:
        digest.update((path / name).read_bytes())
    return digest.hexdigest()

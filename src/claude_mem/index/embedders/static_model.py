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
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from claude_mem.index.text.words import parts_of

SHIPPED = Path(__file__).parent / "model"
HASHED = ("rows.npy", "scales.npy", "vocabulary.txt")
BATCH_PIECES = 8_192  # summed at once: they stay in the CPU cache

Vectors = NDArray[np.float32]


# A text as rows of the static model's table: words, then the longest pieces in the vocabulary.
#
# Ours and not the library `tokenizers`: that is megabytes of native code which only the extra
# `semantic` needs, and it cannot split identifiers as full text does (`words.parts_of`).
# Identifiers that the vocabulary holds are not split; punctuation, hashes and blobs carry no
# meaning and are left out. The model was trained with these rules: changing one means training
# again.

MAX_WORD = 40  # longer ones are base64 or minified names
MAX_PIECES = 512
MAX_TEXT = 20_000  # of which the first MAX_PIECES count
CONTINUATION = "##"
CACHED_WORDS = 50_000

_WORD = re.compile(r"[^\W_]+")
_HASH = re.compile(r"(?=[a-zA-Z]*\d)[0-9a-fA-F]{7,}")
_MARKS = re.compile("[\u0300-\u036f]+")
_CJK = re.compile("([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")


class Wordpieces:
    def __init__(self, vocabulary: Iterable[str]) -> None:
        self._rows = {piece: row for row, piece in enumerate(vocabulary)}
        self._cache: dict[str, tuple[int, ...]] = {}

    def rows(self, text: str) -> list[int]:
        cache = self._cache
        rows: list[int] = []
        for word in _WORD.findall(_plain(text[:MAX_TEXT])):
            pieces = cache.get(word)
            if pieces is None:
                pieces = self._split(word)
            rows += pieces
            if len(rows) >= MAX_PIECES:
                return rows[:MAX_PIECES]
        return rows

    def _split(self, word: str) -> tuple[int, ...]:
        if len(self._cache) >= CACHED_WORDS:
            self._cache.clear()
        rows = self._cache[word] = tuple(
            row for part in self._parts(word) for row in self._longest_pieces(part)
        )
        return rows

    def _parts(self, word: str) -> list[str]:
        if len(word) > MAX_WORD or _HASH.fullmatch(word):
            return []
        lowered = word.lower()
        if lowered in self._rows:
            return [lowered]
        return [part.lower() for part in _joined(parts_of(word))] or [lowered]

    def _longest_pieces(self, word: str) -> list[int]:
        """None where a piece is missing: half a word may mean anything."""
        rows: list[int] = []
        at = 0
        while at < len(word):
            for end in range(len(word), at, -1):
                row = self._rows.get((CONTINUATION if at else "") + word[at:end])
                if row is not None:
                    rows.append(row)
                    at = end
                    break
            else:
                return []
        return rows


def _plain(text: str) -> str:
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    return _CJK.sub(r" \1 ", _MARKS.sub("", decomposed))


def _joined(parts: list[str]) -> list[str]:
    """A single letter belongs to what follows: OAuth, iPhone."""
    joined: list[str] = []
    for part in parts:
        if joined and len(joined[-1]) == 1 and joined[-1].isalpha():
            joined[-1] += part
        else:
            joined.append(part)
    return joined


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
        vectors: Vectors = np.zeros((len(texts), self.dimension), np.float32)
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
        if len(numbers) == len(texts):
            return self._sum(flat, starts)
        if flat:
            vectors[numbers] = self._sum(flat, starts)
        return vectors

    def _sum(self, flat: list[int], starts: list[int]) -> Vectors:
        at = np.array(flat, np.intp)
        weighted = self.rows.take(at, axis=0) * self.scales.take(at)[:, None]
        sums = np.add.reduceat(weighted, starts, axis=0, dtype=np.int32).astype(np.int64)
        lengths = np.maximum(np.sqrt((sums * sums).sum(axis=1)), 1.0)  # of integers: 0, or not less
        vectors: Vectors = (sums / lengths[:, None]).astype(np.float32)
        return vectors


def content_hash(path: Path) -> str:
    digest = hashlib.sha256()
    for name in HASHED:
        digest.update((path / name).read_bytes())
    return digest.hexdigest()

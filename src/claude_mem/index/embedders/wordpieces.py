"""A text as rows of the static model's table: words, then the longest pieces in the vocabulary.

Ours and not the library `tokenizers`: that is megabytes of native code which only the
extra `semantic` needs, and it cannot split identifiers as full text does (`words.parts_of`).
Identifiers that the vocabulary holds are not split; punctuation, hashes and blobs carry no meaning
and are left out. The model was trained with these rules: changing one means training again.
"""

import re
import unicodedata
from collections.abc import Iterable

from claude_mem.index.text.words import parts_of

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

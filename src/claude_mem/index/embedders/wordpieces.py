"""A text as rows of the static model's table: words, then the longest pieces that it knows.

Identifiers come apart as in full text (`words.parts_of`), unless the vocabulary knows them whole.
Punctuation, hashes and blobs say nothing about meaning and are left out. Trained with these very
rules: to change one is to train again.
"""

import re
import unicodedata
from collections.abc import Iterable

from claude_mem.index.text.words import parts_of

LONGEST_WORD = 40  # beyond it is no word: base64, minified names
MOST_PIECES = 512
LONGEST_TEXT = 20_000  # of which the first MOST_PIECES count
CONTINUED = "##"
REMEMBERED = 50_000

_WORD = re.compile(r"[^\W_]+")
_HASH = re.compile(r"(?=[a-zA-Z]*\d)[0-9a-fA-F]{7,}")
_MARKS = re.compile("[\u0300-\u036f]+")
_CJK = re.compile("([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")


class Wordpieces:
    def __init__(self, vocabulary: Iterable[str]) -> None:
        self._rows = {piece: row for row, piece in enumerate(vocabulary)}
        self._known: dict[str, tuple[int, ...]] = {}

    def rows(self, text: str) -> list[int]:
        known = self._known
        found: list[int] = []
        for word in _WORD.findall(_plain(text[:LONGEST_TEXT])):
            pieces = known.get(word)
            if pieces is None:
                pieces = self._learn(word)
            found += pieces
            if len(found) >= MOST_PIECES:
                return found[:MOST_PIECES]
        return found

    def _learn(self, word: str) -> tuple[int, ...]:
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        pieces = self._known[word] = tuple(
            row for part in self._parts(word) for row in self._longest_pieces(part)
        )
        return pieces

    def _parts(self, word: str) -> list[str]:
        if len(word) > LONGEST_WORD or _HASH.fullmatch(word):
            return []
        lowered = word.lower()
        if lowered in self._rows:
            return [lowered]
        return [part.lower() for part in _joined(parts_of(word))] or [lowered]

    def _longest_pieces(self, word: str) -> list[int]:
        """Nothing where a piece is missing: half a word may mean anything."""
        found: list[int] = []
        at = 0
        while at < len(word):
            for end in range(len(word), at, -1):
                row = self._rows.get((CONTINUED if at else "") + word[at:end])
                if row is not None:
                    found.append(row)
                    at = end
                    break
            else:
                return []
        return found


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

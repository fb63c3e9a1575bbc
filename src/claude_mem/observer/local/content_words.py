"""The words of a text by which two texts say the same."""

import re
import string
from collections.abc import Set
from itertools import chain

from claude_mem.word_runs import as_plain_ascii

_COMMON = (
    "a about after all also an and any are as at be been before both but by can could did do does"
    " each for from had has have how i if in into is it its just like made make may more most much"
    " must my new no not now of on one only or other our out over own same so some such than that"
    " the their them then there these they this those to too up us use used uses using very was we"
    " were what when where which while who why will with would you your"
)
COMMON = frozenset(_COMMON.split())
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
# For `bytes.translate`: what cannot be in a word becomes a space.
_WORD_CHARACTERS = bytes(
    code if chr(code) in string.ascii_lowercase + string.digits + "'-" else ord(" ")
    for code in range(256)
)
_WITHOUT_SPACES = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")


def content_words(text: str) -> frozenset[str]:
    """All words but common ones; in scripts without spaces, all pairs of characters."""
    lowered = text.lower()
    words = _words(lowered)
    if not lowered.isascii() and _WITHOUT_SPACES.search(lowered):
        words += [
            lowered[match.start() : match.start() + 2]
            for match in _WITHOUT_SPACES.finditer(lowered)
        ]
    return frozenset(words) - COMMON


def _words(lowered: str) -> list[str]:
    """Splits a text into words, by the pattern only where it is needed: it takes twice the time."""
    plain = as_plain_ascii(lowered)
    if plain is None or "’" in lowered:
        return _WORD.findall(lowered)
    words = plain.translate(_WORD_CHARACTERS).decode("ascii").split()
    if "'" not in lowered and "-" not in lowered:
        return words
    parts = (_WORD.findall(word) if "-" in word or "'" in word else (word,) for word in words)
    return list(chain.from_iterable(parts))


def novelty(words: Set[str], previous: Set[str]) -> float:
    """The share of words that are not among the previous ones."""
    return len(words - previous) / len(words) if words else 0.0

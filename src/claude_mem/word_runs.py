"""Runs of words as short hashes, to recognise text that was copied without keeping it.

Four words in a row, of which two are longer than three letters, are a run. Compatibility forms,
case, punctuation and format characters make no difference; letters of scripts without spaces are
words.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Set
from hashlib import blake2b

LENGTH = 4
_WORD = re.compile(
    r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)
_FORMAT_CHARACTERS = re.compile(  # the Unicode category Cf
    "[\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]+"
)


def words_of(text: str) -> list[str]:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _FORMAT_CHARACTERS.sub("", text))
    return _WORD.findall(text.lower())


def runs_of(text: str) -> Iterator[str]:
    """Each as its words, separated by spaces."""
    words = words_of(text)
    is_long = [len(word) > 3 or not word.isascii() for word in words]
    for start in range(len(words) - LENGTH + 1):
        if sum(is_long[start : start + LENGTH]) > 1:
            yield " ".join(words[start : start + LENGTH])


class RunFinder:
    """Finds certain runs in texts without making all runs of these: in a long text, few words are
    the first word of one of them."""

    def __init__(self, runs: Iterable[str]) -> None:
        self._runs = frozenset(runs)
        self._first_words = frozenset(run.partition(" ")[0] for run in self._runs)

    def find(self, text: str) -> Set[str]:
        words = words_of(text)
        if self._first_words.isdisjoint(words):
            return frozenset()
        starts = [start for start, word in enumerate(words) if word in self._first_words]
        return self._runs.intersection(" ".join(words[at : at + LENGTH]) for at in starts)


def hash_run(run: str) -> str:
    return blake2b(run.encode("utf-8", "replace"), digest_size=5).hexdigest()


def has_run(text: str, hashes: frozenset[str]) -> bool:
    return bool(hashes) and any(hash_run(run) in hashes for run in runs_of(text))


def hashes_of(runs: Iterable[str], limit: int) -> tuple[str, ...]:
    """At most `limit`, each once, in order."""
    hashes: dict[str, None] = {}
    for run in runs:
        if len(hashes) == limit:
            break
        hashes[hash_run(run)] = None
    return tuple(hashes)

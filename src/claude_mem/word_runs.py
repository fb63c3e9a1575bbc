"""Runs of words as short hashes, to recognise text that was copied without keeping it.

Four words in a row, of which two are longer than three letters, are a run. Compatibility forms,
case, punctuation and format characters make no difference; letters of scripts without spaces are
words.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from hashlib import blake2b

LENGTH = 4
_WORD = re.compile(
    r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)


def words_of(text: str) -> list[str]:
    if not text.isascii():
        visible = (c for c in text if unicodedata.category(c) != "Cf")
        text = unicodedata.normalize("NFKC", "".join(visible))
    return _WORD.findall(text.lower())


def runs_of(text: str) -> Iterator[str]:
    """Each as its words, separated by spaces."""
    words = words_of(text)
    for start in range(len(words) - LENGTH + 1):
        run = words[start : start + LENGTH]
        if sum(len(word) > 3 or not word.isascii() for word in run) > 1:
            yield " ".join(run)


def hash_run(run: str) -> str:
    return blake2b(run.encode("utf-8", "replace"), digest_size=5).hexdigest()


def has_run(text: str, hashes: frozenset[str]) -> bool:
    return bool(hashes) and any(hash_run(run) in hashes for run in runs_of(text))


def hashes_of(runs: Iterable[str], limit: int) -> tuple[str, ...]:
    """At most `limit`, each once, in order."""
    return tuple(dict.fromkeys(map(hash_run, runs)))[:limit]

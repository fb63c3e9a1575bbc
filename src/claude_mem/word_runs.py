"""Runs of words as short hashes, to recognise text that was copied without keeping it.

Four words in a row, of which two are longer than three letters, are a run. Compatibility forms,
case, punctuation, format characters and formats (`plain_words`) make no difference; letters of
scripts without spaces are words.
"""

import re
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Set
from functools import lru_cache
from hashlib import blake2b
from itertools import compress
from operator import add
from zlib import crc32

from claude_mem.plain_words import without_formats

LENGTH = 4
OUTSIDE_MARK = " [outside]"  # after a line that has words from outside, wherever one is shown
ALL_WORDS = "*"  # instead of hashes: all words of a text are from outside
Run = tuple[str, str, str, str]
_WORD = re.compile(
    r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)
_FORMAT_CHARACTERS = re.compile(  # the Unicode category Cf
    "[\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]+"
)
# For `bytes.translate`: words in lower case, everything else becomes a space.
_ASCII_WORDS = bytes(
    ord(chr(code).lower()) if chr(code).isalnum() or chr(code) == "_" else ord(" ")
    for code in range(128)
).ljust(256)


# Punctuation that agents write in English, too.
_PUNCTUATION = frozenset("—→…✅·–│━✓←❌≈↔≥≤✗─•“”‘’")
_ASCII = bytes(range(128))
_SHORTEST_RUN = 13  # characters, of ASCII: two words of four letters, two of one
_BETWEEN_TEXTS = " __end_of_text__ "  # a word, so that no run goes from one text into the next


def ascii_words(text: str) -> list[str] | None:
    """Runs of letters, digits and underscores, in lower case; None where the text has letters or
    rare characters beyond ASCII. Several times as fast as a pattern."""
    plain = as_plain_ascii(text)
    return None if plain is None else plain.translate(_ASCII_WORDS).decode("ascii").split()


def as_plain_ascii(text: str) -> bytes | None:
    """What is beyond ASCII becomes a question mark, for `bytes.translate`; None where some of it
    does not separate words."""
    if not text.isascii():
        rest = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
        beyond = _PUNCTUATION.union(rest.decode("utf-8", "surrogatepass"))
        if len(beyond) > len(_PUNCTUATION) and not all(map(_separates, beyond)):
            return None
    return text.encode("ascii", "replace")


@lru_cache(maxsize=1024)
def _separates(character: str) -> bool:
    """Whether words end at it, whatever is around it: a symbol, a line of a box, an emoji."""
    normalised = unicodedata.normalize("NFKC", character)
    return (
        not _WORD.search(character + normalised)
        and not _FORMAT_CHARACTERS.match(character)
        and not any(map(unicodedata.combining, character + normalised))
    )


def words_of(text: str) -> list[str]:
    text = without_formats(text)
    words = ascii_words(text)
    if words is not None:
        return words
    text = unicodedata.normalize("NFKC", _FORMAT_CHARACTERS.sub("", text))
    return _WORD.findall(text.lower())


def runs_of(text: str) -> Iterator[Run]:
    words = words_of(text)
    if "".join(words).isascii():
        is_long = list(map((3).__lt__, map(len, words)))
    else:
        is_long = [len(word) > 3 or not word.isascii() for word in words]
    # The sums of two neighbours, and of two of these: without a loop in Python.
    pairs = list(map(add, is_long, is_long[1:]))
    counts = map(add, pairs, pairs[2:])
    return compress(_sequences(words), map((1).__lt__, counts))


def four_word_sequences(text: str) -> Iterator[Run]:
    """Gives the sequences, also those that are too short to be runs, in half the time."""
    return _sequences(words_of(text))


def is_run(words: Run) -> bool:
    return sum(len(word) > 3 or not word.isascii() for word in words) > 1


def _sequences(words: list[str]) -> Iterator[Run]:
    return zip(words, words[1:], words[2:], words[3:], strict=False)


class RunFinder:
    """Finds certain runs in texts."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = frozenset(runs)
        self._results: dict[str, Set[Run]] = {}  # paths and commands come again and again

    def find_in(self, texts: Iterable[str]) -> Set[Run]:
        """Finds runs in any of the texts; one search of all is faster than a search of each."""
        return self.find(_BETWEEN_TEXTS.join(texts))

    def find(self, text: str) -> Set[Run]:
        if len(text) < _SHORTEST_RUN and text.isascii():
            return frozenset()
        result = self._results.get(text)
        if result is None:
            # Neither tuples nor strings are made for sequences that are none of the runs.
            result = self._results[text] = self._runs.intersection(_sequences(words_of(text)))
        return result


def hash_run(run: Run) -> str:
    return blake2b(" ".join(run).encode("utf-8", "replace"), digest_size=5).hexdigest()


def checksums_of(texts: Iterable[str]) -> bytes:
    """Returns the checksums of all runs of the texts, as one: 32 bits each."""
    return array(
        "I", {crc32(" ".join(run).encode("utf-8", "replace")) for run in runs_of("\n".join(texts))}
    ).tobytes()


class Checksums:
    """Checksums of runs whose texts are not kept."""

    def __init__(self, packed: Iterable[bytes]) -> None:
        self._checksums: set[int] = set()
        for data in packed:
            self._checksums.update(array("I", data[: len(data) & ~3]))

    def find(self, sequences: Iterable[Run]) -> Set[Run]:
        if not self._checksums:
            return frozenset()
        return {
            words
            for words in sequences
            if crc32(" ".join(words).encode("utf-8", "replace")) in self._checksums
            and is_run(words)
        }


def has_run(text: str, hashes: frozenset[str]) -> bool:
    if ALL_WORDS in hashes:
        return bool(text.strip())
    return bool(hashes) and any(hash_run(run) in hashes for run in runs_of(text))


def has_run_of(text: str, hashes: str) -> bool:
    """The same, of hashes that are separated by spaces: faster than a set of them, for one text."""
    if hashes == ALL_WORDS:
        return bool(text.strip())
    return bool(hashes) and not {hash_run(run) for run in runs_of(text)}.isdisjoint(hashes.split())


def hashes_of(runs: Iterable[Run], limit: int) -> tuple[str, ...]:
    """Returns at most `limit` hashes, each once, in order."""
    hashes: dict[str, None] = {}
    for run in runs:
        if len(hashes) == limit:
            break
        hashes[hash_run(run)] = None
    return tuple(hashes)

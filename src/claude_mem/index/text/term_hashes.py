"""The terms of a text as hashes: whether a passage holds a word, without its text."""

import sys
from array import array
from zlib import crc32

from claude_mem.index.text.words import (
    MAX_CACHED,
    grams,
    is_unspaced,
    parts_of,
    pieces,
    plain_text,
    stem,
    stems,
)

_hashes: dict[str, tuple[int, ...]] = {}  # of the terms of words that were indexed lately


def hashed_terms(text: str) -> bytes:
    """The stems of a text, each as 16 bits: whether a passage holds a word, without its text."""
    words = set(pieces(plain_text(text)))
    stems(part for word in words.difference(_hashes) for part in _forms(word))
    if len(_hashes) > MAX_CACHED:
        _hashes.clear()
    hashes: set[int] = set()
    for word in words:
        of_word = _hashes.get(word)
        if of_word is None:
            of_word = _hashes[word] = tuple(map(_hash, _terms_of_word(word)))
        hashes.update(of_word)
    return array("H", sorted(hashes)).tobytes()


def hashed(term: str) -> bytes:
    return _hash(term).to_bytes(2, sys.byteorder)


def holds_term(terms: bytes, term_hash: bytes) -> bool:
    """Whether a passage with these hashed terms holds a term."""
    at = terms.find(term_hash)
    while at > 0 and at % 2:  # between two hashes
        at = terms.find(term_hash, at + 1)
    return at >= 0


def terms_of(text: str) -> set[str]:
    return {term for word in set(pieces(plain_text(text))) for term in _terms_of_word(word)}


def _terms_of_word(word: str) -> list[str]:
    return grams(word) if is_unspaced(word) else [stem(form) for form in _forms(word)]


def _forms(word: str) -> list[str]:
    """A word and the words within it, in lower case."""
    if is_unspaced(word):
        return []
    return [word.lower(), *(part.lower() for part in parts_of(word) if len(part) > 1)]


def _hash(term: str) -> int:
    return crc32(term.encode("utf-8", "replace")) & 0xFFFF

"""The words of a text for full text; memories and queries are split by the same rules.

FTS5 itself splits at everything but letters and digits (`snake_case`, paths, versions, flags) and
stems English. What it cannot do is added here as extra words: the parts of `useEvaluationApi` and
`TS2345`, and pairs of characters for scripts that are written without spaces.
"""

import re
import sqlite3
import threading
import unicodedata
from collections.abc import Iterable
from itertools import pairwise

# Marks are parts of words in many scripts; without them FTS5 would break Hindi at every vowel.
TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
MAX_TEXT = 100_000
MAX_EXTRAS = 5_000
MAX_STEMMED = 64  # porter does not stem longer ones
MAX_CACHED = 50_000

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
# Marks of Hebrew, Arabic and the scripts of India belong to the letter before.
_WORD = re.compile(
    "[^\\W_](?:[^\\W_]|[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0dff])*"
)
_HASH = re.compile(r"[0-9a-fA-F]{7,}")
_COMPOUND = re.compile(  # words that may have parts: one search of the text, not one of each word
    r"(?<![^\W_])[A-Za-z0-9]*?(?:[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Za-z][0-9]|[0-9][A-Za-z])[A-Za-z0-9]*"
    r"(?![^\W_])"
)
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_SYMBOLS = re.compile(r"(?i)(?<![^\W_])([cf])(\+\+|#)(?![^\W_])")
_SPOKEN = {"++": "plusplus", "#": "sharp"}
_UNSAFE = re.compile("[\x00-\x1f\ud800-\udfff]")  # SQLite ends a text at NUL, and has no surrogates


def searchable(text: str | None) -> str:
    """The text as it is indexed."""
    if not text:
        return ""
    plain = plain_text(text[:MAX_TEXT])
    extras = dict.fromkeys(
        extra for word in _COMPOUND.findall(plain) for extra in _extras(word)
    ) | dict.fromkeys(spoken_symbols(plain))
    spaced = _UNSPACED.sub(lambda run: f" {' '.join(grams(run[0]))} ", plain)
    return " ".join((spaced, *list(extras)[:MAX_EXTRAS])) if extras else spaced


def word_count(indexed: str) -> int:
    """Counts the words of a text as it is indexed: as many as FTS5 finds, but for rare scripts."""
    return len(_WORD.findall(indexed))


def plain_text(text: str) -> str:
    """Writes what looks the same in one form, without what SQLite cannot store."""
    return unicodedata.normalize("NFKC", _UNSAFE.sub(" ", text))


def parts_of(word: str) -> list[str]:
    """The words within an identifier; none for a single word or a hash."""
    if not word.isascii() or _HASH.fullmatch(word):
        return []
    parts = _PART.findall(word)
    single = sum(len(part) == 1 for part in parts)
    if len(parts) < 2 or single * 2 > len(parts):
        return []
    return parts


def _extras(word: str) -> list[str]:
    parts = parts_of(word)
    if not parts:
        return []
    joined = [a + b for a, b in pairwise(parts) if len(a) == 1]  # OAuth, iPhone
    return [" ".join(parts), *joined]


def spoken_symbols(text: str) -> list[str]:
    """Spells the symbols of C++ and C#, which FTS5 would index as c."""
    return [letter + _SPOKEN[symbol] for letter, symbol in _SYMBOLS.findall(text)]


def grams(run: str) -> list[str]:
    """Pairs, and the last character alone, so that every character begins a word."""
    return [*(run[at : at + 2] for at in range(len(run) - 1)), run[-1]]


def pieces(text: str) -> list[str]:
    """The words of a plain text, with runs of unspaced script as words of their own."""
    words: list[str] = []
    at = 0
    for run in _UNSPACED.finditer(text):
        words += _WORD.findall(text[at : run.start()])
        words.append(run[0])
        at = run.end()
    return words + _WORD.findall(text[at:])


def is_unspaced(piece: str) -> bool:
    return _UNSPACED.fullmatch(piece) is not None


def spaced_text(text: str) -> str:
    """Removes the runs of unspaced script."""
    return _UNSPACED.sub(" ", text)


class _Stemmer:
    """A stemmer that uses FTS5's own tokenizer, so that the stems are those of the index."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False
        )
        self._connection.execute(
            "CREATE VIRTUAL TABLE words USING"
            f" fts5(word, content='', columnsize=0, tokenize=\"{TOKENIZER}\")"
        )
        self._connection.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(words, instance)")

    def stems(self, words: list[str]) -> dict[str, str]:
        """Stems all words at once: a statement costs more than the stemming of a word."""
        with self._lock:
            self._connection.execute("BEGIN")
            try:
                self._connection.executemany(
                    "INSERT INTO words (rowid, word) VALUES (?, ?)", list(enumerate(words))
                )
                rows = self._connection.execute(
                    "SELECT doc, term FROM stems WHERE offset = 0"
                ).fetchall()
            finally:
                self._connection.execute("ROLLBACK")
        return {word: word for word in words} | {words[number]: term for number, term in rows}


_stemmer: _Stemmer | None = None
_stems: dict[str, str] = {}


def stem(word: str) -> str:
    known = _stems.get(word)
    return known if known is not None else stems([word])[word]


def stems(words: Iterable[str]) -> dict[str, str]:
    global _stemmer
    if _stemmer is None:
        _stemmer = _Stemmer()
    requested = list(dict.fromkeys(words))
    known = {word: _stems.get(word) or word for word in requested}
    missing = [word for word in requested if word not in _stems and len(word) <= MAX_STEMMED]
    if missing:
        new = _stemmer.stems(missing)
        if len(_stems) > MAX_CACHED:
            _stems.clear()
        _stems.update(new)
        known |= new
    return known

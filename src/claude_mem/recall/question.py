"""A question as it is looked up: words of which any may match, phrases that must, words that may
not. Any text is one; what means nothing to the index is left out."""

import re
from dataclasses import dataclass, replace
from datetime import datetime

from claude_mem.index.text.matches import phrase
from claude_mem.index.text.words import (
    grams,
    is_unspaced,
    parts_of,
    pieces,
    plain_text,
    spoken_symbols,
)
from claude_mem.recall.times import Occasion, Span, read_times

LONGEST = 20_000
MOST_WORDS = 64
LONGEST_NAME = 16  # words of a path or a dotted name
LONGEST_UNSPACED_WORD = 3
SENTENCE = 3  # words

_QUOTED = re.compile(r'(-?)"([^"]*)"')
_APOSTROPHE = re.compile(r"(?<=\w)['’](?:s|t|re|ve|ll|d|m)\b", re.IGNORECASE)

_COMMON = """a about above after again against all also am an and any are aren as at be because been
before being below between both but by can cannot could couldn d did didn do does doesn doing don
down during each few for from further had hadn has hasn have haven having he her here hers herself
him himself his how i if in into is isn it its itself just ll m me more most my myself no nor not of
off on once only or other our ours ourselves out over own re s same she should so some such t than
that the their theirs them themselves then there these they this those through to too under until
up us ve very was wasn we were weren what when where which while who whom why will with won would
you your yours yourself"""
STOP_WORDS = frozenset(_COMMON.split())


@dataclass(frozen=True, slots=True)
class Word:
    """Something that was asked for, in all the ways that it may be written."""

    forms: tuple[str, ...]  # as FTS5 strings
    pieces: tuple[str, ...]  # in small letters
    is_time: bool = False
    is_part: bool = False  # of another: a path is one word to whoever asks


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    words: tuple[Word, ...] = ()
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    occasions: tuple[Occasion, ...] = ()  # whose time is not known yet

    @property
    def is_empty(self) -> bool:
        return not (self.words or self.phrases)

    @property
    def is_sentence(self) -> bool:
        """Whoever gives a keyword, a name or a phrase wants all that holds it, and nothing else; a
        sentence wants its answer, which may stand beside what it was found by."""
        if self.phrases or self.excluded:
            return False
        return sum(not word.is_part for word in self.words) >= SENTENCE


def read_question(text: str, now: datetime) -> Question:
    plain = plain_text(text[:LONGEST])
    times = read_times(plain, now)
    phrases: list[str] = []
    excluded: list[str] = []
    for dash, quoted in _QUOTED.findall(plain):
        if known := phrase(quoted):
            (excluded if dash else phrases).append(known)
    rest = _APOSTROPHE.sub("", _QUOTED.sub(" ", plain))
    chunks: list[str] = []
    for chunk in rest.split():
        if _excludes(chunk):
            excluded.append(phrase(chunk[1:]))
        else:
            chunks.append(chunk)
    said = frozenset(piece.lower() for time in times.texts for piece in pieces(time))
    words = _without_times(_words(chunks), said) if said else _words(chunks)
    without = tuple(dict.fromkeys(excluded))
    return Question(plain, words, tuple(phrases), without, times.spans, times.occasions)


def _without_times(words: tuple[Word, ...], said: frozenset[str]) -> tuple[Word, ...]:
    """Marks those that only say when, unless nothing else is asked."""
    marked = tuple(replace(word, is_time=said.issuperset(word.pieces)) for word in words)
    return words if all(word.is_time for word in marked) else marked


def telling_forms(text: str) -> list[str]:
    """The words of a text that are not stop words, as FTS5 strings."""
    return [form for word in _words(text.split()) for form in word.forms[:1]]


def _excludes(chunk: str) -> bool:
    """`-word`; but `--force` is a flag, and a lone dash is nothing."""
    return chunk[0] == "-" and chunk[1:2].isalnum() and bool(phrase(chunk[1:]))


def _words(chunks: list[str]) -> tuple[Word, ...]:
    """Without stop words, unless there is nothing else."""
    found: dict[tuple[str, ...], Word] = {}  # by their pieces: letters may be large or small
    for chunk in chunks:
        for word in _words_of(chunk):
            found.setdefault(word.pieces, word)
    telling = [word for word in found.values() if not STOP_WORDS.issuperset(word.pieces)]
    return tuple((telling or list(found.values()))[:MOST_WORDS])


def _words_of(chunk: str) -> list[Word]:
    """Each word of it, and all of them together where it is a path, a name or a version."""
    split = pieces(chunk)
    words = [word for piece in split for word in _words_of_piece(piece)]
    words += [_part(spoken) for spoken in spoken_symbols(chunk)]
    if not 1 < len(split) <= LONGEST_NAME:
        return words
    whole = Word((phrase(chunk),), tuple(piece.lower() for piece in split))
    return [whole, *(replace(word, is_part=True) for word in words)]


def _words_of_piece(piece: str) -> list[Word]:
    if is_unspaced(piece):
        whole = Word((phrase(piece),), (piece,))
        if len(piece) <= LONGEST_UNSPACED_WORD:
            return [whole]
        # Nobody set its words apart: any two characters may be one.
        return [whole, *(Word((phrase(pair),), (pair,)) for pair in grams(piece)[:-1])]
    parts = parts_of(piece)
    forms = (phrase(piece), phrase(" ".join(parts))) if parts else (phrase(piece),)
    return [Word(forms, (piece.lower(),)), *(_part(part) for part in parts if len(part) > 1)]


def _part(text: str) -> Word:
    return Word((phrase(text),), (text.lower(),), is_part=True)

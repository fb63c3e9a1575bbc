"""The text of a query as it is looked up: words of which any may match, phrases that must match,
and words that must not. Every text can be parsed; what the index cannot hold is left out."""

import re
from dataclasses import dataclass, replace
from datetime import datetime

from claude_mem.index.text.queries import phrase
from claude_mem.index.text.words import (
    grams,
    is_unspaced,
    parts_of,
    pieces,
    plain_text,
    spoken_symbols,
)
from claude_mem.recall.times import Occasion, Span, read_times

MAX_TEXT = 20_000
MAX_WORDS = 64
MAX_PHRASES = 64  # the time FTS5 takes for a conjunction grows with the square of its phrases
MAX_NAME_WORDS = 16  # of a path or a dotted name
MAX_UNSPACED_WORD = 3
SENTENCE_WORDS = 3

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
    """A word of the text, in all the ways in which the index may hold it."""

    forms: tuple[str, ...]  # as FTS5 strings
    pieces: tuple[str, ...]  # in lower case
    is_time: bool = False
    is_part: bool = False  # of another word: a path is one word to the user


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    text: str
    words: tuple[Word, ...] = ()
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    occasions: tuple[Occasion, ...] = ()  # whose time must be looked up

    @property
    def is_empty(self) -> bool:
        return not (self.words or self.phrases)

    @property
    def is_sentence(self) -> bool:
        """A keyword, a name or a phrase asks for everything that holds it and nothing else; a
        sentence asks for its answer, which may be the neighbour of what matches."""
        if self.phrases or self.excluded:
            return False
        return sum(not word.is_part for word in self.words) >= SENTENCE_WORDS


def parse_query(text: str, now: datetime) -> ParsedQuery:
    plain = plain_text(text[:MAX_TEXT])
    times = read_times(plain, now)
    phrases: list[str] = []
    excluded: list[str] = []
    for dash, quoted in _QUOTED.findall(plain):
        if expression := phrase(quoted):
            (excluded if dash else phrases).append(expression)
    unquoted = _APOSTROPHE.sub("", _QUOTED.sub(" ", plain))
    chunks: list[str] = []
    for chunk in unquoted.split():
        if _is_exclusion(chunk):
            excluded.append(phrase(chunk[1:]))
        else:
            chunks.append(chunk)
    time_pieces = frozenset(piece.lower() for time in times.texts for piece in pieces(time))
    words = _mark_times(_words(chunks), time_pieces) if time_pieces else _words(chunks)
    return ParsedQuery(
        plain,
        words,
        tuple(dict.fromkeys(phrases))[:MAX_PHRASES],
        tuple(dict.fromkeys(excluded)),
        times.spans,
        times.occasions,
    )


def _mark_times(words: tuple[Word, ...], time_pieces: frozenset[str]) -> tuple[Word, ...]:
    """Marks the words that only name a time, unless all of them do."""
    marked = tuple(replace(word, is_time=time_pieces.issuperset(word.pieces)) for word in words)
    return words if all(word.is_time for word in marked) else marked


def content_word_forms(text: str) -> list[str]:
    """The words of a text that are not stop words, as FTS5 strings."""
    return [form for word in _words(text.split()) for form in word.forms[:1]]


def _is_exclusion(chunk: str) -> bool:
    """`-word`; but `--force` is a flag, and a lone dash is nothing."""
    return chunk[0] == "-" and chunk[1:2].isalnum() and bool(phrase(chunk[1:]))


def _words(chunks: list[str]) -> tuple[Word, ...]:
    """Without stop words, unless there is nothing else."""
    words: dict[tuple[str, ...], Word] = {}  # by their pieces, which ignore case
    for chunk in chunks:
        for word in _words_of(chunk):
            words.setdefault(word.pieces, word)
    content = [word for word in words.values() if not STOP_WORDS.issuperset(word.pieces)]
    return tuple((content or list(words.values()))[:MAX_WORDS])


def _words_of(chunk: str) -> list[Word]:
    """Each word of a chunk, and all of them as one where it is a path, a name or a version."""
    split = pieces(chunk)
    words = [word for piece in split for word in _words_of_piece(piece)]
    words += [_part(spoken) for spoken in spoken_symbols(chunk)]
    if not 1 < len(split) <= MAX_NAME_WORDS:
        return words
    name = Word((phrase(chunk),), tuple(piece.lower() for piece in split))
    return [name, *(replace(word, is_part=True) for word in words)]


def _words_of_piece(piece: str) -> list[Word]:
    if is_unspaced(piece):
        run = Word((phrase(piece),), (piece,))
        if len(piece) <= MAX_UNSPACED_WORD:
            return [run]
        # Its words are not separated: any two characters may be one.
        return [run, *(Word((phrase(pair),), (pair,)) for pair in grams(piece)[:-1])]
    parts = parts_of(piece)
    forms = (phrase(piece), phrase(" ".join(parts))) if parts else (phrase(piece),)
    return [Word(forms, (piece.lower(),)), *(_part(part) for part in parts if len(part) > 1)]


def _part(text: str) -> Word:
    return Word((phrase(text),), (text.lower(),), is_part=True)

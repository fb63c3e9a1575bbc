"""Which texts a finder must look at.

Each finder says by which words, or parts of words, it finds anything. Most words of a text were
in an earlier one, so it is remembered of a word which of these clues it holds: a text is cut into
its words once, and almost all of them are dropped by one comparison of sets.
"""

import string
from collections.abc import Callable, Iterable, Iterator
from itertools import filterfalse

IN_RUNS = string.ascii_letters + string.digits + "_+=%-"
_IN_WORDS = string.ascii_lowercase + string.digits + "_"
_LONGEST_REMEMBERED, _MOST_REMEMBERED = 48, 32_000  # bytes of a run, runs
_KELVIN = "\u212a"  # the only letter beyond ASCII that is one of ASCII in lower case

_WHOLE = "the word "

# What a run of characters says beyond the parts that it contains.
Judge = Callable[[list[str]], Iterable[tuple[str, str]]]


def _separators(kept: str) -> bytes:
    return bytes(code if code in kept.encode() else ord(" ") for code in range(256))


_BETWEEN_RUNS, _BETWEEN_WORDS = _separators(IN_RUNS), _separators(_IN_WORDS)


def whole(word: str) -> str:
    """The clue that a text has this word, and not only as a part of a longer one."""
    return f"{_WHOLE}{word}"


def longest_piece(text: str) -> str:
    """The longest part of it that is in one run; empty if no character of it is in runs."""
    pieces = text.encode().translate(_BETWEEN_RUNS).split()
    return max(pieces, key=len, default=b"").decode()


class Vocabulary:
    """What is known about runs of the characters of words and tokens."""

    def __init__(self) -> None:
        self._parts: set[bytes] = set()
        self._words: set[bytes] = set()
        self._judges: list[Judge] = []
        self._plain: set[bytes] = set()  # runs without a clue
        self._clues_by_run: dict[bytes, frozenset[str]] = {}

    def add_parts(self, parts: Iterable[str]) -> None:
        """Adds parts in lower case; each is a clue wherever it stands in a run."""
        self._parts.update(part.encode() for part in parts)
        self._forget()

    def add_words(self, words: Iterable[str]) -> None:
        """Adds words in lower case; the clue is `whole` of each."""
        self._words.update(word.encode() for word in words)
        self._forget()

    def add_judge(self, judge: Judge) -> None:
        """It gets runs, and returns those that have prefilter with their prefilter."""
        self._judges.append(judge)
        self._forget()

    def clues(self, text: str) -> set[str]:
        if _KELVIN not in text:
            return self._clues(text)
        parts = {clue for clue in self._clues(text) if not clue.startswith(_WHOLE)}
        return parts | self._clues(text.replace(_KELVIN, "k"))

    def _clues(self, text: str) -> set[str]:
        runs = text.encode("utf-8", "replace").translate(_BETWEEN_RUNS).split()
        clues: set[str] = set()
        fresh: set[bytes] = set()
        for run in filterfalse(self._plain.__contains__, runs):
            known = self._clues_by_run.get(run)
            if known is None:
                fresh.add(run)
            else:
                clues |= known
        if fresh:
            for known in self._learn(list(fresh)):
                clues |= known
        return clues

    def _learn(self, runs: list[bytes]) -> Iterable[frozenset[str]]:
        clues_by_run: dict[bytes, set[str]] = {}
        for run, clue in self._judged(runs):
            clues_by_run.setdefault(run, set()).add(clue)
        if len(self._plain) + len(self._clues_by_run) + len(runs) > _MOST_REMEMBERED:
            self._forget()
        self._plain.update(
            run for run in runs if run not in clues_by_run and len(run) <= _LONGEST_REMEMBERED
        )
        known = {run: frozenset(clues) for run, clues in clues_by_run.items()}
        self._clues_by_run.update(
            (run, clues) for run, clues in known.items() if len(run) <= _LONGEST_REMEMBERED
        )
        return known.values()

    def _judged(self, runs: list[bytes]) -> Iterator[tuple[bytes, str]]:
        """Judges runs by what is found in all of them together: few runs have a clue."""
        joined = b" %b " % b" ".join(runs)
        lowered = joined.lower()
        for part in self._parts:
            if part in lowered:
                yield from ((run, part.decode()) for run in _around(joined, lowered, part))
        spaced = lowered.translate(_BETWEEN_WORDS)
        for word in self._words.intersection(spaced.split()):
            clue = whole(word.decode())
            yield from ((run, clue) for run in _around(joined, spaced, b" %b " % word, 1))
        texts = joined.decode().split()
        for judge in self._judges:
            yield from ((run.encode(), clue) for run, clue in judge(texts))

    def _forget(self) -> None:
        self._plain.clear()
        self._clues_by_run.clear()


def _around(runs: bytes, searched: bytes, part: bytes, margin: int = 0) -> Iterator[bytes]:
    """The runs, between spaces, in which `part` is; its margins may be the spaces around one."""
    place = searched.find(part)
    while place >= 0:
        start = runs.rfind(b" ", 0, place + margin) + 1
        end = runs.find(b" ", place + len(part) - margin)
        yield runs[start:end]
        place = searched.find(part, end - margin)


VOCABULARY = Vocabulary()

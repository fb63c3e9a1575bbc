"""Patterns that are tried only where a word of theirs stands: most text has none of these words."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from claude_mem.redaction.prefilter import VOCABULARY, longest_piece, whole
from claude_mem.redaction.spans import MARK, Span

Accept = Callable[[str], bool]
_WORD = re.compile(r"[a-z0-9_]+")


class Subject:
    """A text that is searched for secrets."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lowered = _lower(text)
        self.clues = VOCABULARY.clues(text)


def _lower(text: str) -> str:
    """Lowers the text without changing its length: places in one are places in the other."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.translate(_ASCII_LOWER)


_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


@dataclass(frozen=True, slots=True)
class Rule:
    kind: str
    word: str  # in lower case; the pattern is tried where it stands
    pattern: re.Pattern[str]
    accept: Accept | None = None  # judges the group `value`, else all that matched
    before: int = 0  # characters before the word at which a match may begin
    whole: bool = False  # the word is never part of a longer one


def rule(
    word: str,
    kind: str,
    *parts: str,
    accept: Accept | None = None,
    before: int = 0,
    whole: bool = False,
) -> Rule:
    return Rule(kind, word, re.compile("".join(parts)), accept, before, whole)


def rules_for(
    words: Iterable[str],
    kind: str,
    *parts: str,
    accept: Accept | None = None,
    whole: bool = False,
) -> tuple[Rule, ...]:
    """The same pattern behind each of several words."""
    return tuple(
        rule(word, kind, "(?i)", re.escape(word), *parts, accept=accept, whole=whole)
        for word in words
    )


# Parts that several words have in common, which are looked for once.
_ROOTS = (
    "auth",
    "pass",
    "sharedaccess",
    "sig",
    "sql",
    "login",
    "identified",
    "cookie",
    "credential",
)
_WINDOW, _LONGEST_MATCH = 4_000, 1_000
_SHORT = 600  # characters of a match that may be looked at again from its next word on


class RuleSet:
    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self._by_clue: dict[str, list[Rule]] = {}
        self._without_clue: list[Rule] = []
        for entry in self.rules:
            if clue := _clue_of(entry):
                self._by_clue.setdefault(clue, []).append(entry)
            else:
                self._without_clue.append(entry)
        self._clues = frozenset(self._by_clue)

    def find(self, subject: Subject) -> Iterator[Span]:
        for clue in self._clues & subject.clues:
            for entry in self._by_clue[clue]:
                yield from _find(entry, subject.text, subject.lowered)
        for entry in self._without_clue:
            yield from _find(entry, subject.text, subject.lowered)


def _clue_of(entry: Rule) -> str:
    if entry.whole:
        word = max(_WORD.findall(entry.word), key=len)
        VOCABULARY.add_words([word])
        return whole(word)
    part = longest_piece(next((root for root in _ROOTS if root in entry.word), entry.word))
    VOCABULARY.add_parts([part] if part else [])
    return part


def _find(entry: Rule, text: str, lowered: str) -> Iterator[Span]:
    place = lowered.find(entry.word)
    while place >= 0:
        following = place + len(entry.word)
        if entry.before:  # windows, each a little over the next
            start, following = max(0, place - entry.before), place + _WINDOW
            for match in entry.pattern.finditer(text, start, following + _LONGEST_MATCH):
                yield from judged(entry, match)
        elif match_here := entry.pattern.match(text, place):
            spans = list(judged(entry, match_here))
            yield from spans
            if spans or match_here.end() - place > _SHORT:
                following = match_here.end()
        place = lowered.find(entry.word, following)


def judged(entry: Rule, match: re.Match[str]) -> Iterator[Span]:
    start, end = match.span("value" if "value" in entry.pattern.groupindex else 0)
    value = match.string[start:end]
    if not value.startswith(MARK) and (entry.accept is None or entry.accept(value)):
        yield Span(start, end, entry.kind)

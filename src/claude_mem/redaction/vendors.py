"""Tokens that issuers give a prefix or a shape of their own.

All prefixes together are one pattern, so that a text is searched once however long the table is.
"""

import re
from collections.abc import Iterator
from functools import cache

from claude_mem.redaction.prefilter import IN_RUNS, VOCABULARY, longest_piece
from claude_mem.redaction.spans import Span
from claude_mem.redaction.values import is_gibberish, looks_random
from claude_mem.redaction.vendor_table import SHAPES, VENDORS, Vendor
from claude_mem.redaction.word_patterns import Subject


def _prefix_pattern(prefixes: list[str]) -> str:
    """The prefixes as a trie, longest first."""
    by_letter: dict[str, list[str]] = {}
    for prefix in prefixes:
        if prefix:
            by_letter.setdefault(prefix[0], []).append(prefix[1:])
    branches = [re.escape(letter) + _prefix_pattern(rest) for letter, rest in by_letter.items()]
    if not branches:
        return ""
    pattern = branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
    return f"(?:{pattern})?" if "" in prefixes else pattern


_BY_PREFIX: dict[str, list[Vendor]] = {}
for _row in VENDORS:
    for _prefix in _row.prefixes:
        _BY_PREFIX.setdefault(_prefix, []).append(_row)
# A token begins where a word begins.
_PREFIXES = _prefix_pattern(list(_BY_PREFIX))
_BOUNDARY = r"(?<![A-Za-z0-9])"
_PREFIX = re.compile(f"{_BOUNDARY}{_PREFIXES}")
# What is long enough for a token; a prefix may end outside of it: sha256~
_CANDIDATE = re.compile(r"[A-Za-z0-9_+=%-]{11,}+")
_CHANCE, _RUN = 5, 60
_BASE64_RUN = re.compile(rf"[A-Za-z0-9+/]{{{_RUN}}}")
_BEYOND = 8  # characters of a prefix that a candidate may end before
_LONGEST_PREFIX = max(map(len, _BY_PREFIX))
_SHORTEST_SHAPE = 18
_DIGIT = re.compile(r"[0-9]")
_BEGINNINGS = frozenset(prefix[:3] for prefix in _BY_PREFIX)
_EXAMPLE = re.compile(r"(?i)example|x{8}|\.{3}|your[_-]")


def _is_candidate(run: str) -> bool:
    """Whether a run may hold a token: inside of a name there is none without a digit."""
    if _DIGIT.search(run) is not None:
        return True
    if run[:3] in _BEGINNINGS:
        return True
    if "=" not in run and "_" not in run:
        return False
    return any(part[:3] in _BEGINNINGS for part in (*run.split("="), *run.split("_")))


def _is_random(body: str) -> bool:
    return looks_random(body) or is_gibberish(body)


def _is_in_base64(text: str, prefix: re.Match[str]) -> bool:
    """Whether a place is somewhere in an image, where short prefixes occur by chance."""
    start = prefix.start()
    if len(prefix[0]) > _CHANCE or text[max(0, start - 1) : start] not in ("+", "/"):
        return False
    return _BASE64_RUN.fullmatch(text, max(0, start - _RUN), start) is not None


def _vendor_span(text: str, prefix: re.Match[str]) -> Span | None:
    for vendor in _BY_PREFIX[prefix[0]]:
        body = vendor.body.match(text, prefix.end())
        if body is None or _EXAMPLE.search(body[0]):
            continue
        if not vendor.is_random or _is_random(body[0]):
            return Span(prefix.start(), body.end(), vendor.kind)
    return None


def find_vendor_tokens(subject: Subject) -> Iterator[Span]:
    clues = subject.clues
    if _HAS_CANDIDATE in clues and _has_prefix(subject):
        yield from _find_prefixed(subject)
    if _HAS_SHAPE in clues:
        yield from _find_shapes(subject)


def _has_prefix(subject: Subject) -> bool:
    """Whether there may be a prefix at all, with what must follow it."""
    if _HAS_PREFIX in subject.clues:
        return True
    split = _SPLIT_PREFIXES & subject.clues
    if _HAS_LONG_RUN not in subject.clues:
        split -= _BEFORE_LONG_RUNS
    return any(_is_in(subject.text, prefix) for prefix in split)


def _is_in(text: str, prefix: str) -> bool:
    place = text.find(prefix)
    while place >= 0 and _PREFIX.match(text, place) is None:
        place = text.find(prefix, place + 1)
    return place >= 0


def _find_prefixed(subject: Subject) -> Iterator[Span]:
    text, done = subject.text, 0
    for candidate in _CANDIDATE.finditer(text):
        if not _is_candidate(candidate[0]):
            continue
        start = max(done, candidate.start() - _LONGEST_PREFIX)
        while (prefix := _PREFIX.search(text, start, candidate.end() + _BEYOND)) is not None:
            if prefix.start() >= candidate.end():
                break  # cut off: the next candidate has it whole
            span = None if _is_in_base64(text, prefix) else _vendor_span(text, prefix)
            start = span.end if span else prefix.end()
            if span:
                done = span.end
                yield span


def _shape_clue(word: str) -> str:
    piece = longest_piece(word)
    return piece if len(piece) > 2 else ""  # shorter ones are in most texts


_SHAPE_CLUES = {word: _shape_clue(word) for _, word, _ in SHAPES}
VOCABULARY.add_parts(filter(None, _SHAPE_CLUES.values()))


def _find_shapes(subject: Subject) -> Iterator[Span]:
    for kind, word, pattern in SHAPES:
        clue = _SHAPE_CLUES[word]
        if (not clue or clue in subject.clues) and word in subject.lowered:
            for match in pattern.finditer(subject.text):
                yield Span(match.start(), match.end(), kind)


# The clues: by what a run of characters can be a token, or the prefix of one

_HAS_CANDIDATE, _HAS_SHAPE = "a candidate", "a long candidate with a digit"
_HAS_PREFIX, _HAS_LONG_RUN = "a prefix", "a long run"
_LONG_RUN = 20
_SHORTEST_CANDIDATE = 11
_RUN_CHARACTERS = frozenset(IN_RUNS)
_SPLIT_PREFIXES = frozenset(
    prefix for prefix in _BY_PREFIX if not _RUN_CHARACTERS.issuperset(prefix)
)
_REPEATED = re.compile(r"(\[[\w%+=-]+\])\{(\d+)[,}]")


def _least_following(vendor: Vendor) -> int:
    """How many characters of its run follow the prefix of a token at least."""
    beginning = _REPEATED.match(vendor.body.pattern)
    return int(beginning[2]) if beginning and _is_in_runs(beginning[1]) else 0


@cache
def _is_in_runs(characters: str) -> bool:
    others = (chr(code) for code in range(128) if chr(code) not in _RUN_CHARACTERS)
    return not any(map(re.compile(characters).match, others))


_FOLLOWING = {prefix: min(map(_least_following, vendors)) for prefix, vendors in _BY_PREFIX.items()}
_BEFORE_LONG_RUNS = frozenset(
    prefix for prefix in _SPLIT_PREFIXES if _FOLLOWING[prefix] >= _LONG_RUN
)
_PREFIX_IN_RUNS = re.compile(rf"{_BOUNDARY}(?=(?P<prefix>{_PREFIXES}))")


def _by_piece(*, is_first: bool) -> dict[str, list[str]]:
    """Prefixes of several runs by their longest piece: the first ends a run, others begin one."""
    pieces: dict[str, list[str]] = {}
    for prefix in _SPLIT_PREFIXES:
        piece = longest_piece(prefix)
        if prefix.startswith(piece) is is_first:
            pieces.setdefault(piece, []).append(prefix)
    return pieces


_BY_FIRST, _BY_OTHER = _by_piece(is_first=True), _by_piece(is_first=False)
_PIECE_IN_RUNS = re.compile(
    rf"{_BOUNDARY}(?P<first>{_prefix_pattern(list(_BY_FIRST))})(?= )"
    rf"|(?<= )(?P<other>{_prefix_pattern(list(_BY_OTHER))})"
)


def _judge_runs(runs: list[str]) -> Iterator[tuple[str, str]]:
    for run in runs:
        if len(run) >= _SHORTEST_CANDIDATE and _is_candidate(run):
            yield run, _HAS_CANDIDATE
            if len(run) >= _SHORTEST_SHAPE and _DIGIT.search(run):
                yield run, _HAS_SHAPE
        if len(run) >= _LONG_RUN:
            yield run, _HAS_LONG_RUN
    joined = f" {' '.join(runs)} "
    yield from _with_prefix(joined)
    yield from _with_piece(joined)


def _with_prefix(runs: str) -> Iterator[tuple[str, str]]:
    """Gives the runs in which a prefix is followed by as much as its tokens need."""
    match = _PREFIX_IN_RUNS.search(runs)
    while match is not None:
        start, behind = match.start(), match.end("prefix")
        position = start + 1
        if runs.find(" ", behind, behind + _FOLLOWING[match["prefix"]]) < 0:
            end = position = runs.find(" ", behind)
            yield runs[runs.rfind(" ", 0, start + 1) + 1 : end], _HAS_PREFIX
        match = _PREFIX_IN_RUNS.search(runs, position)


def _with_piece(runs: str) -> Iterator[tuple[str, str]]:
    for match in _PIECE_IN_RUNS.finditer(runs):
        start, end = runs.rfind(" ", 0, match.start() + 1) + 1, runs.find(" ", match.end())
        for prefix in _BY_FIRST[match["first"]] if match["first"] else _BY_OTHER[match["other"]]:
            yield runs[start:end], prefix


VOCABULARY.add_judge(_judge_runs)

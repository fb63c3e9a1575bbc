"""Tokens that issuers give a prefix or a shape of their own.

All prefixes together are one pattern, so that a text is searched once however long the table is.
"""

import re
from collections.abc import Iterator

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
# A token begins where a word begins, or behind an escape: %3D, \n.
_PREFIX = re.compile(
    rf"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{{2}})|(?<=\\[nrt])){_prefix_pattern(list(_BY_PREFIX))}"
)
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


def _is_random(body: str) -> bool:
    return looks_random(body) or is_gibberish(body)


def _is_in_base64(text: str, prefix: re.Match[str]) -> bool:
    """Somewhere in an image, where short prefixes occur by chance."""
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
    text, done, has_shape = subject.text, 0, False
    for candidate in _CANDIDATE.finditer(text):
        run = candidate[0]
        if not run.isalpha() and _DIGIT.search(run):
            has_shape = has_shape or len(run) >= _SHORTEST_SHAPE
        elif run[:3] not in _BEGINNINGS:
            continue  # a name: inside of one there is no token without a digit
        start = max(done, candidate.start() - _LONGEST_PREFIX)
        while (prefix := _PREFIX.search(text, start, candidate.end() + _BEYOND)) is not None:
            if prefix.start() >= candidate.end():
                break  # cut off: the next candidate has it whole
            span = None if _is_in_base64(text, prefix) else _vendor_span(text, prefix)
            start = span.end if span else prefix.end()
            if span:
                done = span.end
                yield span
    if has_shape:
        yield from _find_shapes(subject)


def _find_shapes(subject: Subject) -> Iterator[Span]:
    for kind, word, pattern in SHAPES:
        if word in subject.lowered:
            for match in pattern.finditer(subject.text):
                yield Span(match.start(), match.end(), kind)

"""Private keys in PEM and in PuTTY's format, whole or cut off at either end."""

import re
from collections.abc import Iterator

from claude_mem.redaction.prefilter import VOCABULARY, whole
from claude_mem.redaction.spans import Span
from claude_mem.redaction.word_patterns import RuleSet, Subject, rule

_PRIVATE = whole("private")
VOCABULARY.add_words(["private"])
_LABEL = r"(?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?"
_BEGIN = re.compile(rf"-----BEGIN {_LABEL}-----|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----")
_END = re.compile(rf"-----END {_LABEL}-----|---- END SSH2 ENCRYPTED PRIVATE KEY ----")
_LINE = re.compile(r"[A-Za-z0-9+/=]{16}")
# Lines of a key, also escaped, quoted, with line numbers or as a diff; then perhaps a shorter one.
_BODY = re.compile(
    r"(?:[\s\"'+>|\\nr,;0-9\u2192-]{0,40}+"
    r"(?:[A-Za-z-]{4,20}: [^\n\\]{1,80}|[A-Za-z0-9+/=]{16,100}))+"
    r"(?:[\s\\nr]{1,8}[A-Za-z0-9+/]{1,64}={1,2})?"
)
_TAIL = re.compile(  # read backwards from the end mark: the last line may be short
    r"(?:\s|[nr]\\){1,8}+[A-Za-z0-9+/=]{1,100}+(?:(?:\s|[nr]\\){1,8}+[A-Za-z0-9+/=]{40,100}+)++"
)
_LONGEST_TAIL = 20_000
PUTTY = RuleSet((
    rule(
        "private-lines",
        "private-key",
        r"(?i)Private-Lines: \d+(?:\s|\\r|\\n)+(?P<value>(?:[A-Za-z0-9+/=]{4,}+(?:\s|\\r|\\n)*+)+)"
        r"(?:Private-MAC: [0-9a-f]+)?",
        whole=True,
    ),
))  # fmt: skip


def find_private_keys(subject: Subject) -> Iterator[Span]:
    yield from PUTTY.find(subject)
    text = subject.text
    if _PRIVATE not in subject.clues or "----" not in text:
        return
    begins = [match.span() for match in _BEGIN.finditer(text)]
    ends = [match.span() for match in _END.finditer(text)]
    spans = list(_from_begin(text, begins, ends))
    yield from spans
    yield from _before_end(text, ends, max((span.end for span in spans), default=0))


def _from_begin(
    text: str, begins: list[tuple[int, int]], ends: list[tuple[int, int]]
) -> Iterator[Span]:
    """Finds what is between marks; where the end is missing, what looks like lines of a key."""
    place = 0
    for number, (start, after) in enumerate(begins):
        following = begins[number + 1][0] if number + 1 < len(begins) else len(text)
        while place < len(ends) and ends[place][0] < after:
            place += 1
        if place < len(ends) and ends[place][0] < following:
            end = ends[place][1] if _LINE.search(text, after, ends[place][0]) else 0
        else:
            body = _BODY.match(text, after, following)
            end = body.end() if body else 0
        if end:
            yield Span(start, end, "private-key")


def _before_end(text: str, ends: list[tuple[int, int]], done: int) -> Iterator[Span]:
    """Finds the lines of a key before an end mark whose begin mark is missing."""
    for number, (start, end) in enumerate(ends):
        least = max(ends[number - 1][1] if number else 0, start - _LONGEST_TAIL)
        tail = _TAIL.match(text[least:start][::-1]) if end > done else None
        if tail is not None:
            yield Span(start - tail.end(), end, "private-key")

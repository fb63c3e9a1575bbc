"""How likely a reader is to understand a title alone, learned from readers' judgements.

A title is read as a row of shapes: common words stay as they are, names, code, numbers and all
other words become their form. Runs of up to three shapes and the signs of `signs.py` have
learned weights; their sum is the logit. So it is judged by how it is built, not by the words of a
project.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise, repeat

from claude_mem.observer.local.titles.signs import signs_of

_TOKEN = re.compile(
    r"`[^`]{0,200}`|--?[a-z][\w-]{1,60}|#\d{1,9}|[A-Za-z_][\w'’.-]{0,100}(?:/[\w.-]{1,100}){0,20}(?:\(\))?"
    r"|\d[\d.,%]{0,20}\w{0,20}|\S"
)
_ENDING = re.compile(r"\w(?:ing|ed|ly|tion|ment|ness|able|ive|al|er|or|ity|es|s)$")
_ENDINGS = (
    "ing", "ed", "ly", "tion", "ment", "ness", "able", "ive", "al", "er", "or", "ity", "es", "s",
)  # fmt: skip
_FILE = re.compile(r"\.\w{1,5}$")
_DOTTED = re.compile(r"\w\.\w")
_TWO_CASES = re.compile(r"[a-z][A-Z]")
MOST_COUNTED_WORDS = 20
START, END = "^", "$"


@dataclass(frozen=True, slots=True)
class Clarity:
    """The learned table."""

    base: int = 0
    words: frozenset[str] = frozenset()  # that are no mere shapes
    weights: Mapping[str, int] = field(default_factory=dict)  # of runs and signs

    def score(self, text: str, source: str) -> float:
        """The logit. `source`: where the text comes from, as `SOURCES` names it.

        In thousandths up to the end: sums of integers do not depend on the order of a set.
        """
        known = known_of(text, source, self.words)
        return (self.base + sum(map(self.weights.get, known, repeat(0)))) / 1000


def known_of(text: str, source: str, words: frozenset[str]) -> set[str]:
    """What is known of a title: its runs of shapes, its length, its source and its signs."""
    shapes = [START, *shapes_of(text, words), END]
    pairs = list(map(" ".join, pairwise(shapes)))
    triples = map(" ".join, zip(pairs, shapes[2:], strict=False))
    count = min(len(text.split()), MOST_COUNTED_WORDS)
    return {
        *shapes[1:-1], *pairs, *triples, f"words {count // 2}", f"from {source}",
        *signs_of(text),
    }  # fmt: skip


def shapes_of(text: str, words: frozenset[str]) -> Iterator[str]:
    tokens = _TOKEN.findall(text)
    for place, token in enumerate(tokens):
        yield _shape_of(token, place == 0, words)


@lru_cache(maxsize=8192)  # the titles of a turn have most of their words in common
def _shape_of(token: str, is_first: bool, words: frozenset[str]) -> str:
    if (shape := _shape_of_name(token)) is not None:
        return shape
    word = plain_word(token)
    lowered = word.lower()
    if lowered in words:
        return lowered
    return "<Proper>" if word[0].isupper() and not is_first else _form_of(lowered)


def plain_words(text: str) -> set[str]:
    """The words of a text that are no names, in lower case."""
    tokens = (token for token in _TOKEN.findall(text) if _shape_of_name(token) is None)
    return {plain_word(token).lower() for token in tokens}


def plain_word(token: str) -> str:
    return token.rstrip(".'’-").replace("’", "'") or token


def _shape_of_name(token: str) -> str | None:
    """None for a plain word."""
    first = token[0]
    if first == "`":
        return _shape_of_code(token[1:-1])
    if len(token) > 1 and first in "#-":
        return "<issue>" if first == "#" else "<option>"
    if first.isdigit():
        return "<number>"
    if not (first.isalpha() or first == "_"):
        return token
    if token.endswith(")"):
        return "<call>"
    if "/" in token or _DOTTED.search(token):
        return "<path>"
    if "_" in token or _TWO_CASES.search(token):
        return "<name>"
    return "<CAPITALS>" if len(token) > 1 and token.isupper() else None


def _shape_of_code(code: str) -> str:
    if " " in code:
        return "<code phrase>"
    if code.endswith(")"):
        return "<call>"
    return "<path>" if "/" in code or _FILE.search(code) else "<code>"


def _form_of(lowered: str) -> str:
    for ending in _ENDINGS if _ENDING.search(lowered) else ():
        if lowered.endswith(ending) and len(lowered) > len(ending) + 2:
            return f"<-{ending}>"
    return "<word>"

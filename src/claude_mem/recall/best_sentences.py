"""The sentences of a turn that say the most about a question.

What a passage is about decides how much it counts (`answers.passage_scores`). Within it, the answer
is mostly in the sentences that name something the question does not: an identifier, a file, an
option, a number, a quoted value.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from claude_mem.recall.tokens import estimate_tokens

MIN_SCORE = 0.4  # of the best sentence's: what scores less is about something else
MOST_PASSAGES = 12  # the best, of which sentences are read
NAMES_BOOST = 0.8  # score * (1 + this) of a sentence with enough new names
ENOUGH_NAMES = 3
SHORTEST = 25  # characters: less is a heading or a number, and belongs to what follows it
SHORTEST_END = 15  # of the last sentence, which nothing follows
MAX_REPEATED = 0.7  # share of its words that a sentence may have in common with those before it
LEAST_LEFT = 8  # tokens for another sentence
MOST_MISSES = 4  # sentences in a row that are too long, or repeat others
GAP = " … "
_SEPARATOR = 2  # tokens of a gap, at most

_BOUNDARY = re.compile(r"(?<=[.!?;])\s+(?=[A-Z`\"(\d#/*-])|\n+")
_NAME = re.compile(
    r"`[^`\n]{2,80}`"  # marked as code
    r"|\b\w*[a-z][A-Z]\w*\b|\b\w+_\w+\b|\b[A-Z]{3,}\w*\b"  # identifiers
    r"|\B--?\w[\w-]+|\b\w+\.\w{2,4}\b"  # options, files
    r"|\b\d{2,}(?:\.\d+)?\b|\b\d\.\d+\b"  # numbers, but not those of a list
)
_WORD = re.compile(r"\w+")


class Sentence(NamedTuple):
    """A sentence of a passage; sentences sort in the order in which they are selected."""

    cost: float  # less its score
    passage: int
    start: int
    end: int
    text: str


def best_sentences(
    passages: Mapping[int, str],
    scores: Mapping[int, float],
    question: str,
    budget: int,
    title: str = "",
    shown_as: Callable[[int], str] | None = None,
) -> dict[int, str]:
    """Returns, by the number of the passage, the best sentences word for word that fit into so many
    tokens, each of which adds something to those before it and to the title. Sentences that do not
    follow each other are separated by `GAP`. `shown_as`: the text of a passage without parts of it;
    for few of them, since it is slow."""
    selected: dict[int, list[Sentence]] = {}
    texts: dict[int, str] = {}
    known = set(_WORD.findall(title.lower()))
    misses = 0
    for sentence in _by_score(
        passages, scores, question.lower(), shown_as or passages.__getitem__, texts
    ):
        words = set(_WORD.findall(sentence.text.lower()))
        tokens = estimate_tokens(sentence.text) + _SEPARATOR
        if tokens <= budget and len(words & known) <= MAX_REPEATED * len(words):
            selected.setdefault(sentence.passage, []).append(sentence)
            known |= words
            budget -= tokens
            misses = 0
        else:
            misses += 1
        if budget < LEAST_LEFT or misses == MOST_MISSES:
            break
    return {number: _joined(texts[number], of) for number, of in selected.items()}


def _by_score(
    passages: Mapping[int, str],
    scores: Mapping[int, float],
    question: str,
    shown_as: Callable[[int], str],
    texts: dict[int, str],
) -> Iterator[Sentence]:
    """Best first. A passage is cut when one of its sentences can be next: none has more names than
    the passage. What it is shown as is added to `texts`."""
    best = sorted(scores, key=lambda number: (-scores[number], number))[:MOST_PASSAGES]
    queue = [
        Sentence(-scores[number] * _factor(passages[number], question), number, -1, 0, "")
        for number in best
    ]
    heapify(queue)
    least = 0.0
    while queue:
        sentence = heappop(queue)
        if -sentence.cost < least:
            return
        if sentence.start >= 0:
            least = least or MIN_SCORE * -sentence.cost
            yield sentence
            continue
        number = sentence.passage
        texts[number] = shown_as(number)
        for start, end in _spans(texts[number]):
            text = texts[number][start:end]
            cost = -scores[number] * _factor(text, question)
            heappush(queue, Sentence(cost, number, start, end, text))


def _factor(sentence: str, question: str) -> float:
    # Most words are plain: the first look spares them the slow pattern.
    unusual = " ".join([w for w in sentence.split() if not (w.isalpha() and w.islower())])
    names = {name.strip("`").lower() for name in _NAME.findall(unusual)}
    new = sum(name not in question for name in names)
    return 1 + NAMES_BOOST * min(1.0, new / ENOUGH_NAMES)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Where sentences and lines begin and end."""
    start = 0
    for boundary in _BOUNDARY.finditer(text):
        if boundary.start() - start >= SHORTEST and len(text) - boundary.end() >= SHORTEST_END:
            yield start, boundary.start()
            start = boundary.end()
    if start < len(text):
        yield start, len(text)


def _joined(text: str, sentences: list[Sentence]) -> str:
    parts: list[str] = []
    end = 0
    for sentence in sorted(sentences, key=lambda s: s.start):
        between = text[end : sentence.start]
        if parts:
            parts.append(GAP if between.strip() else between)
        parts.append(sentence.text)
        end = sentence.end
    return "".join(parts)

"""The sentences of a turn that say the most about a question.

What a passage is about decides how much it counts (`answers.passage_scores`). Within it, the answer
is mostly in the sentences that name something the question does not: an identifier, a file, an
option, a number, a quoted value.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from claude_mem.recall.tokens import estimate_tokens

MIN_SCORE = 0.4  # of the best sentence's: what scores less is about something else
MOST_PASSAGES = 12  # the best, of which sentences are read
NAMES_BOOST = 0.8  # score * (1 + this) of a sentence with enough new names
ENOUGH_NAMES = 3
SHORTEST = 25  # characters: less is a heading or a label, and belongs to what follows it
MAX_REPEATED = 0.7  # share of its words that a sentence may have in common with those before it
LEAST_LEFT = 8  # tokens for another sentence
GAP = " … "
_SEPARATOR = 2  # tokens of a gap, at most

_BOUNDARY = re.compile(r"(?<=[.!?;])\s+(?=[A-Z`\"(\d#/*-])|\n+")
_NAME = re.compile(
    r"`[^`\n]{2,80}`"  # marked as code
    r"|\b\w*[a-z][A-Z]\w*\b|\b\w+_\w+\b|\b[A-Z]{3,}\w*\b"  # identifiers
    r"|\B--?\w[\w-]+|\b\w+\.\w{2,4}\b"  # options, files
    r"|\b\d+(?:\.\d+)?\b"
)
_WORD = re.compile(r"\w+")


class Sentence(NamedTuple):
    passage: int
    start: int
    end: int
    score: float


def best_sentences(
    texts: Mapping[int, str],
    scores: Mapping[int, float],
    question: str,
    budget: int,
    title: str = "",
) -> dict[int, str]:
    """By passage, word for word; the best ones that fit into so many tokens, each of which adds
    something to those before it and to the title. Sentences that do not follow each other are
    separated by `GAP`."""
    selected: dict[int, list[Sentence]] = {}
    known = set(_WORD.findall(title.lower()))
    for sentence in _by_score(texts, scores, question.lower()):
        if budget < LEAST_LEFT:
            break
        text = texts[sentence.passage][sentence.start : sentence.end]
        words = set(_WORD.findall(text.lower()))
        tokens = estimate_tokens(text) + _SEPARATOR
        if tokens <= budget and len(words & known) <= MAX_REPEATED * len(words):
            selected.setdefault(sentence.passage, []).append(sentence)
            known |= words
            budget -= tokens
    return {number: _joined(texts[number], of) for number, of in selected.items()}


def _by_score(
    texts: Mapping[int, str], scores: Mapping[int, float], question: str
) -> list[Sentence]:
    best = sorted(texts, key=lambda number: (-scores[number], number))[:MOST_PASSAGES]
    sentences = [
        Sentence(number, start, end, scores[number] * _factor(texts[number][start:end], question))
        for number in best
        for start, end in _spans(texts[number])
    ]
    sentences.sort(key=lambda s: (-s.score, s.passage, s.start))
    least = MIN_SCORE * sentences[0].score if sentences else 0.0
    return [sentence for sentence in sentences if sentence.score >= least]


def _factor(sentence: str, question: str) -> float:
    names = {name.strip("`").lower() for name in _NAME.findall(sentence)}
    new = sum(name not in question for name in names)
    return 1 + NAMES_BOOST * min(1.0, new / ENOUGH_NAMES)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Where sentences and lines begin and end."""
    start = 0
    for boundary in _BOUNDARY.finditer(text):
        if boundary.start() - start >= SHORTEST:
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
        parts.append(text[sentence.start : sentence.end])
        end = sentence.end
    return "".join(parts)

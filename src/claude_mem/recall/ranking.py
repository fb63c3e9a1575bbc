"""Which memories answer a question best: the one place where that is decided.

Full text gives candidates and a score for each (bm25). Then memories that stand beside each other
in a session lend each other score; longer ones, those whose title the question names, and those
of the time that it speaks of are lifted. Another source of scores (vectors) joins in `_own_scores`.
"""

import math
import sqlite3
from collections import defaultdict
from dataclasses import dataclass, replace

from claude_mem.index import full_text, matches
from claude_mem.index.matches import Filters, Match
from claude_mem.index.words import stem
from claude_mem.recall.question import Question, Word
from claude_mem.recall.times import Span


@dataclass(frozen=True, slots=True)
class Weights:
    """Tuned on LoCoMo's five development conversations, each held out in turn, with
    `python -m bench.recall --locomo FILE --tune`, where the comment says so; the others are
    choices.
    """

    # bm25, by column: title, subtitle, body, facts, files, concepts. Chosen.
    columns: matches.Weights = (2.0, 1.5, 1.0, 1.0, 1.0, 0.5)
    # What a memory gives to the next and second next, and to the previous and second previous.
    forward: tuple[float, ...] = (0.4, 0.1)  # tuned
    backward: tuple[float, ...] = (0.25, 0.1)  # tuned
    length: float = 0.2  # score * words ** length: bm25 favours what is short too much. Tuned
    title: float = 0.8  # at most, when the question says all words of the title. Tuned
    time: float = 1.0  # within the time that the question speaks of. Tuned
    told_later: float = 0.5  # within a week after it: what happened is told afterwards. Tuned
    when: float = 0.3  # the question asks for a time, and the memory names one. Tuned
    prompt: float = 0.7  # a prompt asks, its turn's memories answer. Chosen
    least: float = 0.15  # of what the question's rare words weigh, or it is noise. Chosen


WEIGHTS = Weights()
CANDIDATES = 200  # or three pages; more changed nothing on LoCoMo
LENDERS = 100
SENTENCE = 3  # words that tell something
RARE = 5_000  # memories that may hold a word for it to count as rare
_WEEK = 7 * 86_400_000
_ASKS_WHEN = ("when", "how long ago", "what date", "what day", "what month", "what year",
              "which month", "which year", "which day", "since when")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Known:
    """A word of the question as the index has it."""

    word: Word
    weight: float
    count: int
    documents: frozenset[int] | None  # None: too many to be rare

    @property
    def counts(self) -> bool:
        """Towards what a memory must hold: rare words do, and those that name a time do not."""
        return self.documents is not None and not self.word.is_time

    def is_held_by(self, document: int) -> bool:
        return self.counts and self.documents is not None and document in self.documents


def rank(
    connection: sqlite3.Connection,
    question: Question,
    filters: Filters,
    wanted: int,
    weights: Weights = WEIGHTS,
) -> list[Match]:
    """The best first, at least `wanted` where there are so many; noise is left out."""
    known = _look_up(connection, question)
    own = _own_scores(connection, question, known, filters, wanted, weights)
    everyone = _lend(connection, own, question, filters, weights)
    named = {stem(piece) for word in question.words for piece in word.pieces}
    asks_when = question.text.strip().lower().startswith(_ASKS_WHEN)
    ranked = [
        replace(match, score=match.score * _lift(match, named, asks_when, question.spans, weights))
        for match in everyone
    ]
    return sorted(ranked, key=lambda m: (-m.score, -m.created_at_epoch, m.document))


def _look_up(connection: sqlite3.Connection, question: Question) -> list[Known]:
    total = full_text.count(connection)
    found = []
    for word in question.words:
        documents = matches.holding(connection, matches.any_of(word.forms), RARE + 1)
        rare = len(documents) <= RARE
        count = (
            len(documents) if rare else matches.frequency(connection, matches.any_of(word.forms))
        )
        weight = math.log(1 + (total - count + 0.5) / (count + 0.5))
        found.append(Known(word, weight, count, frozenset(documents) if rare else None))
    return found


def _own_scores(
    connection: sqlite3.Connection,
    question: Question,
    known: list[Known],
    filters: Filters,
    wanted: int,
    weights: Weights,
) -> list[Match]:
    """What the memories themselves say of it, in multiples of the question's rarest word."""
    expression = _expression(question, known)
    if not expression:
        return []
    limit = max(CANDIDATES, 3 * wanted)
    found = matches.best(connection, expression, weights.columns, filters, limit)
    mass = sum(word.weight for word in known if word.counts)
    kept = []
    for match in found:
        share = _share(match, known, mass)
        if share >= weights.least or question.phrases:
            kept.append(replace(match, score=match.score + share))
    return kept


def _expression(question: Question, known: list[Known]) -> str:
    """Any of the words, all of the phrases, none of the excluded."""
    words = [form for word in known if word.count for form in word.word.forms]
    if not (words or question.phrases):
        return ""
    expression = matches.any_of([*words, *question.phrases])
    if question.phrases:
        expression = matches.all_of([*question.phrases, expression])
    if question.excluded:
        expression = f"{expression} NOT {matches.any_of(question.excluded)}"
    return expression


def _share(match: Match, known: list[Known], mass: float) -> float:
    """How much of the question's rare words it holds, by weight."""
    if not mass:
        return 1.0
    return sum(word.weight for word in known if word.is_held_by(match.document)) / mass


def _lend(
    connection: sqlite3.Connection,
    own: list[Match],
    question: Question,
    filters: Filters,
    weights: Weights,
) -> list[Match]:
    """With what the neighbours give; one that was not found itself may come in by it."""
    by_id = {match.document: match for match in own}
    lenders = [match.document for match in own[:LENDERS]]
    near, others = matches.beside(connection, lenders, len(weights.forward), filters)
    if _may_be_answered_beside(question):
        by_id |= others
    lent: defaultdict[int, float] = defaultdict(float)
    for lender, neighbours in near.items():
        score = by_id[lender].score
        for distance, neighbour in neighbours:
            share = (weights.forward if distance > 0 else weights.backward)[abs(distance) - 1]
            lent[neighbour] += share * score
    return [replace(match, score=match.score + lent[document]) for document, match in by_id.items()]


def _may_be_answered_beside(question: Question) -> bool:
    """Whoever gives a keyword or a phrase wants what holds it; a sentence wants its answer."""
    exact = question.phrases or question.excluded
    return not exact and len(question.words) >= SENTENCE


def _lift(
    match: Match, named: set[str], asks_when: bool, spans: tuple[Span, ...], weights: Weights
) -> float:
    lift = math.pow(min(match.words, 1_000), weights.length)
    title = match.title_stems.split()
    if title:
        lift *= 1 + weights.title * sum(word in named for word in title) / len(title)
    if asks_when and match.tells_time:
        lift *= 1 + weights.when
    if match.kind == "prompt":
        lift *= weights.prompt
    return lift * (1 + _time_lift(match.created_at_epoch, spans, weights))


def _time_lift(moment: int, spans: tuple[Span, ...], weights: Weights) -> float:
    if any(span.since <= moment < span.until for span in spans):
        return weights.time
    if any(span.until <= moment < span.until + _WEEK for span in spans):
        return weights.told_later
    return 0.0

"""Which turns answer a query best: the one place where that is decided.

Each candidate (`candidates`) is scored by its bm25, its cosine, and how well its words match those
of the query. A turn counts as much as its best passage, and a little for the others of the turn and
of its session; short turns also get a share of the score of their neighbours in the session. Turns
whose title the query names, and those of the time that it names, are boosted. Ties go to the newer
turn.
"""

import math
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import attrgetter
from typing import NamedTuple

from claude_mem.index.text import document_queries, passage_index
from claude_mem.index.text.document_queries import Filters
from claude_mem.index.text.passage_index import PASSAGE_BITS, PassageRow, TurnRow
from claude_mem.index.text.words import is_unspaced, stem
from claude_mem.index.vectors.semantic import SemanticIndex
from claude_mem.recall.candidates import (
    NO_EVIDENCE,
    Candidate,
    Candidates,
    Evidence,
    collect,
)
from claude_mem.recall.parsed_query import ParsedQuery, Span
from claude_mem.recall.weights import WEIGHTS, Weights

SHARING = 30  # turns that share their scores with neighbours
CONSIDERED = 4  # times as many turns as are shown: duplicates among them are merged
MAX_LENGTH = 80  # words: longer passages are not boosted more
REPETITIONS = ("compaction", "plan")
_WEEK = 7 * 86_400_000
_ASKS_WHEN = ("when", "how long ago", "what date", "what day", "what month", "what year",
              "which month", "which year", "which day", "since when")  # fmt: skip

Step = tuple[int, int, int]  # of which turn, how far, which turn


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """How turns follow each other in their sessions."""

    steps: Callable[[Sequence[TurnRow]], list[Step]]
    read: Callable[[Iterable[int]], dict[int, TurnRow]]  # those that pass the filters


class RankedTurn(NamedTuple):
    turn: TurnRow
    score: float
    passage: int | None = None  # the id of its best passage; None: it stands by its neighbours
    evidence: Evidence = NO_EVIDENCE


_ranked = partial(tuple.__new__, RankedTurn)  # as `_make`, without a call of Python for each
_time, _score = attrgetter("turn.created_at_epoch", "turn.id"), attrgetter("score")


def rank(
    connection: sqlite3.Connection,
    parsed: ParsedQuery,
    filters: Filters,
    count: int,
    weights: Weights = WEIGHTS,
    semantic_index: SemanticIndex | None = None,
) -> list[RankedTurn]:
    """Best first, at least `count` where there are so many."""
    candidates = collect(connection, parsed, filters, count, weights, semantic_index)
    return rank_candidates(connection, candidates, parsed, filters, count, weights)


def rank_candidates(
    connection: sqlite3.Connection,
    candidates: Candidates,
    parsed: ParsedQuery,
    filters: Filters,
    count: int,
    weights: Weights = WEIGHTS,
) -> list[RankedTurn]:
    near = neighbourhood(connection, filters, len(weights.next_shares))
    return order(candidates, parsed, near, weights, CONSIDERED * count)


def neighbourhood(connection: sqlite3.Connection, filters: Filters, reach: int) -> Neighbourhood:
    condition = document_queries.result_condition(filters)
    return Neighbourhood(
        lambda turns: passage_index.neighbours(connection, turns, reach),
        lambda ids: passage_index.turn_rows(connection, ids, condition.sql, condition.values),
    )


def order(
    candidates: Candidates,
    parsed: ParsedQuery,
    near: Neighbourhood,
    weights: Weights = WEIGHTS,
    count: int | None = None,
) -> list[RankedTurn]:
    """Best first. Neighbours that cannot be among the first `count` are left out."""
    is_sentence = parsed.is_sentence
    turns = dict(candidates.turns)
    best, scores = _turn_scores(candidates, is_sentence, weights)
    _add_session_support(scores, turns, weights)
    booster = Booster.of(parsed, weights)
    shared: dict[int, float] = {}
    if is_sentence:
        least = _least_score(scores, count) / booster.most
        shared, others = _shared_scores(turns, scores, near, weights, least)
        turns |= others
    ranked: list[RankedTurn] = []
    for turn_id in {*scores, *shared}.difference(candidates.excluded):
        turn, match = turns[turn_id], best.get(turn_id)
        value = scores.get(turn_id, 0.0) + shared.get(turn_id, 0.0)
        row, evidence = match if match is not None else (None, NO_EVIDENCE)
        score = value * booster.factor(turn, row)
        ranked.append(_ranked((turn, score, row.id if row is not None else None, evidence)))
    # Best first, then the newest: the second sort keeps the order of the first.
    ranked.sort(key=_time, reverse=True)
    ranked.sort(key=_score, reverse=True)
    if ranked and is_sentence:
        threshold = ranked[0].score * weights.min_score_share
        ranked = [result for result in ranked if result.score >= threshold]
    return ranked


def _turn_scores(
    candidates: Candidates, is_sentence: bool, weights: Weights
) -> tuple[dict[int, Candidate], dict[int, float]]:
    """By turn its best passage, and its score."""
    turns, near = candidates.turns, candidates.near
    best: dict[int, Candidate] = {}
    values: dict[int, float] = {}
    sums: defaultdict[int, float] = defaultdict(float)
    for candidate in candidates.passages:
        turn = candidate.row.id >> PASSAGE_BITS
        if turn not in turns or (is_sentence and _is_noise(candidate, near, weights)):
            continue
        value = score_of(candidate, weights)
        sums[turn] += value
        if value > values.get(turn, -1.0):
            values[turn], best[turn] = value, candidate
    support = weights.turn_support
    scores = {turn: v + support * math.log1p(sums[turn] - v) for turn, v in values.items()}
    return best, scores


def _least_score(scores: dict[int, float], count: int | None) -> float:
    """What a turn needs to be among the first `count`; boosts only raise the scores."""
    if count is None or len(scores) < count:
        return 0.0
    return sorted(scores.values(), reverse=True)[count - 1]


def _add_session_support(
    scores: dict[int, float], turns: dict[int, TurnRow], weights: Weights
) -> None:
    if not weights.session_support:
        return
    sums: defaultdict[int, float] = defaultdict(float)
    for turn, score in scores.items():
        sums[turns[turn].session_id] += score
    for turn, score in scores.items():
        others = sums[turns[turn].session_id] - score
        scores[turn] = score + weights.session_support * math.log1p(others)


def _is_noise(candidate: Candidate, near: float, weights: Weights) -> bool:
    evidence = candidate.evidence
    return evidence.coverage < weights.min_coverage and evidence.cosine < near


def score_of(candidate: Candidate, weights: Weights = WEIGHTS) -> float:
    evidence = candidate.evidence
    score = (
        weights.bm25 * evidence.bm25
        + weights.cosine * evidence.cosine
        + weights.soft_words * evidence.soft_coverage
    )
    return score * weights.repetition_factor if candidate.row.kind in REPETITIONS else score


def _shared_scores(
    turns: dict[int, TurnRow],
    scores: dict[int, float],
    near: Neighbourhood,
    weights: Weights,
    least: float,
) -> tuple[dict[int, float], dict[int, TurnRow]]:
    """What turns get from their neighbours, and those among them that were not read yet, where
    they can reach the least score."""
    sharing = sorted(scores, key=lambda turn: (-scores[turn], turn))[:SHARING]
    steps = near.steps([turns[turn] for turn in sharing])
    parts: defaultdict[int, float] = defaultdict(float)  # as a neighbour without words gets them
    for turn, distance, other in steps:
        shares = weights.next_shares if distance > 0 else weights.previous_shares
        parts[other] += shares[abs(distance) - 1] * scores[turn] * _brevity(turns[turn], weights)
    unread = [other for other, part in parts.items() if other not in turns and part >= least]
    others = near.read(unread) if unread else {}
    shared: dict[int, float] = {}
    for other, part in parts.items():
        row = turns.get(other) or others.get(other)
        if row is not None:
            shared[other] = part * _brevity(row, weights)
    return shared, others


def _brevity(turn: TurnRow, weights: Weights) -> float:
    return weights.half_share_words / (weights.half_share_words + turn.words)


@dataclass(frozen=True, slots=True)
class Booster:
    stems: frozenset[str]  # of the query
    spans: tuple[Span, ...]
    asks_when: bool
    weights: Weights
    lengths: tuple[float, ...]  # the factor of a text of so many words

    @classmethod
    def of(cls, parsed: ParsedQuery, weights: Weights) -> "Booster":
        stems = frozenset(stem(piece) for word in parsed.words for piece in word.pieces)
        asks_when = parsed.text.strip().lower().startswith(_ASKS_WHEN)
        lengths = _length_factors(weights.length_exponent)
        return cls(stems, parsed.spans, asks_when, weights, lengths)

    @property
    def most(self) -> float:
        """No factor is greater, for a turn without a matching passage."""
        weights = self.weights
        time_boost = max(weights.time_boost, weights.week_after_boost) if self.spans else 0.0
        return self.lengths[-1] * (1 + weights.title_boost) * (1 + time_boost)

    def factor(self, turn: TurnRow, passage: PassageRow | None) -> float:
        words = passage.words if passage is not None else turn.words
        factor = self.lengths[min(words, MAX_LENGTH)]
        # Most titles have none of the stems, not even within their words.
        if any(map(turn.title_stems.__contains__, self.stems)):
            title = turn.title_stems.split()
            share = len(self.stems.intersection(title)) / max(1, len(title))
            factor *= 1 + self.weights.title_boost * share
        if self.asks_when and passage is not None and passage.names_time:
            factor *= 1 + self.weights.dated_boost
        if self.spans:
            factor *= 1 + _time_boost(turn.created_at_epoch, self.spans, self.weights)
        return factor


@lru_cache(maxsize=16)
def _length_factors(exponent: float) -> tuple[float, ...]:
    return tuple(math.pow(max(words, 1), exponent) for words in range(MAX_LENGTH + 1))


def _time_boost(timestamp: int, spans: Iterable[Span], weights: Weights) -> float:
    if any(span.since <= timestamp < span.until for span in spans):
        return weights.time_boost
    if any(span.until <= timestamp < span.until + _WEEK for span in spans):
        return weights.week_after_boost
    return 0.0


@dataclass(frozen=True, slots=True)
class StrengthModel:
    bias: float = -20.0
    length: float = 4.0
    cosine: float = 2.0
    soft_coverage: float = 2.0


STRENGTH = StrengthModel()
MIN_QUESTION, MAX_QUESTION = 40, 120  # characters, between which its length counts


@dataclass(frozen=True, slots=True)
class Strength:
    """Whether a result is likely to answer the query, or only the nearest there is.

    Any query is answered by a passage that holds all of its words. Of a sentence it is otherwise
    estimated by a logistic model from figures that do not depend on how much is remembered: how
    much the query says, how near the passage is, and how much of the query it covers.
    """

    is_sentence: bool
    length: float
    is_literal: bool = True  # each of its words is looked for in the passages

    @classmethod
    def of(cls, parsed: ParsedQuery) -> "Strength":
        length = min(MAX_QUESTION, max(MIN_QUESTION, len(parsed.text.strip())))
        is_literal = not any(w.is_time or any(map(is_unspaced, w.pieces)) for w in parsed.words)
        return cls(parsed.is_sentence, math.log(length), is_literal)

    def is_strong(self, result: RankedTurn) -> bool:
        if not self.is_sentence:
            return result.evidence.is_complete
        return (self.is_literal and result.evidence.is_complete) or self.logit(result) > 0

    def logit(self, result: RankedTurn, model: StrengthModel = STRENGTH) -> float:
        evidence = result.evidence
        return (
            model.bias
            + model.length * self.length
            + model.cosine * evidence.cosine
            + model.soft_coverage * evidence.soft_coverage
        )

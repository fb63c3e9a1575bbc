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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import itemgetter
from typing import NamedTuple

from claude_mem.index.small_database_cache import SmallDatabase
from claude_mem.index.text import passage_queries
from claude_mem.index.text.filters import Filters, only_wrong, result_condition
from claude_mem.index.text.passage_queries import PASSAGE_BITS, PassageRow, TurnRow
from claude_mem.index.text.words import is_unspaced, stem
from claude_mem.index.vectors.semantic import SemanticIndex
from claude_mem.recall.candidates import (
    NO_EVIDENCE,
    Candidates,
    Evidence,
    EvidenceTable,
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
    passages: EvidenceTable
    number: int | None  # of its best passage; None: it stands by its neighbours

    @property
    def passage(self) -> int | None:
        """The id of its best passage."""
        return None if self.number is None else self.passages.rows[self.number].id

    @property
    def evidence(self) -> Evidence:
        return NO_EVIDENCE if self.number is None else self.passages.evidence(self.number)


_kind_of, _words_of = map(itemgetter, map(PassageRow._fields.index, ("kind", "words")))
_ranked = partial(tuple.__new__, RankedTurn)  # as `_make`, without a call of Python for each


def rank(
    connection: sqlite3.Connection,
    parsed: ParsedQuery,
    filters: Filters,
    count: int,
    weights: Weights = WEIGHTS,
    semantic_index: SemanticIndex | None = None,
    cached: SmallDatabase | None = None,
) -> list[RankedTurn]:
    """Best first, at least `count` where there are so many."""
    candidates = collect(connection, parsed, filters, count, weights, semantic_index, cached=cached)
    return rank_candidates(connection, candidates, parsed, filters, count, weights, cached)


def rank_candidates(
    connection: sqlite3.Connection,
    candidates: Candidates,
    parsed: ParsedQuery,
    filters: Filters,
    count: int,
    weights: Weights = WEIGHTS,
    cached: SmallDatabase | None = None,
) -> list[RankedTurn]:
    near = neighbourhood(connection, filters, len(weights.next_shares), cached)
    return order(candidates, parsed, near, weights, CONSIDERED * count)


def neighbourhood(
    connection: sqlite3.Connection,
    filters: Filters,
    reach: int,
    cached: SmallDatabase | None = None,
) -> Neighbourhood:
    neighbours = passage_queries.neighbours if cached is None else cached.neighbours
    wrong = only_wrong(connection, filters) if cached is not None else None

    def read(ids: Iterable[int]) -> dict[int, TurnRow]:
        if cached is not None and wrong is not None:
            return cached.turn_rows(ids, wrong)
        condition = result_condition(connection, filters)
        return passage_queries.turn_rows(connection, ids, condition.sql, condition.values)

    return Neighbourhood(lambda turns: neighbours(connection, turns, reach), read)


def order(
    candidates: Candidates,
    parsed: ParsedQuery,
    near: Neighbourhood,
    weights: Weights = WEIGHTS,
    count: int | None = None,
) -> list[RankedTurn]:
    """Best first. Neighbours that cannot be among the first `count` are left out."""
    is_sentence = parsed.is_sentence
    turns = candidates.turns
    best, scores = _turn_scores(candidates, is_sentence, weights)
    _add_session_support(scores, turns, weights)
    booster = Booster.of(parsed, weights)
    if is_sentence:
        reachable = _least_score(scores, count) / booster.most
        shared, others = _shared_scores(turns, scores, near, weights, reachable)
        turns = turns | others
        for turn_id, share in shared.items():
            scores[turn_id] = scores.get(turn_id, 0.0) + share
    passages, excluded = candidates.passages, candidates.excluded
    found = [turns[turn_id] for turn_id in scores if turn_id not in excluded]
    numbers = [best.get(turn.id) for turn in found]
    rows = [None if number is None else passages.rows[number] for number in numbers]
    # Best first, then the newest. The ids differ, so that no rows are compared.
    by_score = [
        (scores[turn.id] * factor, turn.created_at_epoch, turn.id, turn, number)
        for turn, factor, number in zip(found, booster.factors(found, rows), numbers, strict=True)
    ]
    by_score.sort(reverse=True)
    least = by_score[0][0] * weights.min_score_share if by_score and is_sentence else -math.inf
    return [
        _ranked((turn, score, passages, number))
        for score, _, _, turn, number in by_score
        if score >= least
    ]


def _turn_scores(
    candidates: Candidates, is_sentence: bool, weights: Weights
) -> tuple[dict[int, int], dict[int, float]]:
    """By turn its best passage, by its number, and its score."""
    turns, near, passages = candidates.turns, candidates.near, candidates.passages
    min_coverage = weights.min_coverage if is_sentence else -1.0
    best: dict[int, int] = {}
    values: dict[int, float] = {}
    sums: dict[int, float] = {}
    for number, (row, value, coverage, cosine) in enumerate(
        zip(passages.rows, passage_values(passages, weights), passages.coverage, passages.cosine,
            strict=True)
    ):  # fmt: skip
        turn = row[0] >> PASSAGE_BITS
        if (coverage < min_coverage and cosine < near) or turn not in turns:
            continue  # noise, or filtered out
        if turn not in sums:
            sums[turn] = values[turn] = value
            best[turn] = number
            continue
        sums[turn] += value
        if value > values[turn]:
            values[turn], best[turn] = value, number
    support, log1p = weights.turn_support, math.log1p
    scores = {turn: value + support * log1p(sums[turn] - value) for turn, value in values.items()}
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


def passage_values(passages: EvidenceTable, weights: Weights = WEIGHTS) -> list[float]:
    """What each passage counts by itself."""
    bm25, cosine, similar_words = weights.bm25, weights.cosine, weights.similar_words
    repeated = weights.repetition_factor
    values = [
        bm25 * by_words + cosine * near + similar_words * covered
        for by_words, near, covered in zip(
            passages.bm25, passages.cosine, passages.soft_coverage, strict=True
        )
    ]
    return [
        value * repeated if kind in REPETITIONS else value
        for kind, value in zip(map(_kind_of, passages.rows), values, strict=True)
    ]


def _shared_scores(
    turns: dict[int, TurnRow],
    scores: dict[int, float],
    near: Neighbourhood,
    weights: Weights,
    least: float,
) -> tuple[dict[int, float], dict[int, TurnRow]]:
    """What turns get from their neighbours, and those among them that were not read yet, where
    they can reach the least score."""
    # Of equals the lower id.
    sharing = sorted(sorted(scores), key=scores.__getitem__, reverse=True)[:SHARING]
    half = weights.half_share_words
    shares = dict(enumerate(weights.next_shares, 1))
    shares |= {-far: share for far, share in enumerate(weights.previous_shares, 1)}
    brevity = {turn: half / (half + turns[turn].words) for turn in sharing}
    parts: dict[int, float] = {}  # as a neighbour without words gets them
    known = parts.get
    for turn, distance, other in near.steps([turns[turn] for turn in sharing]):
        parts[other] = known(other, 0.0) + shares[distance] * scores[turn] * brevity[turn]
    unread = [other for other, part in parts.items() if other not in turns and part >= least]
    others = near.read(unread) if unread else {}
    shared: dict[int, float] = {}
    for other, part in parts.items():
        row = turns.get(other) or others.get(other)
        if row is not None:
            shared[other] = part * (half / (half + row.words))
    return shared, others


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

    def factors(
        self, turns: Sequence[TurnRow], passages: Sequence[PassageRow | None]
    ) -> list[float]:
        """Of each turn with its best passage."""
        weights, lengths, most = self.weights, self.lengths, MAX_LENGTH
        counts = [
            turn.words if passage is None else _words_of(passage)
            for turn, passage in zip(turns, passages, strict=True)
        ]
        factors = [lengths[words if words < most else most] for words in counts]
        for number, title in self._likely_titles(turns):
            share = len(self.stems.intersection(title)) / max(1, len(title))
            factors[number] *= 1 + weights.title_boost * share
        if self.asks_when:
            for number, passage in enumerate(passages):
                if passage is not None and passage.names_time:
                    factors[number] *= 1 + weights.dated_boost
        if self.spans:
            for number, turn in enumerate(turns):
                factors[number] *= 1 + _time_boost(turn.created_at_epoch, self.spans, weights)
        return factors

    def _likely_titles(self, turns: Sequence[TurnRow]) -> Iterator[tuple[int, list[str]]]:
        """Their stems, by number. Most titles have none of the query's, not even within their
        words."""
        titles = [turn.title_stems for turn in turns]
        joined = " ".join(titles)
        forms = [form for form in self.stems if form in joined]
        for number in {n for form in forms for n, title in enumerate(titles) if form in title}:
            yield number, titles[number].split()


@lru_cache(maxsize=16)
def _length_factors(exponent: float) -> tuple[float, ...]:
    return tuple(math.pow(max(words, 1), exponent) for words in range(MAX_LENGTH + 1))


def _time_boost(timestamp: int, spans: Iterable[Span], weights: Weights) -> float:
    boost = 0.0
    for span in spans:
        if span.since <= timestamp < span.until:
            return weights.time_boost
        if span.until <= timestamp < span.until + _WEEK:
            boost = weights.week_after_boost
    return boost


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

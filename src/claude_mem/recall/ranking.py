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

from claude_mem.index.text import queries, turn_text
from claude_mem.index.text.queries import Filters
from claude_mem.index.text.turn_text import PassageRow, TurnRow
from claude_mem.index.text.words import stem
from claude_mem.index.vectors.semantic import SemanticIndex
from claude_mem.recall.candidates import NO_EVIDENCE, Candidate, Candidates, Evidence, collect
from claude_mem.recall.parsed_query import ParsedQuery
from claude_mem.recall.times import Span
from claude_mem.recall.weights import WEIGHTS, Weights

SHARING = 30  # turns that share their scores with neighbours
MAX_LENGTH = 80  # words: longer passages are not boosted more
REPETITIONS = ("compaction", "plan")
_WEEK = 7 * 86_400_000
_ASKS_WHEN = ("when", "how long ago", "what date", "what day", "what month", "what year",
              "which month", "which year", "which day", "since when")  # fmt: skip

# (of which turn, how far, which turn), and the rows of those turns that were not known yet.
Neighbourhood = tuple[list[tuple[int, int, int]], dict[int, TurnRow]]
FindNeighbours = Callable[[Sequence[TurnRow]], Neighbourhood]


@dataclass(frozen=True, slots=True)
class RankedTurn:
    turn: TurnRow
    score: float
    passage: int | None = None  # the id of its best passage; None: it stands by its neighbours
    evidence: Evidence = NO_EVIDENCE


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
    reach = len(weights.next_shares)

    def find_neighbours(turns: Sequence[TurnRow]) -> Neighbourhood:
        return neighbours_of(connection, turns, reach, candidates.turns, filters)

    return order(candidates, parsed, find_neighbours, weights)


def neighbours_of(
    connection: sqlite3.Connection,
    turns: Sequence[TurnRow],
    reach: int,
    read: dict[int, TurnRow],
    filters: Filters,
) -> Neighbourhood:
    near = turn_text.neighbours(connection, turns, reach)
    missing = {other for _, _, other in near if other not in read}
    condition = queries.turn_condition(filters)
    others = turn_text.turn_rows(connection, missing, condition.sql, condition.values)
    return near, others


def order(
    candidates: Candidates,
    parsed: ParsedQuery,
    find_neighbours: FindNeighbours,
    weights: Weights = WEIGHTS,
) -> list[RankedTurn]:
    is_sentence = parsed.is_sentence
    turns = dict(candidates.turns)
    best: dict[int, tuple[float, Candidate]] = {}
    sums: defaultdict[int, float] = defaultdict(float)
    for candidate in candidates.passages:
        of_turn = candidate.row.turn
        if of_turn not in turns or (is_sentence and _is_noise(candidate, candidates.near, weights)):
            continue
        value = score_of(candidate, weights)
        sums[of_turn] += value
        if of_turn not in best or value > best[of_turn][0]:
            best[of_turn] = value, candidate
    scores = {
        turn: value + weights.turn_support * math.log1p(sums[turn] - value)
        for turn, (value, _) in best.items()
    }
    _add_session_support(scores, turns, weights)
    shared: dict[int, float] = {}
    if is_sentence:
        shared, others = _shared_scores(turns, scores, find_neighbours, weights)
        turns |= others
    boost = _booster(parsed, weights)
    ranked: list[RankedTurn] = []
    for turn_id in {*scores, *shared}.difference(candidates.excluded):
        turn, match = turns[turn_id], best.get(turn_id)
        value = scores.get(turn_id, 0.0) + shared.get(turn_id, 0.0)
        value *= boost(turn, match[1].row if match else None)
        ranked.append(_ranked(turn, value, match[1] if match else None))
    ranked.sort(key=lambda r: (-r.score, -r.turn.created_at_epoch, -r.turn.id))
    if ranked and is_sentence:
        threshold = ranked[0].score * weights.min_score_share
        ranked = [result for result in ranked if result.score >= threshold]
    return ranked


def _add_session_support(
    scores: dict[int, float], turns: dict[int, TurnRow], weights: Weights
) -> None:
    sums: defaultdict[int, float] = defaultdict(float)
    for turn, score in scores.items():
        sums[turns[turn].session_id] += score
    for turn, score in scores.items():
        others = sums[turns[turn].session_id] - score
        scores[turn] = score + weights.session_support * math.log1p(others)


def _ranked(turn: TurnRow, score: float, match: Candidate | None) -> RankedTurn:
    if match is None:
        return RankedTurn(turn, score)
    return RankedTurn(turn, score, match.row.id, match.evidence)


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
    find_neighbours: FindNeighbours,
    weights: Weights,
) -> tuple[dict[int, float], dict[int, TurnRow]]:
    """What turns get from their neighbours, and those among them that were not read yet."""
    sharing = sorted(scores, key=lambda turn: (-scores[turn], turn))[:SHARING]
    near, others = find_neighbours([turns[turn] for turn in sharing])
    everyone = turns | others
    shared: defaultdict[int, float] = defaultdict(float)
    for turn, distance, other in near:
        if other not in everyone:
            continue
        shares = weights.next_shares if distance > 0 else weights.previous_shares
        closeness = _brevity(everyone[turn], weights) * _brevity(everyone[other], weights)
        shared[other] += shares[abs(distance) - 1] * scores[turn] * closeness
    return shared, others


def _brevity(turn: TurnRow, weights: Weights) -> float:
    return weights.half_share_words / (weights.half_share_words + turn.words)


def _booster(
    parsed: ParsedQuery, weights: Weights
) -> Callable[[TurnRow, PassageRow | None], float]:
    stems = {stem(piece) for word in parsed.words for piece in word.pieces}
    asks_when = parsed.text.strip().lower().startswith(_ASKS_WHEN)

    def boost(turn: TurnRow, passage: PassageRow | None) -> float:
        words = passage.words if passage is not None else turn.words
        factor = math.pow(min(max(words, 1), MAX_LENGTH), weights.length_exponent)
        title = turn.title_stems.split()
        if title:
            factor *= 1 + weights.title_boost * len(stems.intersection(title)) / len(title)
        if asks_when and passage is not None and passage.names_time:
            factor *= 1 + weights.dated_boost
        if parsed.spans:
            factor *= 1 + _time_boost(turn.created_at_epoch, parsed.spans, weights)
        return factor

    return boost


def _time_boost(timestamp: int, spans: Iterable[Span], weights: Weights) -> float:
    if any(span.since <= timestamp < span.until for span in spans):
        return weights.time_boost
    if any(span.until <= timestamp < span.until + _WEEK for span in spans):
        return weights.week_after_boost
    return 0.0

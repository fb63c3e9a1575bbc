"""Which turns answer a query best: the one place where that is decided.

Candidates are passages: the best by full text and the nearest by vector. Each is scored by its
bm25, its cosine, and how well its words match those of the query, the same or similar. A turn
counts as much as its best passage; short turns also get a share of the score of their neighbours in
the session. Turns whose title the query names, and those of the time that it names, are boosted.
Ties go to the newer turn.
"""

import math
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from claude_mem.index.text import queries, turn_text
from claude_mem.index.text.queries import Filters
from claude_mem.index.text.turn_text import PASSAGE_BITS, PassageRow, TurnRow
from claude_mem.index.text.words import grams, is_unspaced, stem
from claude_mem.index.vectors.semantic import SemanticIndex
from claude_mem.recall.parsed_query import ParsedQuery
from claude_mem.recall.times import Span

if TYPE_CHECKING:
    from claude_mem.index.vectors.blocks import Similarities


@dataclass(frozen=True, slots=True)
class Weights:
    """Found by random search over the questions of three projects and five LoCoMo conversations,
    each left out in turn; neighbouring values do about as well."""

    bm25: float = 0.25
    cosine: float = 1.0
    soft_words: float = 1.0
    repetition_factor: float = 0.8  # of plans and compaction summaries: they repeat what was said
    # Shares of its score that a turn gives to the next and second next, and to the previous and
    # second previous turn of its session; in full only between turns of no words.
    next_shares: tuple[float, ...] = (0.6, 0.2)
    previous_shares: tuple[float, ...] = (0.1, 0.1)
    half_share_words: int = 90  # a turn of so many words gives and gets half
    length_exponent: float = 0.1  # score * words ** this
    title_boost: float = 0.5  # when the query holds all words of the title
    time_boost: float = 1.0  # within the time that the query names
    week_after_boost: float = 0.5  # within a week after it: events are reported later
    dated_boost: float = 0.25  # the query asks when, and the passage names a time
    # Deviations above the mean of unrelated texts that a cosine must have for a turn that shares
    # no word with a keyword query.
    min_deviations: float = 4.0
    # A passage is noise unless it holds so much of the query's weight, or is so near.
    min_coverage: float = 0.15
    min_deviations_in_sentence: float = 1.0
    min_score_share: float = 0.25  # of the best score; less only fills the page of a sentence


WEIGHTS = Weights()
PASSAGES = 100  # candidates by words, and as many by vectors
READ = 120  # of these candidates: the best of both, whose words are compared
SHARING = 30  # turns that share their scores with neighbours
MAX_LENGTH = 80  # words: longer passages are not boosted more
MANY = 2_000
REPETITIONS = ("compaction", "plan")
_WEEK = 7 * 86_400_000
_ASKS_WHEN = ("when", "how long ago", "what date", "what day", "what month", "what year",
              "which month", "which year", "which day", "since when")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Term:
    """A word of the query: its stem, how it is written, and its weight in the index."""

    stem: str
    text: str
    weight: float
    count: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """How well the best passage of a turn matches, whatever else is in the memory."""

    cosine: float = 0.0
    coverage: float = 0.0  # share of the query's weight that the passage holds literally
    soft_coverage: float = 0.0  # the same, with similar words
    is_complete: bool = False  # the passage holds every word of the query


@dataclass(frozen=True, slots=True)
class RankedTurn:
    turn: TurnRow
    score: float
    passage: int | None = None  # the id of its best passage; None: it stands by its neighbours
    evidence: Evidence = Evidence()


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    row: PassageRow
    score: float
    evidence: Evidence


def rank(
    connection: sqlite3.Connection,
    parsed: ParsedQuery,
    filters: Filters,
    count: int,
    weights: Weights = WEIGHTS,
    semantic_index: SemanticIndex | None = None,
) -> list[RankedTurn]:
    """Best first, at least `count` where there are so many."""
    is_sentence = parsed.is_sentence
    terms = look_up_terms(connection, parsed)
    limit = max(PASSAGES, 2 * count)
    condition = queries.turn_condition(filters)
    by_words = _by_words(connection, parsed, terms, filters, condition, limit)
    cosines = _cosines(
        connection, parsed, by_words, filters, condition, limit, weights, semantic_index
    )
    excluded = _excluded_turns(connection, parsed, filters.project_id)
    ids = _promising(by_words, cosines, terms, weights, max(READ, 2 * count))
    rows = [
        row for row in turn_text.passage_rows(connection, ids).values() if row.turn not in excluded
    ]
    near = 2.0
    if semantic_index is not None and cosines:
        near = semantic_index.cosine(weights.min_deviations_in_sentence)
    best: dict[int, ScoredPassage] = {}
    for passage in score_passages(rows, terms, by_words, cosines, weights, semantic_index):
        evidence = passage.evidence
        is_noise = evidence.coverage < weights.min_coverage and evidence.cosine < near
        if is_noise and is_sentence:
            continue
        previous = best.get(passage.row.turn)
        if previous is None or passage.score > previous.score:
            best[passage.row.turn] = passage
    turns = turn_text.turn_rows(connection, best, condition.sql, condition.values)
    scores = {turn: best[turn].score for turn in turns}
    shared: dict[int, float] = {}
    if is_sentence:
        shared, others = _shared_scores(connection, turns, scores, weights)
        if condition.sql != "TRUE":
            others = turn_text.turn_rows(connection, others, condition.sql, condition.values)
        turns |= others
    boost = _booster(parsed, weights)

    def score(turn: TurnRow) -> float:
        passage = best.get(turn.id)
        own = scores.get(turn.id, 0.0) + shared.get(turn.id, 0.0)
        return own * boost(turn, passage.row if passage else None)

    order = [(score(turn), turn) for turn in turns.values() if turn.id not in excluded]
    order.sort(key=lambda pair: (-pair[0], -pair[1].created_at_epoch, -pair[1].id))
    if order and is_sentence:
        threshold = order[0][0] * weights.min_score_share
        order = [pair for pair in order if pair[0] >= threshold]
    return [_ranked(turn, value, best.get(turn.id)) for value, turn in order]


def _ranked(turn: TurnRow, score: float, passage: ScoredPassage | None) -> RankedTurn:
    if passage is None:
        return RankedTurn(turn, score)
    return RankedTurn(turn, score, passage.row.id, passage.evidence)


def look_up_terms(connection: sqlite3.Connection, parsed: ParsedQuery) -> list[Term]:
    texts: dict[str, str] = {}
    for word in parsed.words:
        if len(word.pieces) == 1 and not word.is_time:
            (piece,) = word.pieces
            parts = grams(piece)[:-1] or [piece] if is_unspaced(piece) else [piece]
            texts |= {stem(part): part for part in parts}
    counts = turn_text.term_counts(connection, texts)
    total = turn_text.passage_count(connection)
    return [
        Term(stemmed, text, turn_text.inverse_frequency(total, count), count)
        for stemmed, text in texts.items()
        for count in (min(total, counts.get(stemmed, 0)),)
    ]


def _by_words(
    connection: sqlite3.Connection,
    parsed: ParsedQuery,
    terms: list[Term],
    filters: Filters,
    condition: queries.Condition,
    limit: int,
) -> dict[int, float]:
    expression = match_expression(parsed, terms)
    if not expression:
        return {}
    return turn_text.best_passages(
        connection, expression, filters.project_id, limit, condition.sql, condition.values
    )


def match_expression(parsed: ParsedQuery, terms: list[Term]) -> str:
    """Any of the words, all of the phrases. A word in more than half of many passages would have
    all of them read, for a bm25 of nearly nothing."""
    everywhere = {t.stem for t in terms if t.count > MANY and t.weight < math.log(2)}
    words = [
        word
        for word in parsed.words
        if len(word.pieces) > 1 or stem(word.pieces[0]) not in everywhere
    ] or list(parsed.words)
    forms = [form for word in words for form in word.forms]
    if not (forms or parsed.phrases):
        return ""
    expression = queries.any_of([*forms, *parsed.phrases])
    return queries.all_of([*parsed.phrases, expression]) if parsed.phrases else expression


def _excluded_turns(
    connection: sqlite3.Connection, parsed: ParsedQuery, project_id: int | None
) -> set[int]:
    if not parsed.excluded:
        return set()
    return turn_text.turns_holding(connection, queries.any_of(parsed.excluded), project_id)


def _cosines(
    connection: sqlite3.Connection,
    parsed: ParsedQuery,
    by_words: dict[int, float],
    filters: Filters,
    condition: queries.Condition,
    limit: int,
    weights: Weights,
    semantic_index: SemanticIndex | None,
) -> dict[int, float]:
    """Of the passages that match by words, and of the nearest where the query allows for them."""
    if semantic_index is None:
        return {}
    similarities = semantic_index.similarities(
        connection, parsed.text, filters.project_id, include=by_words
    )
    cosines = similarities.of(by_words)
    if not (parsed.phrases or parsed.excluded):
        least = -1.0 if parsed.is_sentence else semantic_index.cosine(weights.min_deviations)
        cosines |= _nearest(connection, similarities, condition, limit, least)
    return cosines


def _nearest(
    connection: sqlite3.Connection,
    similarities: "Similarities",
    condition: queries.Condition,
    limit: int,
    least: float,
) -> dict[int, float]:
    """The nearest passages of turns that pass the condition."""
    size = limit
    while True:
        best = similarities.best(size)
        near = {passage: cosine for passage, cosine in best if cosine >= least}
        if condition.sql != "TRUE":
            turns = {passage >> PASSAGE_BITS for passage in near}
            passing = turn_text.turn_rows(connection, turns, condition.sql, condition.values)
            near = {p: cosine for p, cosine in near.items() if p >> PASSAGE_BITS in passing}
        if len(near) >= limit or len(best) < size or best[-1][1] < least:
            return dict(list(near.items())[:limit])
        size *= 4


def _promising(
    by_words: dict[int, float],
    cosines: dict[int, float],
    terms: list[Term],
    weights: Weights,
    limit: int,
) -> list[int]:
    """The best by what is known without reading them."""
    bm25 = weights.bm25 / _total_weight(terms)
    scores = {passage: weights.cosine * max(0.0, cosine) for passage, cosine in cosines.items()}
    for passage, score in by_words.items():
        scores[passage] = scores.get(passage, 0.0) + bm25 * score
    return sorted(scores, key=lambda passage: (-scores[passage], passage))[:limit]


def _total_weight(terms: list[Term]) -> float:
    return sum(term.weight for term in terms) or 1.0


def score_passages(
    rows: Sequence[PassageRow],
    terms: list[Term],
    by_words: dict[int, float],
    cosines: dict[int, float],
    weights: Weights,
    semantic_index: SemanticIndex | None,
) -> list[ScoredPassage]:
    total = _total_weight(terms)
    weighted = [(turn_text.hashed(term.stem), term.weight) for term in terms]
    soft = _soft_words(rows, terms, semantic_index)
    scored: list[ScoredPassage] = []
    for row, similarities in zip(rows, soft, strict=True):
        covered = soft_covered = 0.0
        complete = bool(terms)
        for (term_hash, weight), similar in zip(weighted, similarities, strict=True):
            if turn_text.holds(row, term_hash):
                covered += weight
                soft_covered += weight
            else:
                complete = False
                soft_covered += weight * similar
        evidence = Evidence(
            max(0.0, cosines.get(row.id, 0.0)), covered / total, soft_covered / total, complete
        )
        score = (
            weights.bm25 * by_words.get(row.id, 0.0) / total
            + weights.cosine * evidence.cosine
            + weights.soft_words * evidence.soft_coverage
        )
        if row.kind in REPETITIONS:
            score *= weights.repetition_factor
        scored.append(ScoredPassage(row, score, evidence))
    return scored


def _soft_words(
    rows: Sequence[PassageRow], terms: list[Term], semantic_index: SemanticIndex | None
) -> Sequence[Sequence[float]]:
    if semantic_index is None:
        return [[0.0] * len(terms)] * len(rows)
    words = [term.text for term in terms]
    return semantic_index.soft_words(words, [row.pieces for row in rows])


def _shared_scores(
    connection: sqlite3.Connection,
    turns: dict[int, TurnRow],
    scores: dict[int, float],
    weights: Weights,
) -> tuple[dict[int, float], dict[int, TurnRow]]:
    """What turns get from their neighbours, and those among them that do not match themselves."""
    sharing = sorted(turns.values(), key=lambda turn: (-scores[turn.id], turn.id))[:SHARING]
    reach = len(weights.next_shares)
    near = turn_text.neighbours(connection, sharing, reach)
    missing = {other for _, _, other in near if other not in turns}
    others = turn_text.turn_rows(connection, missing)
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

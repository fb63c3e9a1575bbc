"""Which turns answer a query best: the one place where that is decided.

First, evidence is collected: the best passages by full text and the nearest by vector. The best by
both are read, and their words are compared with those of the query, the same or similar.

Then each passage is scored by its bm25, its cosine, and how well its words match. A turn counts as
much as its best passage, and a little for the others of the turn; short turns also get a share of
the score of their neighbours in the session. Turns whose title the query names, and those of the
time that it names, are boosted. Ties go to the newer turn.
"""

import math
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from claude_mem.index.text import frequent_words_search, passage_queries, term_hashes
from claude_mem.index.text.filters import (
    Condition,
    Filters,
    all_of,
    any_of,
    result_condition,
    turn_condition,
)
from claude_mem.index.text.frequent_words_search import CountedWord
from claude_mem.index.text.passage_queries import PASSAGE_BITS, PassageRow, TurnRow
from claude_mem.index.text.term_counts import term_counts
from claude_mem.index.text.words import grams, is_unspaced, spaced_text, stem, stems
from claude_mem.index.vectors.lazy_index import LoadedIndex
from claude_mem.recall.parsed_query import ParsedQuery, Span
from claude_mem.recall.weights import WEIGHTS, Weights

if TYPE_CHECKING:
    from claude_mem.index.vectors.blocks import Similarities
    from claude_mem.index.vectors.similar_words import SimilarWords

FEW = 4  # words
FEW_WORDS = 3  # of a query: keywords, not a question
READ_OF_FEW_WORDS = 80  # passages; more made no answer better
NO_COSINE = 2.0  # is near to nothing
SHARING = 30  # turns that share their scores with neighbours
CONSIDERED = 4  # times as many turns as are shown: duplicates among them are merged
MAX_LENGTH = 80  # words: longer passages are not boosted more
REPETITIONS = ("compaction", "plan")
_WEEK = 7 * 86_400_000
_ASKS_WHEN = ("when", "how long ago", "what date", "what day", "what month", "what year",
              "which month", "which year", "which day", "since when")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Depth:
    """How many passages are looked at."""

    by_words: int = 250
    by_vector: int = 100
    read: int = 120  # of these, the best of both, whose words are compared
    # Their signs alone tell which vectors are near, but not well which are nearest.
    rescored: int = 1_000
    scored: int = 0  # passages that are scored by words at least, for those who read turns
    matches: int | None = None  # of the words that are looked up together; the rarest come first


SEARCH = Depth()


@dataclass(frozen=True, slots=True)
class Term:
    """A word of the query: its stem, how it is written, and its weight in the index."""

    stem: str
    text: str
    weight: float
    count: int


class Evidence(NamedTuple):
    """How well a passage matches, whatever else is in the memory."""

    bm25: float = 0.0  # in relation to the weight of the query
    cosine: float = 0.0
    coverage: float = 0.0  # share of the query's weight that the passage holds literally
    soft_coverage: float = 0.0  # the same, with similar words
    is_complete: bool = False  # the passage holds every word of the query


NO_EVIDENCE = Evidence()


Rated = tuple[PassageRow, Evidence]


@dataclass(frozen=True, slots=True)
class Candidates:
    passages: Sequence[Rated]
    turns: dict[int, TurnRow]  # of these passages, those that pass the filters
    excluded: frozenset[int]  # turns that hold an excluded word
    near: float  # the least cosine that is not noise
    bm25: dict[int, float] = field(default_factory=dict)  # by passage, of the best by words


Step = tuple[int, int, int]  # of which turn, how far, which turn


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """How turns follow each other in their sessions."""

    steps: Callable[[Sequence[TurnRow]], list[Step]]
    read: Callable[[Iterable[int]], dict[int, TurnRow]]  # those that pass the filters


class RankedTurn(NamedTuple):
    turn: TurnRow
    score: float
    best: PassageRow | None  # None: it stands by its neighbours
    evidence: Evidence  # of its best passage

    @property
    def passage(self) -> int | None:
        """The id of its best passage."""
        return None if self.best is None else self.best.id


def rank(
    connection: sqlite3.Connection,
    parsed: ParsedQuery,
    filters: Filters,
    count: int,
    weights: Weights = WEIGHTS,
    loaded: LoadedIndex | None = None,
) -> list[RankedTurn]:
    """Ranks turns, best first, at least `count` where there are so many."""
    candidates = collect(connection, parsed, filters, count, weights, loaded)
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


# Evidence: which passages may answer the query, and how well each matches


def collect(
    connection: sqlite3.Connection,
    parsed: ParsedQuery,
    filters: Filters,
    count: int,
    weights: Weights,
    loaded: LoadedIndex | None = None,
    terms: list[Term] | None = None,
    depth: Depth | None = None,
) -> Candidates:
    """Collects passages for at least `count` turns, where there are so many. `terms`: those of the
    query, if they were looked up before. `depth`: if it is not that of a search."""
    depth = depth or SEARCH
    terms = look_up_terms(connection, parsed) if terms is None else terms
    by_vector, read = max(depth.by_vector, 2 * count), depth.read
    if len(parsed.text.split()) <= FEW_WORDS:
        read = min(read, READ_OF_FEW_WORDS)
    read = max(read, 2 * count)
    # Only a search by meaning as well can prefer one that many others outrank by words.
    limit = max(depth.by_words if loaded is not None else read, by_vector)
    condition = turn_condition(filters)
    scored = max(limit, depth.scored)
    searched = _rarest(parsed, terms, depth.matches)
    bm25 = _by_words(connection, searched, terms, filters, condition, scored)
    by_words = dict(islice(bm25.items(), limit))  # best first
    rescored = depth.rescored * by_vector // depth.by_vector
    cosines = _cosines(
        connection, parsed, terms, by_words, filters, condition, by_vector, rescored, weights,
        loaded,
    )  # fmt: skip
    excluded = _excluded_turns(connection, parsed, filters.project_id)
    ids = _promising(by_words, cosines, terms, weights, read)
    shown = result_condition(connection, filters)
    rows, turns = passage_queries.passages_of_turns(
        connection, ids, shown.sql, shown.values, with_pieces=loaded is not None
    )
    if excluded:
        rows = [row for row in rows if row.turn not in excluded]
    similar_words = loaded.similar_words if loaded is not None else None
    evidence = find_evidence(rows, terms, by_words, cosines, similar_words)
    near = NO_COSINE
    if loaded is not None and cosines:
        near = loaded.calibration.cosine(weights.min_deviations_in_sentence)
    return Candidates(evidence, turns, frozenset(excluded), near, bm25)


def texts_by_stem(parsed: ParsedQuery) -> dict[str, str]:
    """The words of a query that are weighted one by one, as they are written."""
    parts: list[str] = []
    for word in parsed.words:
        if len(word.pieces) == 1 and not word.is_time:
            (piece,) = word.pieces
            parts += _grams(piece) if is_unspaced(piece) else [piece]
    # All words at once: of new ones each call costs a statement.
    by_part = stems([*parts, *(piece for word in parsed.words for piece in word.pieces)])
    return {by_part[part]: part for part in parts}


def _grams(piece: str) -> list[str]:
    """Returns what the index has of a run of unspaced script."""
    return grams(piece)[:-1] or [piece]


def look_up_terms(connection: sqlite3.Connection, parsed: ParsedQuery) -> list[Term]:
    texts = texts_by_stem(parsed)
    total = passage_queries.passage_count(connection)
    counts = term_counts(connection, texts, total)
    terms = [
        Term(stemmed, text, passage_queries.inverse_frequency(total, count), count)
        for stemmed, text in texts.items()
        for count in (min(total, counts.get(stemmed, 0)),)
    ]
    # A Japanese question about English sessions: its English words alone can match.
    known = [term for term in terms if term.count or not is_unspaced(term.text)]
    return known if any(term.count for term in known) else terms


def embedded_text(parsed: ParsedQuery, terms: list[Term]) -> str:
    """Removes text in a script that no passage has, which would only add noise to the vector."""
    if any(is_unspaced(term.text) for term in terms) or not terms:
        return parsed.text
    return spaced_text(parsed.text)


def _by_words(
    connection: sqlite3.Connection,
    parsed: ParsedQuery,
    terms: list[Term],
    filters: Filters,
    condition: Condition,
    limit: int,
) -> dict[int, float]:
    expression = match_expression(parsed)
    if not expression:
        return {}
    words = counted_words(parsed, terms)
    if frequent_words_search.are_many(connection, words, parsed.phrases):
        return frequent_words_search.best_passages(
            connection, words, parsed.phrases, filters.project_id, limit, condition
        )
    return passage_queries.passages_by_words(
        connection, expression, filters.project_id, limit, condition.sql, condition.values,
        occurrences(parsed, terms),
    )  # fmt: skip


def _rarest(parsed: ParsedQuery, terms: list[Term], most: int | None) -> ParsedQuery:
    """Reduces a query to its rarest words, which have at most so many matches in all, or are few:
    reading the matches of common words takes the longest, and they decide the least."""
    if most is None:
        return parsed
    counts = {term.stem: term.count for term in terms}
    by_count = [(max(counts.get(stem(piece), 0) for piece in word.pieces), word.pieces)
                for word in parsed.words]  # fmt: skip
    total = matching = 0
    rarest: set[tuple[str, ...]] = set()
    for count, pieces in sorted(by_count):
        total += count
        if total > most and matching >= FEW:
            break
        matching += count > 0  # one that no passage has finds nothing
        rarest.add(pieces)
    return replace(parsed, words=tuple(word for word in parsed.words if word.pieces in rarest))


def occurrences(parsed: ParsedQuery, terms: list[Term]) -> int | None:
    """How many passages hold the only word of the query; None where it has more."""
    if len(parsed.words) != 1 or len(terms) != 1 or parsed.phrases:
        return None
    (word,) = parsed.words
    is_sole = len(word.forms) == len(word.pieces) == 1 and not is_unspaced(word.pieces[0])
    return terms[0].count if is_sole else None


def match_expression(parsed: ParsedQuery) -> str:
    """Any of the words, all of the phrases."""
    forms = [form for word in parsed.words for form in word.forms]
    if not (forms or parsed.phrases):
        return ""
    expression = any_of([*forms, *parsed.phrases])
    return all_of([*parsed.phrases, expression]) if parsed.phrases else expression


def counted_words(parsed: ParsedQuery, terms: list[Term]) -> list[CountedWord]:
    """A name of several words is in no more passages than the rarest of them."""
    counts = {term.stem: term.count for term in terms}
    words: list[CountedWord] = []
    for word in parsed.words:
        stems_ = [s for p in word.pieces for s in (_grams(p) if is_unspaced(p) else [stem(p)])]
        count = min(
            (counts[s] for s in stems_ if s in counts),
            default=frequent_words_search.MAX_MATCHES_PER_WORD,
        )
        sole = stems_[0] if len(stems_) == len(word.forms) == 1 else None
        words.append(CountedWord(any_of(word.forms), count, sole))
    return words


def _excluded_turns(
    connection: sqlite3.Connection, parsed: ParsedQuery, project_id: int | None
) -> set[int]:
    if not parsed.excluded:
        return set()
    return passage_queries.turns_holding(connection, any_of(parsed.excluded), project_id)


def _cosines(
    connection: sqlite3.Connection,
    parsed: ParsedQuery,
    terms: list[Term],
    by_words: dict[int, float],
    filters: Filters,
    condition: Condition,
    limit: int,
    rescored: int,
    weights: Weights,
    loaded: LoadedIndex | None,
) -> dict[int, float]:
    """Returns the cosines of the passages that match by words, and of the nearest where the query
    allows for them."""
    if loaded is None:
        return {}
    is_strict = bool(parsed.phrases or parsed.excluded)  # nothing but what matches by words
    if is_strict and not by_words:
        return {}
    text, vectors = embedded_text(parsed, terms), loaded.vector_search
    if is_strict:
        return vectors.passage_cosines(connection, text, by_words)
    similarities = vectors.similarities(
        connection,
        text,
        filters.project_id,
        exhaustive=condition.sql != "TRUE",  # few of the nearest may pass it
        rescored=rescored,
    )
    cosines = similarities.of(by_words)
    missing = by_words.keys() - cosines.keys()
    if missing:
        cosines |= vectors.passage_cosines(connection, text, missing)
    least = -1.0 if parsed.is_sentence else loaded.calibration.cosine(weights.min_deviations)
    return cosines | _nearest(connection, similarities, condition, limit, least)


def _nearest(
    connection: sqlite3.Connection,
    similarities: "Similarities",
    condition: Condition,
    limit: int,
    least: float,
) -> dict[int, float]:
    """The nearest passages of turns that pass the condition."""
    size = limit
    while True:
        best = similarities.best(size)
        near = dict(best)
        if best and best[-1][1] < least:
            near = {passage: cosine for passage, cosine in best if cosine >= least}
        if condition.sql != "TRUE":
            turns = {passage >> PASSAGE_BITS for passage in near}
            passing = passage_queries.turn_rows(connection, turns, condition.sql, condition.values)
            near = {p: cosine for p, cosine in near.items() if p >> PASSAGE_BITS in passing}
        if len(near) >= limit or len(best) < size or best[-1][1] < least:
            return near if len(near) <= limit else dict(islice(near.items(), limit))
        size *= 4


def _promising(
    by_words: dict[int, float],
    cosines: dict[int, float],
    terms: list[Term],
    weights: Weights,
    limit: int,
) -> list[int]:
    """The best by what is known without reading them, in no order."""
    bm25 = weights.bm25 / _total_weight(terms)
    near = weights.cosine
    scores = {p: near * cosine if cosine > 0 else 0.0 for p, cosine in cosines.items()}
    known = scores.get
    for passage, score in by_words.items():
        scores[passage] = known(passage, 0.0) + bm25 * score
    if len(scores) <= limit:
        return list(scores)
    least = sorted(scores.values())[-limit]
    best = [passage for passage, score in scores.items() if score >= least]
    if len(best) == limit:
        return best
    better = [passage for passage in best if scores[passage] > least]
    equal = sorted(passage for passage in best if scores[passage] == least)
    return better + equal[: limit - len(better)]


def _total_weight(terms: list[Term]) -> float:
    return sum(term.weight for term in terms) or 1.0


def find_evidence(
    rows: Sequence[PassageRow],
    terms: list[Term],
    by_words: dict[int, float],
    cosines: dict[int, float],
    similar_words: "SimilarWords | None",
) -> list[Rated]:
    total = _total_weight(terms)
    holding = _passages_holding(rows, terms)
    literal, counts = [0.0] * len(rows), [0] * len(rows)
    for term, places in zip(terms, holding, strict=True):
        weight = term.weight
        for place in places:
            literal[place] += weight
            counts[place] += 1
    coverage = soft_coverage = [weight / total for weight in literal]
    if similar_words is not None:
        similar = similar_words.similar_weights(
            [term.text for term in terms],
            [term.weight for term in terms],
            [row.pieces for row in rows],
            holding,
        )
        soft_coverage = [(a + b) / total for a, b in zip(literal, similar, strict=True)]
    return [
        (
            row,
            Evidence(
                by_words.get(row.id, 0.0) / total,
                max(0.0, cosines.get(row.id, 0.0)),
                coverage[number],
                soft_coverage[number],
                counts[number] == len(terms) if terms else row.id in by_words,  # by a phrase
            ),
        )
        for number, row in enumerate(rows)
    ]


def _passages_holding(rows: Sequence[PassageRow], terms: list[Term]) -> list[list[int]]:
    """Returns for each term the numbers of the passages that hold it."""
    hashes = [term_hashes.hashed(term.stem) for term in terms]
    return [
        [number for number, row in enumerate(rows) if term_hashes.holds_term(row.terms, of_term)]
        for of_term in hashes
    ]


# Order: what the evidence makes of a turn


def neighbourhood(connection: sqlite3.Connection, filters: Filters, reach: int) -> Neighbourhood:
    def read(ids: Iterable[int]) -> dict[int, TurnRow]:
        condition = result_condition(connection, filters)
        return passage_queries.turn_rows(connection, ids, condition.sql, condition.values)

    return Neighbourhood(lambda turns: passage_queries.neighbours(connection, turns, reach), read)


def order(
    candidates: Candidates,
    parsed: ParsedQuery,
    near: Neighbourhood,
    weights: Weights = WEIGHTS,
    count: int | None = None,
) -> list[RankedTurn]:
    """Orders turns, best first. Neighbours that cannot be among the first `count` are left out."""
    is_sentence = parsed.is_sentence
    turns = candidates.turns
    best, scores = _turn_scores(candidates, is_sentence, weights)
    booster = Booster.of(parsed, weights)
    if is_sentence:
        reachable = _least_score(scores, count) / booster.most
        shared, others = _shared_scores(turns, scores, near, weights, reachable)
        turns = turns | others
        for turn_id, share in shared.items():
            scores[turn_id] = scores.get(turn_id, 0.0) + share
    scored = [turns[turn_id] for turn_id in scores if turn_id not in candidates.excluded]
    passages = [best.get(turn.id, (None, NO_EVIDENCE)) for turn in scored]
    factors = booster.factors(scored, [row for row, _ in passages])
    ranked = [
        RankedTurn(turn, scores[turn.id] * factor, row, evidence)
        for turn, factor, (row, evidence) in zip(scored, factors, passages, strict=True)
    ]
    ranked.sort(key=lambda r: (r.score, r.turn.created_at_epoch, r.turn.id), reverse=True)
    least = ranked[0].score * weights.min_score_share if ranked and is_sentence else -math.inf
    return [result for result in ranked if result.score >= least]


def _turn_scores(
    candidates: Candidates, is_sentence: bool, weights: Weights
) -> tuple[dict[int, Rated], dict[int, float]]:
    """Returns by turn its best passage, and its score."""
    turns, near = candidates.turns, candidates.near
    min_coverage = weights.min_coverage if is_sentence else -1.0
    best: dict[int, Rated] = {}
    values: dict[int, float] = {}
    sums: dict[int, float] = {}
    for row, evidence in candidates.passages:
        turn = row.turn
        if (evidence.coverage < min_coverage and evidence.cosine < near) or turn not in turns:
            continue  # noise, or filtered out
        value = passage_value(row, evidence, weights)
        if turn not in sums:
            sums[turn] = values[turn] = value
            best[turn] = row, evidence
            continue
        sums[turn] += value
        if value > values[turn]:
            values[turn], best[turn] = value, (row, evidence)
    support, log1p = weights.turn_support, math.log1p
    scores = {turn: value + support * log1p(sums[turn] - value) for turn, value in values.items()}
    return best, scores


def _least_score(scores: dict[int, float], count: int | None) -> float:
    """What a turn needs to be among the first `count`; boosts only raise the scores."""
    if count is None or len(scores) < count:
        return 0.0
    return sorted(scores.values(), reverse=True)[count - 1]


def passage_value(row: PassageRow, evidence: Evidence, weights: Weights = WEIGHTS) -> float:
    """What a passage counts by itself."""
    value = (
        weights.bm25 * evidence.bm25
        + weights.cosine * evidence.cosine
        + weights.similar_words * evidence.soft_coverage
    )
    return value * weights.repetition_factor if row.kind in REPETITIONS else value


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

    @classmethod
    def of(cls, parsed: ParsedQuery, weights: Weights) -> "Booster":
        stems = frozenset(stem(piece) for word in parsed.words for piece in word.pieces)
        asks_when = parsed.text.strip().lower().startswith(_ASKS_WHEN)
        return cls(stems, parsed.spans, asks_when, weights)

    @property
    def most(self) -> float:
        """No factor is greater, for a turn without a matching passage."""
        weights = self.weights
        time_boost = max(weights.time_boost, weights.week_after_boost) if self.spans else 0.0
        return self._length_factor(MAX_LENGTH) * (1 + weights.title_boost) * (1 + time_boost)

    def factors(
        self, turns: Sequence[TurnRow], passages: Sequence[PassageRow | None]
    ) -> list[float]:
        weights = self.weights
        factors = [
            self._length_factor(turn.words if passage is None else passage.words)
            for turn, passage in zip(turns, passages, strict=True)
        ]
        for number, turn in enumerate(turns):
            title = turn.title_stems.split()
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

    def _length_factor(self, words: int) -> float:
        return math.pow(min(max(words, 1), MAX_LENGTH), self.weights.length_exponent)


def _time_boost(timestamp: int, spans: Iterable[Span], weights: Weights) -> float:
    boost = 0.0
    for span in spans:
        if span.since <= timestamp < span.until:
            return weights.time_boost
        if span.until <= timestamp < span.until + _WEEK:
            boost = weights.week_after_boost
    return boost

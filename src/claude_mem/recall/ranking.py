"""Which memories answer a query best: the one place where that is decided.

Full text gives candidates with a score (bm25), vectors give candidates with a cosine that counts
those of their neighbours too; both are scaled to 0..1 and blended. Then memories that are
neighbours in a session share their scores; longer ones, those whose title the query names, and
those of the time that it names are boosted. Ties go to the newer memory, then to the lower id.
"""

import math
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from claude_mem.index.text import full_text, matches
from claude_mem.index.text.documents import kind_of
from claude_mem.index.text.matches import Features, Filters
from claude_mem.index.text.words import stem
from claude_mem.index.vectors.semantic import SemanticIndex
from claude_mem.recall.parsed_text import ParsedText, Word
from claude_mem.recall.times import Span

if TYPE_CHECKING:
    from claude_mem.index.vectors.blocks import Similarities


@dataclass(frozen=True, slots=True)
class Weights:
    """Where each value comes from:

    Tuned: on the five development conversations of LoCoMo, each held out in turn, by
    `python -m bench.recall --locomo FILE --tune`.
    Developer questions: selected on fifteen questions about one imported project.
    Paraphrases: `python -m bench.paraphrase`, where 30 of 64 questions in other words find their
    memory among the first 10, and 14 find something where there is no answer.
    Chosen: none of these made a difference.
    """

    # bm25, by column: title, subtitle, body, facts, files, concepts. Chosen.
    columns: matches.ColumnWeights = (2.0, 1.5, 1.0, 1.0, 1.0, 0.5)
    semantic: float = 0.4  # share of the cosine in the blend; the rest is full text. Tuned
    # Shares of the cosines of the next and of the previous memory, to 1 for the memory's own.
    neighbour_cosines: tuple[float, float] = (0.2, 0.15)  # Tuned
    # How many deviations above the mean of unrelated texts a cosine must be: for a memory that
    # shares no word with the query, as one of several matches of a sentence or otherwise; and
    # for the full semantic score.
    min_deviations_in_sentence: float = 1.0  # Tuned
    min_deviations: float = 4.0  # Paraphrases
    full_deviations: float = 2.5  # Tuned
    # Shares of its score that a memory gives to the next and second next, and to the previous
    # and second previous memory of its session.
    next_shares: tuple[float, ...] = (0.5, 0.2)  # Tuned
    previous_shares: tuple[float, ...] = (0.2, 0.1)  # Tuned
    length_exponent: float = 0.3  # score * words ** this: bm25 favours short texts. Tuned
    title_boost: float = 1.0  # when the query holds all words of the title. Tuned
    time_boost: float = 2.5  # within the time that the query names. Tuned
    week_after_boost: float = 0.5  # within a week after it: events are reported later. Tuned
    dated_boost: float = 0.5  # the query asks when, and the memory names a time. Tuned
    prompt_factor: float = 0.5  # a prompt asks, its turn's memories answer. Developer questions
    # Of the weight of the query's rare words; less is noise. Developer questions
    min_word_share: float = 0.15
    # Of the best score; less only fills the page of a sentence. Developer questions
    min_score_share: float = 0.2


WEIGHTS = Weights()
CANDIDATES = 100  # or two pages: more changed nothing on LoCoMo
SHARING = 40  # candidates that share their scores with neighbours
MAX_LENGTH = 80  # words: longer texts are not boosted more
MANY = 2_000  # memories: with fewer, reading all that hold a word is cheap
RARE = 200  # memories that may hold a word for the index to list them
_WEEK = 7 * 86_400_000
_ASKS_WHEN = ("when", "how long ago", "what date", "what day", "what month", "what year",
              "which month", "which year", "which day", "since when")  # fmt: skip

Scores = dict[int, float]  # by document
Ranked = list[tuple[Features, float]]  # best first


@dataclass(frozen=True, slots=True)
class IndexedWord:
    """A word of the query as the index has it."""

    word: Word
    weight: float
    count: int
    documents: list[int] | None  # None: too many to be rare

    @property
    def is_everywhere(self) -> bool:
        """In more than half of many memories: all of them would be read, for a bm25 of nearly 0."""
        return self.count > MANY and self.weight < math.log(2)


@dataclass(frozen=True, slots=True)
class Candidates:
    features: dict[int, Features]  # by document
    scores: Scores  # best first


def rank(
    connection: sqlite3.Connection,
    parsed: ParsedText,
    filters: Filters,
    count: int,
    weights: Weights = WEIGHTS,
    semantic_index: SemanticIndex | None = None,
) -> Ranked:
    """At least `count` where there are so many, without noise."""
    limit = max(CANDIDATES, 2 * count)
    candidates = _by_words(connection, parsed, filters, limit, weights)
    if semantic_index is not None:
        candidates = _blend(connection, candidates, parsed, filters, limit, weights, semantic_index)
    shared = _shared_scores(connection, candidates.scores, weights)
    features = list(candidates.features.values())
    if parsed.is_sentence:
        neighbours = [document for document in shared if document not in candidates.scores]
        features += matches.features(connection, neighbours, filters)
    boost = _booster(parsed, weights)

    def score(row: Features) -> float:
        own = candidates.scores.get(row.document, 0.0)
        return (own + shared.get(row.document, 0.0)) * boost(row)

    ranked = [(row, score(row)) for row in features]
    ranked.sort(key=lambda r: (-r[1], -r[0].created_at_epoch, r[0].document))
    if ranked and parsed.is_sentence:
        threshold = ranked[0][1] * weights.min_score_share
        ranked = [(row, score) for row, score in ranked if score >= threshold]
    return ranked


def _by_words(
    connection: sqlite3.Connection,
    parsed: ParsedText,
    filters: Filters,
    limit: int,
    weights: Weights,
) -> Candidates:
    """Full-text matches with scores from 0 to 1, without noise."""
    words = _look_up(connection, parsed, filters.project_id)
    expression = _expression(parsed, words)
    if not expression:
        return Candidates({}, {})
    best_matches = matches.best(connection, expression, weights.columns, filters, limit)
    rare = _rare_word_weights(words)
    common = sum(word.weight for word in words if word.count and word.documents is None)
    total = sum(word.weight for word in words if not word.word.is_time) or 1.0
    features: dict[int, Features] = {}
    scores: Scores = {}
    for row, bm25 in best_matches:
        share = (rare.get(row.document, 0.0) + common) / total
        if share >= weights.min_word_share or parsed.phrases:
            features[row.document] = row
            scores[row.document] = bm25 + share  # in a tiny memory, bm25 is the same for all
    best = max(scores.values(), default=1.0)
    return Candidates(features, {document: score / best for document, score in scores.items()})


def _blend(
    connection: sqlite3.Connection,
    by_words: Candidates,
    parsed: ParsedText,
    filters: Filters,
    limit: int,
    weights: Weights,
    semantic_index: SemanticIndex,
) -> Candidates:
    """Full-text matches and the nearest memories, with blended scores."""
    similarities = semantic_index.similarities(
        connection, parsed.text, filters.project_id, by_words.scores
    )
    features = dict(by_words.features)
    one_of_several = parsed.is_sentence and bool(by_words.scores)
    threshold = semantic_index.cosine(
        weights.min_deviations_in_sentence if one_of_several else weights.min_deviations
    )
    if not (parsed.phrases or parsed.excluded):
        features |= _nearest(connection, similarities, threshold, filters, limit)
    cosines = _cosines_with_neighbours(connection, similarities, features, weights)
    if one_of_several:
        neighbours = [d for d in cosines if d not in features and cosines[d] >= threshold]
        features |= {row.document: row
                     for row in matches.features(connection, neighbours, filters)}  # fmt: skip
    best = sorted((cosines[document] for document in features), reverse=True)[:CANDIDATES]
    # Where nothing is near, the semantic scores stay low.
    lowest = max(semantic_index.cosine(0), best[-1] if len(best) == CANDIDATES else 0.0)
    highest = max([semantic_index.cosine(weights.full_deviations), *best[:1]])

    def blended(document: int) -> float:
        semantic = (max(cosines[document], lowest) - lowest) / ((highest - lowest) or 1.0)
        words = by_words.scores.get(document, 0.0)
        return (1 - weights.semantic) * words + weights.semantic * semantic

    scores = {document: blended(document) for document in features}
    order = sorted(scores, key=lambda document: (-scores[document], document))
    return Candidates(features, {document: scores[document] for document in order})


def _nearest(
    connection: sqlite3.Connection,
    similarities: "Similarities",
    threshold: float,
    filters: Filters,
    limit: int,
) -> dict[int, Features]:
    """The nearest that pass the filters, down to a cosine."""
    size = limit
    while True:
        near = [document for document, cosine in similarities.best(size) if cosine >= threshold]
        passing = matches.features(connection, near, filters)
        if len(passing) >= limit or len(near) < size:
            return {row.document: row for row in passing}
        size *= 8


def _cosines_with_neighbours(
    connection: sqlite3.Connection,
    similarities: "Similarities",
    documents: Iterable[int],
    weights: Weights,
) -> Scores:
    """Of these documents and their direct neighbours: the weighted mean of a document's cosine
    and those of the next and previous one, since several memories describe one thing."""
    places = {(document, 0): document for document in documents}
    for document, distance, other in matches.neighbours(connection, list(places.values()), 2):
        places[document, distance] = other
    after = {
        place: places[document, distance + 1]
        for (document, distance), place in places.items()
        if (document, distance + 1) in places
    }
    before = {later: earlier for earlier, later in after.items()}
    cosines = similarities.of(list(places.values()))
    shares = (1.0, *weights.neighbour_cosines)

    def mean(document: int) -> float:
        three = (document, after.get(document), before.get(document))
        weighted = [
            (share, max(0.0, cosines[other]))
            for share, other in zip(shares, three, strict=True)
            if other in cosines
        ]
        return sum(s * cosine for s, cosine in weighted) / (sum(s for s, _ in weighted) or 1.0)

    return {other: mean(other) for (_, distance), other in places.items() if abs(distance) <= 1}


def _look_up(
    connection: sqlite3.Connection, parsed: ParsedText, project_id: int | None
) -> list[IndexedWord]:
    total = full_text.count(connection, project_id)
    words = []
    for word in parsed.words:
        expression = matches.any_of(word.forms)
        count = matches.frequency(connection, expression, project_id)
        documents = matches.holding(connection, expression, project_id) if count <= RARE else None
        weight = math.log(1 + (total - count + 0.5) / (count + 0.5))
        words.append(IndexedWord(word, weight, count, documents))
    return words


def _rare_word_weights(words: list[IndexedWord]) -> Scores:
    """The summed weights of the rare words that a memory holds."""
    weights: defaultdict[int, float] = defaultdict(float)
    for word in words:
        if word.documents is not None and not word.word.is_time:
            for document in word.documents:
                weights[document] += word.weight
    return weights


def _expression(parsed: ParsedText, words: list[IndexedWord]) -> str:
    """Any of the words, all of the phrases, none of the excluded."""
    indexed = [word for word in words if word.count]
    selective = [word for word in indexed if not word.is_everywhere] or indexed
    forms = [form for word in selective for form in word.word.forms]
    if not (forms or parsed.phrases):
        return ""
    expression = matches.any_of([*forms, *parsed.phrases])
    if parsed.phrases:
        expression = matches.all_of([*parsed.phrases, expression])
    if parsed.excluded:
        expression = f"{expression} NOT {matches.any_of(parsed.excluded)}"
    return expression


def _shared_scores(connection: sqlite3.Connection, scores: Scores, weights: Weights) -> Scores:
    """What each memory gets from its neighbours; one that does not match itself may enter so."""
    sharing = list(scores)[:SHARING]
    shared: defaultdict[int, float] = defaultdict(float)
    reach = len(weights.next_shares)
    for document, distance, neighbour in matches.neighbours(connection, sharing, reach):
        shares = weights.next_shares if distance > 0 else weights.previous_shares
        shared[neighbour] += shares[abs(distance) - 1] * scores[document]
    return shared


def _booster(parsed: ParsedText, weights: Weights) -> Callable[[Features], float]:
    stems = {stem(piece) for word in parsed.words for piece in word.pieces}
    asks_when = parsed.text.strip().lower().startswith(_ASKS_WHEN)

    def boost(row: Features) -> float:
        factor = math.pow(min(row.words, MAX_LENGTH), weights.length_exponent)
        title = row.title_stems.split()
        if title:
            factor *= 1 + weights.title_boost * len(stems.intersection(title)) / len(title)
        if asks_when and row.tells_time:
            factor *= 1 + weights.dated_boost
        if kind_of(row.document) == "prompt":
            factor *= weights.prompt_factor
        if parsed.spans:
            factor *= 1 + _time_boost(row.created_at_epoch, parsed.spans, weights)
        return factor

    return boost


def _time_boost(timestamp: int, spans: tuple[Span, ...], weights: Weights) -> float:
    if any(span.since <= timestamp < span.until for span in spans):
        return weights.time_boost
    if any(span.until <= timestamp < span.until + _WEEK for span in spans):
        return weights.week_after_boost
    return 0.0

"""The candidates of a search: passages that may answer it, and the evidence for each.

Candidates are the best passages by full text and the nearest by vector. The best by both are read;
their words are compared with those of the query, the same or similar.
"""

import math
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from claude_mem.index.text import document_queries, frequent_words_search, passage_index
from claude_mem.index.text.document_queries import Filters
from claude_mem.index.text.frequent_words_search import CountedWord
from claude_mem.index.text.passage_index import PASSAGE_BITS, PassageRow, TurnRow
from claude_mem.index.text.term_counts import term_counts
from claude_mem.index.text.words import grams, is_unspaced, spaced_text, stem, stems
from claude_mem.index.vectors.semantic import SemanticIndex
from claude_mem.recall.parsed_query import ParsedQuery, Word
from claude_mem.recall.weights import Weights

if TYPE_CHECKING:
    from claude_mem.index.vectors.blocks import Similarities

MANY = 2_000
FEW = 4  # words
NO_COSINE = 2.0  # is near to nothing


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


class WordSimilarities(Protocol):
    """What compares words by their meaning: a semantic index."""

    def soft_words(
        self, words: Sequence[str], passages: Sequence[bytes | None]
    ) -> list[list[float]]: ...


class Candidate(NamedTuple):
    row: PassageRow
    evidence: Evidence


# As `_make`, without a call of Python for each passage.
_evidence = partial(tuple.__new__, Evidence)
_candidate = partial(tuple.__new__, Candidate)


@dataclass(frozen=True, slots=True)
class Candidates:
    passages: tuple[Candidate, ...]
    turns: dict[int, TurnRow]  # of these passages, those that pass the filters
    excluded: frozenset[int]  # turns that hold an excluded word
    near: float  # the least cosine that is not noise
    bm25: dict[int, float] = field(default_factory=dict)  # by passage, of the best by words


def collect(
    connection: sqlite3.Connection,
    parsed: ParsedQuery,
    filters: Filters,
    count: int,
    weights: Weights,
    semantic_index: SemanticIndex | None = None,
    terms: list[Term] | None = None,
    depth: Depth | None = None,
) -> Candidates:
    """For at least `count` turns, where there are so many. `terms`: those of the query, if they
    were looked up before. `depth`: if it is not that of a search."""
    depth = depth or SEARCH
    terms = look_up_terms(connection, parsed) if terms is None else terms
    by_vector, read = max(depth.by_vector, 2 * count), max(depth.read, 2 * count)
    # Only a search by meaning as well can prefer one that many others outrank by words.
    limit = max(depth.by_words if semantic_index is not None else read, by_vector)
    condition = document_queries.turn_condition(filters)
    scored = max(limit, depth.scored)
    searched = _rarest(parsed, terms, depth.matches)
    bm25 = _by_words(connection, searched, terms, filters, condition, scored)
    by_words = dict(islice(bm25.items(), limit))  # best first
    rescored = depth.rescored * by_vector // depth.by_vector
    cosines = _cosines(
        connection,
        parsed,
        terms,
        by_words,
        filters,
        condition,
        by_vector,
        rescored,
        weights,
        semantic_index,
    )
    excluded = _excluded_turns(connection, parsed, filters.project_id)
    ids = _promising(by_words, cosines, terms, weights, read)
    rows = passage_index.passage_rows(connection, ids)
    if excluded:
        rows = [row for row in rows if row.turn not in excluded]
    shown = document_queries.result_condition(filters)
    turns = passage_index.turn_rows(
        connection, {row.id >> PASSAGE_BITS for row in rows}, shown.sql, shown.values
    )
    near = NO_COSINE
    if semantic_index is not None and cosines:
        near = semantic_index.cosine(weights.min_deviations_in_sentence)
    found = find_evidence(rows, terms, by_words, cosines, semantic_index)
    return Candidates(tuple(found), turns, frozenset(excluded), near, bm25)


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
    """Of a run of unspaced script, what the index has of it."""
    return grams(piece)[:-1] or [piece]


def look_up_terms(connection: sqlite3.Connection, parsed: ParsedQuery) -> list[Term]:
    texts = texts_by_stem(parsed)
    total = passage_index.passage_count(connection)
    counts = term_counts(connection, texts, total)
    terms = [
        Term(stemmed, text, passage_index.inverse_frequency(total, count), count)
        for stemmed, text in texts.items()
        for count in (min(total, counts.get(stemmed, 0)),)
    ]
    # A Japanese question about English sessions: its English words alone can match.
    known = [term for term in terms if term.count or not is_unspaced(term.text)]
    return known if any(term.count for term in known) else terms


def embedded_text(parsed: ParsedQuery, terms: list[Term]) -> str:
    """Without text in a script that no passage has, which would only add noise to the vector."""
    if any(is_unspaced(term.text) for term in terms) or not terms:
        return parsed.text
    return spaced_text(parsed.text)


def _by_words(
    connection: sqlite3.Connection,
    parsed: ParsedQuery,
    terms: list[Term],
    filters: Filters,
    condition: document_queries.Condition,
    limit: int,
) -> dict[int, float]:
    expression = match_expression(parsed, terms)
    if not expression:
        return {}
    words = counted_words(parsed, terms)
    if frequent_words_search.are_many(connection, words, parsed.phrases):
        return frequent_words_search.best_passages(
            connection, words, parsed.phrases, filters.project_id, limit, condition
        )
    return passage_index.passages_by_words(
        connection,
        expression,
        filters.project_id,
        limit,
        condition.sql,
        condition.values,
        occurrences(parsed, terms),
    )


def _rarest(parsed: ParsedQuery, terms: list[Term], most: int | None) -> ParsedQuery:
    """Its rarest words, which have at most so many matches in all, or are few: reading the matches
    of common words takes the longest, and they decide the least."""
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


def match_expression(parsed: ParsedQuery, terms: list[Term]) -> str:
    """Any of the words, all of the phrases."""
    forms = [form for word in _matched_words(parsed, terms) for form in word.forms]
    if not (forms or parsed.phrases):
        return ""
    expression = document_queries.any_of([*forms, *parsed.phrases])
    return document_queries.all_of([*parsed.phrases, expression]) if parsed.phrases else expression


def counted_words(parsed: ParsedQuery, terms: list[Term]) -> list[CountedWord]:
    """A name of several words is in no more passages than the rarest of them."""
    counts = {term.stem: term.count for term in terms}
    words: list[CountedWord] = []
    for word in _matched_words(parsed, terms):
        stems_ = [s for p in word.pieces for s in (_grams(p) if is_unspaced(p) else [stem(p)])]
        count = min((counts[s] for s in stems_ if s in counts), default=frequent_words_search.READ)
        sole = stems_[0] if len(stems_) == len(word.forms) == 1 else None
        words.append(CountedWord(document_queries.any_of(word.forms), count, sole))
    return words


def _matched_words(parsed: ParsedQuery, terms: list[Term]) -> list[Word]:
    """A word in more than half of many passages would have all of them read, for a bm25 of nearly
    nothing."""
    everywhere = {t.stem for t in terms if t.count > MANY and t.weight < math.log(2)}
    return [
        word
        for word in parsed.words
        if len(word.pieces) > 1 or stem(word.pieces[0]) not in everywhere
    ] or list(parsed.words)


def _excluded_turns(
    connection: sqlite3.Connection, parsed: ParsedQuery, project_id: int | None
) -> set[int]:
    if not parsed.excluded:
        return set()
    return passage_index.turns_holding(
        connection, document_queries.any_of(parsed.excluded), project_id
    )


def _cosines(
    connection: sqlite3.Connection,
    parsed: ParsedQuery,
    terms: list[Term],
    by_words: dict[int, float],
    filters: Filters,
    condition: document_queries.Condition,
    limit: int,
    rescored: int,
    weights: Weights,
    semantic_index: SemanticIndex | None,
) -> dict[int, float]:
    """Of the passages that match by words, and of the nearest where the query allows for them."""
    if semantic_index is None:
        return {}
    text = embedded_text(parsed, terms)
    if parsed.phrases or parsed.excluded:  # nothing but what matches by words
        return semantic_index.passage_cosines(connection, text, by_words) if by_words else {}
    similarities = semantic_index.similarities(
        connection,
        text,
        filters.project_id,
        include=by_words,
        exhaustive=condition.sql != "TRUE",  # few of the nearest may pass it
        rescored=rescored,
    )
    cosines = similarities.of(by_words)
    missing = by_words.keys() - cosines.keys()
    if missing:
        cosines |= semantic_index.passage_cosines(connection, text, missing)
    least = -1.0 if parsed.is_sentence else semantic_index.cosine(weights.min_deviations)
    return cosines | _nearest(connection, similarities, condition, limit, least)


def _nearest(
    connection: sqlite3.Connection,
    similarities: "Similarities",
    condition: document_queries.Condition,
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
            passing = passage_index.turn_rows(connection, turns, condition.sql, condition.values)
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
    near = weights.cosine
    scores = {p: near * cosine if cosine > 0 else 0.0 for p, cosine in cosines.items()}
    for passage, score in by_words.items():
        scores[passage] = scores.get(passage, 0.0) + bm25 * score
    # Of equals the lower id: the second sort keeps the order of the first.
    return sorted(sorted(scores), key=scores.__getitem__, reverse=True)[:limit]


def _total_weight(terms: list[Term]) -> float:
    return sum(term.weight for term in terms) or 1.0


def find_evidence(
    rows: Sequence[PassageRow],
    terms: list[Term],
    by_words: dict[int, float],
    cosines: dict[int, float],
    semantic_index: WordSimilarities | None,
) -> list[Candidate]:
    total = _total_weight(terms)
    hashes = [passage_index.hashed(term.stem) for term in terms]
    term_weights = [term.weight for term in terms]
    soft = _soft_words(rows, terms, semantic_index)
    words = list(zip(hashes, term_weights, strict=True))
    candidates: list[Candidate] = []
    for row, similarities in zip(rows, soft, strict=True):
        covered = similar_weight = 0.0
        identity, blob = row.id, row.terms
        is_complete = bool(words) or identity in by_words  # by a phrase
        for (term_hash, weight), similar in zip(words, similarities, strict=True):
            # Most passages hold few of the words: the first look decides without a call.
            if term_hash in blob and passage_index.holds(row, term_hash):
                covered += weight
            else:
                is_complete = False
                similar_weight += weight * similar
        cosine = cosines.get(identity, 0.0)
        evidence = _evidence((
            by_words.get(identity, 0.0) / total,
            cosine if cosine > 0.0 else 0.0,
            covered / total,
            (covered + similar_weight) / total,
            is_complete,
        ))  # fmt: skip
        candidates.append(_candidate((row, evidence)))
    return candidates


def _soft_words(
    rows: Sequence[PassageRow], terms: list[Term], semantic_index: WordSimilarities | None
) -> Sequence[Sequence[float]]:
    if semantic_index is None:
        return [[0.0] * len(terms)] * len(rows)
    words = [term.text for term in terms]
    return semantic_index.soft_words(words, [row.pieces for row in rows])

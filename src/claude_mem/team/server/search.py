"""Search in what projects share: PostgreSQL finds candidates, and the local ranking orders them.

Candidates are passages by words (a GIN index over lexemes) and by vector (pgvector). Their evidence
and their order come from `recall/ranking.py`, so that scores of a team and of the local memory can
be merged.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from claude_mem.index.text.passage_queries import (
    PASSAGE_BITS,
    PassageRow,
    TurnRow,
    inverse_frequency,
)
from claude_mem.index.text.words import is_unspaced
from claude_mem.index.vectors.blocks import QueryVector, quantise
from claude_mem.recall.parsed_query import ParsedQuery, parse_query, stems_of
from claude_mem.recall.ranking import (
    NO_COSINE,
    SEARCH,
    Candidates,
    Neighbourhood,
    RankedTurn,
    Step,
    Term,
    embedded_text,
    find_evidence,
    order,
    texts_by_stem,
)
from claude_mem.recall.search import snippet
from claude_mem.recall.strength import Strength
from claude_mem.recall.weights import WEIGHTS
from claude_mem.team.server import embedding, listing
from claude_mem.team.server.lexemes import Frequencies, any_of, bm25, phrase_query, quoted
from claude_mem.team.server.vectors import Key, PgVectors
from claude_mem.types import Json

if TYPE_CHECKING:
    from claude_mem.team.server.database import Connection

LATEST = 4_000  # turns of a project that a filter compares one by one
MAX_COUNTED = 5_000  # a word in more passages than that is not looked up by itself
MAX_LIMIT = 100
FAR_FUTURE = 1 << 62


@dataclass(frozen=True, slots=True)
class TeamQuery:
    text: str
    projects: tuple[int, ...]
    limit: int
    since: int | None = None
    until: int | None = None
    types: tuple[str, ...] = ()

    @property
    def is_filtered(self) -> bool:
        return self.since is not None or self.until is not None or bool(self.types)


@dataclass(frozen=True, slots=True)
class _Passage:
    project_id: int
    row: PassageRow
    text: str
    lexemes: str
    cosine: float


@dataclass(frozen=True, slots=True)
class _Matches:
    """What the words of a query have found."""

    terms: list[Term]
    total: int  # passages that there are
    keys: frozenset[Key]


class _Turn(NamedTuple):
    row: TurnRow
    record: dict[str, Json]  # as the client gets it


def search(connection: "Connection", query: TeamQuery, now: datetime) -> list[dict[str, Json]]:
    """Searches, best first; without words in the text, lists the newest."""
    parsed = parse_query(query.text, now)
    if parsed.is_empty or not query.projects:
        if query.text.strip() not in ("", "*"):
            return []
        return listing.newest(connection, query.projects, query.limit, query.since, query.until)
    return _Search(connection, query, parsed).results()


class _Search:
    def __init__(self, connection: "Connection", query: TeamQuery, parsed: ParsedQuery) -> None:
        self._connection, self._query, self._parsed = connection, query, parsed
        self._projects = list(query.projects)
        self._project_of: dict[int, int] = {}  # by turn
        self._turns: dict[int, _Turn] = {}
        self._passages: dict[int, _Passage] = {}

    def results(self) -> list[dict[str, Json]]:
        judge, stems = Strength.of(self._parsed), stems_of(self._parsed)
        results: list[dict[str, Json]] = []
        for result in self._rank()[: self._query.limit]:
            passage = self._passages[result.passage] if result.passage is not None else None
            text = passage.text if passage else result.turn.title
            results.append({
                **self._turns[result.turn.id].record,
                "score": round(result.score, 6),
                "snippet": snippet(text, stems),
                "strong": judge.is_strong(result),
            })  # fmt: skip
        return results

    def _rank(self) -> list[RankedTurn]:
        parsed = self._parsed
        matches = self._by_words()
        terms = matches.terms
        is_literal = bool(parsed.phrases or parsed.excluded)
        vector = _vector(parsed, terms)
        near: set[Key] = set()
        if vector is not None and not is_literal:
            store = PgVectors(self._connection)
            near = store.keys(store.nearest(vector, self._projects, SEARCH.by_vector).ids.tolist())
        in_range = self._in_range(None if is_literal else vector)
        keys = matches.keys | near | in_range
        passages = self._passages = self._passing(self._read_passages(keys, vector))
        by_words = self._bm25(matches, in_range, is_literal)
        calibration = embedding.calibration()
        least = -1.0 if parsed.is_sentence else calibration.cosine(WEIGHTS.min_deviations)
        cosines = {
            identity: passage.cosine
            for identity, passage in passages.items()
            if vector is not None
            and (identity in by_words or (passage.cosine >= least and not is_literal))
        }
        excluded = self._excluded()
        ids = _promising(by_words, cosines, terms)
        rows = [passages[i].row for i in ids if passages[i].row.turn not in excluded]
        turns = self._read_turns({row.turn for row in rows})
        close = calibration.cosine(WEIGHTS.min_deviations_in_sentence) if cosines else NO_COSINE
        evidence = find_evidence(rows, terms, by_words, cosines, embedding.similar_words())
        candidates = Candidates(evidence, turns, frozenset(excluded), close)
        return order(candidates, parsed, Neighbourhood(self._steps, self._read_turns))

    def _queries(self) -> tuple[list[str], str | None]:
        """Makes a query for each word, then those for phrases; and what every passage must
        match."""
        parsed = self._parsed
        words = [phrase_query(word.pieces) for word in parsed.words if len(word.pieces) > 1]
        phrases = [phrase_query([phrase.strip('*"')]) for phrase in parsed.phrases]
        queries = [*map(quoted, texts_by_stem(parsed)),
                   *dict.fromkeys(filter(None, (*words, *phrases)))]  # fmt: skip
        return queries, " & ".join(filter(None, phrases)) or None

    def _by_words(self) -> _Matches:
        texts, (queries, required) = texts_by_stem(self._parsed), self._queries()
        row = self._connection.execute(
            "SELECT * FROM matching_passages(%s, %s, %s::text[]::tsquery[], %s::tsquery, %s, %s)",
            (self._projects, len(texts), queries, required, MAX_COUNTED, SEARCH.by_words),
        ).fetchone()
        assert row is not None
        total, counts, *columns = row
        terms = [
            Term(stemmed, text, inverse_frequency(total, min(total, count)), min(total, count))
            for (stemmed, text), count in zip(texts.items(), counts, strict=True)
        ]
        known = [term for term in terms if term.count or not is_unspaced(term.text)]
        keys = zip(*columns, strict=True) if columns[0] else ()
        return _Matches(
            known if any(term.count for term in known) else terms, total, frozenset(keys)
        )

    def _bm25(self, matches: _Matches, in_range: set[Key], is_literal: bool) -> dict[int, float]:
        """Scores the passages that were found by words, and not those that are only near: so it is
        in a local search. A passage that matches otherwise, as by a phrase, has a score of 0."""
        matched, filtered = _ids(matches.keys), _ids(in_range)
        counts = {term.stem: term.count for term in matches.terms}
        words = {i: Frequencies(passage.lexemes) for i, passage in self._passages.items()}
        average = sum(passage.length for passage in words.values()) / max(1, len(words))
        scores = {
            identity: bm25(passage, counts, matches.total, average)
            for identity, passage in words.items()
            if identity in matched or identity in filtered
        }
        return {i: score for i, score in scores.items() if score or i in matched or is_literal}

    def _in_range(self, vector: QueryVector | None) -> set[Key]:
        """Finds, of the latest turns that pass the filters, the passages with most of the words,
        and the nearest if there is a vector."""
        query, (queries, required) = self._query, self._queries()
        if not query.is_filtered:
            return set()
        rows = self._connection.execute(
            "SELECT * FROM passages_in_range(%s, %s::text[]::tsquery[], %s::tsquery, %s::halfvec,"
            " %s, %s, %s, %s, %s, %s)",
            (self._projects, queries, required,
             None if vector is None else embedding.as_text(vector.row), query.since or 0,
             FAR_FUTURE if query.until is None else query.until, list(query.types), LATEST,
             SEARCH.by_words, SEARCH.by_vector),
        )  # fmt: skip
        return set(rows.fetchall())

    def _passing(self, passages: dict[int, _Passage]) -> dict[int, _Passage]:
        """Returns the passages of turns that pass the filters: only so many are ranked."""
        if not self._query.is_filtered:
            return passages
        turns = self._read_turns({passage.row.turn for passage in passages.values()})
        return {i: passage for i, passage in passages.items() if passage.row.turn in turns}

    def _excluded(self) -> set[int]:
        queries = [phrase_query([text.strip('*"')]) for text in self._parsed.excluded]
        if not any(queries):
            return set()
        rows = self._connection.execute(
            "SELECT turn_id FROM turns_by_words(%s, %s::tsquery)",
            (self._projects, any_of(queries)),
        )
        return {row[0] for row in rows}

    def _read_passages(
        self, keys: Iterable[Key], vector: QueryVector | None
    ) -> dict[int, _Passage]:
        """Reads passages by an id as the local index has them."""
        columns = list(zip(*keys, strict=True)) or [(), (), ()]
        rows = self._connection.execute(
            "SELECT * FROM read_passages(%s, %s, %s::smallint[], %s::halfvec)",
            (*map(list, columns), None if vector is None else embedding.as_text(vector.row)),
            binary=True,
        )
        passages = {}
        for project, turn, number, kind, words, names_time, terms, pieces, *rest in rows:
            text, lexemes, cosine = rest
            identity = turn << PASSAGE_BITS | number
            row = PassageRow(identity, kind, words, names_time, bytes(terms), bytes(pieces))
            passages[identity] = _Passage(project, row, text, lexemes, cosine)
            self._project_of[turn] = project
        return passages

    def _read_turns(self, ids: Iterable[int]) -> dict[int, TurnRow]:
        """Reads the turns that pass the filters."""
        query, ids = self._query, list(ids)
        rows = self._connection.execute(
            "SELECT * FROM read_turns(%s, %s)", ([self._project_of[i] for i in ids], ids)
        )
        turns = {turn.row.id: turn for turn in map(_turn, rows)}
        self._turns |= turns
        return {
            identity: turn.row
            for identity, turn in turns.items()
            if (query.since is None or turn.row.created_at_epoch >= query.since)
            and (query.until is None or turn.row.created_at_epoch < query.until)
            and (not query.types or turn.record["type"] in query.types)
        }

    def _steps(self, turns: Sequence[TurnRow]) -> list[Step]:
        rows = self._connection.execute(
            "SELECT * FROM neighbouring_turns(%s, %s, %s, %s::int[], %s, %s)",
            ([self._project_of[t.id] for t in turns], [t.id for t in turns],
             [t.session_id for t in turns], [t.number for t in turns],
             len(WEIGHTS.next_shares), len(WEIGHTS.previous_shares)),
        ).fetchall()  # fmt: skip
        self._project_of |= {other: self._project_of[of] for of, _, other in rows}
        return [(of, int(distance), other) for of, distance, other in rows]


def _ids(keys: Iterable[Key]) -> set[int]:
    """Returns ids as the local index has them."""
    return {turn << PASSAGE_BITS | number for _, turn, number in keys}


def _turn(row: Sequence[Any]) -> _Turn:
    project_id, identity, session_id, number, at, type_, title, stems, words, size, *shown = row
    uid, project, key, owner, is_own = shown
    return _Turn(
        TurnRow(identity, session_id, number, at, 0, title, stems, words),
        listing.record((project_id, identity, uid, at, type_, title, size, project, key, owner,
                        is_own, session_id)),
    )  # fmt: skip


def _vector(parsed: ParsedQuery, terms: list[Term]) -> QueryVector | None:
    """None if the model knows no word of the query."""
    (row,) = quantise(embedding.model().encode([embedded_text(parsed, terms)]))
    return QueryVector(row) if row.any() else None


def _promising(
    by_words: dict[int, float], cosines: dict[int, float], terms: list[Term]
) -> list[int]:
    share = WEIGHTS.bm25 / (sum(term.weight for term in terms) or 1.0)
    scores = {identity: WEIGHTS.cosine * max(0.0, c) for identity, c in cosines.items()}
    for identity, score in by_words.items():
        scores[identity] = scores.get(identity, 0.0) + share * score
    return sorted(scores, key=lambda identity: (-scores[identity], identity))[: SEARCH.read]

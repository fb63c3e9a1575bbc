"""Search in what projects share: PostgreSQL finds candidates, and the local ranking orders them.

Candidates are passages by words (a GIN index over lexemes) and by vector (pgvector). Their evidence
and their order come from `recall/candidates.py` and `recall/ranking.py`, so that scores of a team
and of the local memory can be merged.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from claude_mem.index.text.passage_index import PASSAGE_BITS, PassageRow, TurnRow, inverse_frequency
from claude_mem.index.text.words import is_unspaced, stem
from claude_mem.recall.candidates import (
    NO_COSINE,
    Candidates,
    Term,
    embedded_text,
    find_evidence,
    texts_by_stem,
)
from claude_mem.recall.parsed_query import ParsedQuery, parse_query
from claude_mem.recall.ranking import Neighbourhood, RankedTurn, Step, Strength, order
from claude_mem.recall.snippets import snippet
from claude_mem.recall.weights import WEIGHTS
from claude_mem.team.server import embedding, listing
from claude_mem.team.server.lexemes import any_of, bm25, lexemes_of, phrase_query, quoted
from claude_mem.types import Json

if TYPE_CHECKING:
    from claude_mem.team.server.database import Connection

BY_WORDS, BY_VECTOR, READ = 300, 100, 120  # passages
MOST_COUNTED = 5_000  # a word in more passages than that is not looked up by itself
MAX_LIMIT = 100


@dataclass(frozen=True, slots=True)
class TeamQuery:
    text: str
    projects: tuple[int, ...]
    limit: int
    since: int | None = None
    until: int | None = None
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Passage:
    project_id: int
    row: PassageRow
    text: str
    cosine: float


def search(connection: "Connection", query: TeamQuery, now: datetime) -> list[dict[str, Json]]:
    """Best first; without words in the text, the newest."""
    parsed = parse_query(query.text, now)
    if parsed.is_empty or not query.projects:
        if query.text.strip() not in ("", "*"):
            return []
        return listing.newest(connection, query.projects, query.limit, query.since, query.until)
    ranked, passages = _rank(connection, query, parsed)
    best = ranked[: query.limit]
    rows = listing.turn_records(connection, [(r.turn.project_id, r.turn.id) for r in best])
    judge = Strength.of(parsed)
    results: list[dict[str, Json]] = []
    for result in best:
        record = rows.get((result.turn.project_id, result.turn.id))
        if record is None:
            continue
        passage = passages.get(result.passage) if result.passage is not None else None
        text = passage.text if passage else result.turn.title
        results.append({
            **record,
            "score": round(result.score, 6),
            "snippet": snippet(text, parsed),
            "strong": judge.is_strong(result),
        })  # fmt: skip
    return results


def _rank(
    connection: "Connection", query: TeamQuery, parsed: ParsedQuery
) -> tuple[list[RankedTurn], dict[int, _Passage]]:
    projects = list(query.projects)
    terms, total = _terms(connection, projects, parsed)
    vector = _vector(parsed, terms)
    keys = _by_words(connection, projects, parsed, terms)
    matching = {turn << PASSAGE_BITS | number for _, turn, number in keys}
    is_literal = bool(parsed.phrases or parsed.excluded)
    if vector and not is_literal:
        keys |= _by_vector(connection, projects, vector)
    passages = _read_passages(connection, keys, vector)
    counts = {term.stem: term.count for term in terms}
    words = {p.row.id: lexemes_of(p.text) for p in passages.values()}
    average = sum(map(len, words.values())) / max(1, len(words))
    by_words = {
        identity: score
        for identity, lexemes in words.items()
        if (score := bm25(lexemes, counts, total, average)) or identity in matching
    }
    nearest = embedding.calibration()
    least = -1.0 if parsed.is_sentence else nearest.cosine(WEIGHTS.min_deviations)
    cosines = {
        identity: passage.cosine
        for identity, passage in passages.items()
        if vector and (identity in by_words or (passage.cosine >= least and not is_literal))
    }
    excluded = _excluded(connection, projects, parsed)
    ids = _promising(by_words, cosines, terms)
    rows = [passages[i].row for i in ids if passages[i].row.turn not in excluded]
    turns = _turn_rows(connection, query, {row.turn for row in rows})
    near = nearest.cosine(WEIGHTS.min_deviations_in_sentence) if cosines else NO_COSINE
    evidence = find_evidence(rows, terms, by_words, cosines, _SoftWords())
    candidates = Candidates(tuple(evidence), turns, frozenset(excluded), near)
    return order(candidates, parsed, _neighbourhood(connection, query)), passages


class _SoftWords:
    """What `find_evidence` needs of a semantic index."""

    def soft_words(
        self, words: Sequence[str], passages: Sequence[bytes | None]
    ) -> list[list[float]]:
        similarities: list[list[float]] = (
            embedding.soft_words().similarities(words, passages).tolist()
        )
        return similarities


def _terms(
    connection: "Connection", projects: list[int], parsed: ParsedQuery
) -> tuple[list[Term], int]:
    """The words of the query with their weights, and how many passages there are."""
    texts = texts_by_stem(parsed)
    row = connection.execute(
        "SELECT coalesce(sum(passages), 0)::bigint FROM projects WHERE id = ANY (%s)", (projects,)
    ).fetchone()
    total = int(row[0]) if row else 0
    counts = connection.execute(
        "SELECT place, passages FROM term_counts(%s, %s::text[]::tsquery[], %s) ORDER BY place",
        (projects, [quoted(stemmed) for stemmed in texts], MOST_COUNTED),
    ).fetchall()
    terms = [
        Term(stemmed, text, inverse_frequency(total, min(total, count)), min(total, count))
        for (stemmed, text), (_, count) in zip(texts.items(), counts, strict=True)
    ]
    known = [term for term in terms if term.count or not is_unspaced(term.text)]
    return (known if any(term.count for term in known) else terms), total


def _vector(parsed: ParsedQuery, terms: list[Term]) -> str:
    """Empty if the model knows no word of the query."""
    (row,) = embedding.model().encode([embedded_text(parsed, terms)])
    return embedding.as_text(row) if row.any() else ""


def _by_words(
    connection: "Connection", projects: list[int], parsed: ParsedQuery, terms: list[Term]
) -> set[tuple[int, int, int]]:
    """Words in very many passages count, but are not looked up, unless there are no others."""
    common = {term.stem for term in terms if term.count >= MOST_COUNTED}
    words = [
        word for word in parsed.words if len(word.pieces) > 1 or stem(word.pieces[0]) not in common
    ] or list(parsed.words)
    phrases = [phrase_query([phrase.strip('*"')]) for phrase in parsed.phrases]
    expression = any_of([*(phrase_query(word.pieces) for word in words), *phrases])
    if not expression:
        return set()
    if phrases:
        expression = " & ".join([*phrases, f"({expression})"])
    rows = connection.execute(
        "SELECT * FROM passages_by_words(%s, %s::tsquery, %s::text[]::tsquery[], %s, %s)",
        (projects, expression, [quoted(t.stem) for t in terms], [t.weight for t in terms],
         BY_WORDS),
    )  # fmt: skip
    return set(rows.fetchall())


def _by_vector(
    connection: "Connection", projects: list[int], vector: str
) -> set[tuple[int, int, int]]:
    rows = connection.execute(
        "SELECT * FROM passages_by_vector(%s, %s::halfvec, %s)", (projects, vector, BY_VECTOR)
    )
    return set(rows.fetchall())


def _excluded(connection: "Connection", projects: list[int], parsed: ParsedQuery) -> set[int]:
    queries = [phrase_query([text.strip('*"')]) for text in parsed.excluded]
    if not any(queries):
        return set()
    rows = connection.execute(
        "SELECT turn_id FROM turns_by_words(%s, %s::tsquery)", (projects, any_of(queries))
    )
    return {row[0] for row in rows}


def _read_passages(
    connection: "Connection", keys: Iterable[tuple[int, int, int]], vector: str
) -> dict[int, _Passage]:
    """By an id as the local index has them."""
    columns = list(zip(*keys, strict=True)) or [(), (), ()]
    cosine = "1 - (p.embedding <=> %s::halfvec)" if vector else "0"
    rows = connection.execute(
        f"SELECT p.project_id, p.turn_id, p.number, p.kind, p.words, p.names_time, p.terms,"
        f" p.pieces, p.text, {cosine} FROM unnest(%s::bigint[], %s::bigint[], %s::smallint[])"
        " k(project_id, turn_id, number) JOIN passages p USING (project_id, turn_id, number)",
        (*([vector] if vector else []), *map(list, columns)),
    )
    passages = {}
    for project, turn, number, kind, words, names_time, terms, pieces, text, cosine_ in rows:
        identity = turn << PASSAGE_BITS | number
        row = PassageRow(identity, kind, words, names_time, bytes(terms), bytes(pieces))
        passages[identity] = _Passage(project, row, text, float(cosine_))
    return passages


def _promising(
    by_words: dict[int, float], cosines: dict[int, float], terms: list[Term]
) -> list[int]:
    share = WEIGHTS.bm25 / (sum(term.weight for term in terms) or 1.0)
    scores = {identity: WEIGHTS.cosine * max(0.0, c) for identity, c in cosines.items()}
    for identity, score in by_words.items():
        scores[identity] = scores.get(identity, 0.0) + share * score
    return sorted(scores, key=lambda identity: (-scores[identity], identity))[:READ]


_TURN_COLUMNS = (
    "t.id, t.project_id, t.session_id, t.number, t.created_at_epoch, 0, t.type, t.title,"
    " t.title_stems, t.words, t.size"
)


def _turn_rows(
    connection: "Connection", query: TeamQuery, ids: Iterable[int]
) -> dict[int, TurnRow]:
    rows = connection.execute(
        f"SELECT {_TURN_COLUMNS} FROM turns t WHERE t.project_id = ANY (%s) AND t.id = ANY (%s)"
        " AND (%s::bigint IS NULL OR t.created_at_epoch >= %s)"
        " AND (%s::bigint IS NULL OR t.created_at_epoch < %s)"
        " AND (%s::text[] = '{}' OR t.type = ANY (%s))",
        (list(query.projects), list(ids), query.since, query.since, query.until, query.until,
         list(query.types), list(query.types)),
    )  # fmt: skip
    return {row[0]: TurnRow._make(row) for row in rows}


def _neighbourhood(connection: "Connection", query: TeamQuery) -> Neighbourhood:
    def steps(turns: Sequence[TurnRow]) -> list[Step]:
        rows = connection.execute(
            "SELECT k.id, n.distance, n.id FROM"
            " unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::int[])"
            " k(project_id, id, session_id, number) CROSS JOIN LATERAL ("
            " (SELECT id, row_number() OVER (ORDER BY number) AS distance FROM turns t"
            "  WHERE t.project_id = k.project_id AND t.session_id = k.session_id"
            "  AND t.number > k.number ORDER BY number LIMIT %s) UNION ALL"
            " (SELECT id, -row_number() OVER (ORDER BY number DESC) FROM turns t"
            "  WHERE t.project_id = k.project_id AND t.session_id = k.session_id"
            "  AND t.number < k.number ORDER BY number DESC LIMIT %s)) n",
            ([t.project_id for t in turns], [t.id for t in turns], [t.session_id for t in turns],
             [t.number for t in turns], len(WEIGHTS.next_shares), len(WEIGHTS.previous_shares)),
        )  # fmt: skip
        return [(of, int(distance), other) for of, distance, other in rows]

    return Neighbourhood(steps, lambda ids: _turn_rows(connection, query, ids))

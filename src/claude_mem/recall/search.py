"""Search, the first of the three steps: which memories match, in one line each, by id."""

import logging
import sqlite3
from dataclasses import dataclass, replace
from datetime import datetime

from claude_mem.errors import EmbedderError
from claude_mem.index.text import full_text, matches
from claude_mem.index.text.matches import Match
from claude_mem.index.vectors import duplicates
from claude_mem.index.vectors.semantic import SemanticIndex
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.parsed_text import ParsedText, content_word_forms, parse_text
from claude_mem.recall.query import Query
from claude_mem.recall.ranking import WEIGHTS, Ranked, Scores, Weights, rank
from claude_mem.recall.tokens import tokens_of_bytes
from claude_mem.store import StoreReader
from claude_mem.store.clock import iso
from claude_mem.store.projects import project_names
from claude_mem.types import Json

log = logging.getLogger("claude_mem.search")

EVERYTHING = "*"  # a query text for everything that passes the filters


@dataclass(frozen=True, slots=True)
class Row:
    """A memory as a search result: enough to decide whether to read it."""

    id: MemoryId
    created_at_epoch: int
    type: str
    title: str
    file: str | None
    tokens: int
    project: str
    session_db_id: int
    score: float
    also: tuple[MemoryId, ...] = ()  # its duplicates that match too

    def record(self) -> dict[str, Json]:
        return {
            "id": str(self.id),
            "kind": self.id.kind,
            "memory_id": self.id.number,
            "created_at": iso(self.created_at_epoch),
            "created_at_epoch": self.created_at_epoch,
            "type": self.type,
            "title": self.title,
            "file": self.file,
            "tokens": self.tokens,
            "project": self.project,
            "session_db_id": self.session_db_id,
            "score": round(self.score, 3),
            "also": [str(memory_id) for memory_id in self.also],
        }


@dataclass(frozen=True, slots=True)
class SearchResult:
    rows: tuple[Row, ...]
    has_more: bool
    waiting: int  # memories that are not indexed yet
    embedder_error: str | None = None  # why it was searched by words only


def search(
    store: StoreReader,
    query: Query,
    now: datetime,
    semantic_index: SemanticIndex | None = None,
    weights: Weights = WEIGHTS,
) -> SearchResult:
    """By words, and by meaning where there is a semantic index."""
    parsed = parse_text(query.text, now)

    def work(connection: sqlite3.Connection) -> SearchResult:
        waiting = full_text.waiting(connection)
        if not full_text.is_current(connection):
            return SearchResult((), False, waiting)
        if not _can_match(query, parsed):
            return SearchResult((), False, 0)
        error = None
        try:
            rows = _find(connection, query, parsed, weights, semantic_index)
        except EmbedderError as embedder_error:
            error = str(embedder_error)
            log.warning("searching by words only: %s", error)
            rows = _find(connection, query, parsed, weights, None)
        return SearchResult(tuple(rows[: query.limit]), len(rows) > query.limit, waiting, error)

    return store.read(work)


def _can_match(query: Query, parsed: ParsedText) -> bool:
    """A text without words, like a lone emoji, matches nothing; `*` and exclusions match
    everything else that passes the filters."""
    if not query.text or not parsed.is_empty:
        return True
    is_filter_only = bool(parsed.excluded) or parsed.text.strip() in ("", EVERYTHING)
    return bool(query.filters) and is_filter_only


def _find(
    connection: sqlite3.Connection,
    query: Query,
    parsed: ParsedText,
    weights: Weights,
    semantic_index: SemanticIndex | None,
) -> list[Row]:
    """One row more than the limit, where there are more."""
    if parsed.is_empty:
        return as_rows(connection, matches.newest(
            connection, query.filters, query.limit + 1, query.offset,
            oldest=query.order == "date_asc", without=parsed.excluded,
        ))  # fmt: skip
    parsed = with_occasions(connection, parsed, query.filters.project_id)
    end = query.offset + query.limit + 1
    ranked = rank(connection, parsed, query.filters, end, weights, semantic_index)
    ranked, also = _merge_duplicates(connection, ranked)
    if query.order != "relevance":
        newest_first = query.order == "date_desc"
        ranked.sort(key=lambda r: (r[0].created_at_epoch, r[0].document), reverse=newest_first)
    scores = {match.document: score for match, score in ranked[query.offset : end]}
    rows = as_rows(connection, matches.get(connection, list(scores)), scores)
    return [replace(row, also=also.get(row.id.document, ())) for row in rows]


def _merge_duplicates(
    connection: sqlite3.Connection, ranked: Ranked
) -> tuple[Ranked, dict[int, tuple[MemoryId, ...]]]:
    """The best of each group of duplicates, and by its document the ids of the others."""
    places = {match.document: place for place, (match, _) in enumerate(ranked)}
    duplicates_of = duplicates.of(connection, places)
    remaining: Ranked = []
    also: dict[int, tuple[MemoryId, ...]] = {}
    merged: set[int] = set()
    for match, score in ranked:
        document = match.document
        if document in merged:
            continue
        later = [
            duplicate
            for duplicate in duplicates_of.get(document, ())
            if duplicate not in merged and places.get(duplicate, -1) > places[document]
        ]
        merged.update(later)
        remaining.append((match, score))
        also[document] = tuple(map(MemoryId.of_document, later))
    return remaining, also


def with_occasions(
    connection: sqlite3.Connection, parsed: ParsedText, project_id: int | None
) -> ParsedText:
    """Resolves "before the release" to the time of the newest memory whose title names it."""
    spans = list(parsed.spans)
    for occasion in parsed.occasions:
        moment = matches.newest_named(connection, content_word_forms(occasion.words), project_id)
        if moment is not None:
            spans.append(occasion.span_around(moment))
    return replace(parsed, spans=tuple(spans), occasions=()) if parsed.occasions else parsed


def as_rows(
    connection: sqlite3.Connection, documents: list[Match], scores: Scores | None = None
) -> list[Row]:
    names = project_names(connection)
    return [
        Row(
            id=MemoryId.of_document(match.document),
            created_at_epoch=match.created_at_epoch,
            type=match.type,
            title=match.title,
            file=match.file,
            tokens=tokens_of_bytes(match.size),
            project=names.get(match.project_id, ""),
            session_db_id=match.session_id,
            score=scores[match.document] if scores else 0.0,
        )
        for match in documents
    ]

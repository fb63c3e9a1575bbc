"""Timeline, the second step: the memories before and after one, in the order of time."""

import asyncio
import sqlite3
from dataclasses import dataclass, replace
from datetime import datetime

from claude_mem.errors import NotFound
from claude_mem.index import indexing
from claude_mem.index.text import document_queries, passage_queries
from claude_mem.index.text.documents import KINDS
from claude_mem.index.text.filters import NO_FILTERS, Filters
from claude_mem.index.text.passage_queries import Match
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.search import Query, SearchRow, as_rows, search
from claude_mem.store import StoreReader

DEFAULT_DEPTH = 10


@dataclass(frozen=True, slots=True)
class TimelineQuery:
    """A query around a memory; without one, around the best match of a text."""

    anchor: MemoryId | None = None
    text: str = ""
    before: int = DEFAULT_DEPTH
    after: int = DEFAULT_DEPTH
    filters: Filters = NO_FILTERS


@dataclass(frozen=True, slots=True)
class Timeline:
    anchor: SearchRow
    rows: tuple[SearchRow, ...]  # oldest first, with the anchor


async def timeline_in_thread(
    store: StoreReader, semantic_index: SemanticIndex | None, query: TimelineQuery, now: datetime
) -> Timeline | None:
    return await asyncio.to_thread(timeline, store, query, now, semantic_index)


def timeline(
    store: StoreReader,
    query: TimelineQuery,
    now: datetime,
    semantic_index: SemanticIndex | None = None,
) -> Timeline | None:
    """Lists what surrounds the anchor, within its project; None when nothing matches the text."""
    anchor = query.anchor
    if anchor is None:
        result = search(store, Query(query.text, query.filters, limit=1), now, semantic_index)
        if not result.rows:
            return None
        anchor = result.rows[0].id
    return store.read(lambda connection: _around(connection, anchor, query))


def _around(connection: sqlite3.Connection, anchor: MemoryId, query: TimelineQuery) -> Timeline:
    is_local = anchor.kind in KINDS  # not of a team
    indexed = is_local and indexing.is_current(connection)
    anchors = passage_queries.get_matches(connection, [anchor.document]) if indexed else []
    if not anchors:
        raise NotFound(f"there is no memory {anchor}")
    middle, filters = anchors[0], query.filters
    if filters.project_id is None:
        filters = replace(filters, project_id=middle.project_id)
    documents: list[Match] = [
        *document_queries.in_order(connection, middle, filters, query.before, backwards=True)[::-1],
        middle,
        *document_queries.in_order(connection, middle, filters, query.after),
    ]
    rows = as_rows(connection, documents)
    return Timeline(rows[documents.index(middle)], tuple(rows))


def around_moment(
    store: StoreReader, project_id: int, moment: int, query: TimelineQuery
) -> tuple[SearchRow, ...]:
    """The memories before and after a moment, oldest first."""
    middle = Match(0, project_id, 0, 0, moment, "", "", None, 0)
    filters = replace(query.filters, project_id=project_id)

    def work(connection: sqlite3.Connection) -> tuple[SearchRow, ...]:
        if not indexing.is_current(connection):
            return ()
        documents = [
            *document_queries.in_order(connection, middle, filters, query.before, backwards=True)[
                ::-1
            ],
            *document_queries.in_order(connection, middle, filters, query.after),
        ]
        return tuple(as_rows(connection, documents))

    return store.read(work)

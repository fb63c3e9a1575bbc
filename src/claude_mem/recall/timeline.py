"""Timeline, the second step: what stood around a memory, in the order in which it happened."""

import sqlite3
from dataclasses import dataclass, replace
from datetime import datetime

from claude_mem.errors import BadInput, NotFound
from claude_mem.index.text import full_text, matches
from claude_mem.index.text.documents import document_id
from claude_mem.index.text.matches import Filters, Match
from claude_mem.index.vectors.semantic import SemanticIndex
from claude_mem.recall.search import MARKS, Row, as_rows, search
from claude_mem.store import StoreReader

DEPTH = 10
_KINDS = {mark: kind for kind, mark in MARKS.items()} | {"#": "observation"}


@dataclass(frozen=True, slots=True)
class Timeline:
    anchor: Row
    rows: tuple[Row, ...]  # the oldest first, the anchor among them


def read_anchor(text: str) -> tuple[str, int] | None:
    """12 or #12 an observation, S3 a summary, P4 a prompt; None: it is none of them."""
    mark = "" if text[:1].isdecimal() else text[:1].upper()
    digits = text[1:] if mark else text
    if mark not in _KINDS or not (digits.isascii() and digits.isdecimal() and len(digits) < 19):
        return None
    return _KINDS[mark], int(digits)


def timeline(
    store: StoreReader,
    anchor: str,
    before: int = DEPTH,
    after: int = DEPTH,
    filters: Filters = Filters(),  # noqa: B008 - frozen
) -> Timeline:
    """Around an id, in its project."""
    known = read_anchor(anchor)
    if known is None:
        raise BadInput(f"{anchor[:80]!r} is not an id: 12, S3 or P4", "anchor")
    return store.read(lambda c: _around(c, anchor, document_id(*known), before, after, filters))


def timeline_by_query(
    store: StoreReader,
    query: str,
    now: datetime,
    before: int = DEPTH,
    after: int = DEPTH,
    filters: Filters = Filters(),  # noqa: B008 - frozen
    meaning: SemanticIndex | None = None,
) -> Timeline | None:
    """Around what answers the question best; None when nothing does."""
    found = search(store, query, now, filters, limit=1, meaning=meaning)
    if not found.rows:
        return None
    return timeline(store, found.rows[0].id, before, after, filters)


def _around(
    connection: sqlite3.Connection,
    name: str,
    document: int,
    before: int,
    after: int,
    filters: Filters,
) -> Timeline:
    indexed = full_text.is_current(connection)
    there = matches.get(connection, [document]) if indexed else []
    if not there:
        raise NotFound(f"there is nothing with the id {name}")
    anchor = there[0]
    if filters.project_id is None:
        filters = replace(filters, project_id=anchor.project_id)
    found: list[Match] = [
        *matches.in_order(connection, anchor, filters, before, backwards=True)[::-1],
        anchor,
        *matches.in_order(connection, anchor, filters, after),
    ]
    rows = as_rows(connection, found)
    return Timeline(rows[found.index(anchor)], tuple(rows))

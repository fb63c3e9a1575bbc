"""Facts as they are listed: with their project and the memories that they come from."""

import json
import sqlite3
from collections.abc import Sequence

from claude_mem.store.clock import iso
from claude_mem.store.memory_rows import JsonRow
from claude_mem.store.outside_words import IS_OUTSIDE
from claude_mem.store.projects import DISPLAY_NAME_SQL
from claude_mem.types import FactKind, FactStatus, Json

MAX_SOURCES = 20  # of each fact, the latest
_FACTS = (
    f"SELECT m.*, {DISPLAY_NAME_SQL} AS project, p.key AS project_key,"
    # The origin of a rule is always the user; somebody else's is a candidate without own turns.
    " CASE WHEN m.kind = 'rule' AND m.status = 'candidate' AND NOT EXISTS (SELECT 1 FROM"
    f" fact_sources s WHERE s.fact_id = m.id AND NOT {IS_OUTSIDE.format('s.turn_id')})"
    " THEN 'outside' ELSE m.origin END AS whose,"
    " coalesce((SELECT note FROM fact_sources s WHERE s.fact_id = m.id"
    " ORDER BY seen_at_epoch DESC, turn_id DESC LIMIT 1), '') AS note"
    " FROM facts m JOIN projects p ON p.id = m.project_id"
)
# The memory that stands for the turn, by its id as search shows it.
_SOURCES = (
    "SELECT coalesce((SELECT o.id FROM observations o WHERE o.turn_id = s.turn_id"
    " ORDER BY o.ordinal LIMIT 1), 'S' || (SELECT x.id FROM session_summaries x"
    " WHERE x.turn_id = s.turn_id), 'P' || s.turn_id) FROM fact_sources s WHERE s.fact_id = ?"
    " GROUP BY s.turn_id ORDER BY max(s.seen_at_epoch) DESC, s.turn_id DESC LIMIT ?"
)


def list_records(
    connection: sqlite3.Connection,
    project_id: int | None = None,
    kinds: Sequence[FactKind] = (),
    statuses: Sequence[FactStatus] = (),
    limit: int = -1,
    offset: int = 0,
) -> list[JsonRow]:
    """Lists facts, first those that hold, then candidates; of them first the pinned ones, those of
    the most turns, and the latest."""
    rows = connection.execute(
        f"{_FACTS} WHERE (?1 IS NULL OR m.project_id = ?1)"
        " AND (?2 = '[]' OR m.kind IN (SELECT value FROM json_each(?2)))"
        " AND (?3 = '[]' OR m.status IN (SELECT value FROM json_each(?3)))"
        " ORDER BY CASE m.status WHEN 'holds' THEN 0 WHEN 'candidate' THEN 1 ELSE 2 END,"
        " m.pinned DESC, m.count DESC, m.last_seen_epoch DESC, m.id LIMIT ?4 OFFSET ?5",
        (project_id, json.dumps(list(kinds)), json.dumps(list(statuses)), limit, offset),
    ).fetchall()
    return [_record(connection, row) for row in rows]


def get_record(connection: sqlite3.Connection, fact_id: int) -> JsonRow | None:
    row = connection.execute(f"{_FACTS} WHERE m.id = ?", (fact_id,)).fetchone()
    return _record(connection, row) if row is not None else None


def _record(connection: sqlite3.Connection, row: sqlite3.Row) -> JsonRow:
    sources: list[Json] = [
        str(source) for (source,) in connection.execute(_SOURCES, (row["id"], MAX_SOURCES))
    ]
    return {
        "id": row["id"],
        "project": row["project"],
        "project_key": row["project_key"],
        "kind": row["kind"],
        "subject": row["subject"],
        "value": row["value"],
        "scope": row["scope"],
        "origin": row["whose"],
        "status": row["status"],
        "note": row["note"],
        "count": row["count"],
        "first_seen": iso(row["first_seen_epoch"]),
        "first_seen_epoch": row["first_seen_epoch"],
        "last_seen": iso(row["last_seen_epoch"]),
        "last_seen_epoch": row["last_seen_epoch"],
        "superseded_by": row["superseded_by"],
        "edited": row["original_value"] is not None,
        "pinned": bool(row["pinned"]),
        "wrong": row["status"] == "wrong",
        "sources": sources,
    }

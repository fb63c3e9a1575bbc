"""What the context of a new session is built from: the latest sessions and memories of a project
that are not wrong, and those that are pinned."""

import json
import sqlite3
from collections.abc import Sequence

from claude_mem.store.json_rows import OBSERVATIONS, SELECTS, SESSIONS, JsonRow, as_json_row

_NOT_WRONG = "m.wrong = 0 AND m.turn_id NOT IN (SELECT turn_id FROM wrong_turns)"


def pinned(connection: sqlite3.Connection, project_id: int) -> list[JsonRow]:
    """Pinned observations, summaries and prompts as lines, the latest first.

    For the order of a union SQLite would walk through all rows by time; few are pinned."""
    rows = connection.execute(
        "SELECT '#' || m.id AS id, coalesce(m.title, m.narrative) AS text, 0 AS prompt,"
        " m.created_at, m.created_at_epoch, m.changed_by FROM observations m"
        " INDEXED BY pinned_observations WHERE m.project_id = ?1"
        f" AND m.pinned <> 0 AND {_NOT_WRONG}"
        " UNION ALL SELECT 'S' || m.id, coalesce(m.completed, m.learned, m.request), 0,"
        " m.created_at, m.created_at_epoch, m.changed_by FROM session_summaries m"
        " INDEXED BY pinned_session_summaries WHERE m.project_id = ?1"
        f" AND m.pinned <> 0 AND {_NOT_WRONG}"
        " UNION ALL SELECT 'P' || m.id, m.prompt_text, 1,"
        " m.created_at, m.created_at_epoch, m.changed_by"
        " FROM user_prompts m INDEXED BY pinned_user_prompts WHERE m.project_id = ?1"
        " AND m.pinned <> 0 AND m.wrong = 0"
        " AND m.private = 0 AND m.prompt_text IS NOT NULL ORDER BY 5 DESC, 1",
        (project_id,),
    )
    return [as_json_row(row) for row in rows]


def recent(
    connection: sqlite3.Connection,
    noun: str,
    project_id: int,
    limit: int,
    without_session: str | None = None,
) -> list[JsonRow]:
    """The newest rows of a project that are not wrong, optionally without those of one session."""
    rows = connection.execute(
        f"{SELECTS[noun]} WHERE m.project_id = ? AND s.content_session_id IS NOT ?"
        f" AND {_NOT_WRONG} AND m.observer <> 'client-file'"  # the client loads it itself
        " ORDER BY m.created_at_epoch DESC, m.id DESC LIMIT ?",
        (project_id, without_session, limit),
    )
    return [as_json_row(row) for row in rows]


def observations_of_sessions(
    connection: sqlite3.Connection, content_session_ids: Sequence[str], limit: int = 400
) -> list[JsonRow]:
    """The latest of them that are not wrong, oldest first."""
    rows = connection.execute(
        f"{OBSERVATIONS} WHERE s.content_session_id IN (SELECT value FROM json_each(?))"
        f" AND {_NOT_WRONG}"
        " ORDER BY m.created_at_epoch DESC, m.id DESC LIMIT ?",
        (json.dumps(list(content_session_ids)), limit),
    )
    return [as_json_row(row) for row in rows][::-1]


def recent_sessions(
    connection: sqlite3.Connection,
    project_id: int,
    limit: int,
    without_session: str | None = None,
) -> list[JsonRow]:
    """By their newest memory, so that a session without any changes nothing."""
    rows = connection.execute(
        f"{SESSIONS} JOIN (SELECT memory_session_id, max(created_at_epoch) AS at FROM"
        " (SELECT memory_session_id, created_at_epoch FROM session_summaries WHERE project_id = ?"
        "  ORDER BY created_at_epoch DESC, id DESC LIMIT 200) GROUP BY memory_session_id) newest"
        " ON newest.memory_session_id = m.memory_session_id"
        " WHERE m.content_session_id IS NOT ? ORDER BY newest.at DESC, m.id DESC LIMIT ?",
        (project_id, without_session, limit),
    )
    return [as_json_row(row) for row in rows]

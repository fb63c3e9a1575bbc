"""Pages, batches and counts for the API and the command line.

Their cost does not grow with the database.
"""

import json
import sqlite3
from dataclasses import dataclass

from claude_mem.store.memory_rows import SELECTS, SESSIONS, JsonRow, as_json_row
from claude_mem.types import Json


@dataclass(frozen=True, slots=True)
class Page:
    """`before` is the last id of the previous page; `offset` is for older clients."""

    limit: int = 20
    offset: int = 0
    before: int | None = None


def list_page(
    connection: sqlite3.Connection, noun: str, page: Page, project_id: int | None = None
) -> tuple[list[JsonRow], bool]:
    """Lists a page, newest first; also returns whether there are more."""
    select = SELECTS[noun]
    glue = " AND " if " WHERE " in select else " WHERE "
    conditions, values = _conditions(page, project_id)
    if conditions:
        select += glue + " AND ".join(conditions)
    rows = connection.execute(
        f"{select} ORDER BY m.id DESC LIMIT ? OFFSET ?", (*values, page.limit + 1, page.offset)
    ).fetchall()
    return [as_json_row(row) for row in rows[: page.limit]], len(rows) > page.limit


def _conditions(page: Page, project_id: int | None) -> tuple[list[str], list[int]]:
    conditions: list[str] = []
    values: list[int] = []
    if project_id is not None:
        conditions.append("m.project_id = ?")
        values.append(project_id)
    if page.before is not None:
        conditions.append("m.id < ?")
        values.append(page.before)
    return conditions, values


def list_sessions(
    connection: sqlite3.Connection, page: Page, project_id: int | None = None
) -> tuple[list[JsonRow], bool]:
    """Lists sessions by last activity, without those that never had a prompt."""
    where, values = "WHERE m.prompt_counter > 0", []
    if project_id is not None:
        where += " AND m.project_id = ?"
        values.append(project_id)
    if page.before is not None:
        where += (
            " AND (m.updated_at_epoch, m.id) <"
            " (SELECT updated_at_epoch, id FROM sdk_sessions WHERE id = ?)"
        )
        values.append(page.before)
    rows = connection.execute(
        f"{SESSIONS} {where} ORDER BY m.updated_at_epoch DESC, m.id DESC LIMIT ? OFFSET ?",
        (*values, page.limit + 1, page.offset),
    ).fetchall()
    return [as_json_row(row) for row in rows[: page.limit]], len(rows) > page.limit


def get_many(connection: sqlite3.Connection, noun: str, ids: list[int]) -> list[JsonRow]:
    """Returns rows in the order of `ids`, each once; ids that do not exist are left out."""
    select = SELECTS[noun]
    glue = " AND " if " WHERE " in select else " WHERE "
    unique_ids = list(dict.fromkeys(ids))
    rows = connection.execute(
        f"{select}{glue}m.id IN (SELECT value FROM json_each(?))", (json.dumps(unique_ids),)
    ).fetchall()
    records = {row["id"]: as_json_row(row) for row in rows}
    return [records[identity] for identity in unique_ids if identity in records]


def get_session(connection: sqlite3.Connection, column: str, value: int | str) -> JsonRow | None:
    row = connection.execute(f"{SESSIONS} WHERE m.{column} = ?", (value,)).fetchone()
    return as_json_row(row) if row else None


def memories_of_session(connection: sqlite3.Connection, session_db_id: int) -> dict[str, Json]:
    session = get_session(connection, "id", session_db_id)
    memory_session_id = session["memory_session_id"] if session else None
    memories: dict[str, Json] = {}
    for noun in ("summaries", "observations"):
        rows = connection.execute(
            f"{SELECTS[noun]} WHERE m.memory_session_id = ? ORDER BY m.prompt_number, m.id",
            (memory_session_id,),
        )
        memories[noun] = [as_json_row(row) for row in rows]
    rows = connection.execute(
        f"{SELECTS['prompts']} AND m.session_id = ? ORDER BY m.prompt_number", (session_db_id,)
    )
    memories["prompts"] = [as_json_row(row) for row in rows]
    return memories


def memories_of_turn(connection: sqlite3.Connection, turn_id: int) -> list[JsonRow]:
    """Returns the summary and observations of a turn, each with its `kind`."""
    memories: list[JsonRow] = []
    for noun, kind in (("summaries", "summary"), ("observations", "observation")):
        rows = connection.execute(f"{SELECTS[noun]} WHERE m.turn_id = ? ORDER BY m.id", (turn_id,))
        memories += ({**as_json_row(row), "kind": kind} for row in rows)
    return memories


def list_projects(connection: sqlite3.Connection) -> list[JsonRow]:
    rows = connection.execute(
        "SELECT p.key, p.name,"
        " (SELECT count(*) FROM sdk_sessions s WHERE s.project_id = p.id AND prompt_counter > 0)"
        "   AS sessions,"
        " (SELECT count(*) FROM observations o WHERE o.project_id = p.id) AS observations,"
        " (SELECT max(updated_at_epoch) FROM sdk_sessions s WHERE s.project_id = p.id)"
        "   AS updated_at_epoch"
        " FROM projects p ORDER BY updated_at_epoch DESC, p.key"
    )
    return [as_json_row(row) for row in rows]


@dataclass(frozen=True, slots=True)
class RememberedCounts:
    sessions: int
    projects: int


def remembered_counts(connection: sqlite3.Connection) -> RememberedCounts:
    row = connection.execute(
        "SELECT count(*), count(DISTINCT s.project_id) FROM sdk_sessions s WHERE EXISTS"
        " (SELECT 1 FROM session_summaries m WHERE m.memory_session_id = s.memory_session_id)"
    ).fetchone()
    return RememberedCounts(*row)


# SQLite counts a table by its pages, but a condition by reading every row: both have an index.
_UNLISTED_SESSION = "prompt_counter = 0"  # as in list_sessions
_WITHOUT_TEXT = "private OR coalesce(prompt_text, '') = ''"


def table_counts(connection: sqlite3.Connection) -> dict[str, int]:
    tables = {
        "sessions": "sdk_sessions",
        "prompts": "user_prompts",
        "events": "tool_events",
        "observations": "observations",
        "summaries": "session_summaries",
        "projects": "projects",
    }
    counts = {
        noun: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for noun, table in tables.items()
    }
    unlisted = f"SELECT count(*) FROM sdk_sessions WHERE {_UNLISTED_SESSION}"
    counts["sessions"] -= connection.execute(unlisted).fetchone()[0]
    without_text = f"SELECT count(*) FROM user_prompts WHERE {_WITHOUT_TEXT}"
    counts["prompts"] -= connection.execute(without_text).fetchone()[0]
    return counts


def dead_letters(connection: sqlite3.Connection, limit: int = 20) -> list[JsonRow]:
    rows = connection.execute(
        "SELECT m.id, s.content_session_id, t.prompt_number, m.attempts, m.last_error"
        " FROM pending_messages m JOIN sdk_sessions s ON s.id = m.session_id"
        " JOIN user_prompts t ON t.id = m.turn_id WHERE m.status = 'dead' ORDER BY m.id LIMIT ?",
        (limit,),
    )
    return [as_json_row(row) for row in rows]


def event_sources(connection: sqlite3.Connection, noun: str, memory_id: int) -> list[JsonRow]:
    """The events behind an `observation` or `summary`."""
    rows = connection.execute(
        "SELECT e.id, e.event, e.tool_name, e.tool_use_id, e.agent_id, e.created_at_epoch"
        f" FROM {noun}_events l JOIN tool_events e ON e.id = l.event_id WHERE l.{noun}_id = ?"
        " ORDER BY e.id",
        (memory_id,),
    )
    return [as_json_row(row) for row in rows]

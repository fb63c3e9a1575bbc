"""Queries for pages, batches and counts, whose cost does not grow with the database."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from claude_mem.store.projects import SHOWN
from claude_mem.types import Json
from claude_mem.word_runs import has_run

JsonRow = dict[str, Json]
_LISTS = (
    "facts", "concepts", "files_read", "files_modified", "files_edited", "commands", "faults",
    "open_steps",
)  # fmt: skip
_TEXTS = (
    "title", "subtitle", "narrative", "facts", "request", "investigated", "learned", "completed",
    "next_steps", "notes", "faults", "open_steps", "files_read", "files_modified", "files_edited",
)  # fmt: skip
_FLAGS = ("edited", "pinned", "wrong")
_NOT_WRONG = "m.wrong = 0 AND m.turn_id NOT IN (SELECT turn_id FROM wrong_turns)"

# The memory that a memory continues, where its turn belongs to an earlier one.
_CONTINUES = (
    " (SELECT coalesce('#' || (SELECT o.id FROM observations o WHERE o.turn_id = t.parent_turn"
    " ORDER BY o.ordinal LIMIT 1), 'S' || (SELECT x.id FROM session_summaries x"
    " WHERE x.turn_id = t.parent_turn), 'P' || t.parent_turn) FROM user_prompts t"
    " WHERE t.id = m.turn_id AND t.parent_turn IS NOT NULL) AS continues"
)
# Replaced by `origin` in a record.
OUTSIDE = " (SELECT hashes FROM outside_words w WHERE w.turn_id = m.turn_id) AS outside"
_OBSERVATIONS = (
    f"SELECT m.id, m.memory_session_id, s.content_session_id, {SHOWN} AS project,"
    " p.key AS project_key, m.type, m.title, m.subtitle, m.narrative, m.facts, m.concepts,"
    " m.files_read, m.files_modified, m.prompt_number, m.origin, m.observer, m.model,"
    " m.prompt_version,"
    f" m.edited, m.pinned, m.wrong, m.created_at, m.created_at_epoch,{OUTSIDE},{_CONTINUES}"
    " FROM observations m"
    " JOIN projects p ON p.id = m.project_id"
    " JOIN sdk_sessions s ON s.memory_session_id = m.memory_session_id"
)
_TITLES = (  # only what a list shows: the context must be built quickly
    "SELECT m.id, m.type, m.title, m.concepts, m.files_modified, m.created_at, m.observer,"
    " m.pinned, s.content_session_id FROM observations m"
    " JOIN sdk_sessions s ON s.memory_session_id = m.memory_session_id"
)
_SUMMARIES = (
    f"SELECT m.id, m.memory_session_id, s.content_session_id, {SHOWN} AS project,"
    " p.key AS project_key, m.request, m.investigated, m.learned, m.completed, m.next_steps,"
    " m.files_read, m.files_edited, m.notes, m.commands, m.faults, m.open_steps, m.prompt_number,"
    " 'agent' AS origin, m.observer, m.model, m.prompt_version, m.edited, m.pinned, m.wrong,"
    f" m.created_at, m.created_at_epoch,{OUTSIDE},{_CONTINUES}"
    " FROM session_summaries m JOIN projects p ON p.id = m.project_id"
    " JOIN sdk_sessions s ON s.memory_session_id = m.memory_session_id"
)
_PROMPTS = (
    "SELECT m.id, s.id AS session_db_id, s.content_session_id, s.memory_session_id,"
    f" {SHOWN} AS project, p.key AS project_key, m.prompt_number, m.prompt_text,"
    " 'person' AS origin, m.pinned, m.wrong,"
    " m.created_at, m.created_at_epoch FROM user_prompts m JOIN projects p ON p.id = m.project_id"
    " JOIN sdk_sessions s ON s.id = m.session_id"
)
_SESSIONS = (
    f"SELECT m.id, m.content_session_id, m.memory_session_id, {SHOWN} AS project,"
    " p.key AS project_key, m.project_dir, m.title, m.title_source, m.subtitle, m.user_prompt,"
    " m.prompt_counter, m.status, m.dialect, m.started_at, m.started_at_epoch, m.updated_at,"
    " m.updated_at_epoch, m.completed_at, m.completed_at_epoch FROM sdk_sessions m"
    " JOIN projects p ON p.id = m.project_id"
)
_SELECTS = {
    "observations": _OBSERVATIONS,
    "titles": _TITLES,
    "summaries": _SUMMARIES,
    "prompts": f"{_PROMPTS} WHERE m.private = 0 AND m.prompt_text IS NOT NULL",
}


@dataclass(frozen=True, slots=True)
class Page:
    """`before` is the last id of the previous page; `offset` is for older clients."""

    limit: int = 20
    offset: int = 0
    before: int | None = None


def list_page(
    connection: sqlite3.Connection, noun: str, page: Page, project_id: int | None = None
) -> tuple[list[JsonRow], bool]:
    """Newest first, and whether there are more."""
    select = _SELECTS[noun]
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
    """By last activity, without sessions that never had a prompt."""
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
        f"{_SESSIONS} {where} ORDER BY m.updated_at_epoch DESC, m.id DESC LIMIT ? OFFSET ?",
        (*values, page.limit + 1, page.offset),
    ).fetchall()
    return [as_json_row(row) for row in rows[: page.limit]], len(rows) > page.limit


def get_many(connection: sqlite3.Connection, noun: str, ids: list[int]) -> list[JsonRow]:
    """In the order of `ids`, each once; ids that do not exist are left out."""
    select = _SELECTS[noun]
    glue = " AND " if " WHERE " in select else " WHERE "
    unique_ids = list(dict.fromkeys(ids))
    rows = connection.execute(
        f"{select}{glue}m.id IN (SELECT value FROM json_each(?))", (json.dumps(unique_ids),)
    ).fetchall()
    records = {row["id"]: as_json_row(row) for row in rows}
    return [records[identity] for identity in unique_ids if identity in records]


def get_session(connection: sqlite3.Connection, column: str, value: int | str) -> JsonRow | None:
    row = connection.execute(f"{_SESSIONS} WHERE m.{column} = ?", (value,)).fetchone()
    return as_json_row(row) if row else None


def memories_of_session(connection: sqlite3.Connection, session_db_id: int) -> dict[str, Json]:
    session = get_session(connection, "id", session_db_id)
    memory_session_id = session["memory_session_id"] if session else None
    memories: dict[str, Json] = {}
    for noun in ("summaries", "observations"):
        rows = connection.execute(
            f"{_SELECTS[noun]} WHERE m.memory_session_id = ? ORDER BY m.prompt_number, m.id",
            (memory_session_id,),
        )
        memories[noun] = [as_json_row(row) for row in rows]
    rows = connection.execute(
        f"{_SELECTS['prompts']} AND m.session_id = ? ORDER BY m.prompt_number", (session_db_id,)
    )
    memories["prompts"] = [as_json_row(row) for row in rows]
    return memories


def memories_of_turn(connection: sqlite3.Connection, turn_id: int) -> list[JsonRow]:
    """Its summary and observations, each with its `kind`."""
    memories: list[JsonRow] = []
    for noun, kind in (("summaries", "summary"), ("observations", "observation")):
        rows = connection.execute(f"{_SELECTS[noun]} WHERE m.turn_id = ? ORDER BY m.id", (turn_id,))
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
    unlisted = "SELECT count(*) FROM sdk_sessions WHERE prompt_counter = 0"
    counts["sessions"] -= connection.execute(unlisted).fetchone()[0]  # as in list_sessions
    without_text = "SELECT count(*) FROM user_prompts WHERE private OR prompt_text IS NULL"
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


def as_json_row(row: sqlite3.Row) -> JsonRow:
    values: dict[str, Any] = dict(row)
    for name in _LISTS:
        if name in values:
            text = values[name]
            values[name] = [] if text == "[]" else json.loads(text)
    for name in _FLAGS:
        if name in values:
            values[name] = bool(values[name])
    outside = values.pop("outside", None)
    if outside and values["origin"] == "agent" and _has_outside_words(values, outside):
        values["origin"] = "outside"
    return values


def _has_outside_words(memory: JsonRow, hashes: str) -> bool:
    values = (memory.get(name) for name in _TEXTS)
    texts = (
        text
        for value in values
        for text in (value if isinstance(value, list) else [value])
        if text is not None
    )
    outside = frozenset(hashes.split())
    return any(has_run(str(text), outside) for text in texts)


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
        f"{_SELECTS[noun]} WHERE m.project_id = ? AND s.content_session_id IS NOT ?"
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
        f"{_OBSERVATIONS} WHERE s.content_session_id IN (SELECT value FROM json_each(?))"
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
        f"{_SESSIONS} JOIN (SELECT memory_session_id, max(created_at_epoch) AS at FROM"
        " (SELECT memory_session_id, created_at_epoch FROM session_summaries WHERE project_id = ?"
        "  ORDER BY created_at_epoch DESC, id DESC LIMIT 200) GROUP BY memory_session_id) newest"
        " ON newest.memory_session_id = m.memory_session_id"
        " WHERE m.content_session_id IS NOT ? ORDER BY newest.at DESC, m.id DESC LIMIT ?",
        (project_id, without_session, limit),
    )
    return [as_json_row(row) for row in rows]

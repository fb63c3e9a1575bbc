"""Stores a session of the TypeScript claude-mem as one of ours.

A session that hooks or transcripts brought here is left as it is: they know more about it. One
that was imported before gets what is new. Its turns are retired: their events were never here, so
distilling them again would lose their memories.
"""

import sqlite3
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Literal

from claude_mem.store.memories import Origin, save_observation, save_summary
from claude_mem.store.projects import BY_NAME, ensure_project
from claude_mem.store.sessions import (
    OF_TYPESCRIPT,
    NewSession,
    insert_session,
    register_memory_session,
)
from claude_mem.store.tombstones import is_forgotten_session
from claude_mem.store.transfer.typescript.sessions import LegacySession, LegacyTurn
from claude_mem.store.turns import NewTurn, insert_turn
from claude_mem.types import Project

ORIGIN = OF_TYPESCRIPT
Outcome = Literal["added", "updated", "unchanged", "skipped"]
"""`skipped`: the session is here from another source, or was forgotten."""


@dataclass(frozen=True, slots=True)
class ImportedSession:
    outcome: Outcome
    project_id: int
    counts: Counter[str] = field(default_factory=Counter)


def import_session(connection: sqlite3.Connection, session: LegacySession) -> ImportedSession:
    row = connection.execute(
        "SELECT id, project_id, dialect FROM sdk_sessions WHERE content_session_id = ?",
        (session.content_session_id,),
    ).fetchone()
    if row is None and is_forgotten_session(connection, session.content_session_id):
        return ImportedSession("skipped", _project(connection, session.project))
    if row is not None and row["dialect"] != ORIGIN:
        return ImportedSession("skipped", row["project_id"])
    if row is None:
        project_id = _project(connection, session.project)
        session_id = _insert_session(connection, session, project_id)
    else:
        session_id, project_id = row["id"], row["project_id"]
    counts: Counter[str] = Counter()
    for turn in session.turns:
        _save_turn(connection, session, session_id, project_id, turn, counts)
    if row is None:
        return ImportedSession("added", project_id, counts)
    return ImportedSession("updated" if counts.total() else "unchanged", project_id, counts)


def _project(connection: sqlite3.Connection, name: str) -> int:
    """The only project here with that name, else one whose key is made of the name."""
    own_key = f"{BY_NAME}{name}"
    rows = connection.execute(
        "SELECT id FROM projects WHERE name = ? AND key <> ?", (name, own_key)
    ).fetchall()
    return int(rows[0][0]) if len(rows) == 1 else ensure_project(connection, Project(own_key, name))


def _insert_session(connection: sqlite3.Connection, session: LegacySession, project_id: int) -> int:
    row = insert_session(
        connection,
        NewSession(
            content_session_id=session.content_session_id,
            project_id=project_id,
            project_dir="",
            dialect=ORIGIN,
            started_ms=session.started_ms,
            updated_ms=session.updated_ms,
            status=session.status,
            title=session.title,
            user_prompt=next((turn.prompt for turn in session.turns if turn.prompt), None),
        ),
    )
    return int(row["id"])


def _save_turn(
    connection: sqlite3.Connection,
    session: LegacySession,
    session_id: int,
    project_id: int,
    turn: LegacyTurn,
    counts: Counter[str],
) -> None:
    row = _find_turn(connection, session_id, turn)
    if row is None:
        row = _insert_turn(connection, session_id, project_id, turn)
        counts["prompts"] += 1
    if row["private"] or row["sealed"] or not (turn.summary or turn.observations):
        return
    origin = Origin(
        memory_session_id=_memory_session(connection, session, session_id),
        project_id=project_id,
        turn_id=row["id"],
        prompt_number=row["prompt_number"],
        observer=ORIGIN,
        created_ms=turn.started_ms,
    )
    if turn.summary and not _has_summary(connection, row["id"]):
        created = replace(origin, created_ms=turn.summary.created_ms)
        save_summary(connection, turn.summary.summary, created)
        counts["summaries"] += 1
    existing = _ordinals(connection, row["id"])
    for legacy in turn.observations:
        # The row id serves as ordinal: it stays the same whatever is added or deleted there.
        if legacy.row_id not in existing:
            created = replace(origin, created_ms=legacy.created_ms, model=legacy.model)
            save_observation(connection, legacy.observation, created, legacy.row_id)
            counts["observations"] += 1


def _find_turn(
    connection: sqlite3.Connection, session_id: int, turn: LegacyTurn
) -> sqlite3.Row | None:
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM user_prompts WHERE session_id = ? AND prompt_id = ?",
        (session_id, _prompt_id(turn)),
    ).fetchone()
    return row


def _prompt_id(turn: LegacyTurn) -> str:
    return f"{ORIGIN}-{turn.number}"


def _insert_turn(
    connection: sqlite3.Connection, session_id: int, project_id: int, turn: LegacyTurn
) -> sqlite3.Row:
    number = connection.execute(
        "UPDATE sdk_sessions SET prompt_counter = max(prompt_counter + 1, ?) WHERE id = ?"
        " RETURNING prompt_counter",
        (turn.number, session_id),
    ).fetchone()[0]
    return insert_turn(
        connection,
        NewTurn(
            session_id=session_id,
            project_id=project_id,
            prompt_id=_prompt_id(turn),
            number=number,
            created_ms=turn.started_ms,
            prompt=turn.prompt,
            is_private=turn.is_private,
            is_closed=True,
            is_retired=True,
        ),
    )


def _has_summary(connection: sqlite3.Connection, turn_id: int) -> bool:
    row = connection.execute(
        "SELECT 1 FROM session_summaries WHERE turn_id = ?", (turn_id,)
    ).fetchone()
    return row is not None


def _ordinals(connection: sqlite3.Connection, turn_id: int) -> set[int]:
    rows = connection.execute("SELECT ordinal FROM observations WHERE turn_id = ?", (turn_id,))
    return {row[0] for row in rows}


def _memory_session(connection: sqlite3.Connection, session: LegacySession, session_id: int) -> str:
    """Returns the memory session id of the session, unless a different session has it here."""
    duplicate = connection.execute(
        "SELECT 1 FROM sdk_sessions WHERE memory_session_id = ? AND id <> ?",
        (session.memory_session_id, session_id),
    ).fetchone()
    captured = None if duplicate else session.memory_session_id
    return register_memory_session(connection, session_id, captured)

"""A session of the TypeScript claude-mem, kept as one of ours.

A session that hooks or transcripts brought here is left as it is: they know more of it. One that
was adopted before gets what it has gained since. Its turns count as retired: their events were
never here, and to distil them again would undo their memories.
"""

import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from claude_mem.store.clock import iso
from claude_mem.store.forgetting import is_forgotten_session
from claude_mem.store.memories import observation_values, summary_values
from claude_mem.store.projects import ensure_project
from claude_mem.store.sessions import register_memory_session
from claude_mem.store.transfer.typescript.sessions import OldSession, OldTurn
from claude_mem.types import Project

ORIGIN = "claude-mem-ts"


@dataclass(frozen=True, slots=True)
class AdoptedSession:
    outcome: Literal["added", "grown", "known", "kept"]
    """`known`: it came another way before. `kept`: it was adopted before and has nothing new."""
    project_id: int
    counts: Counter[str] = field(default_factory=Counter)


def adopt_session(connection: sqlite3.Connection, session: OldSession) -> AdoptedSession:
    row = connection.execute(
        "SELECT id, project_id, dialect FROM sdk_sessions WHERE content_session_id = ?",
        (session.content_session_id,),
    ).fetchone()
    if row is None and is_forgotten_session(connection, session.content_session_id):
        return AdoptedSession("known", _project(connection, session.project))
    if row is not None and row["dialect"] != ORIGIN:
        return AdoptedSession("known", row["project_id"])
    if row is None:
        project_id = _project(connection, session.project)
        session_id = _insert_session(connection, session, project_id)
    else:
        session_id, project_id = row["id"], row["project_id"]
    counts: Counter[str] = Counter()
    for turn in session.turns:
        _keep_turn(connection, session, session_id, project_id, turn, counts)
    if row is None:
        return AdoptedSession("added", project_id, counts)
    return AdoptedSession("grown" if counts.total() else "kept", project_id, counts)


def _project(connection: sqlite3.Connection, name: str) -> int:
    """It has no more than a name: the one project here that is called so, or one by that name."""
    own_key = f"name:{name}"
    rows = connection.execute(
        "SELECT id FROM projects WHERE name = ? AND key <> ?", (name, own_key)
    ).fetchall()
    return int(rows[0][0]) if len(rows) == 1 else ensure_project(connection, Project(own_key, name))


def _insert_session(connection: sqlite3.Connection, session: OldSession, project_id: int) -> int:
    started, updated = session.started_at, session.updated_at
    prompt = next((turn.prompt for turn in session.turns if turn.prompt), None)
    cursor = connection.execute(
        "INSERT INTO sdk_sessions (content_session_id, project_id, project_dir, dialect, title,"
        " user_prompt, status, started_at, started_at_epoch, updated_at, updated_at_epoch,"
        " completed_at, completed_at_epoch) VALUES (?, ?, '', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (session.content_session_id, project_id, ORIGIN, session.title, prompt, session.status,
         iso(started), started, iso(updated), updated, iso(updated), updated),
    )  # fmt: skip
    return int(cursor.lastrowid or 0)


def _keep_turn(
    connection: sqlite3.Connection,
    session: OldSession,
    session_id: int,
    project_id: int,
    turn: OldTurn,
    counts: Counter[str],
) -> None:
    row = _turn(connection, session_id, turn)
    if row is None:
        _insert_turn(connection, session_id, project_id, turn)
        counts["prompts"] += 1
        row = _turn(connection, session_id, turn)
        assert row is not None
    if row["private"] or row["sealed"] or not (turn.summary or turn.observations):
        return
    origin = {
        "memory_session_id": _memory_session(connection, session, session_id),
        "project_id": project_id,
        "turn_id": row["id"],
        "prompt_number": row["prompt_number"],
        "observer": ORIGIN,
    }
    if turn.summary:
        at, summary = turn.summary
        values = origin | _times(at) | summary_values(summary)
        counts["summaries"] += _insert_new(connection, "session_summaries", values)
    for identity, at, model, observation in turn.observations:
        # Its id there is its place here: the same whatever was added or deleted around it.
        values = origin | _times(at) | {"ordinal": identity, "model": model}
        values |= observation_values(observation)
        counts["observations"] += _insert_new(connection, "observations", values)


def _turn(connection: sqlite3.Connection, session_id: int, turn: OldTurn) -> sqlite3.Row | None:
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM user_prompts WHERE session_id = ? AND prompt_id = ?",
        (session_id, f"{ORIGIN}-{turn.number}"),
    ).fetchone()
    return row


def _insert_turn(
    connection: sqlite3.Connection, session_id: int, project_id: int, turn: OldTurn
) -> None:
    number = connection.execute(
        "UPDATE sdk_sessions SET prompt_counter = max(prompt_counter + 1, ?) WHERE id = ?"
        " RETURNING prompt_counter",
        (turn.number, session_id),
    ).fetchone()[0]
    connection.execute(
        "INSERT INTO user_prompts (session_id, project_id, prompt_id, prompt_number, prompt_text,"
        " private, closed, retired, updated_at_epoch, created_at, created_at_epoch)"
        " VALUES (?, ?, ?, ?, ?, ?, 1, 1, ?, ?, ?)",
        (session_id, project_id, f"{ORIGIN}-{turn.number}", number, turn.prompt,
         turn.is_private, turn.at, iso(turn.at), turn.at),
    )  # fmt: skip


def _memory_session(connection: sqlite3.Connection, session: OldSession, session_id: int) -> str:
    taken = connection.execute(
        "SELECT 1 FROM sdk_sessions WHERE memory_session_id = ? AND id <> ?",
        (session.memory_session_id, session_id),
    ).fetchone()
    return register_memory_session(
        connection, session_id, None if taken else session.memory_session_id
    )


def _times(at: int) -> dict[str, object]:
    return {"created_at": iso(at), "created_at_epoch": at}


def _insert_new(connection: sqlite3.Connection, table: str, values: dict[str, object]) -> int:
    names = ", ".join(values)
    places = ", ".join(f":{name}" for name in values)
    cursor = connection.execute(
        f"INSERT INTO {table} ({names}) VALUES ({places}) ON CONFLICT DO NOTHING", values
    )
    return cursor.rowcount

"""What a person or an agent says is to be remembered: an observation without events.

Each is a turn of its own in a session that a project has for them. Nobody asked anything in that
session, so it has no prompts and is not listed; its turns are retired: nothing distils them.
"""

import hashlib
import json
import sqlite3
import uuid
from dataclasses import astuple, dataclass

from claude_mem.store.clock import iso
from claude_mem.store.forgetting import BY_HAND
from claude_mem.store.memories import observation_values
from claude_mem.store.projects import ensure_project, remember_directory
from claude_mem.store.sessions import register_memory_session
from claude_mem.types import Observation, Project


@dataclass(frozen=True, slots=True)
class SavedMemory:
    id: int
    is_new: bool  # the same said twice is one memory


def save(
    connection: sqlite3.Connection,
    project: Project,
    directory: str,
    observation: Observation,
    observer: str,
    ms: int,
) -> SavedMemory:
    project_id = ensure_project(connection, project)
    if directory:
        remember_directory(connection, directory, project_id, ms)
    session = _session(connection, project_id, directory, ms)
    digest = hashlib.blake2b(json.dumps(astuple(observation)).encode(), digest_size=16).hexdigest()
    known = connection.execute(
        "SELECT m.id FROM user_prompts t JOIN observations m ON m.turn_id = t.id"
        " WHERE t.session_id = ? AND t.prompt_id GLOB ?",
        (session["id"], f"{digest}-*"),
    ).fetchone()
    if known is not None:
        return SavedMemory(int(known[0]), is_new=False)
    number = connection.execute(
        "SELECT coalesce(max(prompt_number), 0) + 1 FROM user_prompts WHERE session_id = ?",
        (session["id"],),
    ).fetchone()[0]
    turn = connection.execute(
        "INSERT INTO user_prompts (session_id, project_id, prompt_id, prompt_number, closed,"
        " retired, updated_at_epoch, created_at, created_at_epoch)"
        " VALUES (?, ?, ?, ?, 1, 1, ?, ?, ?)",
        (session["id"], project_id, f"{digest}-{number}", number, ms, iso(ms), ms),
    )  # fmt: skip
    values = {
        **observation_values(observation),
        "memory_session_id": session["memory_session_id"],
        "project_id": project_id,
        "turn_id": turn.lastrowid,
        "ordinal": 0,
        "prompt_number": number,
        "observer": observer,
        "created_at": iso(ms),
        "created_at_epoch": ms,
    }
    names, places = ", ".join(values), ", ".join(f":{name}" for name in values)
    cursor = connection.execute(f"INSERT INTO observations ({names}) VALUES ({places})", values)
    return SavedMemory(int(cursor.lastrowid or 0), is_new=True)


def _session(
    connection: sqlite3.Connection, project_id: int, directory: str, ms: int
) -> sqlite3.Row:
    row: sqlite3.Row | None = connection.execute(
        "UPDATE sdk_sessions SET updated_at = ?, updated_at_epoch = ? WHERE id ="
        " (SELECT id FROM sdk_sessions WHERE project_id = ? AND dialect = ? ORDER BY id LIMIT 1)"
        " RETURNING *",
        (iso(ms), ms, project_id, BY_HAND),
    ).fetchone()
    if row is not None:
        return row
    cursor = connection.execute(
        "INSERT INTO sdk_sessions (content_session_id, project_id, project_dir, dialect, title,"
        " status, started_at, started_at_epoch, updated_at, updated_at_epoch, completed_at,"
        " completed_at_epoch) VALUES (?, ?, ?, ?, ?, 'completed', ?, ?, ?, ?, ?, ?)",
        (f"hand-{uuid.uuid4().hex}", project_id, directory, BY_HAND, "Saved by hand",
         *(iso(ms), ms) * 3),
    )  # fmt: skip
    register_memory_session(connection, int(cursor.lastrowid or 0))
    made: sqlite3.Row = connection.execute(
        "SELECT * FROM sdk_sessions WHERE id = ?", (cursor.lastrowid,)
    ).fetchone()
    return made

"""The notes of a client as memories of a project, to be searched.

Each file is an observation in the session of saved memories. It changes and goes with its file.
What was forgotten does not come back, and what was edited, pinned or marked stays as it is.
"""

import hashlib
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from claude_mem.store import editing, outside_words, tombstones
from claude_mem.store.memories import CLIENT_FILE, Origin, save_observation
from claude_mem.store.projects import ensure_project, project_by_key
from claude_mem.store.saved_memories import session_of_saved
from claude_mem.store.sessions import MANUAL, register_memory_session
from claude_mem.store.turns import NewTurn, insert_turn
from claude_mem.types import Observation, Project


@dataclass(frozen=True, slots=True)
class NoteMemory:
    path: str
    observation: Observation
    modified_ms: int


def is_current(
    connection: sqlite3.Connection, project: Project, client: str, files: Sequence[NoteMemory]
) -> bool:
    """Whether `save` would change nothing."""
    project_id = project_by_key(connection, project.key)
    stored = _stored(connection, project_id, client) if project_id is not None else {}
    wanted = {_prompt_id(client, file.path): file.observation.narrative for file in files}
    return {name: row["narrative"] for name, row in stored.items()} == wanted


def save(
    connection: sqlite3.Connection,
    project: Project,
    directory: str,
    client: str,
    files: Sequence[NoteMemory],
    ms: int,
    outside: Sequence[str] = (),
) -> int:
    """Makes these the files of the client; returns how many memories changed. `outside`: hashes of
    the words in changed files that the agent has from outside."""
    project_id = project_by_key(connection, project.key)
    if project_id is None and not files:
        return 0
    project_id = ensure_project(connection, project)
    stored = _stored(connection, project_id, client)
    changed = 0
    for file in files:
        prompt_id = _prompt_id(client, file.path)
        row = stored.pop(prompt_id, None)
        if row is None:
            changed += _add(connection, project_id, directory, prompt_id, file, ms, outside)
        elif row["narrative"] != file.observation.narrative and not row["sealed"]:
            changed += _replace(connection, row, file, outside)
    for row in stored.values():
        if not row["sealed"] and not editing.has_protected(connection, row["turn_id"]):
            connection.execute("DELETE FROM user_prompts WHERE id = ?", (row["turn_id"],))
            changed += 1
    return changed


def _stored(connection: sqlite3.Connection, project_id: int, client: str) -> dict[str, sqlite3.Row]:
    rows = connection.execute(
        "SELECT t.id AS turn_id, t.prompt_id, t.prompt_number, t.sealed, t.project_id,"
        " s.memory_session_id, o.narrative FROM sdk_sessions s"
        " JOIN user_prompts t ON t.session_id = s.id LEFT JOIN observations o ON o.turn_id = t.id"
        " WHERE s.project_id = ? AND s.dialect = ? AND t.prompt_id GLOB ?",
        (project_id, MANUAL, f"file-{client}-*"),
    )
    return {row["prompt_id"]: row for row in rows}


def _add(
    connection: sqlite3.Connection,
    project_id: int,
    directory: str,
    prompt_id: str,
    file: NoteMemory,
    ms: int,
    outside: Sequence[str],
) -> bool:
    if tombstones.is_forgotten_turn(connection, prompt_id):
        return False
    session = session_of_saved(connection, project_id, directory, ms)
    number = connection.execute(
        "SELECT coalesce(max(prompt_number), 0) + 1 FROM user_prompts WHERE session_id = ?",
        (session["id"],),
    ).fetchone()[0]
    turn = insert_turn(
        connection,
        NewTurn(session_id=session["id"], project_id=project_id, prompt_id=prompt_id, number=number,
                created_ms=file.modified_ms, is_closed=True, is_retired=True),
    )  # fmt: skip
    memory_session_id = register_memory_session(connection, session["id"])
    origin = Origin(
        memory_session_id, project_id, turn["id"], number, CLIENT_FILE, file.modified_ms
    )
    save_observation(connection, file.observation, origin, 0)
    outside_words.save(connection, turn["id"], outside, ())
    return True


def _replace(
    connection: sqlite3.Connection, row: sqlite3.Row, file: NoteMemory, outside: Sequence[str]
) -> bool:
    if editing.has_protected(connection, row["turn_id"]):
        return False
    origin = Origin(row["memory_session_id"], row["project_id"], row["turn_id"],
                    row["prompt_number"], CLIENT_FILE, file.modified_ms)  # fmt: skip
    save_observation(connection, file.observation, origin, 0)
    outside_words.save(connection, row["turn_id"], outside, ())
    return True


def _prompt_id(client: str, path: str) -> str:
    digest = hashlib.blake2b(path.encode("utf-8", "replace"), digest_size=16).hexdigest()
    return f"file-{client}-{digest}"

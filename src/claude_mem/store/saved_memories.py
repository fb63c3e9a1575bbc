"""Memories that the user or an agent saves explicitly: observations without events.

Each is a turn of its own in one session per project. That session has no prompts, so it is not
listed, and its turns are retired, so they are never distilled.
"""

import hashlib
import json
import sqlite3
import uuid
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

from claude_mem.store import outside_words
from claude_mem.store.clock import iso
from claude_mem.store.facts import replace_facts
from claude_mem.store.memories import Origin, save_observation
from claude_mem.store.projects import ensure_project, remember_directory
from claude_mem.store.sessions import (
    MANUAL,
    NewSession,
    insert_session,
    register_memory_session,
)
from claude_mem.store.turns import NewTurn, insert_turn
from claude_mem.types import Observation, Project, ProposedFact


@dataclass(frozen=True, slots=True)
class SavedMemory:
    id: int
    is_new: bool  # False: the same memory was saved before


def save(
    connection: sqlite3.Connection,
    project: Project,
    directory: str,
    observation: Observation,
    observer: str,
    ms: int,
    outside: Sequence[str] = (),
) -> SavedMemory:
    """`outside`: hashes of the words that the agent has from outside."""
    if outside:
        observation = replace(observation, origin="outside")
    project_id = ensure_project(connection, project)
    if directory:
        remember_directory(connection, directory, project_id, ms)
    session = session_of_saved(connection, project_id, directory, ms)
    digest = hashlib.blake2b(json.dumps(astuple(observation)).encode(), digest_size=16).hexdigest()
    existing = connection.execute(
        "SELECT m.id FROM user_prompts t JOIN observations m ON m.turn_id = t.id"
        " WHERE t.session_id = ? AND t.prompt_id GLOB ? AND t.outside = 0",
        (session["id"], f"{digest}-*"),
    ).fetchone()
    if existing is not None:
        return SavedMemory(int(existing[0]), is_new=False)
    number = connection.execute(
        "SELECT coalesce(max(prompt_number), 0) + 1 FROM user_prompts WHERE session_id = ?",
        (session["id"],),
    ).fetchone()[0]
    turn = insert_turn(
        connection,
        NewTurn(
            session_id=session["id"],
            project_id=project_id,
            prompt_id=f"{digest}-{number}",
            number=number,
            created_ms=ms,
            is_closed=True,
            is_retired=True,
        ),
    )
    memory_session_id = register_memory_session(connection, session["id"])
    origin = Origin(memory_session_id, project_id, turn["id"], number, observer, ms)
    saved = SavedMemory(save_observation(connection, observation, origin, 0), is_new=True)
    if outside:
        outside_words.save(connection, turn["id"], outside, ())
    replace_facts(connection, turn["id"], [_fact(observation, observer)], observer)
    return saved


def _fact(observation: Observation, observer: str) -> ProposedFact:
    """Makes a fact, but never a rule: only what the user typed to the agent makes one. What has
    words from outside is for the user to confirm."""
    title, text = observation.title or "", observation.narrative or ""
    is_beginning = text.startswith(title.rstrip("….")) or not text
    value = (text or title) if is_beginning else f"{title}: {text}"
    if observation.origin == "outside":
        return ProposedFact("decision", "", value, origin="outside", status="candidate")
    return ProposedFact("decision", "", value, origin="person" if observer == "person" else "agent")


def session_of_saved(
    connection: sqlite3.Connection, project_id: int, directory: str, ms: int
) -> sqlite3.Row:
    row: sqlite3.Row | None = connection.execute(
        "UPDATE sdk_sessions SET updated_at = ?, updated_at_epoch = ? WHERE id ="
        " (SELECT id FROM sdk_sessions WHERE project_id = ? AND dialect = ? ORDER BY id LIMIT 1)"
        " RETURNING *",
        (iso(ms), ms, project_id, MANUAL),
    ).fetchone()
    if row is not None:
        return row
    return insert_session(
        connection,
        NewSession(
            content_session_id=f"hand-{uuid.uuid4().hex}",
            project_id=project_id,
            project_dir=directory,
            dialect=MANUAL,
            started_ms=ms,
            updated_ms=ms,
            status="completed",
            title="Saved memories",
        ),
    )

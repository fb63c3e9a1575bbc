"""The hints that prompts were given, for a while: so that a session gets none twice, and so that
the user can see what was given and why. Forgetting deletes them with what they show."""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from claude_mem.store.clock import iso
from claude_mem.store.stored_json import parse_stored
from claude_mem.types import Json

KEEP_MS = 30 * 86_400_000
KEEP_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class GivenLine:
    """A line of a hint: of which turn, by which id, and why."""

    turn_id: int
    memory: str  # its id, such as 12 or S3
    text: str
    words: tuple[str, ...]
    score: float


def save_hint(
    connection: sqlite3.Connection,
    content_session_id: str,
    project_id: int,
    lines: Iterable[GivenLine],
    ms: int,
) -> None:
    """Saves a hint without lines whose turn was forgotten meanwhile."""
    connection.executemany(
        "INSERT INTO hints (content_session_id, project_id, turn_id, memory, text, words, score,"
        " created_at_epoch) SELECT ?, ?, id, ?, ?, ?, ?, ? FROM user_prompts"
        " WHERE id = ? AND sealed = 0 AND private = 0",
        [
            (content_session_id, project_id, line.memory, line.text, json.dumps(line.words),
             line.score, ms, line.turn_id)
            for line in lines
        ],
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SessionState:
    """What a session has said and was given when a prompt arrives."""

    session_db_id: int | None = None  # None: the store has no event of it yet
    is_first_prompt: bool = True
    context: str = ""
    hinted_turns: frozenset[int] = frozenset()


def session_state(
    connection: sqlite3.Connection, content_session_id: str, prompt_id: str | None
) -> SessionState:
    """The prompt itself may be stored already, or not yet."""
    rows = connection.execute(
        "SELECT turn_id FROM hints WHERE content_session_id = ?", (content_session_id,)
    )
    hinted = frozenset(row[0] for row in rows)
    session = connection.execute(
        "SELECT id, start_context FROM sdk_sessions WHERE content_session_id = ?",
        (content_session_id,),
    ).fetchone()
    if session is None:
        return SessionState(hinted_turns=hinted)
    earlier = connection.execute(
        "SELECT 1 FROM user_prompts WHERE session_id = ? AND prompt_id IS NOT ? LIMIT 1",
        (session[0], prompt_id),
    ).fetchone()
    return SessionState(session[0], earlier is None, session[1] or "", hinted)


def recent_hints(
    connection: sqlite3.Connection, limit: int, project_id: int | None = None
) -> list[dict[str, Json]]:
    """Lists hints, newest first."""
    rows = connection.execute(
        "SELECT h.id, h.content_session_id, p.name, h.memory, h.text, h.words, h.score,"
        " h.created_at_epoch FROM hints h JOIN projects p ON p.id = h.project_id"
        " WHERE :project IS NULL OR h.project_id = :project ORDER BY h.id DESC LIMIT :limit",
        {"project": project_id, "limit": limit},
    )
    return [
        {
            "id": row[0],
            "content_session_id": row[1],
            "project": row[2],
            "memory": row[3],
            "text": row[4],
            "words": parse_stored(row[5], []),
            "score": round(row[6], 2),
            "created_at": iso(row[7]),
            "created_at_epoch": row[7],
        }
        for row in rows
    ]


def count_hints(connection: sqlite3.Connection, content_session_id: str) -> int:
    """The prompts of a session that were given a hint."""
    row = connection.execute(
        "SELECT count(DISTINCT created_at_epoch) FROM hints WHERE content_session_id = ?",
        (content_session_id,),
    ).fetchone()
    return int(row[0])


def trim_hints(connection: sqlite3.Connection, before_ms: int, keep: int = KEEP_ROWS) -> int:
    """Deletes those from before, and the oldest beyond so many; how many there were."""
    return connection.execute(
        "DELETE FROM hints WHERE created_at_epoch < ?"
        " OR id <= (SELECT id FROM hints ORDER BY id DESC LIMIT 1 OFFSET ?)",
        (before_ms, keep),
    ).rowcount

"""Which files turns edited: the latest turns of a project, and those that stated its rules."""

import json
import sqlite3
from dataclasses import dataclass

from claude_mem.store.clock import iso


@dataclass(frozen=True, slots=True)
class EditedFiles:
    """Of one turn."""

    session: str
    day: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StatingTurn:
    """The turn in which the user stated a fact last."""

    session: str
    turn_id: int
    files: tuple[str, ...]


def recent(
    connection: sqlite3.Connection, project_id: int, limit: int, without_session: str | None
) -> list[EditedFiles]:
    """The latest first."""
    rows = connection.execute(
        "SELECT s.content_session_id, m.created_at_epoch, m.files_edited FROM session_summaries m"
        " JOIN sdk_sessions s ON s.memory_session_id = m.memory_session_id"
        " WHERE m.project_id = ? AND s.content_session_id IS NOT ? AND m.files_edited <> '[]'"
        " AND m.wrong = 0 AND m.observer <> 'client-file'"
        " ORDER BY m.created_at_epoch DESC, m.id DESC LIMIT ?",
        (project_id, without_session, limit),
    )
    return [
        EditedFiles(session, iso(ms)[:10], tuple(json.loads(files))) for session, ms, files in rows
    ]


def of_rules(connection: sqlite3.Connection, project_id: int) -> dict[int, StatingTurn]:
    """By the id of the rule."""
    rows = connection.execute(
        "SELECT f.id, s.content_session_id, t.id, coalesce(m.files_edited, '[]') FROM facts f"
        " JOIN fact_sources x ON x.fact_id = f.id JOIN user_prompts t ON t.id = x.turn_id"
        " JOIN sdk_sessions s ON s.id = t.session_id"
        " LEFT JOIN session_summaries m ON m.turn_id = t.id"
        " WHERE f.project_id = ? AND f.kind = 'rule' ORDER BY x.seen_at_epoch, t.id",
        (project_id,),
    )
    return {
        fact: StatingTurn(session, turn, tuple(json.loads(files)))
        for fact, session, turn, files in rows
    }

"""Which turns stated the rules of a project, and which files they edited."""

import json
import sqlite3
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StatingTurn:
    """The turn in which the user stated a fact last."""

    session: str
    turn_id: int
    files: tuple[str, ...]


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

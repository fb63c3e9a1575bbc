"""Short prompts that continue a session: what a user asks for again and again is among them."""

import sqlite3
from dataclasses import dataclass

SHORTEST, LONGEST = 12, 80  # characters
LATEST = 400


@dataclass(frozen=True, slots=True)
class ShortPrompt:
    session: int
    text: str


def recent(
    connection: sqlite3.Connection, project_id: int, without_session: str | None
) -> list[ShortPrompt]:
    """Of turns with a memory, the latest first."""
    rows = connection.execute(
        "SELECT t.session_id, t.prompt_text FROM user_prompts t"
        " JOIN sdk_sessions s ON s.id = t.session_id JOIN session_summaries m ON m.turn_id = t.id"
        " WHERE t.project_id = ? AND s.content_session_id IS NOT ? AND t.private = 0"
        " AND t.notice = 0 AND t.wrong = 0 AND m.wrong = 0 AND t.prompt_number > 1"
        " AND length(t.prompt_text) BETWEEN ? AND ?"
        " ORDER BY t.created_at_epoch DESC, t.id DESC LIMIT ?",
        (project_id, without_session, SHORTEST, LONGEST, LATEST),
    )
    return [ShortPrompt(session, text) for session, text in rows]

"""Conversations with a model's provider that can be resumed, one per session.

They are kept apart from the session ids: only the provider that opened a conversation may continue
it, and only while its clients run (`worker/conversation_cleanup.py` drops all before new ones
start).
"""

import sqlite3

# Sessions that are over and have nothing queued: their conversations will not be resumed.
_FINISHED = (
    " WHERE provider IS NOT NULL AND status <> 'active' AND id NOT IN (SELECT session_id"
    " FROM refinements WHERE status IN ('pending', 'processing')"
    " UNION SELECT session_id FROM pending_messages WHERE status IN ('pending', 'processing'))"
)


def remember_conversation(
    connection: sqlite3.Connection, session_db_id: int, provider: str, provider_session_id: str
) -> None:
    """Unless it is the agent's own session id."""
    connection.execute(
        "UPDATE sdk_sessions SET provider = ?, provider_session_id = ? WHERE id = ?"
        " AND content_session_id <> ?",
        (provider, provider_session_id, session_db_id, provider_session_id),
    )


def conversation_to_resume(
    connection: sqlite3.Connection, session_db_id: int, provider: str
) -> str | None:
    """Only on a continuation prompt, and only from this same provider."""
    row = connection.execute(
        "SELECT provider_session_id FROM sdk_sessions"
        " WHERE id = ? AND provider = ? AND prompt_counter > 1",
        (session_db_id, provider),
    ).fetchone()
    return row[0] if row else None


def resumable_conversations(connection: sqlite3.Connection, provider: str) -> set[str]:
    rows = connection.execute(
        "SELECT provider_session_id FROM sdk_sessions WHERE provider = ?"
        " AND provider_session_id IS NOT NULL",
        (provider,),
    )
    return {str(row[0]) for row in rows}


def drop_conversation(connection: sqlite3.Connection, session_db_id: int) -> None:
    connection.execute(
        "UPDATE sdk_sessions SET provider = NULL, provider_session_id = NULL WHERE id = ?",
        (session_db_id,),
    )


def drop_all_conversations(connection: sqlite3.Connection) -> None:
    connection.execute(
        "UPDATE sdk_sessions SET provider = NULL, provider_session_id = NULL"
        " WHERE provider IS NOT NULL"
    )


def has_finished_conversation(connection: sqlite3.Connection) -> bool:
    row = connection.execute(f"SELECT 1 FROM sdk_sessions{_FINISHED} LIMIT 1").fetchone()
    return row is not None


def drop_finished_conversations(connection: sqlite3.Connection) -> list[int]:
    """The ids of the sessions whose conversations were dropped."""
    rows = connection.execute(
        f"UPDATE sdk_sessions SET provider = NULL, provider_session_id = NULL{_FINISHED}"
        " RETURNING id"
    ).fetchall()
    return [int(row[0]) for row in rows]

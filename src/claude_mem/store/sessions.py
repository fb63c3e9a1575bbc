"""Sessions: identity, status, the id that their memories reference, conversations with a model."""

import sqlite3
import uuid
from dataclasses import dataclass

from claude_mem.errors import NotFound
from claude_mem.store.clock import iso
from claude_mem.store.projects import ensure_project, remember_directory, touch_directory
from claude_mem.store.queue import QUEUES
from claude_mem.types import Event, SessionStatus, SessionTitle

OF_TYPESCRIPT = "claude-mem-ts"  # the dialect of sessions of the TypeScript claude-mem
MANUAL = "hand"  # the dialect of the session that holds a project's saved memories
BY_USER, BY_CLIENT = "user", "client"  # sources of titles; NULL: the observer
# Only these mean that the user is back in the session; a late event of a finished one does not.
REVIVING = ("UserPromptSubmit", "SessionStart")


@dataclass(frozen=True, slots=True)
class NewSession:
    content_session_id: str
    project_id: int
    project_dir: str
    dialect: str
    started_ms: int
    updated_ms: int
    status: SessionStatus = "active"
    transcript_path: str = ""
    title: str | None = None
    user_prompt: str | None = None


def insert_session(connection: sqlite3.Connection, session: NewSession) -> sqlite3.Row:
    """A session that is not active was completed with its last update."""
    completed_ms = None if session.status == "active" else session.updated_ms
    row: sqlite3.Row = connection.execute(
        "INSERT INTO sdk_sessions (content_session_id, project_id, project_dir, transcript_path,"
        " dialect, title, user_prompt, status, started_at, started_at_epoch, updated_at,"
        " updated_at_epoch, completed_at, completed_at_epoch)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *",
        (session.content_session_id, session.project_id, session.project_dir,
         session.transcript_path, session.dialect, session.title, session.user_prompt,
         session.status, iso(session.started_ms), session.started_ms, iso(session.updated_ms),
         session.updated_ms, None if completed_ms is None else iso(completed_ms), completed_ms),
    ).fetchone()  # fmt: skip
    return row


def ensure_session(connection: sqlite3.Connection, event: Event) -> sqlite3.Row:
    """Creates the session of an event, or updates its time."""
    row = find_session(connection, event.session_id)
    if row is None:
        project_id = ensure_project(connection, event.project)
        if event.project_dir:
            remember_directory(connection, event.project_dir, project_id, event.arrived_ms)
        return insert_session(
            connection,
            NewSession(
                content_session_id=event.session_id,
                project_id=project_id,
                project_dir=event.project_dir,
                dialect=event.dialect,
                started_ms=event.arrived_ms,
                updated_ms=event.arrived_ms,
                transcript_path=event.transcript_path,
            ),
        )
    if event.arrived_ms > row["updated_at_epoch"]:
        connection.execute(
            "UPDATE sdk_sessions SET updated_at = ?, updated_at_epoch = ?,"
            " transcript_path = CASE WHEN ? = '' THEN transcript_path ELSE ? END WHERE id = ?",
            (iso(event.arrived_ms), event.arrived_ms, event.transcript_path,
             event.transcript_path, row["id"]),
        )  # fmt: skip
    return row


def find_session(connection: sqlite3.Connection, content_session_id: str) -> sqlite3.Row | None:
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM sdk_sessions WHERE content_session_id = ?", (content_session_id,)
    ).fetchone()
    return row


def revive(connection: sqlite3.Connection, row: sqlite3.Row, event: Event) -> None:
    """Makes a session that had ended active again, and resumes its jobs."""
    if event.kind not in REVIVING or event.arrived_ms <= (row["completed_at_epoch"] or 0):
        return
    if event.kind == "SessionStart":
        touch_directory(connection, row["project_dir"], event.arrived_ms)
    if row["status"] == "active":
        return
    connection.execute(
        "UPDATE sdk_sessions SET status = 'active', completed_at = NULL,"
        " completed_at_epoch = NULL WHERE id = ?",
        (row["id"],),
    )
    for queue in QUEUES:
        queue.resume_session(connection, row["id"])


def end_session(
    connection: sqlite3.Connection, session_db_id: int, status: SessionStatus, ms: int
) -> None:
    connection.execute(
        "UPDATE sdk_sessions SET status = ?, completed_at = ?, completed_at_epoch = ? WHERE id = ?",
        (status, iso(ms), ms, session_db_id),
    )


def interrupt_stale(connection: sqlite3.Connection, before_ms: int) -> list[int]:
    """Marks active sessions without an event since then; returns their ids."""
    rows = connection.execute(
        "UPDATE sdk_sessions SET status = 'interrupted', completed_at = updated_at,"
        " completed_at_epoch = updated_at_epoch"
        " WHERE status = 'active' AND updated_at_epoch < ? RETURNING id",
        (before_ms,),
    ).fetchall()
    return [int(row[0]) for row in rows]


def register_memory_session(
    connection: sqlite3.Connection, session_db_id: int, captured: str | None = None
) -> str:
    """The id that this session's memories reference: captured or generated once, then stable."""
    row = connection.execute(
        "SELECT memory_session_id FROM sdk_sessions WHERE id = ?", (session_db_id,)
    ).fetchone()
    if row is None:
        raise NotFound(f"there is no session {session_db_id}")
    if row[0]:
        return str(row[0])
    memory_session_id = captured or f"memory-{uuid.uuid4().hex}"
    connection.execute(
        "UPDATE sdk_sessions SET memory_session_id = ? WHERE id = ?",
        (memory_session_id, session_db_id),
    )
    return memory_session_id


def set_titles(
    connection: sqlite3.Connection, session_db_id: int, title: str | None, subtitle: str | None
) -> None:
    """Keeps the first title, and replaces the subtitle."""
    connection.execute(
        "UPDATE sdk_sessions SET title = coalesce(title, ?), subtitle = coalesce(?, subtitle)"
        " WHERE id = ?",
        (title, subtitle, session_db_id),
    )


def set_title_of_first_turn(
    connection: sqlite3.Connection, session_db_id: int, prompt_number: int, title: str | None
) -> None:
    """Replaces the title if the turn is the first of the session."""
    connection.execute(
        "UPDATE sdk_sessions SET title = ? WHERE id = ? AND ? IS NOT NULL AND title_source IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM user_prompts WHERE session_id = sdk_sessions.id"
        " AND prompt_number < ? AND private = 0 AND notice = 0)",
        (title, session_db_id, title, prompt_number),
    )


def set_client_title(
    connection: sqlite3.Connection, session_db_id: int, title: SessionTitle
) -> bool:
    """Whether it is new. Nothing is set where a turn of the session is private or was forgotten:
    the client made the title of all turns."""
    cursor = connection.execute(
        "UPDATE sdk_sessions SET title = ?1, title_source = ?2 WHERE id = ?3"
        " AND (title IS NOT ?1 OR title_source IS NOT ?2) AND NOT EXISTS (SELECT 1"
        " FROM user_prompts WHERE session_id = ?3 AND (private = 1 OR sealed > 0))",
        (title.text, BY_USER if title.by_user else BY_CLIENT, session_db_id),
    )
    return cursor.rowcount == 1


def set_start_context(connection: sqlite3.Connection, content_session_id: str, text: str) -> None:
    connection.execute(
        "UPDATE sdk_sessions SET start_context = ? WHERE content_session_id = ?",
        (text, content_session_id),
    )


def set_first_start_context(
    connection: sqlite3.Connection, content_session_id: str, text: str
) -> None:
    connection.execute(
        "UPDATE sdk_sessions SET start_context = ?"
        " WHERE content_session_id = ? AND start_context IS NULL",
        (text, content_session_id),
    )


# Conversations with a model's provider that can be resumed, one per session. They are kept apart
# from the session ids: only the provider that opened a conversation may continue it, and only while
# its clients run (`worker/refiner.py` drops all before new ones start).

# Sessions that are over and have nothing queued: their conversations will not be resumed.
_FINISHED = (
    " WHERE provider IS NOT NULL AND status <> 'active' AND id NOT IN (SELECT session_id"
    " FROM refinements WHERE status IN ('pending', 'processing')"
    " UNION SELECT session_id FROM pending_messages WHERE status IN ('pending', 'processing'))"
)


def remember_conversation(
    connection: sqlite3.Connection, session_db_id: int, provider: str, provider_session_id: str
) -> None:
    """Remembers the conversation, unless it is the agent's own session id."""
    connection.execute(
        "UPDATE sdk_sessions SET provider = ?, provider_session_id = ? WHERE id = ?"
        " AND content_session_id <> ?",
        (provider, provider_session_id, session_db_id, provider_session_id),
    )


def conversation_to_resume(
    connection: sqlite3.Connection, session_db_id: int, provider: str
) -> str | None:
    """Returns the conversation only on a continuation prompt, and only from this same provider."""
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

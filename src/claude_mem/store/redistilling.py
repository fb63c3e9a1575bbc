"""Turns that an older version of the local observer distilled, and their new memories.

What the user wrote or edited stays: only memories whose `observer` is the local one are replaced.
Of a turn that a model revised, only the facts are new.
"""

import sqlite3

from claude_mem.store import facts
from claude_mem.store.memories import is_revised, save_memories
from claude_mem.store.turns import load_turn
from claude_mem.types import Distillate, Turn

_OUTDATED = (
    "t.closed = 1 AND t.observer_version < :version AND t.private = 0 AND t.sealed = 0"
    " AND EXISTS (SELECT 1 FROM session_summaries m WHERE m.turn_id = t.id)"
    " AND NOT EXISTS (SELECT 1 FROM pending_messages q WHERE q.turn_id = t.id)"
    " AND NOT EXISTS (SELECT 1 FROM session_summaries m WHERE m.turn_id = t.id"
    " AND m.model IS NULL AND m.observer <> 'local')"
    " AND NOT EXISTS (SELECT 1 FROM observations o WHERE o.turn_id = t.id"
    " AND o.model IS NULL AND o.observer <> 'local')"
)


def is_any_outdated(connection: sqlite3.Connection, version: int) -> bool:
    row = connection.execute(
        "SELECT 1 FROM user_prompts WHERE closed = 1 AND observer_version < ? LIMIT 1", (version,)
    ).fetchone()
    return row is not None


def next_turn(connection: sqlite3.Connection, version: int) -> Turn | None:
    """The most recent one whose events still exist."""
    row = connection.execute(
        f"SELECT t.id FROM user_prompts t WHERE {_OUTDATED} AND t.retired = 0"
        " AND EXISTS (SELECT 1 FROM tool_events e WHERE e.turn_id = t.id AND e.bytes > 0)"
        " ORDER BY t.created_at_epoch DESC, t.id DESC LIMIT 1",
        {"version": version},
    ).fetchone()
    return load_turn(connection, row[0]) if row is not None else None


def transcripts(connection: sqlite3.Connection, version: int) -> list[tuple[str, str]]:
    """Sessions with turns whose events are gone, and their transcripts; the latest first."""
    rows = connection.execute(
        "SELECT s.content_session_id, s.transcript_path FROM sdk_sessions s"
        " WHERE s.transcript_path <> '' AND s.id IN (SELECT t.session_id FROM user_prompts t"
        f" WHERE {_OUTDATED}) ORDER BY s.updated_at_epoch DESC, s.id DESC",
        {"version": version},
    )
    return [(row[0], row[1]) for row in rows]


def is_outdated(connection: sqlite3.Connection, turn_id: int, version: int) -> bool:
    row = connection.execute(
        f"SELECT 1 FROM user_prompts t WHERE t.id = :turn AND {_OUTDATED}",
        {"turn": turn_id, "version": version},
    ).fetchone()
    return row is not None


def save_again(connection: sqlite3.Connection, turn_id: int, distillate: Distillate) -> bool:
    """False: the turn has changed meanwhile, and stays as it is. Its record is not touched."""
    if not is_outdated(connection, turn_id, distillate.version):
        return False
    turn = connection.execute("SELECT * FROM user_prompts WHERE id = ?", (turn_id,)).fetchone()
    if is_revised(connection, turn_id):
        facts.save_proposals(connection, turn_id, distillate)
    else:
        save_memories(connection, turn["session_id"], turn_id, turn["prompt_number"], distillate)
        _replace_title(connection, turn, distillate.title)
    mark(connection, turn_id, distillate.version)
    return True


def _replace_title(connection: sqlite3.Connection, turn: sqlite3.Row, title: str | None) -> None:
    """A session has the title of its first turn."""
    connection.execute(
        "UPDATE sdk_sessions SET title = ? WHERE id = ? AND ? IS NOT NULL AND title_source IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM user_prompts WHERE session_id = sdk_sessions.id"
        " AND prompt_number < ? AND private = 0 AND notice = 0)",
        (title, turn["session_id"], title, turn["prompt_number"]),
    )


def mark(connection: sqlite3.Connection, turn_id: int, version: int) -> None:
    connection.execute(
        "UPDATE user_prompts SET observer_version = max(observer_version, ?) WHERE id = ?",
        (version, turn_id),
    )


def mark_session(connection: sqlite3.Connection, session_id: str, version: int) -> None:
    """Its transcript was read: the turns that it does not have stay as they are."""
    connection.execute(
        "UPDATE user_prompts SET observer_version = max(observer_version, ?) WHERE closed = 1"
        " AND session_id IN (SELECT id FROM sdk_sessions WHERE content_session_id = ?)",
        (version, session_id),
    )


def mark_rest(connection: sqlite3.Connection, version: int) -> int:
    """What has neither events nor a transcript, or was not written here, stays as it is."""
    return connection.execute(
        "UPDATE user_prompts SET observer_version = ? WHERE closed = 1 AND observer_version < ?"
        " AND NOT EXISTS (SELECT 1 FROM pending_messages q WHERE q.turn_id = user_prompts.id)",
        (version, version),
    ).rowcount

"""Turns that an older version of the local observer distilled, and their new memories.

`observer_version` says of each turn which version that was. It is changed in the transaction that
stores the memories. What the user wrote or edited stays: only memories whose `observer` is the
local one are replaced. Of a turn that a model revised, only the facts are new.
"""

import sqlite3

from claude_mem.store import facts
from claude_mem.store.memories import is_revised, save_memories
from claude_mem.store.sessions import set_title_of_first_turn
from claude_mem.store.turns import get_turn
from claude_mem.types import Distillate, Project, TranscriptToDistil

NEVER_RAW = 1 << 62  # of turns whose raw events were deleted, none are read
# Of a turn `t`: whether it may get memories that are not those of a job.
OPEN = (
    "t.closed = 1 AND t.private = 0 AND t.sealed = 0"
    " AND NOT EXISTS (SELECT 1 FROM pending_messages q WHERE q.turn_id = t.id)"
)
_OUTDATED = (
    f"{OPEN} AND t.observer_version BETWEEN 0 AND :version - 1"
    " AND EXISTS (SELECT 1 FROM session_summaries m WHERE m.turn_id = t.id)"
    " AND NOT EXISTS (SELECT 1 FROM session_summaries m WHERE m.turn_id = t.id"
    " AND m.model IS NULL AND m.observer <> 'local')"
    " AND NOT EXISTS (SELECT 1 FROM observations o WHERE o.turn_id = t.id"
    " AND o.model IS NULL AND o.observer <> 'local')"
)


def is_any(connection: sqlite3.Connection, version: int) -> bool:
    row = connection.execute(
        "SELECT 1 FROM user_prompts WHERE closed = 1 AND observer_version BETWEEN 0 AND ? - 1"
        " LIMIT 1",
        (version,),
    ).fetchone()
    return row is not None


def next_turn(connection: sqlite3.Connection, version: int) -> int | None:
    """The most recent one whose events still exist."""
    row = connection.execute(
        f"SELECT t.id FROM user_prompts t WHERE {_OUTDATED} AND t.retired = 0"
        " AND EXISTS (SELECT 1 FROM tool_events e WHERE e.turn_id = t.id AND e.bytes > 0)"
        " ORDER BY t.created_at_epoch DESC, t.id DESC LIMIT 1",
        {"version": version},
    ).fetchone()
    return int(row[0]) if row is not None else None


def transcripts(connection: sqlite3.Connection, version: int) -> list[TranscriptToDistil]:
    """Lists the transcripts of sessions with turns whose events are gone; the latest first."""
    rows = connection.execute(
        "SELECT s.id, s.content_session_id, s.transcript_path, p.key, p.name FROM sdk_sessions s"
        " JOIN projects p ON p.id = s.project_id"
        " WHERE s.transcript_path <> '' AND s.id IN (SELECT t.session_id FROM user_prompts t"
        f" WHERE {_OUTDATED}) ORDER BY s.updated_at_epoch DESC, s.id DESC",
        {"version": version},
    )
    return [
        TranscriptToDistil(id_, session_id, path, NEVER_RAW, Project(key, name))
        for id_, session_id, path, key, name in rows
    ]


def _is_outdated(connection: sqlite3.Connection, turn_id: int, version: int) -> bool:
    row = connection.execute(
        f"SELECT 1 FROM user_prompts t WHERE t.id = :turn AND {_OUTDATED}",
        {"turn": turn_id, "version": version},
    ).fetchone()
    return row is not None


def replace_memories(connection: sqlite3.Connection, turn_id: int, distillate: Distillate) -> bool:
    """False: the turn has changed, and stays as it is. Its record is not touched."""
    if not _is_outdated(connection, turn_id, distillate.version):
        return False
    turn = get_turn(connection, turn_id)
    session_id, number = turn["session_id"], turn["prompt_number"]
    if is_revised(connection, turn_id):
        facts.save_proposals(connection, turn_id, distillate)
    else:
        save_memories(connection, session_id, turn_id, number, distillate)
        set_title_of_first_turn(connection, session_id, number, distillate.title)
    mark(connection, turn_id, distillate.version)
    return True


def mark(connection: sqlite3.Connection, turn_id: int, version: int) -> None:
    connection.execute(
        "UPDATE user_prompts SET observer_version = max(observer_version, ?) WHERE id = ?",
        (version, turn_id),
    )


def mark_session(connection: sqlite3.Connection, session_id: str, version: int) -> None:
    """Marks a session whose transcript was read: turns that it does not have stay as they are."""
    connection.execute(
        "UPDATE user_prompts SET observer_version = max(observer_version, ?) WHERE closed = 1"
        " AND observer_version >= 0 AND session_id IN (SELECT id FROM sdk_sessions"
        " WHERE content_session_id = ?)",
        (version, session_id),
    )


def mark_rest(connection: sqlite3.Connection, version: int) -> int:
    """What has neither events nor a transcript, or was not written here, stays as it is."""
    return connection.execute(
        "UPDATE user_prompts SET observer_version = ? WHERE closed = 1"
        " AND observer_version BETWEEN 0 AND ? - 1"
        " AND NOT EXISTS (SELECT 1 FROM pending_messages q WHERE q.turn_id = user_prompts.id)",
        (version, version),
    ).rowcount

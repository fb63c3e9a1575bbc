"""Which turns wait for memories: those that were imported without any, and those that an older
version of the local observer distilled.

An import stores the turns of most sessions without memories, and the transcripts from which these
will be made. `observer_version` says of each turn how far that is. It is changed in the transaction
that stores the memories (`memories.save_again`).
"""

import sqlite3
from dataclasses import dataclass

from claude_mem.types import Project

UNDISTILLED = -1  # the version of a turn that has no memories yet
LOST = -2  # of one that gets none: its transcript is gone, and so are its events
NEVER_RAW = 1 << 62  # of turns whose raw events were deleted, none are read

_OPEN = (
    "t.closed = 1 AND t.private = 0 AND t.sealed = 0"
    " AND NOT EXISTS (SELECT 1 FROM pending_messages q WHERE q.turn_id = t.id)"
)
_WAITING = f"{_OPEN} AND t.observer_version = {UNDISTILLED}"

_OUTDATED = (
    f"{_OPEN} AND t.observer_version BETWEEN 0 AND :version - 1"
    " AND EXISTS (SELECT 1 FROM session_summaries m WHERE m.turn_id = t.id)"
    " AND NOT EXISTS (SELECT 1 FROM session_summaries m WHERE m.turn_id = t.id"
    " AND m.model IS NULL AND m.observer <> 'local')"
    " AND NOT EXISTS (SELECT 1 FROM observations o WHERE o.turn_id = t.id"
    " AND o.model IS NULL AND o.observer <> 'local')"
)


# Imported turns without memories


@dataclass(frozen=True, slots=True)
class WaitingTranscript:
    session_db_id: int
    session_id: str
    path: str
    keep_raw_since: int
    project: Project


def add_turn(connection: sqlite3.Connection, turn_id: int) -> int:
    """It waits for its memories from now on."""
    return connection.execute(
        "UPDATE user_prompts SET observer_version = ? WHERE id = ?", (UNDISTILLED, turn_id)
    ).rowcount


def add_transcript(
    connection: sqlite3.Connection,
    session_db_id: int,
    path: str,
    keep_raw_since: int,
    *,
    is_distilled: bool,
) -> None:
    """From which the memories of turns that wait, or the titles of the session, are made; or were
    made now, so that contexts have to be rendered."""
    connection.execute(
        "INSERT INTO undistilled_transcripts (session_id, path, keep_raw_since, distilled)"
        " VALUES (?, ?, ?, ?) ON CONFLICT (session_id, path)"
        " DO UPDATE SET distilled = min(distilled, excluded.distilled)",
        (session_db_id, path, keep_raw_since, is_distilled),
    )


def is_open(connection: sqlite3.Connection, turn_id: int) -> bool:
    """Whether it may get memories that were made of a transcript."""
    row = connection.execute(
        f"SELECT 1 FROM user_prompts t WHERE t.id = ? AND {_OPEN}", (turn_id,)
    ).fetchone()
    return row is not None


def is_undistilled(turn: sqlite3.Row) -> bool:
    return turn["observer_version"] in (UNDISTILLED, LOST)


def is_waiting_for(connection: sqlite3.Connection, session_db_id: int, path: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM undistilled_transcripts WHERE session_id = ? AND path = ? AND distilled = 0",
        (session_db_id, path),
    ).fetchone()
    return row is not None


def add_missing_transcripts(connection: sqlite3.Connection) -> None:
    """Turns that undo restored, or that are of an export, wait for that of their session."""
    connection.execute(
        "INSERT INTO undistilled_transcripts (session_id, path, keep_raw_since)"
        " SELECT s.id, s.transcript_path, 0 FROM sdk_sessions s WHERE s.id IN"
        f" (SELECT t.session_id FROM user_prompts t WHERE {_WAITING}) AND NOT EXISTS (SELECT 1"
        " FROM undistilled_transcripts u WHERE u.session_id = s.id AND u.distilled = 0)"
        " ON CONFLICT (session_id, path) DO UPDATE SET distilled = 0"
    )


def waiting_transcripts(connection: sqlite3.Connection) -> list[WaitingTranscript]:
    """The latest session first."""
    rows = connection.execute(
        "SELECT s.id, s.content_session_id, u.path, u.keep_raw_since, p.key, p.name"
        " FROM undistilled_transcripts u JOIN sdk_sessions s ON s.id = u.session_id"
        " JOIN projects p ON p.id = s.project_id WHERE u.distilled = 0"
        " ORDER BY s.updated_at_epoch DESC, s.id DESC, u.path"
    )
    return [
        WaitingTranscript(id_, session_id, path, keep_raw_since, Project(key, name))
        for id_, session_id, path, keep_raw_since, key, name in rows
    ]


def finish_transcript(connection: sqlite3.Connection, transcript: WaitingTranscript) -> list[int]:
    """It was read, or cannot be. Returns the turns that still wait and can be distilled from their
    events, in order; those without events get no memories."""
    session_id = transcript.session_db_id
    connection.execute(
        "UPDATE undistilled_transcripts SET distilled = 1 WHERE session_id = ? AND path = ?",
        (session_id, transcript.path),
    )
    others = connection.execute(
        "SELECT 1 FROM undistilled_transcripts WHERE session_id = ? AND distilled = 0",
        (session_id,),
    ).fetchone()
    if others is not None:
        return []
    connection.execute(
        "UPDATE user_prompts SET observer_version = ? WHERE id IN (SELECT t.id FROM user_prompts t"
        f" WHERE t.session_id = ? AND {_WAITING} AND NOT EXISTS (SELECT 1 FROM tool_events e"
        " WHERE e.turn_id = t.id AND e.bytes > 0))",
        (LOST, session_id),
    )
    rows = connection.execute(
        f"SELECT t.id FROM user_prompts t WHERE t.session_id = ? AND {_WAITING}"
        " ORDER BY t.prompt_number",
        (session_id,),
    )
    return [int(row[0]) for row in rows]


def give_up(connection: sqlite3.Connection, turn_id: int) -> None:
    """It cannot be distilled."""
    connection.execute(
        "UPDATE user_prompts SET observer_version = ? WHERE id = ? AND observer_version = ?",
        (LOST, turn_id, UNDISTILLED),
    )


def distilled_projects(connection: sqlite3.Connection) -> dict[int, Project]:
    """By session: the projects whose contexts have to be rendered."""
    rows = connection.execute(
        "SELECT s.id, p.key, p.name FROM undistilled_transcripts u JOIN sdk_sessions s"
        " ON s.id = u.session_id JOIN projects p ON p.id = s.project_id WHERE u.distilled = 1"
    )
    return {id_: Project(key, name) for id_, key, name in rows}


def contexts_rendered(connection: sqlite3.Connection, session_ids: list[int]) -> None:
    connection.executemany(
        "DELETE FROM undistilled_transcripts WHERE session_id = ? AND distilled = 1",
        [(session_id,) for session_id in session_ids],
    )


def count_undistilled(connection: sqlite3.Connection) -> tuple[int, int]:
    """Turns that wait for their memories, and turns that get none."""
    count = (
        "SELECT count(*) FROM user_prompts WHERE closed = 1 AND observer_version = {}"
        " AND private = 0 AND sealed = 0"
    )
    waiting, lost = (
        int(connection.execute(count.format(state)).fetchone()[0]) for state in (UNDISTILLED, LOST)
    )
    return waiting, lost


# Turns of an older version


def is_any_outdated(connection: sqlite3.Connection, version: int) -> bool:
    """Also if imported turns wait, or the contexts of such."""
    row = connection.execute(
        "SELECT 1 FROM undistilled_transcripts UNION ALL SELECT 1 FROM user_prompts"
        " WHERE closed = 1 AND observer_version BETWEEN 0 AND ?1 - 1 UNION ALL"
        f" SELECT 1 FROM user_prompts t WHERE {_WAITING} LIMIT 1",
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


def transcripts(connection: sqlite3.Connection, version: int) -> list[WaitingTranscript]:
    """Of sessions with turns whose events are gone; the latest first."""
    rows = connection.execute(
        "SELECT s.id, s.content_session_id, s.transcript_path, p.key, p.name FROM sdk_sessions s"
        " JOIN projects p ON p.id = s.project_id"
        " WHERE s.transcript_path <> '' AND s.id IN (SELECT t.session_id FROM user_prompts t"
        f" WHERE {_OUTDATED}) ORDER BY s.updated_at_epoch DESC, s.id DESC",
        {"version": version},
    )
    return [
        WaitingTranscript(id_, session_id, path, NEVER_RAW, Project(key, name))
        for id_, session_id, path, key, name in rows
    ]


def is_outdated(connection: sqlite3.Connection, turn_id: int, version: int) -> bool:
    row = connection.execute(
        f"SELECT 1 FROM user_prompts t WHERE t.id = :turn AND {_OUTDATED}",
        {"turn": turn_id, "version": version},
    ).fetchone()
    return row is not None


def mark(connection: sqlite3.Connection, turn_id: int, version: int) -> None:
    connection.execute(
        "UPDATE user_prompts SET observer_version = max(observer_version, ?) WHERE id = ?",
        (version, turn_id),
    )


def mark_session(connection: sqlite3.Connection, session_id: str, version: int) -> None:
    """Its transcript was read: the turns that it does not have stay as they are."""
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

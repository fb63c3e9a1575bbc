"""Turns and their events, each recorded once.

Of a turn whose whole prompt was private, only the number is kept.
"""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from claude_mem.store.memories import recent_memories
from claude_mem.store.queue import JOBS
from claude_mem.store.records import dump_parts, parse_parts
from claude_mem.store.sessions import end_session, ensure_session, revive
from claude_mem.store.tombstones import is_forgotten_session
from claude_mem.store.turn_lookup import (
    CLOSING,
    PROMPT,
    SAME_MOMENT_MS,
    SESSION_END,
    SESSION_START,
    WITHIN_TURN,
    fill_in_prompt,
    get_turn,
    is_blocked,
    turn_of,
)
from claude_mem.types import Event, Project, ToolUse, Turn

STATEMENT, PULL_REQUEST, BRANCH = "Statement", "PullRequest", "Branch"
MAIN_BRANCHES = ("main", "master", "trunk", "develop", "HEAD")
FROM_TRANSCRIPT = (STATEMENT, PULL_REQUEST, BRANCH)  # no hook reports them
TOOL, TOOL_FAILURE = "PostToolUse", "PostToolUseFailure"


@dataclass(frozen=True, slots=True)
class Recorded:
    outcome: Literal["stored", "duplicate", "private", "forgotten"]
    session_db_id: int
    project_id: int
    prompt_number: int | None = None
    turn_id: int | None = None


def record_event(connection: sqlite3.Connection, event: Event) -> Recorded:
    if is_forgotten_session(connection, event.session_id):
        return Recorded("forgotten", 0, 0)
    session = ensure_session(connection, event)
    session_id, project_id = int(session["id"]), int(session["project_id"])
    turn = turn_of(connection, session, event)
    if turn is not None and is_blocked(turn) and event.kind in (SESSION_START, SESSION_END):
        turn = None  # the session starts or ends whatever its last prompt was
    number = int(turn["prompt_number"]) if turn else None
    if turn is not None and is_blocked(turn):
        if event.kind == PROMPT:
            _continue_session(connection, session, turn, event)
        return Recorded(
            "private" if turn["private"] else "forgotten", session_id, project_id, number
        )
    if turn is not None and _is_repeated_prompt(connection, turn, event):
        return Recorded("duplicate", session_id, project_id, number)
    turn_id = turn["id"] if turn else None
    key = _key_within(connection, turn, event)
    if not insert_event(connection, session_id, turn_id, event, key):
        return Recorded("duplicate", session_id, project_id, number)
    if turn is not None and turn["imported"]:
        _hand_to_hooks(connection, turn, event)
    _advance(connection, session, turn, event)
    return Recorded("stored", session_id, project_id, number, turn_id)


def _is_repeated_prompt(connection: sqlite3.Connection, turn: sqlite3.Row, event: Event) -> bool:
    """Whether the prompt of a client that counts them came before, by whatever route."""
    if event.kind != PROMPT or event.prompt_number is None:
        return False
    row = connection.execute(
        "SELECT 1 FROM tool_events WHERE turn_id = ? AND event = ?", (turn["id"], PROMPT)
    ).fetchone()
    return row is not None


def insert_event(
    connection: sqlite3.Connection, session_id: int, turn_id: int | None, event: Event, key: str
) -> bool:
    """False: an event with this key is stored already."""
    cursor = connection.execute(_INSERT_EVENT, _event_values(session_id, turn_id, event, key))
    return cursor.rowcount == 1


def insert_events(
    connection: sqlite3.Connection,
    session_id: int,
    turn_id: int,
    events: Iterable[tuple[Event, str]],
) -> None:
    """With their keys; those that are stored already stay as they are."""
    rows = [_event_values(session_id, turn_id, event, key) for event, key in events]
    connection.executemany(_INSERT_EVENT, rows)


_INSERT_EVENT = (
    "INSERT INTO tool_events (event_key, session_id, turn_id, event, tool_name, tool_use_id,"
    " agent_id, cwd, tool_input, tool_response, text, detail, words, bytes, created_at_epoch)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (event_key) DO NOTHING"
)


def _event_values(
    session_id: int, turn_id: int | None, event: Event, key: str
) -> tuple[object, ...]:
    detail = json.dumps(event.detail, ensure_ascii=False) if event.detail else None
    parts = dump_parts(event.parts) if event.parts else None
    raw = (event.tool_input, event.tool_response, event.text, detail, parts)
    return (key, session_id, turn_id, event.kind, event.tool_name, event.tool_use_id,
            event.agent_id, event.cwd, *raw, sum(len(text) for text in raw if text),
            event.arrived_ms)  # fmt: skip


def _hand_to_hooks(connection: sqlite3.Connection, turn: sqlite3.Row, event: Event) -> None:
    """Lets hooks replace an imported turn, which the import may have read before its end. Its
    closing events are theirs, and the session's titles, if it is their first turn."""
    if turn["retired"] or event.kind not in (PROMPT, *CLOSING, *WITHIN_TURN):
        return
    connection.execute(
        "UPDATE sdk_sessions SET title = NULL, title_source = NULL, subtitle = NULL WHERE id = ?1"
        " AND NOT EXISTS (SELECT 1 FROM user_prompts WHERE session_id = ?1 AND imported = 0"
        " AND private = 0)",
        (turn["session_id"],),
    )
    connection.execute("UPDATE user_prompts SET imported = 0 WHERE id = ?", (turn["id"],))
    imported = (*CLOSING, PROMPT) if event.kind == PROMPT else CLOSING
    connection.executemany(
        "DELETE FROM tool_events WHERE turn_id = ? AND event = ?"
        " AND id < (SELECT max(id) FROM tool_events)",
        [(turn["id"], kind) for kind in imported],
    )


def _key_within(connection: sqlite3.Connection, turn: sqlite3.Row | None, event: Event) -> str:
    """The event's key, made distinct from the same content at a different time."""
    if event.kind in (SESSION_START, SESSION_END):
        # A session may start and end repeatedly with the same content; two hooks report at once.
        near = connection.execute(
            "SELECT event_key FROM tool_events WHERE event_key GLOB ? AND"
            " abs(created_at_epoch - ?) < ?",
            (f"{event.key}*", event.arrived_ms, SAME_MOMENT_MS),
        ).fetchone()
        return str(near[0]) if near else f"{event.key}:{event.arrived_ms}"
    is_keyed = event.kind == PROMPT and event.prompt_number is not None
    if turn is not None and event.prompt_id is None and event.tool_use_id is None and not is_keyed:
        return f"{event.key}:{turn['prompt_number']}"
    return event.key


def _continue_session(
    connection: sqlite3.Connection, session: sqlite3.Row, turn: sqlite3.Row, event: Event
) -> None:
    """A new prompt makes the session active and closes its previous turns."""
    revive(connection, session, event)
    close_open_turns(connection, "session_id = ? AND prompt_number < ?",
                     (session["id"], turn["prompt_number"]), event.arrived_ms)  # fmt: skip


def _advance(
    connection: sqlite3.Connection, session: sqlite3.Row, turn: sqlite3.Row | None, event: Event
) -> None:
    """Applies the event to its turn, its session and the queue."""
    session_id, ms = int(session["id"]), event.arrived_ms
    if event.kind == PROMPT and turn is not None:
        _continue_session(connection, session, turn, event)
        if turn["closed"]:  # its Stop came first
            JOBS.enqueue(connection, session_id, int(turn["id"]), ms)
    elif event.kind == SESSION_START and event.detail.get("source") != "compact":
        # Closes turns of sessions that died; later events of one that is alive revise it.
        revive(connection, session, event)
        close_open_turns(connection, "project_id = ?", (session["project_id"],), ms)
    elif event.kind == SESSION_END:
        close_open_turns(connection, "session_id = ?", (session_id,), ms)
        end_session(connection, session_id, "completed", ms)
    if turn is None or event.kind not in (*CLOSING, *WITHIN_TURN):
        return
    closes = event.kind in CLOSING
    if closes and event.prompt and turn["prompt_text"] is None and not turn["notice"]:
        fill_in_prompt(connection, turn, event.prompt)
    connection.execute(
        "UPDATE user_prompts SET closed = max(closed, ?), updated_at_epoch ="
        " max(updated_at_epoch, ?) WHERE id = ?",
        (closes, ms, turn["id"]),
    )
    if (closes or turn["closed"]) and not turn["retired"]:
        JOBS.enqueue(connection, session_id, int(turn["id"]), ms)


def close_open_turns(
    connection: sqlite3.Connection, condition: str, values: tuple[object, ...], ms: int
) -> int:
    rows = connection.execute(
        f"UPDATE user_prompts SET closed = 1 WHERE closed = 0 AND {condition}"
        " RETURNING id, session_id, private, sealed",
        values,
    ).fetchall()
    for row in rows:
        if not is_blocked(row):
            JOBS.enqueue(connection, row["session_id"], row["id"], ms)
    return len(rows)


def load_turn(connection: sqlite3.Connection, turn_id: int) -> Turn | None:
    """With its events, for an observer; None if it is private or sealed."""
    row = connection.execute(
        "SELECT t.*, s.content_session_id, s.memory_session_id, s.project_dir, s.transcript_path,"
        " p.key, p.name FROM user_prompts t JOIN sdk_sessions s ON s.id = t.session_id"
        " JOIN projects p ON p.id = t.project_id WHERE t.id = ? AND t.private = 0"
        " AND t.sealed = 0",
        (turn_id,),
    ).fetchone()
    if row is None:
        return None
    events = connection.execute(
        "SELECT id, event_key, event, tool_name, tool_input, tool_response, text, agent_id, words,"
        " cwd, created_at_epoch FROM tool_events WHERE turn_id = ? ORDER BY created_at_epoch, id",
        (turn_id,),
    )
    return Turn(
        id=row["id"],
        session_db_id=row["session_id"],
        content_session_id=row["content_session_id"],
        memory_session_id=row["memory_session_id"] or "",
        project=Project(row["key"], row["name"]),
        project_dir=row["project_dir"],
        transcript_path=row["transcript_path"],
        prompt_id=row["prompt_id"],
        prompt_number=row["prompt_number"],
        prompt=row["prompt_text"],
        started_ms=row["created_at_epoch"],
        events=tuple(_tool_use(event) for event in events),
        is_notice=bool(row["notice"]),
        recent_memories=recent_memories(connection, row["memory_session_id"], row["prompt_number"]),
    )


def add_statements(
    connection: sqlite3.Connection, turn: Turn, statements: list[Event]
) -> Turn | None:
    """Adds statements of the transcript, and corrects tool calls that failed without the hook's
    knowledge; returns the turn with them."""
    row = get_turn(connection, turn.id)
    if row is None or is_blocked(row):
        return None
    for statement in statements:
        if statement.kind == TOOL_FAILURE:
            _mark_failed(connection, turn.id, statement)
            continue
        key = _key_within(connection, row, statement)
        insert_event(connection, turn.session_db_id, turn.id, statement, key)
    return load_turn(connection, turn.id)


def _mark_failed(connection: sqlite3.Connection, turn_id: int, failure: Event) -> None:
    """Keeps the key of the stored event, so that the hook's report is stored once."""
    connection.execute(
        "UPDATE tool_events SET event = ?1, text = ?2, bytes = bytes + coalesce(length(?2), 0)"
        " - coalesce(length(tool_response), 0), tool_response = NULL"
        " WHERE turn_id = ?3 AND event = ?4 AND tool_use_id = ?5 AND bytes > 0",
        (TOOL_FAILURE, failure.text, turn_id, TOOL, failure.tool_use_id),
    )


def _tool_use(row: sqlite3.Row) -> ToolUse:
    return ToolUse(
        id=row["id"],
        kind=row["event"],
        tool_name=row["tool_name"],
        tool_input=json.loads(row["tool_input"] or "null"),
        tool_response=json.loads(row["tool_response"] or "null"),
        text=row["text"],
        agent_id=row["agent_id"],
        parts=parse_parts(row["words"] or "[]"),
        cwd=row["cwd"] or "",
        key=row["event_key"],
        at_ms=row["created_at_epoch"],
    )


def retire_raw_events(connection: sqlite3.Connection, before_ms: int, keep_bytes: int) -> int:
    """Deletes the raw text of events that are too old, or the oldest beyond a size.

    The rows stay as provenance. Returns how many.
    """
    total = connection.execute(
        "SELECT coalesce(sum(bytes), 0) FROM tool_events WHERE bytes > 0 AND created_at_epoch >= ?",
        (before_ms,),
    ).fetchone()[0]
    cut = before_ms
    if total > keep_bytes:
        excess = total - keep_bytes
        for row in connection.execute(
            "SELECT created_at_epoch, bytes FROM tool_events"
            " WHERE bytes > 0 AND created_at_epoch >= ? ORDER BY created_at_epoch",
            (before_ms,),
        ):
            if excess <= 0:
                break
            excess -= row["bytes"]
            cut = row["created_at_epoch"] + 1
    # A turn that is open or queued keeps its text. One without text is not distilled again, or a
    # late event would replace its memories with less.
    rows = connection.execute(
        "UPDATE tool_events SET tool_input = NULL, tool_response = NULL, text = NULL,"
        " detail = NULL, words = NULL, bytes = 0 WHERE bytes > 0 AND created_at_epoch < ?"
        " AND coalesce(turn_id, 0) NOT IN (SELECT turn_id FROM pending_messages)"
        " AND coalesce(turn_id, 0) NOT IN (SELECT id FROM user_prompts WHERE closed = 0)"
        " RETURNING turn_id",
        (cut,),
    ).fetchall()
    turn_ids = {(row["turn_id"],) for row in rows if row["turn_id"] is not None}
    connection.executemany("UPDATE user_prompts SET retired = 1 WHERE id = ?", turn_ids)
    return len(rows)

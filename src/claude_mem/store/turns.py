"""Turns and their events, each recorded once.

A turn is (session, prompt_id). An event without a prompt_id belongs to the latest turn at its
arrival. Of a turn whose whole prompt was private, only the number is kept.
"""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from claude_mem.store.clock import iso
from claude_mem.store.memories import recent_memories
from claude_mem.store.parents import find_parent
from claude_mem.store.queue import JOBS, QUEUES
from claude_mem.store.records import dump_parts, parse_parts
from claude_mem.store.sessions import end_session, ensure_session, revive
from claude_mem.store.tombstones import is_forgotten_session
from claude_mem.types import Event, Notice, Project, ToolUse, Turn

PROMPT, SESSION_START, SESSION_END = "UserPromptSubmit", "SessionStart", "SessionEnd"
CLOSING = ("Stop", "StopFailure")
WITHIN_TURN = ("PostToolUse", "PostToolUseFailure", "SubagentStop", "PreCompact", "PostCompact")
STATEMENT, PULL_REQUEST = "Statement", "PullRequest"
FROM_TRANSCRIPT = (STATEMENT, PULL_REQUEST)  # no hook reports them
SAME_MOMENT_MS = 2000  # within which two hooks report the same event without an id


@dataclass(frozen=True, slots=True)
class Recorded:
    outcome: Literal["stored", "duplicate", "private", "forgotten"]
    session_db_id: int
    project_id: int
    prompt_number: int | None = None


@dataclass(frozen=True, slots=True)
class NewTurn:
    session_id: int
    project_id: int
    prompt_id: str
    number: int
    created_ms: int
    prompt: str | None = None
    is_private: bool = False
    is_closed: bool = False
    is_retired: bool = False
    is_imported: bool = False
    is_notice: bool = False
    parent_turn: int | None = None


def record_event(connection: sqlite3.Connection, event: Event) -> Recorded:
    if is_forgotten_session(connection, event.session_id):
        return Recorded("forgotten", 0, 0)
    session = ensure_session(connection, event)
    session_id, project_id = int(session["id"]), int(session["project_id"])
    turn = _turn_of(connection, session, event)
    if turn is not None and _is_blocked(turn) and event.kind in (SESSION_START, SESSION_END):
        turn = None  # the session starts or ends whatever its last prompt was
    number = int(turn["prompt_number"]) if turn else None
    if turn is not None and _is_blocked(turn):
        if event.kind == PROMPT:
            _continue_session(connection, session, turn, event)
        return Recorded(
            "private" if turn["private"] else "forgotten", session_id, project_id, number
        )
    turn_id = turn["id"] if turn else None
    key = _key_within(connection, turn, event)
    if not insert_event(connection, session_id, turn_id, event, key):
        return Recorded("duplicate", session_id, project_id, number)
    if turn is not None and turn["imported"]:
        _hand_to_hooks(connection, turn, event)
    _advance(connection, session, turn, event)
    return Recorded("stored", session_id, project_id, number)


def _is_blocked(turn: sqlite3.Row) -> bool:
    """Takes no events: its prompt is private, or something of it was forgotten."""
    return bool(turn["private"] or turn["sealed"])


def _turn_of(
    connection: sqlite3.Connection, session: sqlite3.Row, event: Event
) -> sqlite3.Row | None:
    if event.kind == PROMPT:
        return _prompt_turn(connection, session, event)
    is_of_turn = event.kind in (*CLOSING, *WITHIN_TURN)
    if event.prompt_id is None and not is_of_turn:
        return None
    turn = _existing_turn(connection, session["id"], event)
    if turn is None and is_of_turn:
        # The prompt is missing: hooks were installed during the turn, or it arrives later.
        return _create_turn(connection, session, event, event.prompt_id)
    return turn


def _existing_turn(
    connection: sqlite3.Connection, session_id: int, event: Event
) -> sqlite3.Row | None:
    row: sqlite3.Row | None
    if event.prompt_id is None:
        row = connection.execute(
            "SELECT * FROM user_prompts WHERE session_id = ? AND created_at_epoch <= ?"
            " ORDER BY prompt_number DESC LIMIT 1",
            (session_id, event.arrived_ms),
        ).fetchone()
    else:
        row = connection.execute(
            "SELECT * FROM user_prompts WHERE session_id = ? AND prompt_id = ?",
            (session_id, event.prompt_id),
        ).fetchone()
    return row


def _prompt_turn(connection: sqlite3.Connection, session: sqlite3.Row, event: Event) -> sqlite3.Row:
    prompt = event.prompt or ""
    if event.prompt_id is not None:
        turn = _existing_turn(connection, session["id"], event)
    else:
        turn = connection.execute(
            "SELECT * FROM user_prompts WHERE session_id = ? AND coalesce(prompt_text, '') = ?"
            " AND abs(created_at_epoch - ?) < ? AND notice = ?",
            (
                session["id"],
                prompt.strip() and prompt,
                event.arrived_ms,
                SAME_MOMENT_MS,
                event.notice is not None,
            ),
        ).fetchone()
    if turn is None:
        return _create_turn(connection, session, event, event.prompt_id)
    if turn["prompt_text"] is None and not _is_blocked(turn) and not turn["notice"]:
        if event.notice is None:
            _fill_in_prompt(connection, turn, prompt)
        else:
            _fill_in_notice(connection, turn, event.notice)
        return _turn(connection, turn["id"])
    return turn


def _create_turn(
    connection: sqlite3.Connection, session: sqlite3.Row, event: Event, prompt_id: str | None
) -> sqlite3.Row:
    number = connection.execute(
        "UPDATE sdk_sessions SET prompt_counter = prompt_counter + 1 WHERE id = ?"
        " RETURNING prompt_counter",
        (session["id"],),
    ).fetchone()[0]
    is_prompt = event.kind == PROMPT
    is_private = is_prompt and event.notice is None and not (event.prompt or "").strip()
    text = event.prompt if is_prompt and not is_private else None
    parent = None
    if event.notice is not None:
        parent = find_parent(connection, int(session["id"]), number, event.notice)
    turn = NewTurn(
        session_id=session["id"],
        project_id=session["project_id"],
        prompt_id=prompt_id or f"number-{number}",
        number=number,
        created_ms=event.arrived_ms,
        prompt=text,
        is_private=is_private,
        is_notice=event.notice is not None,
        parent_turn=parent,
    )
    if text:
        _set_first_prompt(connection, int(session["id"]), text)
    return insert_turn(connection, turn)


def insert_turn(connection: sqlite3.Connection, turn: NewTurn) -> sqlite3.Row:
    row: sqlite3.Row = connection.execute(
        "INSERT INTO user_prompts (session_id, project_id, prompt_id, prompt_number, prompt_text,"
        " private, closed, retired, imported, notice, parent_turn, updated_at_epoch, created_at,"
        " created_at_epoch) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *",
        (turn.session_id, turn.project_id, turn.prompt_id, turn.number, turn.prompt,
         turn.is_private, turn.is_closed, turn.is_retired, turn.is_imported, turn.is_notice,
         turn.parent_turn, turn.created_ms, iso(turn.created_ms), turn.created_ms),
    ).fetchone()  # fmt: skip
    return row


def _set_first_prompt(connection: sqlite3.Connection, session_id: int, text: str) -> None:
    connection.execute(
        "UPDATE sdk_sessions SET user_prompt = coalesce(user_prompt, ?) WHERE id = ?",
        (text, session_id),
    )


def _fill_in_prompt(connection: sqlite3.Connection, turn: sqlite3.Row, prompt: str) -> None:
    """Adds the prompt to a turn whose events came first; deletes them if it is private."""
    if prompt.strip():
        connection.execute(
            "UPDATE user_prompts SET prompt_text = ? WHERE id = ?", (prompt, turn["id"])
        )
        _set_first_prompt(connection, turn["session_id"], prompt)
        return
    connection.execute("UPDATE user_prompts SET private = 1 WHERE id = ?", (turn["id"],))
    for table in (
        "tool_events",
        "observations",
        "session_summaries",
        "turn_records",
        "fact_sources",
    ):
        connection.execute(f"DELETE FROM {table} WHERE turn_id = ?", (turn["id"],))
    for queue in QUEUES:
        queue.delete_turns(connection, [turn["id"]])


def _fill_in_notice(connection: sqlite3.Connection, turn: sqlite3.Row, notice: Notice) -> None:
    parent = find_parent(connection, turn["session_id"], turn["prompt_number"], notice)
    connection.execute(
        "UPDATE user_prompts SET notice = 1, parent_turn = ? WHERE id = ?", (parent, turn["id"])
    )


def _turn(connection: sqlite3.Connection, turn_id: int) -> sqlite3.Row:
    row: sqlite3.Row = connection.execute(
        "SELECT * FROM user_prompts WHERE id = ?", (turn_id,)
    ).fetchone()
    return row


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
    words = dump_parts(event.words) if event.words else None
    raw = (event.tool_input, event.tool_response, event.text, detail, words)
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
    if turn is not None and event.prompt_id is None and event.tool_use_id is None:
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
        if not _is_blocked(row):
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
        "SELECT id, event, tool_name, tool_input, tool_response, text, agent_id, words, cwd"
        " FROM tool_events"
        " WHERE turn_id = ? ORDER BY created_at_epoch, id",
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
    """Adds statements of the transcript; returns the turn with them."""
    row = _turn(connection, turn.id)
    if row is None or _is_blocked(row):
        return None
    for statement in statements:
        key = _key_within(connection, row, statement)
        insert_event(connection, turn.session_db_id, turn.id, statement, key)
    return load_turn(connection, turn.id)


def _tool_use(row: sqlite3.Row) -> ToolUse:
    return ToolUse(
        id=row["id"],
        kind=row["event"],
        tool_name=row["tool_name"],
        tool_input=json.loads(row["tool_input"] or "null"),
        tool_response=json.loads(row["tool_response"] or "null"),
        text=row["text"],
        agent_id=row["agent_id"],
        words=parse_parts(row["words"] or "[]"),
        cwd=row["cwd"] or "",
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

"""Rows of turns and their events: how they are inserted, loaded and stripped of raw text."""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from claude_mem.store.clock import iso
from claude_mem.store.memories import recent_memories
from claude_mem.store.records import dump_parts, parse_parts
from claude_mem.types import Event, Project, ToolUse, Turn

_COUNTED = "counted-"
EARLIER_TURNS, EARLIER_OUTPUTS, OUTPUT_CHARS = 5, 20, 10_000


def counted_prompt_id(session_id: str, number: int) -> str:
    """For transcripts that have no prompt ids, though the hooks of their client have them."""
    return f"{_COUNTED}{number}-{session_id}"


def is_counted(prompt_id: str) -> bool:
    return prompt_id.startswith(_COUNTED)


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
    is_client_message: bool = False
    parent_turn: int | None = None


def insert_turn(connection: sqlite3.Connection, turn: NewTurn) -> sqlite3.Row:
    row: sqlite3.Row = connection.execute(
        "INSERT INTO user_prompts (session_id, project_id, prompt_id, prompt_number, prompt_text,"
        " private, closed, retired, imported, notice, parent_turn, updated_at_epoch, created_at,"
        " created_at_epoch) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *",
        (turn.session_id, turn.project_id, turn.prompt_id, turn.number, turn.prompt,
         turn.is_private, turn.is_closed, turn.is_retired, turn.is_imported, turn.is_client_message,
         turn.parent_turn, turn.created_ms, iso(turn.created_ms), turn.created_ms),
    ).fetchone()  # fmt: skip
    return row


def get_turn(connection: sqlite3.Connection, turn_id: int) -> sqlite3.Row:
    row: sqlite3.Row = connection.execute(
        "SELECT * FROM user_prompts WHERE id = ?", (turn_id,)
    ).fetchone()
    return row


def is_blocked(turn: sqlite3.Row) -> bool:
    """Takes no events: its prompt is private, or something of it was forgotten."""
    return bool(turn["private"] or turn["sealed"])


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
        is_client_message=bool(row["notice"]),
        recent_memories=recent_memories(connection, row["memory_session_id"], row["prompt_number"]),
        earlier_output=_earlier_output(connection, row["session_id"], turn_id),
    )


def _earlier_output(connection: sqlite3.Connection, session_id: int, turn_id: int) -> str:
    """By which words are recognised that the agent read before; the latest first."""
    rows = connection.execute(
        "SELECT substr(tool_response, 1, ?) FROM tool_events WHERE tool_response IS NOT NULL"
        " AND turn_id IN (SELECT id FROM user_prompts WHERE session_id = ? AND id < ?"
        " ORDER BY id DESC LIMIT ?) ORDER BY id DESC LIMIT ?",
        (OUTPUT_CHARS, session_id, turn_id, EARLIER_TURNS, EARLIER_OUTPUTS),
    )
    # JSON: a line break before a word must not become a letter of it.
    return " ".join(text for (text,) in rows).replace("\\n", " ").replace('\\"', " ")


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

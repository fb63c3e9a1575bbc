"""Which turn an event belongs to: an existing one, or one that is created for it.

A turn is (session, prompt_id). An event without a prompt_id belongs to the turn that its client
names by number, else to the latest at its arrival.
"""

import sqlite3
from dataclasses import dataclass

from claude_mem.store.clock import iso
from claude_mem.store.notice_parents import find_parent
from claude_mem.store.queue import QUEUES
from claude_mem.types import Event, Notice

PROMPT, SESSION_START, SESSION_END = "UserPromptSubmit", "SessionStart", "SessionEnd"
CLOSING = ("Stop", "StopFailure")
WITHIN_TURN = ("PostToolUse", "PostToolUseFailure", "SubagentStop", "PreCompact", "PostCompact")
SAME_MOMENT_MS = 2000  # within which two hooks report the same event without an id


_COUNTED = "counted-"


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
    is_notice: bool = False
    parent_turn: int | None = None


def turn_of(
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
    if event.prompt_id is not None:
        row = connection.execute(
            "SELECT * FROM user_prompts WHERE session_id = ? AND prompt_id = ?",
            (session_id, event.prompt_id),
        ).fetchone()
        return row
    if event.prompt_number is not None:
        row = _numbered_turn(connection, session_id, event.prompt_number)
        if row is not None:
            return row
    row = connection.execute(
        "SELECT * FROM user_prompts WHERE session_id = ? AND created_at_epoch <= ?"
        " ORDER BY prompt_number DESC LIMIT 1",
        (session_id, event.arrived_ms),
    ).fetchone()
    if row is None and event.is_dated:  # its prompt came without a time, or by another clock
        row = connection.execute(
            "SELECT * FROM user_prompts WHERE session_id = ? ORDER BY prompt_number LIMIT 1",
            (session_id,),
        ).fetchone()
    return row


def _numbered_turn(
    connection: sqlite3.Connection, session_id: int, number: int
) -> sqlite3.Row | None:
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM user_prompts WHERE session_id = ? AND prompt_number = ?",
        (session_id, number),
    ).fetchone()
    return row


def _prompt_turn(connection: sqlite3.Connection, session: sqlite3.Row, event: Event) -> sqlite3.Row:
    prompt = event.prompt or ""
    if event.prompt_id is not None:
        turn = _existing_turn(connection, session["id"], event)
    elif event.prompt_number is not None:
        turn = _turn_of_numbered_prompt(connection, session["id"], event)
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
    if turn["prompt_text"] is None and not is_blocked(turn) and not turn["notice"]:
        if event.notice is None:
            fill_in_prompt(connection, turn, prompt)
        else:
            _fill_in_notice(connection, turn, event.notice)
        return get_turn(connection, turn["id"])
    return turn


def _turn_of_numbered_prompt(
    connection: sqlite3.Connection, session_id: int, event: Event
) -> sqlite3.Row | None:
    """None: the number is new, or it belongs to a prompt with another text."""
    sent_before: sqlite3.Row | None = connection.execute(
        "SELECT t.* FROM tool_events e JOIN user_prompts t ON t.id = e.turn_id"
        " WHERE e.event_key = ?",
        (event.key,),
    ).fetchone()
    if sent_before is not None:
        return sent_before
    turn = _numbered_turn(connection, session_id, event.prompt_number or 0)
    if turn is None or turn["notice"]:
        return None
    is_private = not (event.prompt or "").strip()
    is_same = is_private if turn["private"] else turn["prompt_text"] in (None, event.prompt)
    return turn if is_same else None


def _create_turn(
    connection: sqlite3.Connection, session: sqlite3.Row, event: Event, prompt_id: str | None
) -> sqlite3.Row:
    number = _next_number(connection, session, event.prompt_number)
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


def _next_number(
    connection: sqlite3.Connection, session: sqlite3.Row, requested: int | None
) -> int:
    """The number that the client asks for, if it is free."""
    session_id = int(session["id"])
    if requested is not None and _numbered_turn(connection, session_id, requested) is None:
        connection.execute(
            "UPDATE sdk_sessions SET prompt_counter = max(prompt_counter, ?) WHERE id = ?",
            (requested, session_id),
        )
        return requested
    row: tuple[int] = connection.execute(
        "UPDATE sdk_sessions SET prompt_counter = prompt_counter + 1 WHERE id = ?"
        " RETURNING prompt_counter",
        (session_id,),
    ).fetchone()
    return row[0]


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


def get_turn(connection: sqlite3.Connection, turn_id: int) -> sqlite3.Row:
    row: sqlite3.Row = connection.execute(
        "SELECT * FROM user_prompts WHERE id = ?", (turn_id,)
    ).fetchone()
    return row


def is_blocked(turn: sqlite3.Row) -> bool:
    """Takes no events: its prompt is private, or something of it was forgotten."""
    return bool(turn["private"] or turn["sealed"])


def _set_first_prompt(connection: sqlite3.Connection, session_id: int, text: str) -> None:
    connection.execute(
        "UPDATE sdk_sessions SET user_prompt = coalesce(user_prompt, ?) WHERE id = ?",
        (text, session_id),
    )


def fill_in_prompt(connection: sqlite3.Connection, turn: sqlite3.Row, prompt: str) -> None:
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
        "outside_words",
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

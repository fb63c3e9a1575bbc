"""Turns and their events, each recorded once.

A turn is (session, prompt_id). An event without a prompt_id belongs to the turn that its client
names by number, else to the latest at its arrival. Of a turn whose whole prompt was private, only
the number is kept.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from claude_mem.store import unstored_words
from claude_mem.store.clock import iso
from claude_mem.store.memories import recent_memories
from claude_mem.store.message_parents import find_parent
from claude_mem.store.queue import JOBS, QUEUES
from claude_mem.store.sessions import MANUAL, end_session, ensure_session, find_session, revive
from claude_mem.store.stored_json import parse_any
from claude_mem.store.tombstones import is_forgotten_session
from claude_mem.store.turn_records import dump_parts, parse_parts
from claude_mem.types import (
    CLOSING,
    PROMPT,
    SESSION_END,
    SESSION_START,
    TOOL,
    TOOL_FAILURE,
    WITHIN_TURN,
    ClientMessage,
    Event,
    Project,
    Turn,
    TurnEvent,
)
from claude_mem.word_runs import OUTSIDE_MARK

MAIN_BRANCHES = ("main", "master", "trunk", "develop", "HEAD")
SAME_MOMENT_MS = 2000  # within which two hooks report the same event without an id
EARLIER_TURNS, EARLIER_OUTPUTS, OUTPUT_CHARS = 5, 20, 10_000


@dataclass(frozen=True, slots=True)
class Recorded:
    outcome: Literal["stored", "duplicate", "private", "forgotten", "skipped"]
    session_db_id: int
    project_id: int
    prompt_number: int | None = None
    turn_id: int | None = None


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


def record_events(connection: sqlite3.Connection, events: Sequence[Event]) -> list[Recorded]:
    """Records events in the order of the list; nothing can be forgotten between them."""
    session_ids = {event.session_id for event in events}
    forgotten = {id_ for id_ in session_ids if is_forgotten_session(connection, id_)}
    return [
        Recorded("forgotten", 0, 0)
        if event.session_id in forgotten
        else _record_event(connection, event)
        for event in events
    ]


def _record_event(connection: sqlite3.Connection, event: Event) -> Recorded:
    if event.is_skipped:
        return _record_skipped(connection, event)
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


def _record_skipped(connection: sqlite3.Connection, event: Event) -> Recorded:
    """Records only which words a skipped event brought, to a turn that exists."""
    session = find_session(connection, event.session_id)
    turn = _existing_turn(connection, session["id"], event) if session is not None else None
    if turn is not None and not is_blocked(turn):
        unstored_words.save(connection, turn["id"], [(event, event.key)])
    return Recorded("skipped", 0, 0)


def _is_repeated_prompt(connection: sqlite3.Connection, turn: sqlite3.Row, event: Event) -> bool:
    """Whether the prompt of a client that counts them came before, by whatever route."""
    if event.kind != PROMPT or event.prompt_number is None:
        return False
    row = connection.execute(
        "SELECT 1 FROM tool_events WHERE turn_id = ? AND event = ?", (turn["id"], PROMPT)
    ).fetchone()
    return row is not None


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


def add_from_transcript(
    connection: sqlite3.Connection, turn: Turn, statements: list[Event]
) -> Turn | None:
    """Adds statements of the transcript and a prompt that no hook reported, and corrects tool calls
    that failed without the hook's knowledge; returns the turn with them. None: it is private."""
    row = get_turn(connection, turn.id)
    if row is None or is_blocked(row):
        return None
    for statement in statements:
        if statement.kind == PROMPT:
            row = _with_prompt(connection, row, statement)
            if is_blocked(row):
                return None
            continue
        if statement.kind == TOOL_FAILURE:
            _mark_failed(connection, turn.id, statement)
            continue
        key = _key_within(connection, row, statement)
        insert_event(connection, turn.session_db_id, turn.id, statement, key)
    return load_turn(connection, turn.id)


def _with_prompt(connection: sqlite3.Connection, turn: sqlite3.Row, event: Event) -> sqlite3.Row:
    is_missing = turn["prompt_text"] is None and not turn["notice"]
    if is_missing and event.client_message is None:
        fill_in_prompt(connection, turn, None if event.is_private else event.prompt or "")
    return get_turn(connection, turn["id"])


def _mark_failed(connection: sqlite3.Connection, turn_id: int, failure: Event) -> None:
    """Keeps the key of the stored event, so that the hook's report is stored once."""
    connection.execute(
        "UPDATE tool_events SET event = ?1, text = ?2, bytes = bytes + coalesce(length(?2), 0)"
        " - coalesce(length(tool_response), 0), tool_response = NULL"
        " WHERE turn_id = ?3 AND event = ?4 AND tool_use_id = ?5 AND bytes > 0",
        (TOOL_FAILURE, failure.text, turn_id, TOOL, failure.tool_use_id),
    )


# The turn of an event: an existing one, or one that is created for it


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
                event.client_message is not None,
            ),
        ).fetchone()
    if turn is None:
        return _create_turn(connection, session, event, event.prompt_id)
    if turn["prompt_text"] is None and not is_blocked(turn) and not turn["notice"]:
        if event.client_message is None:
            fill_in_prompt(connection, turn, None if event.is_private else prompt)
        else:
            _fill_in_message(connection, turn, event.client_message)
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
    is_same = event.is_private if turn["private"] else turn["prompt_text"] in (None, event.prompt)
    return turn if is_same else None


def _create_turn(
    connection: sqlite3.Connection, session: sqlite3.Row, event: Event, prompt_id: str | None
) -> sqlite3.Row:
    number = _next_number(connection, session, event.prompt_number)
    is_prompt = event.kind == PROMPT
    text = event.prompt if is_prompt and not event.is_private else None
    parent = None
    if event.client_message is not None:
        parent = find_parent(connection, int(session["id"]), number, event.client_message)
    turn = NewTurn(
        session_id=session["id"],
        project_id=session["project_id"],
        prompt_id=prompt_id or f"number-{number}",
        number=number,
        created_ms=event.arrived_ms,
        prompt=text,
        is_private=event.is_private,
        is_client_message=event.client_message is not None,
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


def _set_first_prompt(connection: sqlite3.Connection, session_id: int, text: str) -> None:
    connection.execute(
        "UPDATE sdk_sessions SET user_prompt = coalesce(user_prompt, ?) WHERE id = ?",
        (text, session_id),
    )


def fill_in_prompt(connection: sqlite3.Connection, turn: sqlite3.Row, prompt: str | None) -> None:
    """Adds the prompt to a turn whose events came first; deletes them if it is private (None)."""
    if prompt is not None:
        connection.execute(
            "UPDATE user_prompts SET prompt_text = ? WHERE id = ?", (prompt, turn["id"])
        )
        if prompt:
            _set_first_prompt(connection, turn["session_id"], prompt)
        return
    connection.execute("UPDATE user_prompts SET private = 1 WHERE id = ?", (turn["id"],))
    for table in (
        "tool_events",
        "observations",
        "session_summaries",
        "turn_records",
        "outside_words",
        "unstored_words",
        "fact_sources",
    ):
        connection.execute(f"DELETE FROM {table} WHERE turn_id = ?", (turn["id"],))
    for queue in QUEUES:
        queue.delete_turns(connection, [turn["id"]])


def _fill_in_message(
    connection: sqlite3.Connection, turn: sqlite3.Row, message: ClientMessage
) -> None:
    parent = find_parent(connection, turn["session_id"], turn["prompt_number"], message)
    connection.execute(
        "UPDATE user_prompts SET notice = 1, parent_turn = ? WHERE id = ?", (parent, turn["id"])
    )


# A turn for an observer


def latest_turns(
    connection: sqlite3.Connection, project_id: int | None, sessions: int
) -> list[int]:
    rows = connection.execute(
        "SELECT (SELECT max(t.id) FROM user_prompts t WHERE t.session_id = s.id AND t.outside = 0)"
        " AS turn_id FROM sdk_sessions s WHERE coalesce(?1, s.project_id) = s.project_id"
        " AND s.dialect <> ?2 AND turn_id IS NOT NULL ORDER BY s.updated_at_epoch DESC LIMIT ?3",
        (project_id, MANUAL, sessions),
    )
    return [turn_id for (turn_id,) in rows]


def load_turn(connection: sqlite3.Connection, turn_id: int) -> Turn | None:
    """Loads a turn with its events, for an observer; None if it is private or sealed."""
    row = connection.execute(
        "SELECT t.*, s.content_session_id, s.memory_session_id, s.project_dir, s.transcript_path,"
        " s.start_context, p.key, p.name FROM user_prompts t"
        " JOIN sdk_sessions s ON s.id = t.session_id"
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
    unstored = unstored_words.of_turn(connection, turn_id)
    uses = tuple(_tool_use(event, unstored) for event in events)
    previous = unstored_words.of_previous(
        connection, row["session_id"], turn_id, EARLIER_TURNS, EARLIER_OUTPUTS
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
        events=uses,
        is_client_message=bool(row["notice"]),
        recent_memories=recent_memories(connection, row["memory_session_id"], row["prompt_number"]),
        earlier_output=_earlier_output(connection, row["session_id"], turn_id) + _recalled(row),
        unstored_words=(*unstored.values(), *previous),  # of events that are not stored
    )


def _earlier_output(connection: sqlite3.Connection, session_id: int, turn_id: int) -> str:
    """Returns the output that shows which words the agent read before; the latest first."""
    rows = connection.execute(
        "SELECT substr(tool_response, 1, ?) FROM tool_events WHERE tool_response IS NOT NULL"
        " AND turn_id IN (SELECT id FROM user_prompts WHERE session_id = ? AND id < ?"
        " ORDER BY id DESC LIMIT ?) ORDER BY id DESC LIMIT ?",
        (OUTPUT_CHARS, session_id, turn_id, EARLIER_TURNS, EARLIER_OUTPUTS),
    )
    return " ".join(text for (text,) in rows)


def _recalled(turn: sqlite3.Row) -> str:
    """What the session's own context marked: repeating it does not make it the agent's."""
    lines = (turn["start_context"] or "").splitlines()
    return "".join(f" {line}" for line in lines if line.endswith(OUTSIDE_MARK))


def _tool_use(row: sqlite3.Row, unstored: dict[str, bytes]) -> TurnEvent:
    """Takes its own of the words that are not stored."""
    return TurnEvent(
        id=row["id"],
        kind=row["event"],
        tool_name=row["tool_name"],
        tool_input=parse_any(row["tool_input"] or "null"),
        tool_response=parse_any(row["tool_response"] or "null"),
        text=row["text"],
        agent_id=row["agent_id"],
        parts=parse_parts(row["words"] or "[]"),
        cwd=row["cwd"] or "",
        key=row["event_key"],
        at_ms=row["created_at_epoch"],
        unstored_words=unstored.pop(row["event_key"], b""),
    )


# Rows


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
    if turn_id is not None and event.unstored_words:
        unstored_words.save(connection, turn_id, [(event, key)])
    return cursor.rowcount == 1


def insert_events(
    connection: sqlite3.Connection,
    session_id: int,
    turn_id: int,
    events: Iterable[tuple[Event, str]],
) -> None:
    """Inserts events with their keys; those that are stored already stay as they are."""
    events = list(events)
    rows = [_event_values(session_id, turn_id, event, key) for event, key in events]
    connection.executemany(_INSERT_EVENT, rows)
    unstored_words.save(connection, turn_id, events)


def fill_in_raw(connection: sqlite3.Connection, turn_id: int, events: Iterable[Event]) -> None:
    """Fills the raw texts into events that were stored without them."""
    events = list(events)
    unstored_words.save(connection, turn_id, ((event, event.key) for event in events))
    connection.executemany(
        "UPDATE tool_events SET tool_input = ?, tool_response = ?, text = ?, words = ?, bytes = ?"
        " WHERE event_key = ? AND turn_id = ? AND bytes = 0",
        [
            (*raw, sum(len(text) for text in raw if text), event.key, turn_id)
            for event in events
            if any(raw := _raw_texts(event))
        ],
    )


_INSERT_EVENT = (
    "INSERT INTO tool_events (event_key, session_id, turn_id, event, tool_name, tool_use_id,"
    " agent_id, cwd, tool_input, tool_response, text, detail, words, bytes, created_at_epoch)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (event_key) DO NOTHING"
)


def _event_values(
    session_id: int, turn_id: int | None, event: Event, key: str
) -> tuple[object, ...]:
    detail = json.dumps(event.detail, ensure_ascii=False) if event.detail else None
    *texts, parts = _raw_texts(event)
    raw = (*texts, detail, parts)
    return (key, session_id, turn_id, event.kind, event.tool_name, event.tool_use_id,
            event.agent_id, event.cwd, *raw, sum(len(text) for text in raw if text),
            event.arrived_ms)  # fmt: skip


def _raw_texts(event: Event) -> tuple[str | None, ...]:
    parts = dump_parts(event.parts) if event.parts else None
    return event.tool_input, event.tool_response, event.text, parts

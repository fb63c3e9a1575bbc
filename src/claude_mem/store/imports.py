"""Sessions of the past, as a transcript tells them, joined with what hooks have told.

A turn that hooks saw stays as they told it. One that is there from an earlier import is left
alone, unless the transcript has grown since. So any number of imports, in any order, killed or
not, come to the same.
"""

import sqlite3
from dataclasses import dataclass, replace

from claude_mem.store import forgetting, memories, sessions
from claude_mem.store.clock import iso
from claude_mem.types import Distillate, Event, PastSession, PastTurn


@dataclass(slots=True)
class Outcome:
    turns: int = 0
    observations: int = 0
    summaries: int = 0
    known: int = 0  # turns that were there already
    private: int = 0
    forgotten: int = 0


def import_session(connection: sqlite3.Connection, past: PastSession) -> Outcome:
    outcome = Outcome()
    if forgetting.is_forgotten_session(
        connection, past.session_id
    ) or forgetting.is_forgotten_project(connection, past.project.key, past.started_ms):
        outcome.forgotten += len(past.turns)
        return outcome
    session = _ensure_session(connection, past)
    for turn in past.turns:
        _import_turn(connection, session, past, turn, outcome)
    return outcome


def _ensure_session(connection: sqlite3.Connection, past: PastSession) -> sqlite3.Row:
    first = Event("SessionStart", past.session_id, past.started_ms, "", past.project,
                  past.project_dir, transcript_path=past.transcript_path)  # fmt: skip
    known = sessions.find_session(connection, past.session_id)
    row = sessions.ensure_session(connection, first)
    if known is None:
        connection.execute(
            "UPDATE sdk_sessions SET updated_at = ?, updated_at_epoch = ? WHERE id = ?",
            (iso(past.ended_ms), past.ended_ms, row["id"]),
        )
        sessions.end_session(connection, row["id"], "completed", past.ended_ms)
    return row


def _import_turn(
    connection: sqlite3.Connection,
    session: sqlite3.Row,
    past: PastSession,
    turn: PastTurn,
    outcome: Outcome,
) -> None:
    known = _known_turn(connection, session["id"], turn)
    if known["sealed"] if known else forgetting.is_forgotten_turn(connection, turn.prompt_id):
        outcome.forgotten += 1
        return
    if known is None and _belongs_to_another(connection, past.session_id, turn.prompt_id):
        outcome.known += 1
        return
    if turn.prompt is None:
        if known is None:
            _create_turn(connection, session, turn, past.started_ms)
        outcome.private += 1
        return
    if known is not None and not _has_grown(connection, known, turn):
        outcome.known += 1
        return
    turn_id = known["id"] if known else _create_turn(connection, session, turn, past.started_ms)
    ids = _insert_events(connection, session["id"], turn_id, turn)
    if turn.made is not None:
        made = _with_sources(turn.made, ids)
        connection.execute(
            "UPDATE user_prompts SET updated_at_epoch = max(updated_at_epoch, ?) WHERE id = ?",
            (_end_of(turn, past.started_ms), turn_id),
        )
        memories.save_memories(connection, session["id"], turn_id, turn.number, made)
        outcome.turns += 1
        outcome.summaries += 1
        outcome.observations += len(made.observations)


def _known_turn(
    connection: sqlite3.Connection, session_id: int, turn: PastTurn
) -> sqlite3.Row | None:
    """By its id; or by its words, where the client gave no ids and hooks know only a number."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM user_prompts WHERE session_id = ?1 AND (prompt_id = ?2 OR"
        " (prompt_id GLOB 'number-*' AND prompt_text = ?3)) ORDER BY prompt_id = ?2 DESC",
        (session_id, turn.prompt_id, turn.prompt),
    ).fetchone()
    return row


def _belongs_to_another(connection: sqlite3.Connection, session_id: str, prompt_id: str) -> bool:
    """A forked session repeats its origin's turns. Whichever file is read first: they stay where
    hooks saw them, or with the session whose id comes first."""
    row = connection.execute(
        "SELECT t.id, t.imported, s.content_session_id AS other FROM user_prompts t"
        " JOIN sdk_sessions s ON s.id = t.session_id"
        " WHERE t.prompt_id = ? AND s.content_session_id <> ? ORDER BY t.imported, other",
        (prompt_id, session_id),
    ).fetchone()
    if row is None:
        return False
    if not row["imported"] or row["other"] < session_id:
        return True
    connection.execute("DELETE FROM user_prompts WHERE id = ?", (row["id"],))
    return False


def _has_grown(connection: sqlite3.Connection, known: sqlite3.Row, turn: PastTurn) -> bool:
    """Whether the transcript tells more of the turn than an earlier import found in it."""
    if not known["imported"]:
        return False
    rows = connection.execute("SELECT event_key FROM tool_events WHERE turn_id = ?", (known["id"],))
    return {row[0] for row in rows} < {event.key for event in turn.events}


def _create_turn(
    connection: sqlite3.Connection, session: sqlite3.Row, turn: PastTurn, otherwise: int
) -> int:
    begun = turn.events[0].arrived_ms if turn.events else otherwise
    taken = connection.execute(
        "SELECT 1 FROM user_prompts WHERE session_id = ? AND prompt_number = ?",
        (session["id"], turn.number),
    ).fetchone()
    counter = connection.execute(
        "UPDATE sdk_sessions SET prompt_counter = CASE WHEN ? THEN prompt_counter + 1"
        " ELSE max(prompt_counter, ?) END WHERE id = ? RETURNING prompt_counter",
        (bool(taken), turn.number, session["id"]),
    ).fetchone()[0]
    number = counter if taken else turn.number
    cursor = connection.execute(
        "INSERT INTO user_prompts (session_id, project_id, prompt_id, prompt_number, prompt_text,"
        " private, closed, retired, imported, updated_at_epoch, created_at, created_at_epoch)"
        " VALUES (?, ?, ?, ?, ?, ?, 1, ?, 1, ?, ?, ?)",
        (session["id"], session["project_id"], turn.prompt_id, number, turn.prompt,
         turn.prompt is None, not turn.keeps_raw, begun, iso(begun), begun),
    )  # fmt: skip
    if turn.prompt:
        connection.execute(
            "UPDATE sdk_sessions SET user_prompt = coalesce(user_prompt, ?) WHERE id = ?",
            (turn.prompt, session["id"]),
        )
    return int(cursor.lastrowid or 0)


def _insert_events(
    connection: sqlite3.Connection, session_id: int, turn_id: int, turn: PastTurn
) -> list[int]:
    """Their ids, in order; raw text only where it is still kept."""
    connection.executemany(
        "INSERT INTO tool_events (event_key, session_id, turn_id, event, tool_name, tool_use_id,"
        " agent_id, cwd, tool_input, tool_response, text, detail, bytes, created_at_epoch)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, ?) ON CONFLICT (event_key) DO NOTHING",
        [_event_row(event, session_id, turn_id, turn.keeps_raw) for event in turn.events],
    )
    rows = connection.execute("SELECT event_key, id FROM tool_events WHERE turn_id = ?", (turn_id,))
    ids = {row[0]: row[1] for row in rows}
    return [ids.get(event.key, 0) for event in turn.events]


def _event_row(event: Event, session_id: int, turn_id: int, keeps_raw: bool) -> tuple[object, ...]:
    raw = (event.tool_input, event.tool_response, event.text) if keeps_raw else (None, None, None)
    return (event.key, session_id, turn_id, event.kind, event.tool_name, event.tool_use_id,
            event.agent_id, event.cwd, *raw, sum(len(text) for text in raw if text),
            event.arrived_ms)  # fmt: skip


def _with_sources(made: Distillate, ids: list[int]) -> Distillate:
    def found(places: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(ids[place - 1] for place in places if ids[place - 1])

    return replace(
        made,
        summary=replace(made.summary, sources=found(made.summary.sources)),
        observations=tuple(replace(o, sources=found(o.sources)) for o in made.observations),
    )


def _end_of(turn: PastTurn, otherwise: int) -> int:
    return max((event.arrived_ms for event in turn.events), default=otherwise)


def is_imported(connection: sqlite3.Connection, path: str, size: int, modified_ns: int) -> bool:
    """Whether this file, as it is, was read to its end before."""
    row = connection.execute(
        "SELECT 1 FROM transcripts WHERE path = ? AND size = ? AND modified_ns = ?",
        (path, size, modified_ns),
    ).fetchone()
    return row is not None


def note_imported(connection: sqlite3.Connection, path: str, size: int, modified_ns: int) -> None:
    connection.execute(
        "INSERT INTO transcripts (path, size, modified_ns) VALUES (?, ?, ?) ON CONFLICT (path)"
        " DO UPDATE SET size = excluded.size, modified_ns = excluded.modified_ns",
        (path, size, modified_ns),
    )

"""Sessions of the past, as a transcript tells them, joined with what hooks have told.

A turn that hooks saw stays as they told it. One that is there from an earlier import is left
alone, unless the transcript has grown since. What depends on which file came first is never kept.
So any number of imports, in any order, killed or not, come to the same.
"""

import sqlite3
from dataclasses import dataclass, replace
from pathlib import PurePath

from claude_mem.store import forgetting, memories, sessions
from claude_mem.store.clock import iso
from claude_mem.store.summary_facts import with_sources
from claude_mem.store.turns import (
    SESSION_END,
    SESSION_START,
    NewTurn,
    insert_event,
    insert_turn,
)
from claude_mem.types import Distillate, Event, PastSession, PastTurn

_TITLES = ("title", "subtitle", "user_prompt")
_SAME_TIME_MS = 60_000  # between what a hook and what a transcript says of a prompt
_BLANK = " \t\n\r\v\f\u00a0"


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
    if not past.turns:
        return outcome
    if _is_forgotten(connection, past):
        outcome.forgotten += len(past.turns)
        return outcome
    session = _ensure_session(connection, past)
    for turn in past.turns:
        _import_turn(connection, session, past, turn, outcome)
    if _may_tell_what_is_forgotten(connection, session["id"], past):
        past = replace(past, **{name: session[name] for name in _TITLES})
    connection.execute(
        "UPDATE sdk_sessions SET user_prompt = coalesce(user_prompt, ?) WHERE id = ?",
        (past.user_prompt, session["id"]),
    )
    if not _is_known_to_hooks(connection, session["id"]):
        _describe(connection, session["id"], past)
    return outcome


def preview_import(connection: sqlite3.Connection, past: PastSession) -> Outcome:
    """What an import would do, by looking only."""
    outcome = Outcome()
    if _is_forgotten(connection, past):
        outcome.forgotten += len(past.turns)
        return outcome
    session = sessions.find_session(connection, past.session_id)
    for turn in past.turns:
        known = _known_turn(connection, session["id"], turn) if session else None
        if _is_forgotten_turn(connection, known, turn):
            outcome.forgotten += 1
        elif turn.made is None:
            outcome.private += 1
        elif (
            not _tells_more(connection, known, turn)
            if known is not None
            else _elsewhere(connection, past.session_id, turn.prompt_id) is not None
        ):
            outcome.known += 1
        else:
            outcome.turns += 1
            outcome.summaries += 1
            outcome.observations += len(turn.made.observations)
    return outcome


def _is_forgotten(connection: sqlite3.Connection, past: PastSession) -> bool:
    """As a session, with its project, or because a fork holds nothing but what is forgotten."""
    if not past.turns or sessions.find_session(connection, past.session_id) is not None:
        return False
    return (
        forgetting.is_forgotten_session(connection, past.session_id)
        or forgetting.is_forgotten_project(connection, past.project.key, past.started_ms)
        or all(forgetting.is_forgotten_turn(connection, turn.prompt_id) for turn in past.turns)
    )


def _is_forgotten_turn(
    connection: sqlite3.Connection, known: sqlite3.Row | None, turn: PastTurn
) -> bool:
    if known is not None:
        return bool(known["sealed"])
    return forgetting.is_forgotten_turn(connection, turn.prompt_id)


def _may_tell_what_is_forgotten(
    connection: sqlite3.Connection, session_id: int, past: PastSession
) -> bool:
    """Whether the titles may: they are the whole file's, whichever piece of it this is."""
    return forgetting.lost_something(connection, session_id) or forgetting.is_any_forgotten_turn(
        connection, past.prompt_ids
    )


def _ensure_session(connection: sqlite3.Connection, past: PastSession) -> sqlite3.Row:
    first = Event("SessionStart", past.session_id, past.started_ms, "", past.project,
                  past.project_dir, transcript_path=past.transcript_path)  # fmt: skip
    return sessions.ensure_session(connection, first)


def _is_known_to_hooks(connection: sqlite3.Connection, session_id: int) -> bool:
    row = connection.execute(
        "SELECT 1 FROM user_prompts WHERE session_id = ?1 AND imported = 0 UNION ALL"
        " SELECT 1 FROM tool_events WHERE session_id = ?1 AND event IN (?2, ?3) LIMIT 1",
        (session_id, SESSION_START, SESSION_END),
    ).fetchone()
    return row is not None


def _describe(connection: sqlite3.Connection, session_id: int, past: PastSession) -> None:
    """What only transcripts told of: from the first to the last that any of them knows. Titles
    are the whole file's, also of turns that stay with another session."""
    row = connection.execute("SELECT * FROM sdk_sessions WHERE id = ?", (session_id,)).fetchone()
    started = min(row["started_at_epoch"], past.started_ms)
    ended = max(row["updated_at_epoch"], past.ended_ms)
    title, subtitle = row["title"], row["subtitle"]
    if past.ended_ms >= row["updated_at_epoch"]:  # a longer file may say it better than a shorter
        is_whole = past.started_ms <= row["started_at_epoch"]
        title, subtitle = past.title if is_whole else title or past.title, past.subtitle
    is_its_own = PurePath(past.transcript_path).stem == past.session_id
    connection.execute(
        "UPDATE sdk_sessions SET started_at = ?, started_at_epoch = ?, updated_at = ?,"
        " updated_at_epoch = ?, prompt_counter = max(prompt_counter, ?), transcript_path = ?,"
        " title = ?, subtitle = ? WHERE id = ?",
        (iso(started), started, iso(ended), ended, past.turns[-1].number,
         past.transcript_path if is_its_own else row["transcript_path"],
         title, subtitle, session_id),
    )  # fmt: skip
    sessions.end_session(connection, session_id, "completed", ended)


def _import_turn(
    connection: sqlite3.Connection,
    session: sqlite3.Row,
    past: PastSession,
    turn: PastTurn,
    outcome: Outcome,
) -> None:
    known = _known_turn(connection, session["id"], turn)
    if _is_forgotten_turn(connection, known, turn):
        outcome.forgotten += 1
        return
    if known is None and _belongs_to_another(connection, past.session_id, turn.prompt_id):
        outcome.known += 1
        return
    if turn.prompt is None:
        if known is None:
            _create_turn(connection, session, turn)
        outcome.private += 1
        return
    if known is not None and not _tells_more(connection, known, turn):
        outcome.known += 1
        return
    if known is None:
        known = _create_turn(connection, session, turn)
    ids = _replace_events(connection, known, turn)
    if turn.made is not None:
        made = _with_sources(turn.made, ids)
        connection.execute(
            "UPDATE user_prompts SET updated_at_epoch = max(updated_at_epoch, ?) WHERE id = ?",
            (max(event.arrived_ms for event in turn.events), known["id"]),
        )
        number = known["prompt_number"]
        memories.save_memories(connection, session["id"], known["id"], number, made)
        outcome.turns += 1
        outcome.summaries += 1
        outcome.observations += len(made.observations)


def _known_turn(
    connection: sqlite3.Connection, session_id: int, turn: PastTurn
) -> sqlite3.Row | None:
    """By its id. Where the client gave no ids and hooks know only a number: by its words, or, if
    they are forgotten, by its time."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM user_prompts WHERE session_id = ?1 AND (prompt_id = ?2 OR"
        " (prompt_id GLOB 'number-*' AND CASE WHEN private THEN ?3 IS NULL"
        " WHEN prompt_text IS NULL THEN sealed > 0 AND abs(created_at_epoch - ?5) < ?6"
        " ELSE trim(prompt_text, ?4) = ?3 END))"
        " ORDER BY prompt_id = ?2 DESC, prompt_text IS NULL",
        (session_id, turn.prompt_id, turn.prompt, _BLANK, turn.begun_ms, _SAME_TIME_MS),
    ).fetchone()
    return row


def _belongs_to_another(connection: sqlite3.Connection, session_id: str, prompt_id: str) -> bool:
    """A forked session repeats its origin's turns. Whichever file is read first: they stay where
    hooks saw them, or with the session whose id comes first."""
    row = _elsewhere(connection, session_id, prompt_id)
    if row is None:
        return False
    if not row["imported"] or row["other"] < session_id:
        return True
    connection.execute("DELETE FROM user_prompts WHERE id = ?", (row["id"],))
    return False


def _elsewhere(
    connection: sqlite3.Connection, session_id: str, prompt_id: str
) -> sqlite3.Row | None:
    row: sqlite3.Row | None = connection.execute(
        "SELECT t.id, t.imported, s.content_session_id AS other FROM user_prompts t"
        " JOIN sdk_sessions s ON s.id = t.session_id"
        " WHERE t.prompt_id = ? AND s.content_session_id <> ? ORDER BY t.imported, other",
        (prompt_id, session_id),
    ).fetchone()
    return row


def _tells_more(connection: sqlite3.Connection, known: sqlite3.Row, turn: PastTurn) -> bool:
    """Than an earlier import found in its transcript; of two that tell it differently, the same
    one wins in any order."""
    if not known["imported"]:
        return False
    rows = connection.execute(
        "SELECT event_key, created_at_epoch FROM tool_events WHERE turn_id = ?", (known["id"],)
    )
    before = {row[0]: row[1] for row in rows}
    return _weight({event.key: event.arrived_ms for event in turn.events}) > _weight(before)


def _weight(events: dict[str, int]) -> tuple[int, int, list[str]]:
    return len(events), max(events.values(), default=0), sorted(events)


def _create_turn(
    connection: sqlite3.Connection, session: sqlite3.Row, turn: PastTurn
) -> sqlite3.Row:
    taken = connection.execute(
        "SELECT 1 FROM user_prompts WHERE session_id = ? AND prompt_number = ?",
        (session["id"], turn.number),
    ).fetchone()
    counter = connection.execute(
        "UPDATE sdk_sessions SET prompt_counter = CASE WHEN ? THEN prompt_counter + 1"
        " ELSE max(prompt_counter, ?) END WHERE id = ? RETURNING prompt_counter",
        (bool(taken), turn.number, session["id"]),
    ).fetchone()[0]
    return insert_turn(
        connection,
        NewTurn(
            session_id=session["id"],
            project_id=session["project_id"],
            prompt_id=turn.prompt_id,
            number=counter if taken else turn.number,
            created_ms=turn.begun_ms,
            prompt=turn.prompt,
            is_private=turn.prompt is None,
            is_closed=True,
            is_retired=not turn.keeps_raw,
            is_imported=True,
        ),
    )


def _replace_events(
    connection: sqlite3.Connection, known: sqlite3.Row, turn: PastTurn
) -> list[int]:
    """Their ids, in order; raw text only where it is still kept."""
    turn_id = known["id"]
    connection.execute("DELETE FROM tool_events WHERE turn_id = ?", (turn_id,))
    for event in turn.events:
        stored = _without_raw(event, keeps_text=turn.keeps_raw)
        insert_event(connection, known["session_id"], turn_id, stored, event.key)
    rows = connection.execute("SELECT event_key, id FROM tool_events WHERE turn_id = ?", (turn_id,))
    ids = {row[0]: row[1] for row in rows}
    return [ids.get(event.key, 0) for event in turn.events]


def _without_raw(event: Event, *, keeps_text: bool) -> Event:
    if keeps_text:
        return replace(event, detail={})
    return replace(event, tool_input=None, tool_response=None, text=None, detail={})


def _with_sources(made: Distillate, ids: list[int]) -> Distillate:
    def found(places: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(ids[place - 1] for place in places if ids[place - 1])

    return replace(
        made,
        title=None,  # the session is described as a whole
        subtitle=None,
        summary=replace(
            made.summary,
            commands=with_sources(made.summary.commands, found),
            faults=with_sources(made.summary.faults, found),
            open_steps=with_sources(made.summary.open_steps, found),
            sources=found(made.summary.sources),
        ),
        observations=tuple(replace(o, sources=found(o.sources)) for o in made.observations),
    )


def is_imported(connection: sqlite3.Connection, path: str, size: int, modified_ns: int) -> bool:
    """Whether this file, as it is, was read to its end before."""
    row = connection.execute(
        "SELECT 1 FROM transcripts WHERE path = ? AND size = ? AND modified_ns = ?",
        (path, size, modified_ns),
    ).fetchone()
    return row is not None


def mark_imported(connection: sqlite3.Connection, path: str, size: int, modified_ns: int) -> None:
    connection.execute(
        "INSERT INTO transcripts (path, size, modified_ns) VALUES (?, ?, ?) ON CONFLICT (path)"
        " DO UPDATE SET size = excluded.size, modified_ns = excluded.modified_ns",
        (path, size, modified_ns),
    )

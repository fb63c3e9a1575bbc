"""Past sessions from transcripts, merged with what hooks recorded.

A turn that hooks recorded stays as it is. A turn of an earlier import is only replaced when the
transcript has grown. Nothing depends on the order in which files are read, so any number of
imports, interrupted or not, give the same result. A session may come twice: first without
distillates, so that its turns wait for them, then with them; `observer_version` says of each turn
how far that is, and is changed in the transaction that stores the memories.
"""

import json
import sqlite3
from dataclasses import dataclass, replace
from pathlib import PurePath

from claude_mem.store import editing, memories, outdated_turns, sessions, tombstones, turn_records
from claude_mem.store.clock import iso
from claude_mem.store.memories import with_sources
from claude_mem.store.outdated_turns import OPEN
from claude_mem.store.turns import (
    NewTurn,
    fill_in_raw,
    get_turn,
    insert_events,
    insert_turn,
    is_blocked,
)
from claude_mem.types import (
    SESSION_END,
    SESSION_START,
    Distillate,
    Event,
    PastSession,
    PastTurn,
    Project,
    TranscriptToDistil,
    is_counted,
)

UNDISTILLED = -1  # the version of a turn that has no memories yet
LOST = -2  # of one that gets none: its transcript is gone, and so are its events
_WAITING = f"{OPEN} AND t.observer_version = {UNDISTILLED}"
_TITLES = ("title", "subtitle", "user_prompt")
_SAME_TIME_MS = 60_000  # between a hook's and a transcript's time of the same prompt
_BLANK = " \t\n\r\v\f\u00a0"


@dataclass(slots=True)
class ImportCounts:
    turns: int = 0
    observations: int = 0
    summaries: int = 0
    existing: int = 0  # turns that were stored before
    private: int = 0
    forgotten: int = 0
    records: int = 0  # of existing turns that had none, or an incomplete one
    waiting: int = 0  # turns that are distilled later

    def add_memories(self, distillate: Distillate | None) -> None:
        if distillate is not None:
            self.summaries += 1
            self.observations += len(distillate.observations)


def import_session(connection: sqlite3.Connection, past: PastSession) -> ImportCounts:
    counts = ImportCounts()
    if not past.turns:
        return counts
    if _is_forgotten(connection, past):
        counts.forgotten += len(past.turns)
        return counts
    session = _ensure_session(connection, past)
    for turn in past.turns:
        _import_turn(connection, session, past, turn, counts)
    has_changed = counts.turns or counts.waiting or _has_new_titles(connection, session, past)
    if has_changed:
        _add_transcript(connection, session["id"], past)
    if _may_reveal_forgotten(connection, session["id"], past):
        past = replace(past, client_title=None, **{name: session[name] for name in _TITLES})
    connection.execute(
        "UPDATE sdk_sessions SET user_prompt = coalesce(user_prompt, ?) WHERE id = ?",
        (past.user_prompt, session["id"]),
    )
    if not _has_hook_events(connection, session["id"]):
        _describe(connection, session["id"], past)
    _set_client_title(connection, session["id"], past)
    return counts


def save_session_memories(connection: sqlite3.Connection, past: PastSession) -> ImportCounts:
    """Memories for turns that have none yet, or those of an older observer; adds no turn."""
    counts = ImportCounts()
    session = sessions.find_session(connection, past.session_id)
    if session is None:
        return counts
    is_waiting = _is_waiting_for(connection, session["id"], past.transcript_path)
    for turn in past.turns:
        row = _find_turn(connection, session["id"], turn)
        if row is not None and _distil_again(connection, row, turn):
            counts.add_memories(turn.distillate)
    if not _may_reveal_forgotten(connection, session["id"], past):
        if is_waiting and not _has_hook_events(connection, session["id"]):
            _describe(connection, session["id"], past)
        _set_client_title(connection, session["id"], past)
    return counts


def preview_import(connection: sqlite3.Connection, past: PastSession) -> ImportCounts:
    """What an import would do."""
    counts = ImportCounts()
    if _is_forgotten(connection, past):
        counts.forgotten += len(past.turns)
        return counts
    session = sessions.find_session(connection, past.session_id)
    for turn in past.turns:
        existing = _find_turn(connection, session["id"], turn) if session else None
        if _is_forgotten_turn(connection, existing, turn):
            counts.forgotten += 1
        elif turn.is_private:
            counts.private += 1
        elif (
            not _has_more(connection, existing, turn)
            if existing is not None
            else _find_copy(connection, past.session_id, turn.prompt_id) is not None
            or (session is not None and _may_be_of_hooks(connection, session["id"], turn))
        ):
            counts.existing += 1
            counts.records += existing is not None and _lacks_record(connection, existing, turn)
        else:
            counts.turns += 1
            counts.add_memories(turn.distillate)
    return counts


def _is_forgotten(connection: sqlite3.Connection, past: PastSession) -> bool:
    """Whether the session, its project, or every single turn of it was forgotten."""
    if not past.turns or sessions.find_session(connection, past.session_id) is not None:
        return False
    return (
        tombstones.is_forgotten_session(connection, past.session_id)
        or tombstones.is_forgotten_project(connection, past.project.key, past.started_ms)
        or all(tombstones.is_forgotten_turn(connection, turn.prompt_id) for turn in past.turns)
    )


def _is_forgotten_turn(
    connection: sqlite3.Connection, existing: sqlite3.Row | None, turn: PastTurn
) -> bool:
    if existing is not None:
        return bool(existing["sealed"])
    return tombstones.is_forgotten_turn(connection, turn.prompt_id)


def _may_reveal_forgotten(
    connection: sqlite3.Connection, session_id: int, past: PastSession
) -> bool:
    """Whether the titles may: they are those of the whole file, of which this is a part."""
    return tombstones.has_sealed_turn(connection, session_id) or tombstones.is_any_forgotten_turn(
        connection, past.prompt_ids
    )


def _ensure_session(connection: sqlite3.Connection, past: PastSession) -> sqlite3.Row:
    first = Event("SessionStart", past.session_id, past.started_ms, "", past.project,
                  past.project_dir, past.dialect, transcript_path=past.transcript_path)  # fmt: skip
    return sessions.ensure_session(connection, first)


def _has_hook_events(connection: sqlite3.Connection, session_id: int) -> bool:
    row = connection.execute(
        "SELECT 1 FROM user_prompts WHERE session_id = ?1 AND imported = 0 UNION ALL"
        " SELECT 1 FROM tool_events WHERE session_id = ?1 AND event IN (?2, ?3) LIMIT 1",
        (session_id, SESSION_START, SESSION_END),
    ).fetchone()
    return row is not None


def _describe(connection: sqlite3.Connection, session_id: int, past: PastSession) -> None:
    """Sets times and titles of a session that only transcripts describe. Titles are those of the
    whole file, even if some of its turns belong to a different session."""
    row = connection.execute("SELECT * FROM sdk_sessions WHERE id = ?", (session_id,)).fetchone()
    started = min(row["started_at_epoch"], past.started_ms)
    ended = max(row["updated_at_epoch"], past.ended_ms)
    title, subtitle = row["title"], row["subtitle"]
    if past.is_distilled and past.ended_ms >= row["updated_at_epoch"]:
        # A longer file has better titles.
        is_whole = past.started_ms <= row["started_at_epoch"]
        title, subtitle = past.title if is_whole else title or past.title, past.subtitle
    if row["title_source"] is not None:
        title = row["title"]
    is_own_file = PurePath(past.transcript_path).stem == past.session_id
    connection.execute(
        "UPDATE sdk_sessions SET started_at = ?, started_at_epoch = ?, updated_at = ?,"
        " updated_at_epoch = ?, prompt_counter = max(prompt_counter, ?), transcript_path = ?,"
        " title = ?, subtitle = ? WHERE id = ?",
        (iso(started), started, iso(ended), ended, past.turns[-1].number,
         past.transcript_path if is_own_file else row["transcript_path"],
         title, subtitle, session_id),
    )  # fmt: skip
    sessions.end_session(connection, session_id, "completed", ended)


def _set_client_title(connection: sqlite3.Connection, session_id: int, past: PastSession) -> None:
    if past.client_title is not None:
        sessions.set_client_title(connection, session_id, past.client_title)


def _import_turn(
    connection: sqlite3.Connection,
    session: sqlite3.Row,
    past: PastSession,
    turn: PastTurn,
    counts: ImportCounts,
) -> None:
    existing = _find_turn(connection, session["id"], turn)
    if _is_forgotten_turn(connection, existing, turn):
        counts.forgotten += 1
        return
    if existing is None and (
        _may_be_of_hooks(connection, session["id"], turn)
        or not _take_from_fork(connection, past.session_id, turn.prompt_id)
    ):
        counts.existing += 1
        return
    if turn.is_private:
        if existing is None:
            _create_turn(connection, session, turn)
        counts.private += 1
        return
    if existing is not None and not _has_more(connection, existing, turn):
        counts.existing += 1
        counts.records += _fill_in_record(connection, existing, turn)
        if turn.distillate is not None:
            _distil_again(connection, existing, turn)
        elif _is_undistilled(existing) and _has_all(connection, existing, turn):
            _fill_in_raw(connection, existing, turn)
            counts.waiting += _wait_for_memories(connection, existing["id"])
        return
    if existing is not None:
        _delete_events(connection, existing, turn)
    stored_turn = existing if existing is not None else _create_turn(connection, session, turn)
    turn_id, number = stored_turn["id"], stored_turn["prompt_number"]
    events = [(event.without_raw(keeps_text=turn.keeps_raw), event.key) for event in turn.events]
    insert_events(connection, stored_turn["session_id"], turn_id, events)
    connection.execute(
        "UPDATE user_prompts SET updated_at_epoch = max(updated_at_epoch, ?) WHERE id = ?",
        (max(event.arrived_ms for event in turn.events), turn_id),
    )
    if turn.distillate is not None:
        ids = _event_ids(connection, turn_id, turn)
        distillate = _with_sources(turn.distillate, ids)
        memories.save_memories(connection, session["id"], turn_id, number, distillate)
        counts.add_memories(distillate)
    else:
        counts.waiting += _wait_for_memories(connection, turn_id)
    turn_records.save_record(connection, turn_id, turn.record, stored_turn["created_at_epoch"])
    counts.turns += 1


def _distil_again(connection: sqlite3.Connection, existing: sqlite3.Row, turn: PastTurn) -> bool:
    """Distils again where the turn waits for it, or an older version of the observer distilled it
    and its events are gone."""
    if turn.distillate is None:
        return False
    if _is_undistilled(existing):
        if not _has_all(connection, existing, turn):
            return False  # another file has more of it
        _fill_in_raw(connection, existing, turn)
    elif not existing["retired"]:
        return False
    ids = _event_ids(connection, existing["id"], turn)
    return save_again(connection, existing["id"], _with_sources(turn.distillate, ids))


def _fill_in_raw(connection: sqlite3.Connection, existing: sqlite3.Row, turn: PastTurn) -> None:
    """The raw texts of a turn that was stored without them, unless it may not have them any more.
    In the transaction that stores its memories: a turn that waits for either waits for both."""
    if turn.keeps_raw and not existing["retired"] and not is_blocked(existing):
        fill_in_raw(connection, existing["id"], turn.events)


def _delete_events(connection: sqlite3.Connection, existing: sqlite3.Row, turn: PastTurn) -> None:
    """Deletes the events that are replaced. If raw texts come later, those that are stored stay
    until then: the transcript may be gone."""
    keys = [event.key for event in turn.events]
    is_kept = turn.keeps_raw and turn.distillate is None
    connection.execute(
        "DELETE FROM tool_events WHERE turn_id = ?"
        " AND event_key NOT IN (SELECT value FROM json_each(?))",
        (existing["id"], json.dumps(keys if is_kept else [])),
    )


def _has_new_titles(
    connection: sqlite3.Connection, session: sqlite3.Row, past: PastSession
) -> bool:
    """Whether the titles of a session are new: it has no turns of its own, since it was forked, or
    has others than before."""
    row = connection.execute(
        "SELECT title IS NULL AND subtitle IS NULL OR updated_at_epoch < ? FROM sdk_sessions"
        " WHERE id = ?",
        (past.ended_ms, session["id"]),
    ).fetchone()
    return bool(row[0]) and not _has_hook_events(connection, session["id"])


def _fill_in_record(connection: sqlite3.Connection, existing: sqlite3.Row, turn: PastTurn) -> bool:
    """Fills in the record where a turn has none, or less than the transcript: earlier versions kept
    none, and of a turn in which the upgrade took place only its end."""
    if not _lacks_record(connection, existing, turn):
        return False
    return turn_records.save_record(
        connection, existing["id"], turn.record, existing["created_at_epoch"]
    )


def _lacks_record(connection: sqlite3.Connection, existing: sqlite3.Row, turn: PastTurn) -> bool:
    size = turn_records.record_size(connection, existing["id"])
    return turn_records.size_of(turn.record) > size if turn.record else False


def _find_turn(
    connection: sqlite3.Connection, session_id: int, turn: PastTurn
) -> sqlite3.Row | None:
    """Finds a turn by its id; where hooks got no id from the client, by its text, or, if that was
    forgotten, by its time."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM user_prompts WHERE session_id = ?1 AND (prompt_id = ?2 OR"
        " (prompt_id GLOB 'number-*' AND CASE WHEN private THEN ?3 IS NULL"
        " WHEN prompt_text IS NULL THEN sealed > 0 AND abs(created_at_epoch - ?5) < ?6"
        " ELSE trim(prompt_text, ?4) = ?3 END))"
        " ORDER BY prompt_id = ?2 DESC, prompt_text IS NULL",
        (session_id, turn.prompt_id, turn.prompt, _BLANK, turn.started_ms, _SAME_TIME_MS),
    ).fetchone()
    return row


def _may_be_of_hooks(connection: sqlite3.Connection, session_id: int, turn: PastTurn) -> bool:
    """Whether hooks may have recorded a turn of a transcript without ids, or it was forgotten."""
    if not is_counted(turn.prompt_id):
        return False
    row = connection.execute(
        "SELECT 1 FROM user_prompts WHERE session_id = ? AND imported = 0", (session_id,)
    ).fetchone()
    return row is not None


def _take_from_fork(connection: sqlite3.Connection, session_id: str, prompt_id: str) -> bool:
    """False: the turn stays with a different session.

    A forked session repeats the turns of its origin. In any order of reading, they stay where
    hooks recorded them or someone changed their memories, else with the session whose id sorts
    first.
    """
    row = _find_copy(connection, session_id, prompt_id)
    if row is None:
        return True
    if not row["imported"] or row["content_session_id"] < session_id:
        return False
    if editing.has_protected(connection, row["id"]):
        return False
    connection.execute("DELETE FROM user_prompts WHERE id = ?", (row["id"],))
    return True


def _find_copy(
    connection: sqlite3.Connection, session_id: str, prompt_id: str
) -> sqlite3.Row | None:
    """The same turn in a different session."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT t.id, t.imported, s.content_session_id FROM user_prompts t"
        " JOIN sdk_sessions s ON s.id = t.session_id WHERE t.prompt_id = ?"
        " AND s.content_session_id <> ? ORDER BY t.imported, s.content_session_id",
        (prompt_id, session_id),
    ).fetchone()
    return row


def _has_more(connection: sqlite3.Connection, existing: sqlite3.Row, turn: PastTurn) -> bool:
    """Whether the transcript has more than an earlier import; between two transcripts that differ,
    the same one wins in any order."""
    if not existing["imported"]:
        return False
    return _weight_of(turn) > _stored_weight(connection, existing)


def _has_all(connection: sqlite3.Connection, existing: sqlite3.Row, turn: PastTurn) -> bool:
    """Whether the transcript has at least what is stored of an import."""
    return not existing["imported"] or _weight_of(turn) >= _stored_weight(connection, existing)


def _stored_weight(
    connection: sqlite3.Connection, existing: sqlite3.Row
) -> tuple[int, int, list[str]]:
    rows = connection.execute(
        "SELECT event_key, created_at_epoch FROM tool_events WHERE turn_id = ?", (existing["id"],)
    )
    return _weight({row[0]: row[1] for row in rows})


def _weight_of(turn: PastTurn) -> tuple[int, int, list[str]]:
    return _weight({event.key: event.arrived_ms for event in turn.events})


def _weight(events: dict[str, int]) -> tuple[int, int, list[str]]:
    return len(events), max(events.values(), default=0), sorted(events)


def _create_turn(
    connection: sqlite3.Connection, session: sqlite3.Row, turn: PastTurn
) -> sqlite3.Row:
    is_number_used = connection.execute(
        "SELECT 1 FROM user_prompts WHERE session_id = ? AND prompt_number = ?",
        (session["id"], turn.number),
    ).fetchone()
    counter = connection.execute(
        "UPDATE sdk_sessions SET prompt_counter = CASE WHEN ? THEN prompt_counter + 1"
        " ELSE max(prompt_counter, ?) END WHERE id = ? RETURNING prompt_counter",
        (bool(is_number_used), turn.number, session["id"]),
    ).fetchone()[0]
    return insert_turn(
        connection,
        NewTurn(
            session_id=session["id"],
            project_id=session["project_id"],
            prompt_id=turn.prompt_id,
            number=counter if is_number_used else turn.number,
            created_ms=turn.started_ms,
            prompt=turn.prompt,
            is_private=turn.is_private,
            is_client_message=turn.is_client_message,
            parent_turn=_parent(connection, session["id"], turn.parent_prompt_id),
            is_closed=True,
            is_retired=not turn.keeps_raw,
            is_imported=True,
        ),
    )


def _parent(connection: sqlite3.Connection, session_id: int, prompt_id: str | None) -> int | None:
    """Finds the parent in this session, else in the one it was forked from."""
    if prompt_id is None:
        return None
    row = connection.execute(
        "SELECT id FROM user_prompts WHERE prompt_id = ? ORDER BY session_id = ? DESC LIMIT 1",
        (prompt_id, session_id),
    ).fetchone()
    return int(row[0]) if row is not None else None


def _event_ids(connection: sqlite3.Connection, turn_id: int, turn: PastTurn) -> list[int]:
    """Returns the ids of the turn's events, in order; 0 for those that are not stored."""
    rows = connection.execute("SELECT event_key, id FROM tool_events WHERE turn_id = ?", (turn_id,))
    ids = {row[0]: row[1] for row in rows}
    return [ids.get(event.key, 0) for event in turn.events]


def _with_sources(distillate: Distillate, event_ids: list[int]) -> Distillate:
    def ids_at(places: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(event_ids[place - 1] for place in places if event_ids[place - 1])

    summary = distillate.summary
    return replace(
        distillate,
        title=None,  # the session gets the titles of the whole file
        subtitle=None,
        summary=replace(
            summary,
            commands=with_sources(summary.commands, ids_at),
            faults=with_sources(summary.faults, ids_at),
            open_steps=with_sources(summary.open_steps, ids_at),
            sources=ids_at(summary.sources),
        ),
        observations=tuple(replace(o, sources=ids_at(o.sources)) for o in distillate.observations),
        facts=with_sources(distillate.facts, ids_at),
    )


def is_imported(connection: sqlite3.Connection, path: str, size: int, modified_ns: int) -> bool:
    """Whether this version of the file was imported completely."""
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


# Turns that wait for their memories


def _wait_for_memories(connection: sqlite3.Connection, turn_id: int) -> int:
    """Marks a turn as waiting for its memories; returns how many rows changed."""
    return connection.execute(
        "UPDATE user_prompts SET observer_version = ? WHERE id = ?", (UNDISTILLED, turn_id)
    ).rowcount


def _add_transcript(connection: sqlite3.Connection, session_db_id: int, past: PastSession) -> None:
    """Adds a transcript from which the memories of turns that wait, or the titles of the session,
    are made; or were made now, so that contexts have to be rendered."""
    connection.execute(
        "INSERT INTO undistilled_transcripts (session_id, path, keep_raw_since, distilled)"
        " VALUES (?, ?, ?, ?) ON CONFLICT (session_id, path)"
        " DO UPDATE SET distilled = min(distilled, excluded.distilled)",
        (session_db_id, past.transcript_path, past.keep_raw_since, past.is_distilled),
    )


def save_again(connection: sqlite3.Connection, turn_id: int, distillate: Distillate) -> bool:
    """Memories for a turn that waits for them, or those of a newer observer. False: the turn is
    gone or has changed, and stays as it is."""
    turn = get_turn(connection, turn_id)
    if turn is None or not _is_undistilled(turn):
        return outdated_turns.replace_memories(connection, turn_id, distillate)
    if not _is_open(connection, turn_id):
        return False
    memories.save_memories(
        connection, turn["session_id"], turn_id, turn["prompt_number"], distillate
    )
    return True


def _is_open(connection: sqlite3.Connection, turn_id: int) -> bool:
    """Whether it may get memories that were made of a transcript."""
    row = connection.execute(
        f"SELECT 1 FROM user_prompts t WHERE t.id = ? AND {OPEN}", (turn_id,)
    ).fetchone()
    return row is not None


def _is_undistilled(turn: sqlite3.Row) -> bool:
    return turn["observer_version"] in (UNDISTILLED, LOST)


def _is_waiting_for(connection: sqlite3.Connection, session_db_id: int, path: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM undistilled_transcripts WHERE session_id = ? AND path = ? AND distilled = 0",
        (session_db_id, path),
    ).fetchone()
    return row is not None


def is_any_waiting(connection: sqlite3.Connection) -> bool:
    """Whether anything waits, also if only contexts are not rendered yet."""
    row = connection.execute(
        "SELECT 1 FROM undistilled_transcripts UNION ALL"
        f" SELECT 1 FROM user_prompts t WHERE {_WAITING} LIMIT 1"
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


def waiting_transcripts(connection: sqlite3.Connection) -> list[TranscriptToDistil]:
    """The latest session first."""
    rows = connection.execute(
        "SELECT s.id, s.content_session_id, u.path, u.keep_raw_since, p.key, p.name"
        " FROM undistilled_transcripts u JOIN sdk_sessions s ON s.id = u.session_id"
        " JOIN projects p ON p.id = s.project_id WHERE u.distilled = 0"
        " ORDER BY s.updated_at_epoch DESC, s.id DESC, u.path"
    )
    return [
        TranscriptToDistil(id_, session_id, path, keep_raw_since, Project(key, name))
        for id_, session_id, path, keep_raw_since, key, name in rows
    ]


def finish_transcript(connection: sqlite3.Connection, transcript: TranscriptToDistil) -> list[int]:
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
    """Gives up a turn that cannot be distilled."""
    connection.execute(
        "UPDATE user_prompts SET observer_version = ? WHERE id = ? AND observer_version = ?",
        (LOST, turn_id, UNDISTILLED),
    )


def distilled_projects(connection: sqlite3.Connection) -> dict[int, Project]:
    """Returns by session the projects whose contexts have to be rendered."""
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

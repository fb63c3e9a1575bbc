"""Older turns that the user wants a model to revise: which, in which order, and what is left.

They share the queue of drafts, after today's turns, and they wait for the next day where the
daily cap is reached. Memories of a model are not revised again, and what the user changed stays.
"""

import sqlite3
from dataclasses import dataclass

from claude_mem.store.editing import PROTECTED
from claude_mem.store.queue import REFINEMENTS
from claude_mem.store.turn_records import load_records
from claude_mem.types import Job, RecordKind, Turn, TurnEvent

_WAITING = "status IN ('pending', 'processing', 'held')"
_REFINABLE = (
    "t.closed = 1 AND t.private = 0 AND t.sealed = 0 AND m.observer = 'local' AND m.model IS NULL"
    " AND (t.retired = 0 OR EXISTS (SELECT 1 FROM turn_records r WHERE r.turn_id = t.id))"
    " AND NOT EXISTS (SELECT 1 FROM pending_messages q WHERE q.turn_id = t.id)"
    f" AND NOT EXISTS (SELECT 1 FROM refinements q WHERE q.turn_id = t.id AND q.{_WAITING})"
    f" AND NOT EXISTS (SELECT 1 FROM session_summaries WHERE turn_id = t.id AND {PROTECTED})"
)
# What came of a turn: commits count most, then what was learned, then changed files.
_VALUE = (
    "4 * EXISTS (SELECT 1 FROM fact_sources l JOIN facts f ON f.id = l.fact_id"
    " WHERE l.turn_id = t.id AND f.kind = 'artifact' AND f.subject = 'commit')"
    " + 2 * EXISTS (SELECT 1 FROM observations o WHERE o.turn_id = t.id)"
    " + (coalesce(m.files_edited, '[]') <> '[]')"
)
# As a model is shown them; the names of the others say what they are.
_KINDS: dict[RecordKind, str] = {
    "statement": "Statement",
    "report": "SubagentStop",
    "compaction": "PostCompact",
}


@dataclass(frozen=True, slots=True)
class RefineSelection:
    project_id: int | None = None
    since_ms: int = 0
    limit: int = 200


def find_turns(connection: sqlite3.Connection, selection: RefineSelection) -> list[int]:
    """Returns the ids of the selected turns, the most valuable first, then the latest."""
    rows = connection.execute(
        "SELECT t.id FROM user_prompts t JOIN session_summaries m ON m.turn_id = t.id"
        f" WHERE {_REFINABLE} AND t.created_at_epoch >= :since"
        " AND (:project IS NULL OR t.project_id = :project)"
        f" ORDER BY {_VALUE} DESC, t.created_at_epoch DESC, t.id DESC LIMIT :limit",
        {
            "since": selection.since_ms,
            "project": selection.project_id,
            "limit": selection.limit,
        },
    )
    return [int(row[0]) for row in rows]


def enqueue(connection: sqlite3.Connection, selection: RefineSelection, now: int) -> int:
    """Returns how many turns wait now in addition."""
    turn_ids = find_turns(connection, selection)
    # A millisecond apart, in their order, and all of them due.
    for due_ms, turn_id in enumerate(turn_ids, now - len(turn_ids)):
        (session_id,) = connection.execute(
            "SELECT session_id FROM user_prompts WHERE id = ?", (turn_id,)
        ).fetchone()
        REFINEMENTS.enqueue(connection, session_id, turn_id, due_ms)
        connection.execute(
            "UPDATE refinements SET requested = 1, available_at_epoch = ?, last_error = NULL"
            " WHERE turn_id = ?",
            (due_ms, turn_id),
        )
    return len(turn_ids)


def count_turns_and_days(connection: sqlite3.Connection) -> tuple[int, int]:
    """All turns, and the days on which there were any."""
    row = connection.execute(
        "SELECT count(*), count(DISTINCT created_at_epoch / 86400000) FROM user_prompts"
        " WHERE private = 0"
    ).fetchone()
    return int(row[0]), int(row[1])


def cancel(connection: sqlite3.Connection) -> int:
    """Returns how many turns do not wait any more; those that a model is revising now go on."""
    return connection.execute(
        "DELETE FROM refinements WHERE requested = 1 AND status IN ('pending', 'held')"
    ).rowcount


def count_waiting(connection: sqlite3.Connection) -> int:
    row = connection.execute(f"SELECT count(*) FROM refinements WHERE requested = 1 AND {_WAITING}")
    return int(row.fetchone()[0])


def is_requested(connection: sqlite3.Connection, turn_id: int) -> bool:
    row = connection.execute(
        "SELECT 1 FROM refinements WHERE turn_id = ? AND requested = 1", (turn_id,)
    ).fetchone()
    return row is not None


def is_requested_job(connection: sqlite3.Connection, job: Job) -> bool:
    return is_requested(connection, job.turn_id)


def events_of_record(connection: sqlite3.Connection, turn: Turn) -> tuple[TurnEvent, ...]:
    """What was said, for a turn whose raw events were deleted."""
    parts = load_records(connection, [turn.id]).get(turn.id, ())
    return tuple(
        TurnEvent(
            id=0,
            kind=_KINDS.get(part.kind, part.kind.replace("_", " ")),
            tool_name=None,
            tool_input=None,
            tool_response=None,
            text=part.text,
            agent_id=None,
        )
        for part in parts
        if part.kind != "prompt"
    )

"""Refinements: the draft for a model to revise, the revision that replaces it, kept replies.

A draft is stored and its refinement queued in one transaction, before any model is asked. A
refinement that fails for good is kept with the reason and the reply that could not be read, and
the draft remains. One that succeeds is kept only where the reply says more than the memories hold.
"""

import sqlite3
from dataclasses import replace

from claude_mem.hook.kill_points import reach
from claude_mem.store import refine_requests
from claude_mem.store.memories import load_distillate, save_memories
from claude_mem.store.queue import REFINEMENTS
from claude_mem.store.turns import load_turn
from claude_mem.types import Distillate, Job, Json, Turn

REPLY_BYTES = 50 * 1024 * 1024  # of all kept replies together


def load_turn_to_refine(connection: sqlite3.Connection, turn_id: int) -> Turn | None:
    """Loads a turn with its draft; None when there is nothing left to revise.

    Where the user asks for it, a turn whose raw events are gone is revised by what was said in it.
    """
    is_requested = refine_requests.is_requested(connection, turn_id)
    if is_retired(connection, turn_id) and not is_requested:
        return None
    return load_drafted_turn(connection, turn_id)


def load_drafted_turn(connection: sqlite3.Connection, turn_id: int) -> Turn | None:
    turn, draft = load_turn(connection, turn_id), load_distillate(connection, turn_id)
    if turn is None or draft is None:
        return None
    if is_retired(connection, turn_id):
        turn = replace(turn, events=refine_requests.events_of_record(connection, turn))
        if not turn.events:
            return None
    return replace(turn, draft=draft)


def is_retired(connection: sqlite3.Connection, turn_id: int) -> bool:
    """Whether the raw events of a turn are gone: a model would make less of it than the draft."""
    row = connection.execute("SELECT retired FROM user_prompts WHERE id = ?", (turn_id,)).fetchone()
    return row is None or bool(row[0])


def save(
    connection: sqlite3.Connection,
    job: Job,
    turn: Turn,
    distillate: Distillate,
    reply: str | None,
    now: int,
) -> bool:
    """Replaces the draft; False: the lease is lost, or the draft is a newer one.

    `reply` is the model's text, where the memories do not hold all of it.
    """
    if not REFINEMENTS.is_leased(connection, job):
        return False
    is_gone = is_retired(connection, turn.id) and not refine_requests.is_requested(
        connection, turn.id
    )
    if not REFINEMENTS.is_current(connection, job) or is_gone:
        REFINEMENTS.put_back(connection, job, None, now, counted=False)
        return False
    reach(b"refine.before_save")
    save_memories(connection, turn.session_db_id, turn.id, turn.prompt_number, distillate)
    reach(b"refine.before_acknowledge")
    if reply is None:
        REFINEMENTS.acknowledge(connection, job, now)
    else:
        _keep_reply(connection, job, reply)
        REFINEMENTS.set_aside(connection, job, None, now)
    reach(b"refine.after_acknowledge")
    return True


def give_up_refinement(
    connection: sqlite3.Connection, job: Job, reason: str, reply: str | None, ms: int
) -> None:
    """No model will revise this draft; a draft that is newer than the job is tried again.

    Without a new reply the previous one stays: the memories made of it may still be there.
    """
    if REFINEMENTS.is_leased(connection, job):
        if reply:
            _keep_reply(connection, job, reply)
        REFINEMENTS.set_aside(connection, job, reason, ms)


def _keep_reply(connection: sqlite3.Connection, job: Job, reply: str) -> None:
    storable = reply.encode("utf-8", "replace").decode()  # lone surrogates cannot be stored
    connection.execute("UPDATE refinements SET reply = ? WHERE id = ?", (storable, job.id))


def expire_kept(connection: sqlite3.Connection, before_ms: int, keep_bytes: int) -> None:
    """Deletes reasons and replies as old as the raw events that are deleted, and replies beyond a
    size, the oldest first: a model that never stops talking must not fill the disk."""
    connection.execute(
        "DELETE FROM refinements WHERE status = 'kept' AND available_at_epoch < ?", (before_ms,)
    )
    connection.execute(
        "UPDATE refinements SET reply = NULL WHERE id IN (SELECT id FROM (SELECT id,"
        " sum(length(CAST(reply AS BLOB))) OVER (ORDER BY available_at_epoch DESC, id DESC) AS size"
        " FROM refinements WHERE status = 'kept' AND reply IS NOT NULL) WHERE size > ?)",
        (min(keep_bytes, REPLY_BYTES),),
    )
    connection.execute(
        "DELETE FROM refinements WHERE status = 'kept' AND reply IS NULL AND last_error IS NULL"
    )


def counts(connection: sqlite3.Connection) -> dict[str, int]:
    """Drafts by status; a row that only keeps a reply is no draft any more."""
    counts = REFINEMENTS.counts(connection)
    revised = connection.execute(
        "SELECT count(*) FROM refinements WHERE status = 'kept' AND last_error IS NULL"
    ).fetchone()
    counts["kept"] -= revised[0]
    return counts


def last_reason(connection: sqlite3.Connection) -> str | None:
    """Tells why the last draft was not revised."""
    row = connection.execute(
        "SELECT last_error FROM refinements WHERE last_error IS NOT NULL"
        " ORDER BY available_at_epoch DESC, id DESC LIMIT 1"
    ).fetchone()
    return row[0] if row else None


def kept_replies(connection: sqlite3.Connection) -> list[dict[str, Json]]:
    """Replies that say more than the memories hold, the latest first."""
    rows = connection.execute(
        "SELECT s.content_session_id AS session, t.prompt_number AS turn, r.last_error AS reason,"
        " r.available_at_epoch AS at_epoch, r.reply FROM refinements r"
        " JOIN user_prompts t ON t.id = r.turn_id JOIN sdk_sessions s ON s.id = r.session_id"
        " WHERE r.reply IS NOT NULL ORDER BY r.available_at_epoch DESC, r.id DESC"
    )
    return [dict(row) for row in rows]

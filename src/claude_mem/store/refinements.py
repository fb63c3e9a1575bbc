"""Drafts that a model shall revise: a second queue behind the first.

A turn's draft is stored and its refinement queued in one transaction, so that a draft is there
before any model is asked, and none is forgotten. One refinement of a session runs at a time. A
draft that was made anew meanwhile raises the revision: what the model said of the old one changes
nothing and it is asked again. A refinement that cannot be made is kept with its reason, and with
the answer that could not be read; the draft stands. One that was made is kept without a reason
where its answer said more than the memories hold: the whole answer stays beside them.
"""

import sqlite3
import uuid

from claude_mem.hook.faults import reach
from claude_mem.store.memories import save_memories
from claude_mem.types import Distillate, Job, Json, Turn

LEASE_MS = 120_000
LARGEST_ERROR = 500
REPLY_BYTES = 50 * 1024 * 1024  # of all kept answers together


def enqueue(connection: sqlite3.Connection, session_id: int, turn_id: int, ms: int) -> None:
    connection.execute(
        "INSERT INTO refinements (session_id, turn_id, status, available_at_epoch,"
        " created_at_epoch) VALUES (?, ?, 'pending', ?, ?)"
        " ON CONFLICT (turn_id) DO UPDATE SET revision = revision + 1,"
        " attempts = CASE status WHEN 'kept' THEN 0 ELSE attempts END,"
        " status = CASE status WHEN 'kept' THEN 'pending' ELSE status END",
        (session_id, turn_id, ms, ms),
    )


# Not while another of its session runs, and not while its draft is about to be made anew.
_DUE = (
    "SELECT r.id FROM refinements r WHERE"
    " ((r.status = 'pending' AND r.available_at_epoch <= :now)"
    " OR (r.status = 'processing' AND r.lease_until_epoch <= :now))"
    " AND NOT EXISTS (SELECT 1 FROM refinements o WHERE o.session_id = r.session_id"
    " AND o.id <> r.id AND o.status = 'processing' AND o.lease_until_epoch > :now)"
    " AND NOT EXISTS (SELECT 1 FROM pending_messages m WHERE m.turn_id = r.turn_id"
    " AND m.status IN ('pending', 'processing'))"
    " ORDER BY r.available_at_epoch, r.id LIMIT 1"
)


def is_due(connection: sqlite3.Connection, now: int) -> bool:
    return connection.execute(_DUE, {"now": now}).fetchone() is not None


def claim(connection: sqlite3.Connection, now: int) -> Job | None:
    row = connection.execute(
        "UPDATE refinements SET status = 'processing', attempts = attempts + 1, lease = :lease,"
        f" lease_until_epoch = :until WHERE id = ({_DUE})"
        " RETURNING id, turn_id, revision, attempts, lease",
        {"lease": uuid.uuid4().hex, "until": now + LEASE_MS, "now": now},
    ).fetchone()
    return Job(*row) if row else None


def renew(connection: sqlite3.Connection, job: Job, now: int) -> bool:
    """False: the lease is lost, and whoever holds the job need not go on."""
    cursor = connection.execute(
        "UPDATE refinements SET lease_until_epoch = ? WHERE id = ? AND lease = ?"
        " AND status = 'processing'",
        (now + LEASE_MS, job.id, job.lease),
    )
    return cursor.rowcount > 0


def save(
    connection: sqlite3.Connection,
    job: Job,
    turn: Turn,
    made: Distillate,
    reply: str | None,
    now: int,
) -> bool:
    """Revises the draft in place; False: the lease is lost, or the draft is another by now.

    `reply` is what the model said, where the memories do not hold all of it.
    """
    row = connection.execute(
        "SELECT revision FROM refinements WHERE id = ? AND lease = ? AND status = 'processing'",
        (job.id, job.lease),
    ).fetchone()
    if row is None:
        return False
    if row[0] != job.revision or is_retired(connection, turn.id):
        put_back(connection, job, "", now, counted=False)
        return False
    reach(b"refine.before_save")
    save_memories(connection, turn.session_db_id, turn.id, turn.prompt_number, made)
    reach(b"refine.before_acknowledge")
    if reply is None:
        connection.execute("DELETE FROM refinements WHERE id = ?", (job.id,))
    else:
        connection.execute(
            "UPDATE refinements SET status = 'kept', lease = NULL, lease_until_epoch = NULL,"
            " last_error = NULL, reply = ?, available_at_epoch = ? WHERE id = ?",
            (_storable(reply), now, job.id),
        )
    reach(b"refine.after_acknowledge")
    return True


def is_retired(connection: sqlite3.Connection, turn_id: int) -> bool:
    """Its raw events are gone: a model would make less of it than the draft says."""
    row = connection.execute("SELECT retired FROM user_prompts WHERE id = ?", (turn_id,)).fetchone()
    return row is None or bool(row[0])


def put_back(
    connection: sqlite3.Connection, job: Job, error: str, available_ms: int, *, counted: bool = True
) -> None:
    """`counted`: whether this was a try; waiting for a breaker or a new day is none."""
    connection.execute(
        "UPDATE refinements SET status = 'pending', last_error = nullif(?, ''), lease = NULL,"
        " lease_until_epoch = NULL, available_at_epoch = ?, attempts = attempts - ?"
        " WHERE id = ? AND lease = ?",
        (error[:LARGEST_ERROR], available_ms, not counted, job.id, job.lease),
    )


def keep_draft(
    connection: sqlite3.Connection, job: Job, reason: str, reply: str | None, ms: int
) -> None:
    """No model will revise this draft as it is; if it was made anew meanwhile, that one begins.

    An answer from before stays: the memories that were made of it may still stand.
    """
    connection.execute(
        "UPDATE refinements SET lease = NULL, lease_until_epoch = NULL, last_error = ?,"
        " reply = coalesce(?, reply), available_at_epoch = ?, attempts = CASE revision WHEN ? THEN"
        " attempts ELSE 0 END, status = CASE revision WHEN ? THEN 'kept' ELSE 'pending' END"
        " WHERE id = ? AND lease = ?",
        (reason[:LARGEST_ERROR], reply and _storable(reply), ms, job.revision, job.revision,
         job.id, job.lease),
    )  # fmt: skip


def _storable(text: str) -> str:
    """Whole, but for what is no character at all."""
    return text.encode("utf-8", "replace").decode()


def keep_all_drafts(connection: sqlite3.Connection, reason: str) -> int:
    """Of all that wait: no model is used any more."""
    cursor = connection.execute(
        "UPDATE refinements SET status = 'kept', last_error = ?, lease = NULL,"
        " lease_until_epoch = NULL WHERE status IN ('pending', 'processing')",
        (reason,),
    )
    return cursor.rowcount


def drop(connection: sqlite3.Connection, job: Job) -> None:
    connection.execute("DELETE FROM refinements WHERE id = ? AND lease = ?", (job.id, job.lease))


def free_all_leases(connection: sqlite3.Connection) -> None:
    connection.execute(
        "UPDATE refinements SET status = 'pending', lease = NULL, lease_until_epoch = NULL"
        " WHERE status = 'processing'"
    )


def hold_session(connection: sqlite3.Connection, session_id: int) -> None:
    connection.execute(
        "UPDATE refinements SET status = 'held', lease = NULL, lease_until_epoch = NULL"
        " WHERE session_id = ? AND status IN ('pending', 'processing')",
        (session_id,),
    )


def forget_kept(connection: sqlite3.Connection, before_ms: int, keep_bytes: int) -> None:
    """Reasons and answers go when the raw events of their time go; answers beyond a size too, the
    oldest first, or a model that talks without end would fill the disk."""
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
    """Of drafts: where only an answer is kept, the draft was revised."""
    rows = connection.execute(
        "SELECT status, count(*) FROM refinements"
        " WHERE status <> 'kept' OR last_error IS NOT NULL GROUP BY status"
    )
    found = dict.fromkeys(("pending", "processing", "held", "kept"), 0)
    found.update({row[0]: row[1] for row in rows})
    return found


def next_due(connection: sqlite3.Connection) -> int | None:
    row: tuple[int | None] = connection.execute(
        "SELECT min(CASE status WHEN 'pending' THEN available_at_epoch ELSE lease_until_epoch END)"
        " FROM refinements WHERE status IN ('pending', 'processing')"
    ).fetchone()
    return row[0]


def last_reason(connection: sqlite3.Connection) -> str | None:
    """Why the last draft was not revised."""
    row = connection.execute(
        "SELECT last_error FROM refinements WHERE last_error IS NOT NULL"
        " ORDER BY available_at_epoch DESC, id DESC LIMIT 1"
    ).fetchone()
    return row[0] if row else None


def kept_replies(connection: sqlite3.Connection) -> list[dict[str, Json]]:
    """What models said, where the memories do not hold all of it: the last first."""
    rows = connection.execute(
        "SELECT s.content_session_id AS session, t.prompt_number AS turn, r.last_error AS reason,"
        " r.available_at_epoch AS at_epoch, r.reply FROM refinements r"
        " JOIN user_prompts t ON t.id = r.turn_id JOIN sdk_sessions s ON s.id = r.session_id"
        " WHERE r.reply IS NOT NULL ORDER BY r.available_at_epoch DESC, r.id DESC"
    )
    return [dict(row) for row in rows]


_FINISHED = (
    " WHERE provider IS NOT NULL AND status <> 'active' AND id NOT IN (SELECT session_id"
    " FROM refinements WHERE status IN ('pending', 'processing')"
    " UNION SELECT session_id FROM pending_messages WHERE status IN ('pending', 'processing'))"
)


def has_finished_provider_session(connection: sqlite3.Connection) -> bool:
    row = connection.execute(f"SELECT 1 FROM sdk_sessions{_FINISHED} LIMIT 1").fetchone()
    return row is not None


def drop_finished_provider_sessions(connection: sqlite3.Connection) -> list[int]:
    """Of sessions that are over and wait for nothing: nobody will resume them."""
    rows = connection.execute(
        f"UPDATE sdk_sessions SET provider = NULL, provider_session_id = NULL{_FINISHED}"
        " RETURNING id"
    ).fetchall()
    return [int(row[0]) for row in rows]


def provider_sessions(connection: sqlite3.Connection, provider: str) -> set[str]:
    """All that may still be resumed."""
    rows = connection.execute(
        "SELECT provider_session_id FROM sdk_sessions WHERE provider = ?"
        " AND provider_session_id IS NOT NULL",
        (provider,),
    )
    return {str(row[0]) for row in rows}

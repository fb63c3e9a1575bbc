"""Leased jobs: one message per turn that is to be distilled.

Claimed with a lease, acknowledged in the transaction that stores the result. An event that comes
while the turn is being distilled raises the revision, and the acknowledgement puts the message
back instead of removing it. A late acknowledgement of a lost lease changes nothing.
"""

import sqlite3
import uuid

from claude_mem.types import Job

LEASE_MS = 120_000
LARGEST_ERROR = 500


def enqueue(connection: sqlite3.Connection, session_id: int, turn_id: int, ms: int) -> None:
    connection.execute(
        "INSERT INTO pending_messages"
        " (session_id, turn_id, status, available_at_epoch, created_at_epoch)"
        " VALUES (?, ?, 'pending', ?, ?)"
        " ON CONFLICT (turn_id) DO UPDATE SET revision = revision + 1,"
        " attempts = CASE status WHEN 'dead' THEN 0 ELSE attempts END,"
        " status = CASE status WHEN 'dead' THEN 'pending' ELSE status END",
        (session_id, turn_id, ms, ms),
    )


def _oldest_due(project_id: int | None) -> str:
    """Selects the oldest message that is due, or whose holder let the lease run out."""
    only = "" if project_id is None else (
        " AND session_id IN (SELECT id FROM sdk_sessions WHERE project_id = :project)"
    )  # fmt: skip
    return (
        "SELECT id FROM pending_messages WHERE"
        " ((status = 'pending' AND available_at_epoch <= :now)"
        f" OR (status = 'processing' AND lease_until_epoch <= :now)){only}"
        " ORDER BY available_at_epoch, id LIMIT 1"
    )


def is_due(connection: sqlite3.Connection, now: int, project_id: int | None = None) -> bool:
    row = connection.execute(_oldest_due(project_id), {"now": now, "project": project_id})
    return row.fetchone() is not None


def claim(connection: sqlite3.Connection, now: int, project_id: int | None = None) -> Job | None:
    row = connection.execute(
        "UPDATE pending_messages SET status = 'processing', attempts = attempts + 1,"
        f" lease = :lease, lease_until_epoch = :until WHERE id = ({_oldest_due(project_id)})"
        " RETURNING id, turn_id, revision, attempts, lease",
        {"lease": uuid.uuid4().hex, "until": now + LEASE_MS, "now": now, "project": project_id},
    ).fetchone()
    return Job(*row) if row else None


def holds(connection: sqlite3.Connection, job: Job) -> bool:
    row = connection.execute(
        "SELECT 1 FROM pending_messages WHERE id = ? AND lease = ? AND status = 'processing'",
        (job.id, job.lease),
    ).fetchone()
    return row is not None


def acknowledge(connection: sqlite3.Connection, job: Job, now: int) -> None:
    cursor = connection.execute(
        "DELETE FROM pending_messages WHERE id = ? AND lease = ? AND revision = ?",
        (job.id, job.lease, job.revision),
    )
    if cursor.rowcount == 0:
        connection.execute(
            "UPDATE pending_messages SET status = 'pending', attempts = 0, lease = NULL,"
            " lease_until_epoch = NULL, available_at_epoch = ? WHERE id = ? AND lease = ?",
            (now, job.id, job.lease),
        )


def put_back(connection: sqlite3.Connection, job: Job, error: str, available_ms: int) -> None:
    _release(connection, job, "pending", error, available_ms)


def bury(connection: sqlite3.Connection, job: Job, error: str, ms: int) -> bool:
    """A dead letter: kept and reported, tried again only if its turn changes or a person asks; if
    it changed meanwhile, it begins anew instead. Whether it was buried."""
    _release(connection, job, "dead", error, ms)
    changed = connection.execute(
        "UPDATE pending_messages SET status = 'pending', attempts = 0"
        " WHERE id = ? AND status = 'dead' AND revision > ?",
        (job.id, job.revision),
    )
    return changed.rowcount == 0


def revive_dead(connection: sqlite3.Connection, ms: int) -> int:
    """Dead letters begin anew, with all their tries; how many there were."""
    cursor = connection.execute(
        "UPDATE pending_messages SET status = 'pending', attempts = 0, last_error = NULL,"
        " available_at_epoch = ? WHERE status = 'dead'",
        (ms,),
    )
    return cursor.rowcount


def _release(
    connection: sqlite3.Connection, job: Job, status: str, error: str, available_ms: int
) -> None:
    connection.execute(
        "UPDATE pending_messages SET status = ?, last_error = ?, available_at_epoch = ?,"
        " lease = NULL, lease_until_epoch = NULL WHERE id = ? AND lease = ?",
        (status, error[:LARGEST_ERROR], available_ms, job.id, job.lease),
    )


def free_all_leases(connection: sqlite3.Connection) -> None:
    """The one worker of this database has just started: whoever held a lease is gone."""
    connection.execute(
        "UPDATE pending_messages SET status = 'pending', lease = NULL, lease_until_epoch = NULL"
        " WHERE status = 'processing'"
    )


def hold_session(connection: sqlite3.Connection, session_id: int) -> int:
    """Keeps a stopped session's messages out of the way until it goes on."""
    cursor = connection.execute(
        "UPDATE pending_messages SET status = 'held', lease = NULL, lease_until_epoch = NULL"
        " WHERE session_id = ? AND status IN ('pending', 'processing')",
        (session_id,),
    )
    return cursor.rowcount


def counts(connection: sqlite3.Connection, session_id: int | None = None) -> dict[str, int]:
    where = "" if session_id is None else " WHERE session_id = ?"
    rows = connection.execute(
        f"SELECT status, count(*) FROM pending_messages{where} GROUP BY status",
        () if session_id is None else (session_id,),
    )
    found = dict.fromkeys(("pending", "processing", "held", "dead"), 0)
    found.update({row[0]: row[1] for row in rows})
    return found


def next_due(connection: sqlite3.Connection) -> int | None:
    """When the next message can be claimed."""
    row: tuple[int | None] = connection.execute(
        "SELECT min(CASE status WHEN 'pending' THEN available_at_epoch ELSE lease_until_epoch END)"
        " FROM pending_messages WHERE status IN ('pending', 'processing')"
    ).fetchone()
    return row[0]


def oldest_created(connection: sqlite3.Connection) -> int | None:
    row: tuple[int | None] = connection.execute(
        "SELECT min(created_at_epoch) FROM pending_messages WHERE status IN"
        " ('pending', 'processing')"
    ).fetchone()
    return row[0]

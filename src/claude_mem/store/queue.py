"""Leased queues: turns to distil (`JOBS`) and drafts for a model to revise (`REFINEMENTS`).

A row is claimed with a lease and acknowledged in the transaction that stores its result; without
the lease nothing can be changed, so a late acknowledgement does nothing. A turn has one row in
each queue. When the turn changes, the row's revision is raised; a job that was claimed at an
older revision is then done again instead of being removed.

Times are `now`, but a lease runs by `awake`: the process that has it cannot work while the machine
sleeps, and must not lose it in that time.
"""

import json
import sqlite3
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from claude_mem.types import Job

LEASE_MS = 120_000
LARGEST_ERROR = 500
_NO_LEASE = "lease = NULL, lease_until_epoch = NULL"
_LEASED = "id = :id AND lease = :lease AND status = 'processing'"


@dataclass(frozen=True, slots=True)
class LeasedQueue:
    table: str
    end_status: str  # the status of rows that are kept for the user and not tried again
    due_condition: str = ""  # about the row `q`, beyond its time
    first: str = ""  # by what rows that are due are ordered, before their time

    def enqueue(
        self, connection: sqlite3.Connection, session_id: int, turn_id: int, now_ms: int
    ) -> None:
        connection.execute(
            f"INSERT INTO {self.table}"
            " (session_id, turn_id, status, available_at_epoch, created_at_epoch)"
            " VALUES (:session, :turn, 'pending', :now_ms, :now_ms)"
            " ON CONFLICT (turn_id) DO UPDATE SET revision = revision + 1,"
            " attempts = CASE status WHEN :end_status THEN 0 ELSE attempts END,"
            " status = CASE status WHEN :end_status THEN 'pending' ELSE status END",
            {
                "session": session_id,
                "turn": turn_id,
                "now_ms": now_ms,
                "end_status": self.end_status,
            },
        )

    def _next_due(self, project_id: int | None) -> str:
        """Selects the oldest row that is due, or whose lease has expired."""
        only = "" if project_id is None else (
            " AND q.session_id IN (SELECT id FROM sdk_sessions WHERE project_id = :project)"
        )  # fmt: skip
        return (
            f"SELECT q.id FROM {self.table} q WHERE"
            " ((q.status = 'pending' AND q.available_at_epoch <= :now)"
            " OR (q.status = 'processing' AND q.lease_until_epoch <= :awake))"
            f"{self.due_condition}{only} ORDER BY {self.first}q.available_at_epoch, q.id LIMIT 1"
        )

    def is_due(
        self, connection: sqlite3.Connection, now: int, awake: int, project_id: int | None = None
    ) -> bool:
        params = {"now": now, "awake": awake, "project": project_id}
        return connection.execute(self._next_due(project_id), params).fetchone() is not None

    def claim(
        self, connection: sqlite3.Connection, now: int, awake: int, project_id: int | None = None
    ) -> Job | None:
        row = connection.execute(
            f"UPDATE {self.table} SET status = 'processing', attempts = attempts + 1,"
            f" lease = :lease, lease_until_epoch = :until WHERE id = ({self._next_due(project_id)})"
            " RETURNING id, turn_id, revision, attempts, lease",
            {
                "lease": uuid.uuid4().hex,
                "until": awake + LEASE_MS,
                "now": now,
                "awake": awake,
                "project": project_id,
            },
        ).fetchone()
        return Job(*row) if row else None

    def is_leased(self, connection: sqlite3.Connection, job: Job) -> bool:
        row = connection.execute(f"SELECT 1 FROM {self.table} WHERE {_LEASED}", _key(job))
        return row.fetchone() is not None

    def is_current(self, connection: sqlite3.Connection, job: Job) -> bool:
        """Whether the turn is still as it was when the job was claimed."""
        row = connection.execute(
            f"SELECT 1 FROM {self.table} WHERE id = ? AND revision = ?", (job.id, job.revision)
        ).fetchone()
        return row is not None

    def renew(self, connection: sqlite3.Connection, job: Job, awake: int) -> bool:
        """False: the lease is lost, and the work is no longer needed."""
        cursor = connection.execute(
            f"UPDATE {self.table} SET lease_until_epoch = :until WHERE {_LEASED}",
            {**_key(job), "until": awake + LEASE_MS},
        )
        return cursor.rowcount > 0

    def acknowledge(self, connection: sqlite3.Connection, job: Job, now: int) -> None:
        """Removes the row, or makes it due again if its turn has changed since the claim."""
        cursor = connection.execute(
            f"DELETE FROM {self.table} WHERE {_LEASED} AND revision = :revision",
            {**_key(job), "revision": job.revision},
        )
        if cursor.rowcount == 0:
            connection.execute(
                f"UPDATE {self.table} SET status = 'pending', attempts = 0, {_NO_LEASE},"
                f" available_at_epoch = :now WHERE {_LEASED}",
                {**_key(job), "now": now},
            )

    def remove(self, connection: sqlite3.Connection, job: Job) -> None:
        connection.execute(f"DELETE FROM {self.table} WHERE {_LEASED}", _key(job))

    def put_back(
        self,
        connection: sqlite3.Connection,
        job: Job,
        error: str | None,
        available_ms: int,
        *,
        counted: bool = True,
    ) -> None:
        """Puts a job back, to be claimed again. `counted`: whether this claim was an attempt."""
        connection.execute(
            f"UPDATE {self.table} SET status = 'pending', {_NO_LEASE}, last_error = :error,"
            " available_at_epoch = :available_ms, attempts = attempts - :uncounted"
            f" WHERE {_LEASED}",
            {
                **_key(job),
                "error": _short(error),
                "available_ms": available_ms,
                "uncounted": not counted,
            },
        )

    def set_aside(
        self, connection: sqlite3.Connection, job: Job, error: str | None, now_ms: int
    ) -> bool:
        """Keeps the row without trying it again; if its turn has changed since the claim, starts
        over instead and returns False."""
        row = connection.execute(
            f"UPDATE {self.table} SET {_NO_LEASE}, last_error = :error,"
            " available_at_epoch = :now_ms,"
            " attempts = CASE revision WHEN :revision THEN attempts ELSE 0 END,"
            " status = CASE revision WHEN :revision THEN :end_status ELSE 'pending' END"
            f" WHERE {_LEASED} RETURNING status",
            {**_key(job), "revision": job.revision, "error": _short(error), "now_ms": now_ms,
             "end_status": self.end_status},
        ).fetchone()  # fmt: skip
        return row is None or row[0] == self.end_status

    def set_all_aside(self, connection: sqlite3.Connection, error: str) -> int:
        cursor = connection.execute(
            f"UPDATE {self.table} SET status = ?, last_error = ?, {_NO_LEASE}"
            " WHERE status IN ('pending', 'processing')",
            (self.end_status, error),
        )
        return cursor.rowcount

    def retry_set_aside(self, connection: sqlite3.Connection, now_ms: int) -> int:
        """Tries the rows again that had been given up; how many there were."""
        cursor = connection.execute(
            f"UPDATE {self.table} SET status = 'pending', attempts = 0, last_error = NULL,"
            " available_at_epoch = ? WHERE status = ?",
            (now_ms, self.end_status),
        )
        return cursor.rowcount

    def free_leases(self, connection: sqlite3.Connection) -> None:
        """Frees all leases at the start of the only worker: they are those of dead processes."""
        connection.execute(
            f"UPDATE {self.table} SET status = 'pending', {_NO_LEASE} WHERE status = 'processing'"
        )

    def hold_session(self, connection: sqlite3.Connection, session_id: int) -> int:
        """Keeps a stopped session's rows from being claimed until it is resumed."""
        cursor = connection.execute(
            f"UPDATE {self.table} SET status = 'held', {_NO_LEASE}"
            " WHERE session_id = ? AND status IN ('pending', 'processing')",
            (session_id,),
        )
        return cursor.rowcount

    def resume_session(self, connection: sqlite3.Connection, session_id: int) -> None:
        connection.execute(
            f"UPDATE {self.table} SET status = 'pending' WHERE session_id = ? AND status = 'held'",
            (session_id,),
        )

    def delete_turns(self, connection: sqlite3.Connection, turn_ids: Sequence[int]) -> None:
        """A job that runs meanwhile loses its lease, and its result is not stored."""
        connection.execute(
            f"DELETE FROM {self.table} WHERE turn_id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(turn_ids)),),
        )

    def counts(
        self, connection: sqlite3.Connection, session_id: int | None = None
    ) -> dict[str, int]:
        """Rows by status."""
        where = "" if session_id is None else " WHERE session_id = ?"
        rows = connection.execute(
            f"SELECT status, count(*) FROM {self.table}{where} GROUP BY status",
            () if session_id is None else (session_id,),
        )
        counts = dict.fromkeys(("pending", "processing", "held", self.end_status), 0)
        return counts | {row[0]: row[1] for row in rows}

    def next_due_ms(self, connection: sqlite3.Connection, asleep_ms: int) -> int | None:
        """When the next row can be claimed. `asleep_ms`: how far `awake` is behind `now`."""
        row: tuple[int | None] = connection.execute(
            "SELECT min(CASE status WHEN 'pending' THEN available_at_epoch"
            f" ELSE lease_until_epoch + ? END) FROM {self.table}"
            " WHERE status IN ('pending', 'processing')",
            (asleep_ms,),
        ).fetchone()
        return row[0]

    def oldest_ms(self, connection: sqlite3.Connection) -> int | None:
        """When the oldest row that still waits was created."""
        row: tuple[int | None] = connection.execute(
            f"SELECT min(created_at_epoch) FROM {self.table}"
            " WHERE status IN ('pending', 'processing')"
        ).fetchone()
        return row[0]


def _key(job: Job) -> dict[str, object]:
    return {"id": job.id, "lease": job.lease}


def _short(error: str | None) -> str | None:
    return error[:LARGEST_ERROR] if error else None


JOBS = LeasedQueue("pending_messages", end_status="dead")
REFINEMENTS = LeasedQueue(
    "refinements",
    end_status="kept",
    # One of a session at a time, and not while its draft is about to be replaced.
    due_condition=(
        " AND NOT EXISTS (SELECT 1 FROM refinements o WHERE o.session_id = q.session_id"
        " AND o.id <> q.id AND o.status = 'processing' AND o.lease_until_epoch > :awake)"
        " AND NOT EXISTS (SELECT 1 FROM pending_messages m WHERE m.turn_id = q.turn_id"
        " AND m.status IN ('pending', 'processing'))"
    ),
    first="q.requested, ",  # older turns after those of today
)
QUEUES = (JOBS, REFINEMENTS)

"""Limits on requests to models: charged before each call, capped per day, with circuit breakers.

All of it is in the database, so that a restart does not reset the budget.
"""

import sqlite3
from dataclasses import dataclass

from claude_mem.text import pluralize
from claude_mem.types import Json

DAY_MS = 86_400_000
PROBE_MS = 300_000  # how long a probe may take before the next one is allowed
FAILURES = 3  # in a row that open a breaker
LARGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class Caps:
    requests: int
    tokens: int

    def share(self, part: float) -> "Caps":
        return Caps(int(self.requests * part), int(self.tokens * part))


@dataclass(frozen=True, slots=True)
class Permission:
    """Whether a request may be made now; if not, why, until when, and whether that is long."""

    granted: bool
    reason: str = ""
    until_ms: int = 0
    lasting: bool = False


def ask_permission(
    connection: sqlite3.Connection, observer: str, tokens: int, caps: Caps, now: int
) -> Permission:
    """Charges the request if it may be made."""
    spent = spent_today(connection, now)
    tomorrow = (now // DAY_MS + 1) * DAY_MS
    if spent["requests"] + 1 > caps.requests:
        reason = f"the daily cap of {pluralize(caps.requests, 'request')} is reached"
        return Permission(False, reason, tomorrow, lasting=True)
    if spent["tokens"] + tokens > caps.tokens:
        reason = f"the daily cap of {pluralize(caps.tokens, 'token')} is reached"
        return Permission(False, reason, tomorrow, lasting=True)
    permission = _check_breaker(connection, observer, now)
    if permission.granted:
        _charge(connection, observer, now, requests=1, tokens=tokens)
    return permission


def _check_breaker(connection: sqlite3.Connection, observer: str, now: int) -> Permission:
    row = connection.execute(
        "SELECT * FROM observer_breakers WHERE observer = ? AND open_until_epoch IS NOT NULL",
        (observer,),
    ).fetchone()
    if row is None:
        return Permission(True)
    until = row["open_until_epoch"] if now < row["open_until_epoch"] else row["probe_until_epoch"]
    if until is not None and now < until:
        return Permission(False, row["reason"], until, lasting=bool(row["lasting"]))
    connection.execute(
        "UPDATE observer_breakers SET probe_until_epoch = ? WHERE observer = ?",
        (now + PROBE_MS, observer),
    )
    return Permission(True)


def _charge(
    connection: sqlite3.Connection, observer: str, now: int, *, requests: int, tokens: int
) -> None:
    connection.execute(
        "INSERT INTO observer_usage (day, observer, requests, tokens) VALUES (?1, ?2, ?3, ?4)"
        " ON CONFLICT (day, observer) DO UPDATE SET requests = requests + ?3,"
        " tokens = max(0, tokens + ?4)",
        (now // DAY_MS, observer, requests, tokens),
    )


def correct_charge(
    connection: sqlite3.Connection, observer: str, charged: int, used: int, requests: int, now: int
) -> None:
    """Corrects the charge to the actual usage; one request is charged already."""
    _charge(connection, observer, now, requests=requests - 1, tokens=used - charged)


def spent_today(connection: sqlite3.Connection, now: int) -> dict[str, int]:
    """Returns what all observers together spent, so that switching does not reset the budget."""
    row = connection.execute(
        "SELECT coalesce(sum(requests), 0), coalesce(sum(tokens), 0) FROM observer_usage"
        " WHERE day = ?",
        (now // DAY_MS,),
    ).fetchone()
    return {"requests": row[0], "tokens": row[1]}


def open_breaker(
    connection: sqlite3.Connection, observer: str, reason: str, until_ms: int, *, lasting: bool
) -> None:
    _fail(connection, observer, reason, until_ms, opens_at=1, lasting=lasting)


def note_failure(connection: sqlite3.Connection, observer: str, reason: str, until_ms: int) -> None:
    """Opens the breaker with the third failure in a row, or if this was its probe."""
    _fail(connection, observer, reason, until_ms, opens_at=FAILURES, lasting=False)


def _fail(
    connection: sqlite3.Connection,
    observer: str,
    reason: str,
    until_ms: int,
    *,
    opens_at: int,
    lasting: bool,
) -> None:
    connection.execute(
        "INSERT INTO observer_breakers (observer, reason, failures, open_until_epoch, lasting)"
        " VALUES (?1, ?2, 1, CASE WHEN ?3 <= 1 THEN ?4 END, ?5)"
        " ON CONFLICT (observer) DO UPDATE SET reason = ?2, failures = failures + 1, lasting = ?5,"
        " open_until_epoch = CASE WHEN failures + 1 >= ?3 THEN ?4 ELSE open_until_epoch END,"
        " probe_until_epoch = NULL",
        (observer, reason[:LARGEST_REASON], opens_at, until_ms, lasting),
    )


def failures(connection: sqlite3.Connection, observer: str) -> int:
    row = connection.execute(
        "SELECT failures FROM observer_breakers WHERE observer = ?", (observer,)
    ).fetchone()
    return int(row[0]) if row else 0


def close_breaker(connection: sqlite3.Connection, observer: str) -> None:
    connection.execute("DELETE FROM observer_breakers WHERE observer = ?", (observer,))


def release_probe(connection: sqlite3.Connection, observer: str) -> None:
    """Releases the probe after a request whose outcome says nothing about the provider, such as a
    cancelled one."""
    connection.execute(
        "UPDATE observer_breakers SET probe_until_epoch = NULL WHERE observer = ?", (observer,)
    )


def breaker_state(connection: sqlite3.Connection, observer: str, now: int) -> dict[str, Json]:
    row = connection.execute(
        "SELECT reason, open_until_epoch FROM observer_breakers"
        " WHERE observer = ? AND open_until_epoch IS NOT NULL",
        (observer,),
    ).fetchone()
    if row is None:
        return {"state": "closed"}
    state = "open" if now < row["open_until_epoch"] else "waiting for one probe"
    return {"state": state, "reason": row["reason"], "until_epoch": row["open_until_epoch"]}

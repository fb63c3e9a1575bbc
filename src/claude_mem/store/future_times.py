"""Times that a wrong clock wrote: a turn of the year 2094 would stay the last of its project."""

import sqlite3
from pathlib import Path

from claude_mem.store.clock import iso

YEAR_MS = 365 * 86_400_000
_TABLES = (
    "sdk_sessions", "user_prompts", "tool_events", "turn_records", "observations",
    "session_summaries", "facts", "fact_sources",
)  # fmt: skip
_EPOCH = "_epoch"


def correct(connection: sqlite3.Connection, now_ms: int) -> int:
    """Dates what is more than a year ahead of this clock with its time; returns how many turns.

    A clock that is behind the installation of this program is itself wrong, and corrects nothing.
    """
    limit = now_ms + YEAR_MS
    (latest,) = connection.execute("SELECT max(created_at_epoch) FROM user_prompts").fetchone()
    if latest is None or latest <= limit or now_ms < _installed_ms():
        return 0
    (turns,) = connection.execute(
        "SELECT count(*) FROM user_prompts WHERE created_at_epoch > ?", (limit,)
    ).fetchone()
    for table in _TABLES:
        names = {row["name"] for row in connection.execute(f"PRAGMA table_info({table})")}
        for name in sorted(name for name in names if name.endswith(_EPOCH)):
            text = name.removesuffix(_EPOCH)
            also = f", {text} = :text" if text in names else ""
            connection.execute(
                f"UPDATE {table} SET {name} = :now{also} WHERE {name} > :limit",
                {"now": now_ms, "text": iso(now_ms), "limit": limit},
            )
    return int(turns)


def _installed_ms() -> int:
    return Path(__file__).stat().st_mtime_ns // 1_000_000

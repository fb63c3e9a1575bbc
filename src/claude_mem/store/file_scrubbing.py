"""Removes text that was deleted from the tables also from the files: free pages, journal, backups.

SQLite leaves copies of deleted rows in its pages when it moves rows between them, and in its
journal. Code that deletes rows requests a scrub in the same transaction (`request`), so that it is
carried out even if the process dies in between (`Store.scrub`).

An overwritten or deleted file may survive in blocks that the file system has not reused yet.
"""

import sqlite3
from pathlib import Path

from claude_mem.errors import DatabaseInUse
from claude_mem.store import backups

WAIT_FOR_READERS_MS = 1_000
MAX_FREE_SHARE = 0.1  # of the pages of a file
MIN_FREE_BYTES = 1_000_000
MAX_COMPACTED_BYTES = 1_000_000_000  # rewriting a larger file would hold up writers for too long


def request(connection: sqlite3.Connection, ms: int) -> None:
    connection.execute("INSERT INTO scrub_requests (requested_at_epoch) VALUES (?)", (ms,))


def is_requested(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM scrub_requests LIMIT 1").fetchone() is not None


def last_request(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT max(id) FROM scrub_requests").fetchone()
    return int(row[0] or 0)


def finish(connection: sqlite3.Connection, last: int) -> None:
    """Requests that came during the scrub remain."""
    connection.execute("DELETE FROM scrub_requests WHERE id <= ?", (last,))


def is_sparse(connection: sqlite3.Connection) -> bool:
    """Whether much of the file is free: after merging full text, or removing much."""
    pages, free, page_size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return free > MAX_FREE_SHARE * pages and free * page_size > MIN_FREE_BYTES


def can_be_compacted(connection: sqlite3.Connection) -> bool:
    pages, page_size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "page_size")
    )
    return pages * page_size < MAX_COMPACTED_BYTES


def compact(connection: sqlite3.Connection) -> None:
    """Writes the file anew from its rows and empties the journal. Not in a transaction."""
    connection.execute("VACUUM")
    timeout = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    connection.execute(f"PRAGMA busy_timeout = {WAIT_FOR_READERS_MS}")  # writers wait meanwhile
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {timeout}")
    if busy:
        raise DatabaseInUse("the database is in use: its journal could not be emptied yet")


def replace_backups(
    connection: sqlite3.Connection, directory: Path, is_cancelled: backups.IsCancelled
) -> Path | None:
    """Replaces all backups by a fresh one; None if there were none."""
    previous = [path for path in directory.glob("memory-*") if path.is_file()]
    if not previous:
        return None
    fresh = backups.back_up(connection, directory, len(previous) + 1, is_cancelled=is_cancelled)
    for path in previous:
        path.unlink(missing_ok=True)
    return fresh

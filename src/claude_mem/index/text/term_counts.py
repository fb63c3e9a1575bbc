"""In how many passages a word occurs, of all projects.

SQLite counts by reading an entry for each passage, so that a few common words take longer than the
rest of a search. Their counts are kept until there are a hundredth more passages, or fewer. In a
large memory, those of the most common words are read ahead: a third of a search went into counting.
"""

import json
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable

log = logging.getLogger("claude_mem.search")

COMMON = 200  # passages
_MAX_KEPT = 20_000
LARGE = 300_000  # passages of a memory in which counts are read ahead
COUNTED_AHEAD = 2_000  # passages with a word; fewer are counted as quickly as a statement runs
_MAX_COUNTED_AHEAD = 10_000  # words

# By database and stem: the number of passages with it, and of all, when it was counted.
_kept: dict[tuple[str, str], tuple[int, int]] = {}
_read_ahead: dict[str, int] = {}  # by database: the number of all passages when it was done
_reading_ahead = threading.Lock()

Work = Callable[[sqlite3.Connection], None]
# In a thread of its own with a connection of its own, unless the lock is held.
StartThread = Callable[[sqlite3.Connection, threading.Lock, Work], None]


def term_counts(connection: sqlite3.Connection, stems: Iterable[str], total: int) -> dict[str, int]:
    """`total`: the number of all passages."""
    counts: dict[str, int] = {}
    missing = list(stems)
    database = _path(connection)
    if total > COMMON:
        for stem in missing:
            count, of_all = _kept.get((database, stem), (0, 0))
            if count and _is_about(total, of_all):
                counts[stem] = count
        missing = [stem for stem in missing if stem not in counts]
    rows = connection.execute(
        "SELECT term, doc FROM passage_terms WHERE term IN (SELECT value FROM json_each(?))",
        (json.dumps(missing),),
    )
    for stem, count in rows:
        counts[stem] = count
        if count > COMMON:
            _keep(database, stem, count, total)
    return counts


def _is_about(total: int, of_all: int) -> bool:
    return abs(total - of_all) * 100 <= of_all


def _keep(database: str, stem: str, count: int, total: int) -> None:
    if not database:
        return
    if len(_kept) >= _MAX_KEPT:
        _kept.clear()
        _read_ahead.clear()
    _kept[database, stem] = count, total


def start_reading_ahead(
    connection: sqlite3.Connection, total: int, start_thread: StartThread
) -> None:
    """Starts to count the words of a large memory ahead, if it was not done lately."""
    if not should_read_ahead(connection, total):
        return

    def work(own_connection: sqlite3.Connection) -> None:
        try:
            read_ahead(own_connection, total)
        except sqlite3.Error:  # a file that was moved away; the next search tries again
            log.warning("the words could not be counted ahead", exc_info=True)

    start_thread(connection, _reading_ahead, work)


def should_read_ahead(connection: sqlite3.Connection, total: int) -> bool:
    database = _path(connection)
    return bool(database) and total > LARGE and not _is_about(total, _read_ahead.get(database, 0))


def read_ahead(connection: sqlite3.Connection, total: int) -> None:
    """Reads the whole vocabulary: seconds for millions of passages."""
    rows = connection.execute(
        "SELECT term, doc FROM passage_terms WHERE doc > ? ORDER BY doc DESC LIMIT ?",
        (COUNTED_AHEAD, _MAX_COUNTED_AHEAD),
    ).fetchall()
    database = _path(connection)
    for stem, count in rows:
        _keep(database, stem, count, total)
    _read_ahead[database] = total


def _path(connection: sqlite3.Connection) -> str:
    """Returns the path of the database; empty for one in memory."""
    path: str = connection.execute("PRAGMA database_list").fetchone()[2]
    return path

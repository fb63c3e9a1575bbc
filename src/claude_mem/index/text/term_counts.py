"""In how many passages a word occurs, of all projects.

SQLite counts by reading an entry for each passage, so that a few common words take longer than the
rest of a search. Their counts are kept until there are a hundredth more passages, or fewer.
"""

import json
import sqlite3
from collections.abc import Iterable

from claude_mem.store.read_moments import read_once

COMMON = 200  # passages
_MAX_KEPT = 20_000

# By database and stem: the number of passages with it, and of all, when it was counted.
_kept: dict[tuple[str, str], tuple[int, int]] = {}


def term_counts(connection: sqlite3.Connection, stems: Iterable[str], total: int) -> dict[str, int]:
    """`total`: the number of all passages."""
    counts: dict[str, int] = {}
    missing = list(stems)
    database = _path(connection)
    if total > COMMON:
        for stem in missing:
            count, of_all = _kept.get((database, stem), (0, 0))
            if count and abs(total - of_all) * 100 <= of_all:
                counts[stem] = count
        missing = [stem for stem in missing if stem not in counts]
    rows = connection.execute(
        "SELECT term, doc FROM passage_terms WHERE term IN (SELECT value FROM json_each(?))",
        (json.dumps(missing),),
    )
    for stem, count in rows:
        counts[stem] = count
        if count > COMMON and database:
            if len(_kept) >= _MAX_KEPT:
                _kept.clear()
            _kept[database, stem] = count, total
    return counts


def all_term_counts(connection: sqlite3.Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT term, doc FROM passage_terms").fetchall())


@read_once
def _path(connection: sqlite3.Connection) -> str:
    """Empty of a database in memory."""
    path: str = connection.execute("PRAGMA database_list").fetchone()[2]
    return path

"""Disk usage by kind of data: the tables of the database by what they are for, and files."""

import sqlite3
from pathlib import Path

from claude_mem.types import Json

_PARTS = {
    "memories": ("observations", "session_summaries", "user_prompts", "sdk_sessions", "facts",
                 "fact_sources", "projects", "project_dirs", "observation_events",
                 "summary_events", "outside_words"),
    "record": ("turn_records",),
    "raw events": ("tool_events", "unstored_words"),
    "queue and trash": ("pending_messages", "refinements", "forgotten", "tombstones"),
    "full-text index": ("passage", "memory_text", "documents", "indexed_turns", "turns_by", "twins",
                        "unindexed", "index_version"),
    "vectors": ("vector",),
}  # fmt: skip
OTHER, FREE = "other tables", "free pages"


def database_usage(connection: sqlite3.Connection) -> dict[str, int] | None:
    """Bytes of the database file by part; None where this SQLite cannot tell."""
    try:
        rows = connection.execute(
            "SELECT coalesce(m.tbl_name, s.name), sum(s.pgsize) FROM dbstat s"
            " LEFT JOIN sqlite_master m ON m.name = s.name GROUP BY 1"
        ).fetchall()
    except sqlite3.OperationalError:
        return None
    usage = dict.fromkeys((*_PARTS, OTHER), 0)
    for table, size in rows:
        usage[_part_of(table)] += size
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    usage[FREE] = free * page
    return usage


def turn_count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM user_prompts").fetchone()[0])


def _part_of(table: str) -> str:
    for part, beginnings in _PARTS.items():
        if table.startswith(beginnings):
            return part
    return OTHER


def size_of(path: Path) -> int:
    """Returns the size of a file, or of all files in a directory; 0 for what is not there, or was
    just removed."""
    try:
        if path.is_dir():
            return sum(size_of(inner) for inner in path.iterdir())
        return path.lstat().st_size
    except FileNotFoundError:
        return 0


def usage_json(database: dict[str, int] | None, files: dict[str, int]) -> dict[str, Json]:
    return {"database": dict(database) if database is not None else None, "files": dict(files)}

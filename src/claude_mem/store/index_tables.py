"""The tables of the index, which lie in the same file: more than half of it. They are derived, so
that they can be dropped at any time."""

import sqlite3

from claude_mem.errors import DamagedDatabase

INDEX_TABLES = (
    "memory_text", "documents", "index_version", "indexed_turns", "passages", "passage_terms",
    "passage_text", "passage_count", "vectors", "vector_models", "vector_losses", "twins",
)  # fmt: skip
_FULL_TEXT = ("memory_text", "passage_text")
_SHADOWS = ("data", "idx", "content", "docsize", "config")  # of FTS5


def drop(connection: sqlite3.Connection) -> None:
    """Drops the tables, also full text that is broken, which SQLite does not drop. A transaction
    must be open.

    Raises DamagedDatabase if pages of the file are damaged: those that a damaged table names as its
    own may be those of another one, and must not be freed."""
    for name in INDEX_TABLES:
        connection.execute("SAVEPOINT dropping")
        try:
            connection.execute(f"DROP TABLE IF EXISTS {name}")
        except sqlite3.DatabaseError as error:
            connection.execute("ROLLBACK TO dropping")
            if error.sqlite_errorcode not in _OF_FULL_TEXT:
                raise
            _require_sound_pages(connection)
            _forget(connection, name)
        connection.execute("RELEASE dropping")
    for name in _FULL_TEXT:  # of a table that is missing
        _drop_shadows(connection, name)


_OF_FULL_TEXT = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT_VTAB, sqlite3.SQLITE_CORRUPT)


def _require_sound_pages(connection: sqlite3.Connection) -> None:
    verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise DamagedDatabase(f"the database is damaged: {verdict}")


def _forget(connection: sqlite3.Connection, name: str) -> None:
    """A virtual table has no pages of its own."""
    connection.execute("PRAGMA writable_schema = ON")
    try:
        connection.execute("DELETE FROM sqlite_master WHERE name = ? AND rootpage = 0", (name,))
    finally:
        connection.execute("PRAGMA writable_schema = RESET")
    _drop_shadows(connection, name)


def _drop_shadows(connection: sqlite3.Connection, name: str) -> None:
    for shadow in _SHADOWS:
        connection.execute(f"DROP TABLE IF EXISTS {name}_{shadow}")

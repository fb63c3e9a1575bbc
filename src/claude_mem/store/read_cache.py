"""What was read of the database, kept while nobody commits to it.

The connections of readers never write, so SQLite's `data_version` tells them of every change that
anyone has committed. A search needs a dozen values that hardly ever change, a statement each.
"""

import sqlite3
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class ReadConnection(sqlite3.Connection):
    """Must be opened read-only: SQLite does not count the changes of the connection itself."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._data_version: int | None = None
        self._values: dict[Hashable, Any] = {}
        self._is_in_snapshot = False

    def begin_snapshot(self) -> None:
        """What is read until `end_snapshot` is as it is now."""
        self.execute("BEGIN")
        (version,) = self.execute("PRAGMA data_version").fetchone()
        if version != self._data_version:
            self._values, self._data_version = {}, version
        self._is_in_snapshot = True

    def end_snapshot(self) -> None:
        self._is_in_snapshot = False
        if self.in_transaction:
            self.execute("COMMIT")

    @property
    def values(self) -> dict[Hashable, Any] | None:
        """What was read of the database as it is; None outside of a moment."""
        return self._values if self._is_in_snapshot else None


def read_once(
    read: Callable[[sqlite3.Connection, *Ts], T],
) -> Callable[[sqlite3.Connection, *Ts], T]:
    """Of a function that reads: in a moment of a `ReadConnection` its result is kept until anyone
    commits. Callers must not change it."""

    @wraps(read)
    def read_or_kept(connection: sqlite3.Connection, *args: *Ts) -> T:
        values = connection.values if isinstance(connection, ReadConnection) else None
        if values is None:
            return read(connection, *args)
        key = read, args
        if key not in values:
            values[key] = read(connection, *args)
        value: T = values[key]
        return value

    return read_or_kept

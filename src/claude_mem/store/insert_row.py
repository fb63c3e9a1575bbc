"""Rows whose columns are only known when they arrive, inserted by name."""

import sqlite3
from collections.abc import Mapping


def insert_row(
    connection: sqlite3.Connection, table: str, values: Mapping[str, object], conflict: str = ""
) -> sqlite3.Cursor:
    """`conflict`: an ON CONFLICT clause. Table and column names must be ours, never input."""
    names = ", ".join(values)
    places = ", ".join(f":{name}" for name in values)
    return connection.execute(f"INSERT INTO {table} ({names}) VALUES ({places}) {conflict}", values)

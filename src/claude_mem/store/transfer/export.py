"""Writes the database as lines of JSON: a header, a line per row, and a last line with their count.

The same rows give the same bytes: no time, no program version, rows in the order of their keys,
columns in that of the schema. Rows are streamed, never held in memory together.
"""

import base64
import json
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

from claude_mem.store.migrations import applied_names
from claude_mem.store.transfer.tables import CANONICAL, Schema, Table, primary_key, read_schema

FORMAT = "claude-mem-export"
VERSION = 1

Write = Callable[[bytes], object]


def export(connection: sqlite3.Connection, write: Write, project_id: int | None = None) -> int:
    """Writes a snapshot of everything, or of one project; returns the number of rows.

    Needs a connection that nobody else uses. Others can write to the database meanwhile.
    """
    connection.text_factory = _decode
    connection.execute("BEGIN")  # one snapshot for all tables
    try:
        header = {"format": FORMAT, "version": VERSION, "schema": applied_names(connection)}
        write(_line(header))
        count = 0
        for line in _rows(connection, read_schema(connection), project_id):
            write(line)
            count += 1
        write(_line({"records": count}))
    finally:
        connection.execute("ROLLBACK")
    return count


def _rows(
    connection: sqlite3.Connection, schema: Schema, project_id: int | None
) -> Iterator[bytes]:
    for table in CANONICAL:
        names = [column.name for column in schema[table.name]]
        for row in connection.execute(
            _select(connection, table, names, project_id), {"project": project_id}
        ):
            values = map(_json_value, row)
            yield _line({"table": table.name, **dict(zip(names, values, strict=True))})


def _select(
    connection: sqlite3.Connection, table: Table, names: list[str], project_id: int | None
) -> str:
    where = "" if project_id is None else f" WHERE {table.of_project}"
    order = ", ".join(primary_key(connection, table.name))
    return f"SELECT {', '.join(names)} FROM {table.name}{where} ORDER BY {order}"


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _json_value(value: object) -> object:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _decode(data: bytes) -> str:
    """Decodes a text: SQLite stores any bytes as such, and one bad row must not end the export."""
    return data.decode("utf-8", "replace")

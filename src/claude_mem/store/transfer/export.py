"""The database as lines of JSON: a header, one line for each row, and a last line that counts them.

The same memory gives the same bytes: no clock, no version of the program, rows in the order of
their keys and columns in the order of the schema. Memory does not grow with the database.
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
    """Everything, or one project, as it was at one moment; the number of rows.

    The connection should be one of its own: others may write meanwhile and are not waited for.
    """
    connection.text_factory = _text
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
            values = map(_plain, row)
            yield _line({"table": table.name, **dict(zip(names, values, strict=True))})


def _select(
    connection: sqlite3.Connection, table: Table, names: list[str], project_id: int | None
) -> str:
    where = "" if project_id is None else f" WHERE {table.of_project}"
    order = ", ".join(primary_key(connection, table.name))
    return f"SELECT {', '.join(names)} FROM {table.name}{where} ORDER BY {order}"


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _plain(value: object) -> object:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _text(data: bytes) -> str:
    """SQLite takes any bytes for text; one bad row must not end the export."""
    return data.decode("utf-8", "replace")

"""The trash: rows that were forgotten, each with the forgetting that it belongs to.

`forgetting.py` fills it, `undoing.py` restores it, `hard_forgetting.py` empties it, and it expires.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from claude_mem.store import tombstones
from claude_mem.types import Project


@dataclass(frozen=True, slots=True)
class Forgotten:
    """One forgetting, which can be undone until it expires, unless it was erased."""

    token: str
    counts: dict[str, int]
    at_epoch: int
    projects: tuple[Project, ...] = field(default=())
    is_erased: bool = False


def find(connection: sqlite3.Connection, token: str) -> Forgotten | None:
    """Also one that was erased."""
    return next((entry for entry in _entries(connection) if entry.token == token), None)


def all_forgotten(connection: sqlite3.Connection) -> list[Forgotten]:
    """What can still be undone, the latest first."""
    return [entry for entry in _entries(connection) if not entry.is_erased]


def _entries(connection: sqlite3.Connection) -> list[Forgotten]:
    entries = []
    for row in connection.execute("SELECT * FROM forgotten ORDER BY id DESC").fetchall():
        projects = connection.execute(
            "SELECT content FROM forgotten_rows WHERE forgotten_id = ? AND of_table = 'projects'"
            " ORDER BY id",
            (row["id"],),
        )
        values = (json.loads(content) for (content,) in projects)
        entries.append(
            Forgotten(row["token"], json.loads(row["counts"]), row["at_epoch"],
                      tuple(Project(project["key"], project["name"]) for project in values),
                      bool(row["erased"]))
        )  # fmt: skip
    return entries


def expire(connection: sqlite3.Connection, before_ms: int) -> int:
    """Deletes for good what was forgotten before; returns how many times that was."""
    return connection.execute("DELETE FROM forgotten WHERE at_epoch < ?", (before_ms,)).rowcount


@dataclass(frozen=True, slots=True)
class Trash:
    """The rows of one forgetting, in the order in which they can be restored."""

    connection: sqlite3.Connection
    id: int
    ms: int
    is_hard: bool

    def keep(self, table: str, column: str, ids: Sequence[int]) -> list[sqlite3.Row]:
        """Saves rows, which the caller then deletes."""
        rows = self.connection.execute(
            f"SELECT * FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))",
            (json.dumps(list(ids)),),
        ).fetchall()
        self.put(table, "gone", [dict(row) for row in rows])
        return rows

    def change(self, table: str, rows: Sequence[sqlite3.Row], **new: object) -> None:
        """Changes columns of rows that stay, and saves the old values."""
        self.put(table, "changed", [
            {"id": row["id"], **{name: row[name] for name in new}} for row in rows
        ])  # fmt: skip
        changes = ", ".join(f"{name} = :{name}" for name in new)
        self.connection.executemany(
            f"UPDATE {table} SET {changes} WHERE id = :id",
            [{"id": row["id"], **new} for row in rows],
        )

    def put(self, table: str, kind: str, rows: list[dict[str, Any]]) -> None:
        self.connection.executemany(
            "INSERT INTO forgotten_rows (forgotten_id, of_table, kind, content)"
            " VALUES (?, ?, ?, ?)",
            [(self.id, table, kind, json.dumps(row)) for row in rows],
        )

    def add_tombstones(self, kind: str, keys: Iterable[str]) -> None:
        tombstones.add(self.connection, kind, keys, self.id, self.ms)

"""What forgetting leaves behind: the trash and tombstones.

The trash has the rows of each forgetting until undo restores them or they expire. Tombstones stay:
whatever records sessions or turns asks for them first, so that no transcript, late hook or old
export brings forgotten rows back.

Forgetting for good empties the trash in the same transaction (`erase`). Its tombstones are only
hashes, so that the database does not even name the project or session. The files are scrubbed
afterwards (`file_scrubbing.py`).
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from claude_mem.errors import BadInput, NotFound
from claude_mem.store import file_scrubbing
from claude_mem.store.insert_row import insert_row
from claude_mem.store.sessions import drop_conversation
from claude_mem.types import Project

TombstoneKind = Literal["project", "session", "turn"]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """One forgetting, which can be undone until it expires, unless it was erased."""

    token: str
    counts: dict[str, int]
    at_epoch: int
    projects: tuple[Project, ...] = field(default=())
    is_erased: bool = False


@dataclass(frozen=True, slots=True)
class Trash:
    """The rows of one forgetting, in the order in which undo restores them, and its tombstones."""

    connection: sqlite3.Connection
    id: int
    now_ms: int

    @classmethod
    def open(
        cls, connection: sqlite3.Connection, token: str, counts: dict[str, int], now_ms: int
    ) -> "Trash":
        cursor = connection.execute(
            "INSERT INTO forgotten (token, at_epoch, counts) VALUES (?, ?, ?)",
            (token, now_ms, json.dumps(counts)),
        )
        return cls(connection, int(cursor.lastrowid or 0), now_ms)

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

    def add_tombstones(self, kind: TombstoneKind, keys: Iterable[str]) -> None:
        self.connection.executemany(
            "INSERT OR IGNORE INTO tombstones (kind, key, forgotten_id, at_epoch)"
            " VALUES (?, ?, ?, ?)",
            [(kind, key, self.id, self.now_ms) for key in keys],
        )


def find_forgotten(connection: sqlite3.Connection, token: str) -> Forgotten | None:
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


def undo(connection: sqlite3.Connection, token: str | None) -> Forgotten:
    """Restores the rows of the latest forgetting, or of the one with this token."""
    entries = all_forgotten(connection)
    forgotten = next((entry for entry in entries if token in (None, entry.token)), None)
    if forgotten is None:
        raise NotFound("nothing to undo: `claude-mem forget --list` shows what can be undone")
    identity = connection.execute(
        "SELECT id FROM forgotten WHERE token = ?", (forgotten.token,)
    ).fetchone()[0]
    try:
        _restore(connection, identity)
    except sqlite3.IntegrityError:
        raise BadInput(
            "its session or project was forgotten later: undo that first"
            " (`claude-mem forget --list`)",
            "undo",
        ) from None
    connection.execute("DELETE FROM tombstones WHERE forgotten_id = ?", (identity,))
    connection.execute("DELETE FROM forgotten WHERE id = ?", (identity,))
    return forgotten


def _restore(connection: sqlite3.Connection, identity: int) -> None:
    projects: dict[int, int] = {}
    facts: dict[int, int] = {}
    rows = connection.execute(
        "SELECT of_table, kind, content FROM forgotten_rows WHERE forgotten_id = ? ORDER BY id",
        (identity,),
    ).fetchall()
    for table, kind, content in rows:
        values: dict[str, Any] = json.loads(content)
        if kind == "sealed":
            connection.execute("UPDATE user_prompts SET sealed = sealed - 1 WHERE id = :id", values)
        elif table == "facts" and kind == "changed":
            _restore_link(connection, values, facts)
        elif kind == "changed":
            _restore_columns(connection, table, values)
        elif table == "projects":
            projects[values["id"]] = _restore_project(connection, values)
        else:
            if "project_id" in values:
                values["project_id"] = projects.get(values["project_id"], values["project_id"])
            if table == "facts":
                facts[values["id"]] = _restore_fact(connection, values)
                continue
            if table == "fact_sources":
                values["fact_id"] = facts.get(values["fact_id"], values["fact_id"])
            _insert(connection, table, values)


def _restore_project(connection: sqlite3.Connection, values: dict[str, Any]) -> int:
    """It may exist (again), and its id may belong to a different project by now."""
    row = connection.execute("SELECT id FROM projects WHERE key = :key", values).fetchone()
    if row is not None:
        return int(row[0])
    is_id_used = connection.execute("SELECT 1 FROM projects WHERE id = :id", values).fetchone()
    if is_id_used:
        del values["id"]
    return _insert(connection, "projects", values)


def _restore_fact(connection: sqlite3.Connection, values: dict[str, Any]) -> int:
    """Its id now: a later turn may have revealed it again. Its sources restore the count."""
    row = connection.execute(
        "SELECT id FROM facts WHERE project_id = :project_id AND kind = :kind AND scope = :scope"
        " AND subject = :subject AND value = :value",
        values,
    ).fetchone()
    if row is not None:
        return int(row[0])
    return int(insert_row(connection, "facts", {**values, "count": 0}).lastrowid or 0)


def _restore_link(
    connection: sqlite3.Connection, values: dict[str, Any], ids: dict[int, int]
) -> None:
    """`ids`: of restored facts, by their ids before."""
    fact, successor = (ids.get(values[name], values[name]) for name in ("id", "superseded_by"))
    connection.execute(
        "UPDATE facts SET superseded_by = ?, status = 'past' WHERE id = ?"
        " AND superseded_by IS NULL AND status IN ('holds', 'past')",
        (successor, fact),
    )


def _restore_columns(connection: sqlite3.Connection, table: str, values: dict[str, Any]) -> None:
    if "start_context" in values:  # a session that was resumed since has a newer one
        change = "start_context = coalesce(start_context, :start_context)"
    else:
        change = ", ".join(f"{name} = :{name}" for name in values if name != "id")
    connection.execute(f"UPDATE {table} SET {change} WHERE id = :id", values)


def _insert(connection: sqlite3.Connection, table: str, values: dict[str, Any]) -> int:
    conflict = "ON CONFLICT DO NOTHING" if table.startswith("project_") else ""
    return int(insert_row(connection, table, values, conflict).lastrowid or 0)


# For good


def erase(connection: sqlite3.Connection, forgotten_id: int, now_ms: int) -> None:
    turns, sessions = _turns(connection, forgotten_id), _sessions(connection, forgotten_id)
    _delete_overlapping(connection, forgotten_id, turns, sessions)
    _clear_contexts_in_trash(connection)
    for session in _remaining_sessions(connection, turns):
        # The conversation contains the text.
        drop_conversation(connection, session)
    _hash_tombstones(connection, forgotten_id)
    connection.execute("DELETE FROM forgotten_rows WHERE forgotten_id = ?", (forgotten_id,))
    connection.execute("UPDATE forgotten SET erased = 1 WHERE id = ?", (forgotten_id,))
    file_scrubbing.request(connection, now_ms)


def _turns(connection: sqlite3.Connection, forgotten_id: int) -> list[int]:
    return _ids(
        connection, "of_table = 'user_prompts' AND forgotten_id = ?", forgotten_id
    )  # also those that stay, sealed


def _sessions(connection: sqlite3.Connection, forgotten_id: int) -> list[int]:
    return _ids(
        connection, "of_table = 'sdk_sessions' AND kind = 'gone' AND forgotten_id = ?", forgotten_id
    )


def _ids(connection: sqlite3.Connection, condition: str, forgotten_id: int) -> list[int]:
    rows = connection.execute(
        f"SELECT DISTINCT json_extract(content, '$.id') FROM forgotten_rows WHERE {condition}",
        (forgotten_id,),
    )
    return [row[0] for row in rows]


def _delete_overlapping(
    connection: sqlite3.Connection, forgotten_id: int, turns: list[int], sessions: list[int]
) -> None:
    """Earlier forgettings of the same turns: their undo would bring some of it back."""
    connection.execute(
        "DELETE FROM forgotten WHERE id <> :own AND id IN (SELECT forgotten_id FROM forgotten_rows"
        " WHERE json_extract(content, '$.turn_id') IN (SELECT value FROM json_each(:turns))"
        " OR (of_table = 'user_prompts'"
        " AND json_extract(content, '$.id') IN (SELECT value FROM json_each(:turns)))"
        " OR (of_table = 'sdk_sessions' AND kind = 'gone'"
        " AND json_extract(content, '$.id') IN (SELECT value FROM json_each(:sessions))))",
        {"own": forgotten_id, "turns": json.dumps(turns), "sessions": json.dumps(sessions)},
    )


def _clear_contexts_in_trash(connection: sqlite3.Connection) -> None:
    """Contexts that sessions were given may repeat the text of any memory."""
    connection.execute(
        "UPDATE forgotten_rows SET content = json_set(content, '$.start_context', NULL)"
        " WHERE of_table = 'sdk_sessions' AND json_extract(content, '$.start_context') IS NOT NULL"
    )


def _remaining_sessions(connection: sqlite3.Connection, turns: list[int]) -> list[int]:
    rows = connection.execute(
        "SELECT DISTINCT session_id FROM user_prompts WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(turns),),
    )
    return [row[0] for row in rows]


def _hash_tombstones(connection: sqlite3.Connection, forgotten_id: int) -> None:
    rows = connection.execute(
        "SELECT kind, key FROM tombstones WHERE forgotten_id = ?", (forgotten_id,)
    ).fetchall()
    connection.executemany(
        "UPDATE OR REPLACE tombstones SET key = ? WHERE kind = ? AND key = ?",
        [(_hash(kind, key), kind, key) for kind, key in rows],
    )


# What must not be recorded again


def is_forgotten_session(connection: sqlite3.Connection, content_session_id: str) -> bool:
    return _has_any(connection, "session", [content_session_id])


def is_forgotten_turn(connection: sqlite3.Connection, prompt_id: str) -> bool:
    return _has_any(connection, "turn", [prompt_id])


def is_any_forgotten_turn(connection: sqlite3.Connection, prompt_ids: Sequence[str]) -> bool:
    return _has_any(connection, "turn", prompt_ids)


def is_forgotten_project(connection: sqlite3.Connection, key: str, started_ms: int) -> bool:
    """Whether the project was forgotten after a session that started then."""
    return _has_any(connection, "project", [key], started_ms)


def has_sealed_turn(connection: sqlite3.Connection, session_id: int) -> bool:
    """Whether a turn of the session lost some of its memories to forgetting."""
    row = connection.execute(
        "SELECT 1 FROM user_prompts WHERE session_id = ? AND sealed > 0", (session_id,)
    ).fetchone()
    return row is not None


def _has_any(
    connection: sqlite3.Connection, kind: str, keys: Sequence[str], since_ms: int = 0
) -> bool:
    keys_and_hashes = [*keys, *(_hash(kind, key) for key in keys)]
    if len(keys) == 1:  # for every event: two values are compared faster than rows of a function
        placeholders, parameters = "?, ?", keys_and_hashes
    else:
        placeholders, parameters = "SELECT value FROM json_each(?)", [json.dumps(keys_and_hashes)]
    row = connection.execute(
        f"SELECT 1 FROM tombstones WHERE kind = ? AND key IN ({placeholders})"
        " AND at_epoch >= ? LIMIT 1",
        (kind, *parameters, since_ms),
    ).fetchone()
    return row is not None


def _hash(kind: str, key: str) -> str:
    digest = hashlib.blake2b(f"{kind}\0{key}".encode("utf-8", "replace"), digest_size=16)
    return f"hash:{digest.hexdigest()}"

"""Restores what was forgotten, from the trash, and removes its tombstones."""

import sqlite3
from typing import Any

from claude_mem.errors import BadInput, NotFound
from claude_mem.store.forgetting import Forgotten, all_forgotten
from claude_mem.store.insert_row import insert_row
from claude_mem.store.stored_json import parse_stored


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
        values: dict[str, Any] = parse_stored(content, {})
        if not values:
            continue  # damaged
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
    """Restores a fact and returns its id now: a later turn may have revealed it again. Its sources
    restore the count."""
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

"""Projects: the key that identifies one, its display name, and the directories it is used in."""

import sqlite3

from claude_mem.errors import AmbiguousProject, NotFound
from claude_mem.types import Project


def ensure_project(connection: sqlite3.Connection, project: Project) -> int:
    project_id = project_by_key(connection, project.key)
    if project_id is not None:
        return project_id
    cursor = connection.execute(
        "INSERT INTO projects (key, name) VALUES (?, ?)", (project.key, project.name)
    )
    return int(cursor.lastrowid or 0)


def project_by_key(connection: sqlite3.Connection, key: str) -> int | None:
    row = connection.execute("SELECT id FROM projects WHERE key = ?", (key,)).fetchone()
    return int(row[0]) if row else None


def find_project(connection: sqlite3.Connection, name: str) -> int:
    """By key, or by a name that only one project has."""
    project_id = project_by_key(connection, name)
    if project_id is not None:
        return project_id
    rows = connection.execute(
        "SELECT id, key FROM projects WHERE name = ? ORDER BY key", (name,)
    ).fetchall()
    if not rows:
        raise NotFound(f"there is no project {name!r}: `claude-mem stats` lists them")
    if len(rows) > 1:
        raise AmbiguousProject(name, [key for _, key in rows])
    return int(rows[0][0])


def get_project(connection: sqlite3.Connection, project_id: int) -> Project:
    row = connection.execute(
        "SELECT key, name FROM projects WHERE id = ?", (project_id,)
    ).fetchone()
    if row is None:
        raise NotFound(f"there is no project {project_id}")
    return Project(row["key"], row["name"])


def project_names(connection: sqlite3.Connection) -> dict[int, str]:
    return dict(connection.execute("SELECT id, name FROM projects").fetchall())


def remember_directory(
    connection: sqlite3.Connection, directory: str, project_id: int, ms: int
) -> None:
    connection.execute(
        "INSERT INTO project_dirs (directory, project_id, seen_at_epoch) VALUES (?, ?, ?)"
        " ON CONFLICT (directory) DO UPDATE SET project_id = excluded.project_id,"
        " seen_at_epoch = max(seen_at_epoch, excluded.seen_at_epoch)",
        (directory, project_id, ms),
    )


def touch_directory(connection: sqlite3.Connection, directory: str, ms: int) -> None:
    connection.execute(
        "UPDATE project_dirs SET seen_at_epoch = ? WHERE directory = ?", (ms, directory)
    )


def recent_directories(connection: sqlite3.Connection, project_id: int, limit: int) -> list[str]:
    rows = connection.execute(
        "SELECT directory FROM project_dirs WHERE project_id = ?"
        " ORDER BY seen_at_epoch DESC LIMIT ?",
        (project_id, limit),
    )
    return [row[0] for row in rows]

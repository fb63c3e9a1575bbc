"""Projects: the key that identifies one, its display name, and the directories it is used in."""

import sqlite3

from claude_mem.errors import AmbiguousProject, NotFound
from claude_mem.types import Project

BY_NAME = "name:"  # how the key of a project begins of which only the name is known


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
    """Finds a project by key, or by a present or earlier name that only one project has."""
    project_id = project_by_key(connection, name)
    if project_id is not None:
        return project_id
    rows = connection.execute(
        "SELECT id, key FROM projects WHERE name = ? ORDER BY key", (name,)
    ).fetchall() or _formerly_named(connection, name)
    if not rows:
        raise NotFound(f"there is no project {name!r}: `claude-mem stats` lists them")
    if len(rows) > 1:
        raise AmbiguousProject(name, [key for _, key in rows])
    return int(rows[0][0])


def _formerly_named(connection: sqlite3.Connection, name: str) -> list[sqlite3.Row]:
    """Finds the projects into which one with this key was merged, or one with this name at the end
    of its key."""
    by_key = "SELECT DISTINCT p.id, p.key, p.name FROM project_aliases a JOIN projects p"
    return (
        connection.execute(f"{by_key} ON p.id = a.project_id WHERE a.key = ?", (name,)).fetchall()
        or connection.execute(
            f"{by_key} ON p.id = a.project_id WHERE substr(a.key, -length(?1) - 1) = '/' || ?1"
            " ORDER BY p.key",
            (name,),
        ).fetchall()
    )


def project_named(connection: sqlite3.Connection, name: str) -> tuple[Project, list[str]]:
    """Returns the project of a session without a directory: the one with this key, the only one
    with this name, or one of its own. In the last case it also returns the keys of those that it
    may belong to."""
    row = connection.execute("SELECT key, name FROM projects WHERE key = ?", (name,)).fetchone()
    if row is not None:
        return Project(row["key"], row["name"]), []
    rows = connection.execute(
        "SELECT key, name FROM projects WHERE name = ? ORDER BY key", (name,)
    ).fetchall()
    if len(rows) == 1:
        return Project(rows[0]["key"], name), []
    own = Project(f"{BY_NAME}{name}", name)
    merged = connection.execute(
        "SELECT p.key, p.name FROM project_aliases a JOIN projects p ON p.id = a.project_id"
        " WHERE a.key = ?",
        (own.key,),
    ).fetchone()
    if merged is not None:
        return Project(merged["key"], merged["name"]), []
    return own, [row["key"] for row in rows if row["key"] != own.key]


def get_project(connection: sqlite3.Connection, project_id: int) -> Project:
    row = connection.execute(
        "SELECT key, name FROM projects WHERE id = ?", (project_id,)
    ).fetchone()
    if row is None:
        raise NotFound(f"there is no project {project_id}")
    return Project(row["key"], row["name"])


_TABLES = {
    "observation": "observations", "summary": "session_summaries", "prompt": "user_prompts",
    "fact": "facts",
}  # fmt: skip


def project_of_memory(connection: sqlite3.Connection, kind: str, number: int) -> int | None:
    query = f"SELECT project_id FROM {_TABLES[kind]} WHERE id = ?"
    row = connection.execute(query, (number,)).fetchone()
    return int(row[0]) if row else None


def project_of_session(connection: sqlite3.Connection, session_id: int) -> int | None:
    query = "SELECT project_id FROM sdk_sessions WHERE id = ?"
    row = connection.execute(query, (session_id,)).fetchone()
    return int(row[0]) if row else None


def named_session_project(
    connection: sqlite3.Connection, content_session_id: str
) -> Project | None:
    """Returns the project of a session by the agent's name for it."""
    row = connection.execute(
        "SELECT p.key, p.name FROM sdk_sessions s JOIN projects p ON p.id = s.project_id"
        " WHERE s.content_session_id = ?",
        (content_session_id,),
    ).fetchone()
    return Project(*row) if row else None


# What a list shows: the name, or the key where several projects have that name.
DISPLAY_NAME_SQL = (
    "CASE WHEN EXISTS (SELECT 1 FROM projects other WHERE other.name = p.name"
    " AND other.id <> p.id) THEN p.key ELSE p.name END"
)


def project_names(connection: sqlite3.Connection) -> dict[int, str]:
    return dict(connection.execute(f"SELECT id, {DISPLAY_NAME_SQL} FROM projects p").fetchall())


def directories(connection: sqlite3.Connection) -> list[tuple[str, Project]]:
    """Directories of projects that have an origin."""
    rows = connection.execute(
        "SELECT d.directory, p.key, p.name FROM project_dirs d JOIN projects p"
        " ON p.id = d.project_id WHERE p.key NOT GLOB '/*' AND instr(p.key, ':') = 0"
        " AND instr(p.key, '/') > 0 ORDER BY d.directory"
    )
    return [(directory, Project(key, name)) for directory, key, name in rows]


def merge_into(connection: sqlite3.Connection, key: str, target: Project) -> bool:
    """Moves everything of a project to another one; False: there is nothing to move."""
    source_id = project_by_key(connection, key)
    if source_id is None or key == target.key:
        return False
    target_id = ensure_project(connection, target)
    for table in ("sdk_sessions", "user_prompts", "session_summaries", "observations",
                  "project_dirs", "project_overrides", "project_aliases",
                  "project_checkouts"):  # fmt: skip
        connection.execute(
            f"UPDATE {table} SET project_id = ? WHERE project_id = ?", (target_id, source_id)
        )
    _join_facts(connection, source_id, target_id)
    connection.execute("DELETE FROM projects WHERE id = ?", (source_id,))
    return True


def _join_facts(connection: sqlite3.Connection, source_id: int, target_id: int) -> None:
    """Facts that both have are one: it gets the sources of the other."""
    connection.execute(
        "INSERT OR IGNORE INTO fact_sources (fact_id, turn_id, observer, note, events,"
        " seen_at_epoch) SELECT same.id, s.turn_id, s.observer, s.note, s.events, s.seen_at_epoch"
        " FROM fact_sources s JOIN facts f ON f.id = s.fact_id JOIN facts same ON"
        " same.project_id = ?2 AND same.kind = f.kind AND same.scope = f.scope"
        " AND same.subject = f.subject AND same.value = f.value WHERE f.project_id = ?1",
        (source_id, target_id),
    )
    connection.execute(
        "UPDATE OR IGNORE facts SET project_id = ? WHERE project_id = ?", (target_id, source_id)
    )


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

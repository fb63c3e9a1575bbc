"""Which directories and keys belong to which project, as the user decided, and moving sessions.

An override gives a directory, and everything below it, to a project. An alias gives the key of a
merged project to the one that has its memories now. A claim is a project that a directory says it
belongs to, but whose memory it does not get: the user was asked about it. A checkout is a git
repository on this machine, with the project that its sessions belonged to.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from claude_mem.errors import BadInput
from claude_mem.store.projects import ensure_project, merge_into, project_by_key, remember_directory
from claude_mem.store.sessions import MANUAL
from claude_mem.types import Project

_COMMITS = 20  # of a project, that are looked for in a repository


@dataclass(frozen=True, slots=True)
class StoredAccess:
    directories: dict[str, Project]
    keys: frozenset[str]
    overrides: dict[str, Project]
    aliases: dict[str, Project]
    claims: dict[str, str]  # keys by directory


@dataclass(frozen=True, slots=True)
class Moved:
    project: Project  # where the sessions are now
    sessions: int
    changed: tuple[Project, ...]  # projects whose contexts are out of date
    directories: tuple[str, ...]  # directories whose project has changed


def stored_access(connection: sqlite3.Connection) -> StoredAccess:
    projects = {
        row["id"]: Project(row["key"], row["name"])
        for row in connection.execute("SELECT id, key, name FROM projects")
    }

    def by(table: str, column: str) -> dict[str, Project]:
        rows = connection.execute(f"SELECT {column}, project_id FROM {table}")
        return {text: projects[project_id] for text, project_id in rows}

    return StoredAccess(
        directories=by("project_dirs", "directory"),
        keys=frozenset(project.key for project in projects.values()),
        overrides=by("project_overrides", "directory"),
        aliases=by("project_aliases", "key"),
        claims=dict(connection.execute("SELECT directory, key FROM project_claims").fetchall()),
    )


def is_new_claim(connection: sqlite3.Connection, directory: str, key: str, ms: int) -> bool:
    cursor = connection.execute(
        "INSERT OR IGNORE INTO project_claims (directory, key, asked_at_epoch) VALUES (?, ?, ?)",
        (directory, key, ms),
    )
    return cursor.rowcount > 0


def previous_project(
    connection: sqlite3.Connection, directory: str, project_id: int
) -> Project | None:
    row = connection.execute(
        "SELECT p.key, p.name FROM sdk_sessions s JOIN projects p ON p.id = s.project_id"
        " WHERE s.project_dir = ? AND s.project_id <> ? ORDER BY s.updated_at_epoch DESC LIMIT 1",
        (directory, project_id),
    ).fetchone()
    return Project(row["key"], row["name"]) if row else None


def checkout_project(connection: sqlite3.Connection, main: str, identity: str) -> Project | None:
    """The project of this very repository when a session last began in it."""
    row = connection.execute(
        "SELECT p.key, p.name FROM project_checkouts c JOIN projects p ON p.id = c.project_id"
        " WHERE c.main = ? AND c.identity = ?",
        (main, identity),
    ).fetchone()
    return Project(row["key"], row["name"]) if row else None


def remember_checkout(
    connection: sqlite3.Connection, main: str, identity: str, project_id: int
) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO project_checkouts (main, identity, project_id) VALUES (?, ?, ?)",
        (main, identity, project_id),
    )


def is_shared_with_team(connection: sqlite3.Connection, key: str) -> bool:
    query = "SELECT 1 FROM team_projects WHERE project_key = ?"
    return connection.execute(query, (key,)).fetchone() is not None


def with_requests_to(connection: sqlite3.Connection, project: Project) -> list[Project]:
    """Lists other projects of the owner in whose sessions a pull request of this one was opened."""
    address, owner = f"https://{project.key}/", f"{project.key.rpartition('/')[0]}/"
    rows = connection.execute(
        "SELECT DISTINCT p.key, p.name FROM projects p JOIN facts f ON f.project_id = p.id"
        " WHERE p.key <> ? AND substr(p.key, 1, ?) = ? AND f.kind = 'artifact'"
        " AND f.subject = 'pull request' AND substr(f.value, 1, ?) = ? ORDER BY p.key",
        (project.key, len(owner), owner, len(address), address),
    )
    return [Project(row["key"], row["name"]) for row in rows]


def latest_commits(connection: sqlite3.Connection, project_id: int) -> dict[Project, list[str]]:
    """Hashes of commits that the sessions of the other projects made."""
    rows = connection.execute(
        "SELECT p.key, p.name, f.value FROM facts f JOIN projects p ON p.id = f.project_id"
        " WHERE f.project_id <> ? AND f.kind = 'artifact' AND f.subject = 'commit'"
        " AND f.origin <> 'outside' AND length(f.value) BETWEEN 7 AND 40"
        " AND f.value NOT GLOB '*[^0-9a-f]*' ORDER BY p.key, f.last_seen_epoch DESC",
        (project_id,),
    )
    commits: dict[Project, list[str]] = {}
    for key, name, value in rows:
        hashes = commits.setdefault(Project(key, name), [])
        if len(hashes) < _COMMITS:
            hashes.append(value)
    return commits


def join_directory(
    connection: sqlite3.Connection, directory: str, own: Project, target: Project, ms: int
) -> Moved:
    """Gives a directory the memory of the project that it claims, and that project its sessions."""
    own_id = project_by_key(connection, own.key)
    sessions = _count_sessions(connection, own_id) if own_id is not None else 0
    directories = _directories(connection, own_id) if own_id is not None else []
    connection.execute("DELETE FROM project_overrides WHERE directory = ?", (directory,))
    connection.execute("DELETE FROM project_claims WHERE directory = ?", (directory,))
    merge_into(connection, own.key, target)
    remember_directory(connection, directory, ensure_project(connection, target), ms)
    return Moved(target, sessions, (target,), (directory, *directories))


def merge_projects(
    connection: sqlite3.Connection, source: Project, target: Project, ms: int
) -> Moved:
    """Merges projects, also for directories that claim the key of the source later."""
    if source.key == target.key:
        raise BadInput("a project cannot be merged into itself", "into")
    source_id, target_id = (ensure_project(connection, p) for p in (source, target))
    sessions = _count_sessions(connection, source_id)
    directories = _directories(connection, source_id)
    merge_into(connection, source.key, target)
    connection.execute("DELETE FROM project_aliases WHERE key = ?", (target.key,))
    connection.execute(
        "INSERT OR REPLACE INTO project_aliases (key, project_id, decided_at_epoch)"
        " VALUES (?, ?, ?)",
        (source.key, target_id, ms),
    )
    return Moved(target, sessions, (target,), tuple(directories))


def assign_directory(
    connection: sqlite3.Connection, directory: str, target: Project, ms: int
) -> Moved:
    """Gives a directory and all below it to a project, with the sessions that ran there."""
    connection.execute("DELETE FROM project_aliases WHERE key = ?", (target.key,))
    target_id = ensure_project(connection, target)
    connection.execute(
        "INSERT OR REPLACE INTO project_overrides (directory, project_id, decided_at_epoch)"
        " VALUES (?, ?, ?)",
        (directory, target_id, ms),
    )
    connection.execute("DELETE FROM project_claims WHERE directory = ?", (directory,))
    rows = connection.execute(
        f"SELECT s.id, s.project_id, p.key, p.name FROM sdk_sessions s JOIN projects p"
        f" ON p.id = s.project_id WHERE {_BELOW.format('s.project_dir')}"
        " AND s.project_id <> :target AND s.dialect <> :manual",
        {"directory": directory, "target": target_id, "manual": MANUAL},
    ).fetchall()
    for source_id in sorted({row["project_id"] for row in rows}):
        sessions = [row["id"] for row in rows if row["project_id"] == source_id]
        _move_sessions(connection, sessions, source_id, target_id)
    moved = connection.execute(
        f"UPDATE project_dirs SET project_id = :target WHERE {_BELOW.format('directory')}"
        " RETURNING directory",
        {"directory": directory, "target": target_id},
    ).fetchall()
    remember_directory(connection, directory, target_id, ms)
    sources = {Project(row["key"], row["name"]) for row in rows}
    return Moved(
        target,
        len(rows),
        (target, *sorted(sources, key=lambda project: project.key)),
        (directory, *(row[0] for row in moved)),
    )


_BELOW = "({0} = :directory OR substr({0}, 1, length(:directory) + 1) = :directory || '/')"


def _count_sessions(connection: sqlite3.Connection, project_id: int) -> int:
    query = "SELECT count(*) FROM sdk_sessions WHERE project_id = ?"
    return int(connection.execute(query, (project_id,)).fetchone()[0])


def _directories(connection: sqlite3.Connection, project_id: int) -> list[str]:
    query = "SELECT directory FROM project_dirs WHERE project_id = ? ORDER BY directory"
    return [row[0] for row in connection.execute(query, (project_id,))]


def _move_sessions(
    connection: sqlite3.Connection, sessions: Sequence[int], source_id: int, target_id: int
) -> None:
    ids = json.dumps(list(sessions))
    in_sessions = "session_id IN (SELECT value FROM json_each(:sessions))"
    of_turns = f"turn_id IN (SELECT id FROM user_prompts WHERE {in_sessions})"
    values = {"sessions": ids, "source": source_id, "target": target_id}
    _move_facts(connection, of_turns, values)
    for table, condition in (
        ("sdk_sessions", "id IN (SELECT value FROM json_each(:sessions))"),
        ("user_prompts", in_sessions),
        ("session_summaries", of_turns),
        ("observations", of_turns),
    ):
        connection.execute(f"UPDATE {table} SET project_id = :target WHERE {condition}", values)


def _move_facts(connection: sqlite3.Connection, of_turns: str, values: dict[str, object]) -> None:
    """The target gets the facts of these turns; the source keeps what other turns revealed."""
    moved = f"SELECT fact_id FROM fact_sources WHERE {of_turns}"
    connection.execute(
        "INSERT OR IGNORE INTO facts (project_id, kind, subject, value, scope, origin, status,"
        " first_seen_epoch, last_seen_epoch, pinned) SELECT :target, kind, subject, value, scope,"
        " origin, CASE status WHEN 'past' THEN 'holds' ELSE status END, first_seen_epoch,"
        f" last_seen_epoch, pinned FROM facts WHERE project_id = :source AND id IN ({moved})",
        values,
    )
    connection.execute(
        "INSERT OR IGNORE INTO fact_sources (fact_id, turn_id, observer, note, events,"
        " seen_at_epoch) SELECT same.id, s.turn_id, s.observer, s.note, s.events, s.seen_at_epoch"
        " FROM fact_sources s JOIN facts f ON f.id = s.fact_id JOIN facts same ON"
        " same.project_id = :target AND same.kind = f.kind AND same.scope = f.scope"
        " AND same.subject = f.subject AND same.value = f.value"
        f" WHERE f.project_id = :source AND s.{of_turns}",
        values,
    )
    connection.execute(
        f"DELETE FROM fact_sources WHERE {of_turns} AND fact_id IN"
        " (SELECT id FROM facts WHERE project_id = :source)",
        values,
    )

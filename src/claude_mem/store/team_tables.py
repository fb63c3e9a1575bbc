"""What a machine that joined a team remembers of others' turns and facts."""

import sqlite3

from claude_mem.store.memory_rows import JsonRow


def recent_of_team(connection: sqlite3.Connection, project_id: int) -> list[JsonRow]:
    """What others of the team, or other machines, did last in a project; the latest first."""
    rows = connection.execute(
        "SELECT team_turn, created_at_epoch, owner, type, title FROM team_recent"
        " WHERE project_id = ? ORDER BY place",
        (project_id,),
    )
    return [dict(row) for row in rows]


def facts_of_team(connection: sqlite3.Connection, project_id: int | None) -> list[JsonRow]:
    """What holds for others of the team, or on other machines, in a project or in all."""
    rows = connection.execute(
        "SELECT f.kind, f.subject, f.value, f.scope, f.origin, f.owner, f.is_own,"
        " f.last_seen_epoch, p.name AS project FROM team_recent_facts f"
        " JOIN projects p ON p.id = f.project_id WHERE ?1 IS NULL OR f.project_id = ?1"
        " ORDER BY f.project_id, f.place",
        (project_id,),
    )
    return [{**dict(row), "is_own": bool(row["is_own"])} for row in rows]

"""What a machine that joined a team remembers of it: shared projects, the outbox, others' turns.

Triggers mark each turn that changes, so that nothing has to call the outbox; while no project is
shared they insert nothing.
"""

import sqlite3

from claude_mem.store.memory_rows import JsonRow

_NOW = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
_IS_SHARING = "EXISTS (SELECT 1 FROM team_projects)"

TABLES = (
    "CREATE TABLE team_projects (project_key TEXT PRIMARY KEY, team_id INTEGER NOT NULL,"
    " shares_record INTEGER NOT NULL)",
    # In the order of the changes; a turn has one row, which a change replaces.
    "CREATE TABLE team_outbox (id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " turn_id INTEGER NOT NULL UNIQUE, changed_at_epoch INTEGER NOT NULL)",
    # Every turn that the server has, had or may have; it outlives the turn.
    "CREATE TABLE team_turns (turn_id INTEGER PRIMARY KEY, uid TEXT NOT NULL,"
    " team_id INTEGER NOT NULL, state TEXT NOT NULL"
    " CHECK (state IN ('sent', 'stored', 'forgotten', 'refused')), reason TEXT)",
    "CREATE INDEX team_turns_by_uid ON team_turns(uid)",
    "CREATE TABLE team_state (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)
RECENT = (
    "CREATE TABLE team_recent (project_id INTEGER NOT NULL REFERENCES projects(id)"
    " ON DELETE CASCADE, place INTEGER NOT NULL, team_turn INTEGER NOT NULL,"
    " created_at_epoch INTEGER NOT NULL, owner TEXT NOT NULL, type TEXT NOT NULL,"
    " title TEXT NOT NULL, PRIMARY KEY (project_id, place)) WITHOUT ROWID",
)
FACTS = (
    # The facts that the server has of this machine's user; without a hash: ended there.
    "CREATE TABLE team_facts (team_id INTEGER NOT NULL, uid TEXT NOT NULL, hash TEXT NOT NULL,"
    " PRIMARY KEY (team_id, uid)) WITHOUT ROWID",
    "CREATE TABLE team_recent_facts (project_id INTEGER NOT NULL REFERENCES projects(id)"
    " ON DELETE CASCADE, place INTEGER NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL,"
    " value TEXT NOT NULL, scope TEXT NOT NULL, origin TEXT NOT NULL, owner TEXT NOT NULL,"
    " is_own INTEGER NOT NULL, last_seen_epoch INTEGER NOT NULL,"
    " PRIMARY KEY (project_id, place)) WITHOUT ROWID",
)


def _trigger(name: str, event: str, table: str, turn: str) -> str:
    # A trigger's own conflict clause gives way to that of the statement that fired it.
    return (
        f"CREATE TRIGGER team_{name} AFTER {event} ON {table} WHEN {_IS_SHARING} BEGIN"
        f" DELETE FROM team_outbox WHERE turn_id = {turn};"
        f" INSERT INTO team_outbox (turn_id, changed_at_epoch) SELECT {turn}, {_NOW}"
        f" WHERE {turn} IS NOT NULL; END"
    )


_LAST_TURN = "(SELECT max(id) FROM user_prompts WHERE session_id = NEW.id)"
TRIGGERS = (
    *(
        _trigger(f"{table}_{event.lower()}", event, table, f"{row}.{turn}")
        for table, turn in (
            ("user_prompts", "id"), ("session_summaries", "turn_id"),
            ("observations", "turn_id"), ("turn_records", "turn_id"),
        )
        for event, row in (("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD"))
    ),
    # A turn is sent when nothing more is to be distilled of it.
    _trigger("job_done", "DELETE", "pending_messages", "OLD.turn_id"),
    _trigger("session_titled", "UPDATE OF title, status", "sdk_sessions", _LAST_TURN),
)  # fmt: skip
STATEMENTS = (*TABLES, *TRIGGERS)


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

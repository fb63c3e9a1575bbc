"""Many distilled turns in the database of a home, as its worker would have stored them."""

import sqlite3
from contextlib import closing
from pathlib import Path

from claude_mem.team.wire import turn_uid

MOMENT = 1_760_000_000_000
_AT = "2025-10-09T08:53:20.000Z"


def project_id(connection: sqlite3.Connection, key: str) -> int:
    name = key.rsplit("/", 1)[-1]
    connection.execute("INSERT OR IGNORE INTO projects (key, name) VALUES (?, ?)", (key, name))
    row = connection.execute("SELECT id FROM projects WHERE key = ?", (key,)).fetchone()
    return int(row[0])


def add_turns(database: Path, key: str, session: str, count: int, topic: str) -> list[str]:
    """Adds turns in one session and one transaction; returns their uids."""
    with closing(sqlite3.connect(database, timeout=30)) as connection, connection:
        project = project_id(connection, key)
        row = connection.execute(
            "INSERT INTO sdk_sessions (content_session_id, memory_session_id, project_id,"
            " project_dir, dialect, title, status, started_at, started_at_epoch, updated_at,"
            " updated_at_epoch) VALUES (?, ?, ?, '/home/dev/harbor', 'claude', ?, 'completed',"
            " ?, ?, ?, ?)",
            (session, f"m-{session}", project, f"Work on {topic}", _AT, MOMENT, _AT, MOMENT),
        )
        for number in range(1, count + 1):
            _add_turn(connection, project, int(row.lastrowid or 0), session, number, topic)
    return [turn_uid(session, f"{session}-{number}") for number in range(1, count + 1)]


def _add_turn(
    connection: sqlite3.Connection, project: int, session_id: int, session: str, n: int, topic: str
) -> None:
    moment = MOMENT + n * 1_000
    text = f"Step {n} of {session}: the {topic} needs a new bearing"
    turn = connection.execute(
        "INSERT INTO user_prompts (session_id, project_id, prompt_id, prompt_number, prompt_text,"
        " closed, updated_at_epoch, created_at, created_at_epoch)"
        " VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?)",
        (session_id, project, f"{session}-{n}", n, text, moment, _AT, moment),
    ).lastrowid
    placed = (f"m-{session}", project, turn, n)
    connection.execute(
        "INSERT INTO session_summaries (memory_session_id, project_id, turn_id, prompt_number,"
        " request, completed, observer, created_at, created_at_epoch)"
        " VALUES (?, ?, ?, ?, ?, ?, 'local', ?, ?)",
        (*placed, text, f"Replaced bearing {n} of the {topic}", _AT, moment),
    )
    connection.execute(
        "INSERT INTO observations (memory_session_id, project_id, turn_id, prompt_number, ordinal,"
        " type, title, narrative, observer, created_at, created_at_epoch)"
        " VALUES (?, ?, ?, ?, 0, 'change', ?, ?, 'local', ?, ?)",
        (*placed, f"Bearing {n} of the {topic} in {session}", text, _AT, moment),
    )


def add_rule(database: Path, key: str, session: str, text: str) -> None:
    """A rule that the user stated in all turns of a session."""
    with closing(sqlite3.connect(database, timeout=30)) as connection, connection:
        fact = connection.execute(
            "INSERT INTO facts (project_id, kind, subject, value, origin, status,"
            " first_seen_epoch, last_seen_epoch)"
            " VALUES (?, 'rule', '', ?, 'person', 'holds', ?, ?)",
            (project_id(connection, key), text, MOMENT, MOMENT),
        ).lastrowid
        connection.execute(
            "INSERT INTO fact_sources (fact_id, turn_id, observer, seen_at_epoch)"
            " SELECT ?, id, 'local', created_at_epoch FROM user_prompts WHERE prompt_id GLOB ?",
            (fact, f"{session}-*"),
        )


def add_turn(connection: sqlite3.Connection, project: int, session: str, prompt: str) -> int:
    """A session of one prompt, without memories; returns the id of the turn."""
    session_id = connection.execute(
        "INSERT INTO sdk_sessions (content_session_id, project_id, project_dir, dialect, status,"
        " started_at, started_at_epoch, updated_at, updated_at_epoch)"
        " VALUES (?, ?, '', 'claude', 'completed', ?, ?, ?, ?)",
        (session, project, _AT, MOMENT, _AT, MOMENT),
    ).lastrowid
    turn = connection.execute(
        "INSERT INTO user_prompts (session_id, project_id, prompt_id, prompt_number, prompt_text,"
        " closed, updated_at_epoch, created_at, created_at_epoch)"
        " VALUES (?, ?, ?, 1, ?, 1, ?, ?, ?)",
        (session_id, project, f"{session}-1", prompt, MOMENT, _AT, MOMENT),
    ).lastrowid
    return int(turn or 0)

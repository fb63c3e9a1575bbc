"""Fills a store with the memories of many sessions, directly in its tables."""

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from bench.material import code
from claude_mem.store.clock import iso
from claude_mem.store.database import connect
from claude_mem.types import OBSERVATION_TYPES

OBSERVATIONS_PER_TURN, TURNS_PER_SESSION = 4, 5
_FIRST_MS = 1_760_000_000_000

Row = dict[str, object]


def fill(database: Path, key: str, directory: str, observations: int) -> int:
    """Creates a project with that many observations; returns its id."""
    connection = connect(database)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("BEGIN")
    project = insert(connection, "projects", {"key": key, "name": key})
    directory_row: Row = {"directory": directory, "project_id": project, "seen_at_epoch": _FIRST_MS}
    insert(connection, "project_dirs", directory_row)
    turns = observations // OBSERVATIONS_PER_TURN
    for number in range(0, turns, TURNS_PER_SESSION):
        _add_session(connection, project, directory, min(TURNS_PER_SESSION, turns - number))
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return project


def _add_session(connection: sqlite3.Connection, project: int, directory: str, turns: int) -> None:
    before = connection.execute("SELECT coalesce(max(id), 0) FROM user_prompts").fetchone()[0]
    session = insert(connection, "sdk_sessions", session_row(project, directory, before, turns))
    for turn in range(before + 1, before + turns + 1):
        origin: Row = {
            "project_id": project,
            "prompt_number": turn - before,
            "created_at": iso(moment(turn)),
            "created_at_epoch": moment(turn),
        }
        insert(connection, "user_prompts", _prompt(session, turn) | origin)
        memory = {"memory_session_id": f"memory-{before}", "turn_id": turn, "observer": "bench"}
        insert(connection, "session_summaries", _summary(turn) | memory | origin)
        for ordinal in range(OBSERVATIONS_PER_TURN):
            insert(connection, "observations", _observation(turn, ordinal) | memory | origin)


def insert(connection: sqlite3.Connection, table: str, row: Row) -> int:
    places = ", ".join(f":{name}" for name in row)
    cursor = connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", row)
    return int(cursor.lastrowid or 0)


def insert_many(connection: sqlite3.Connection, table: str, rows: Sequence[Row]) -> None:
    """Rows with the same columns."""
    names = list(rows[0])
    places = ", ".join(f":{name}" for name in names)
    connection.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})", rows)


def moment(turn: int) -> int:
    return _FIRST_MS + turn * 300_000


def session_row(project: int, directory: str, before: int, turns: int) -> Row:
    last = moment(before + turns)
    return {
        "content_session_id": f"session-{before}",
        "memory_session_id": f"memory-{before}",
        "project_id": project,
        "project_dir": directory,
        "dialect": "claude",
        "title": f"Fix the light of pier {before}",
        "subtitle": "The lamp blinks again, and a test says so",
        "user_prompt": code(300, before),
        "prompt_counter": turns,
        "status": "completed",
        "started_at": iso(moment(before + 1)),
        "started_at_epoch": moment(before + 1),
        "updated_at": iso(last),
        "updated_at_epoch": last,
        "completed_at": iso(last),
        "completed_at_epoch": last,
    }


def _prompt(session: int, turn: int) -> Row:
    return {
        "id": turn,
        "session_id": session,
        "prompt_id": f"prompt-{turn}",
        "prompt_text": f"Why does pier {turn} stay dark? {code(300, turn)}",
        "closed": 1,
        "updated_at_epoch": moment(turn),
    }


def _summary(turn: int) -> Row:
    return {
        "request": f"Why does pier {turn} stay dark?",
        "investigated": code(200, turn),
        "learned": code(300, turn + 1),
        "completed": code(400, turn + 2),
        "next_steps": "Watch it for a night",
        "files_read": json.dumps([f"pier_{turn}.py", "lamp.py"]),
        "files_edited": json.dumps([f"pier_{turn}.py"]),
    }


def _observation(turn: int, ordinal: int) -> Row:
    number = turn * OBSERVATIONS_PER_TURN + ordinal
    return {
        "ordinal": ordinal,
        "type": OBSERVATION_TYPES[number % len(OBSERVATION_TYPES)],
        "title": f"Pier {number}: the relay is asked twice before the lamp is told",
        "subtitle": "One question too many, and the second answer was thrown away",
        "narrative": code(400, number),
        "facts": json.dumps([code(90, number + fact) for fact in range(3)]),
        "concepts": json.dumps(["how-it-works", "gotcha"]),
        "files_read": json.dumps([f"pier_{number % 900}.py"]),
        "files_modified": json.dumps([f"lamp_{number % 90}.py"]),
    }

"""Converts a database of the last version that had other migrations to the frozen schema.

Databases of earlier versions are refused. Like every migration, this is never edited once it is
released, and imports nothing of the package: live code may change.
"""

import re
import sqlite3
from collections.abc import Collection, Sequence
from contextlib import closing

COMMIT = "2fba96ab"  # which converts what is older
# Of that commit, and of development after it: a database may have any of those.
NAMES = (
    "0001_sessions_prompts_events_memories", "0002_imports", "0003_full_text", "0004_forgetting",
    "0006_observer_state", "0007_summary_facts", "0008_record", "0009_scrubbing", "0010_facts",
    "0011_notices", "0012_observer_version", "0013_hints", "0014_fact_revival", "0015_edits",
    "0016_title_source", "0018_projects_by_name", "0020_turns_by_time", "0021_refine_requests",
    "0024_project_decisions", "0032_team_outbox", "0033_team_recent", "0034_origins",
    "0035_unindexed_turns", "0037_welcome", "0038_outside_words_of_records", "0039_team_facts",
    "0040_uncounted_rows", "0041_undistilled_transcripts", "0042_conversations_index",
)  # fmt: skip
UNRELEASED = (
    "0043_outside_turns", "0044_unstored_words", "0045_project_checkouts", "0046_empty_prompts",
)  # fmt: skip


def is_older(names: Collection[str]) -> bool:
    """Whether the file is older than the version at that commit."""
    return not set(names) >= set(NAMES)


def convert(connection: sqlite3.Connection, schema: Sequence[str]) -> None:
    """`schema`: the statements of the frozen schema."""
    columns = connection.execute("SELECT name FROM pragma_table_info('user_prompts')").fetchall()
    if "outside" not in {row[0] for row in columns}:
        connection.execute("ALTER TABLE user_prompts ADD COLUMN outside INTEGER NOT NULL DEFAULT 0")
    _create_objects(connection, schema)
    _convert_prompts(connection)
    connection.execute("DELETE FROM schema_migrations")


def _create_objects(connection: sqlite3.Connection, schema: Sequence[str]) -> None:
    """What is missing; and indexes, views and triggers that are different."""
    with closing(sqlite3.connect(":memory:")) as new:
        for statement in schema:
            new.execute(statement)
        wanted = _objects(new)
    present = _objects(connection)
    for name, (kind, sql) in wanted.items():
        if name in present:
            if kind == "table" or _same(sql, present[name][1]):
                continue
            connection.execute(f"DROP {kind} {name}")
        connection.execute(sql)


def _objects(connection: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    rows = connection.execute(
        "SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL"
        " AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY rowid"
    )
    return {name: (kind, sql) for name, kind, sql in rows}


def _same(first: str, second: str) -> bool:
    return "".join(first.split()) == "".join(second.split())


# Lines that a client wrote behind a notification, and that were stored as prompts of the user.
_BEGINNINGS = ("Full transcript available at: ", "Read the output file to retrieve the result: ")
_LINE = re.compile(rf"\s*(?:{'|'.join(_BEGINNINGS)})\S+\s*")


def _convert_prompts(connection: sqlite3.Connection) -> None:
    for table, column in (("user_prompts", "prompt_text"), ("sdk_sessions", "user_prompt")):
        rows = connection.execute(
            f"SELECT id, {column} FROM {table} WHERE ltrim({column}) LIKE ? OR ltrim({column})"
            " LIKE ?",
            [f"{beginning}%" for beginning in _BEGINNINGS],
        ).fetchall()
        ids = [(row_id,) for row_id, text in rows if _LINE.fullmatch(text)]
        notice = ", notice = 1" if table == "user_prompts" else ""
        connection.executemany(f"UPDATE {table} SET {column} = NULL{notice} WHERE id = ?", ids)

"""The tables that an export holds, and what makes a row the same in two databases.

Columns are read from the schema, so that one that a migration adds is exported and restored
without a change here. A table that holds canonical state must be added.
"""

import sqlite3
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    key: tuple[str, ...]
    of_project: str  # the condition for the rows of the project :project


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    required: bool


Schema = dict[str, tuple[Column, ...]]

_SESSIONS = "(SELECT id FROM sdk_sessions WHERE project_id = :project)"
_TURNS = f"(SELECT id FROM user_prompts WHERE session_id IN {_SESSIONS})"
_SUMMARIES = f"(SELECT id FROM session_summaries WHERE turn_id IN {_TURNS})"
_FACTS = "(SELECT id FROM facts WHERE project_id = :project)"
_OBSERVATIONS = f"(SELECT id FROM observations WHERE turn_id IN {_TURNS})"

# In the order in which they can be restored: a row comes after those that it references, a turn's
# summary before its observations (it decides whose observations are used), the queue at the end.
CANONICAL = (
    Table("projects", ("key",), "id = :project"),
    Table("project_dirs", ("directory",), "project_id = :project"),
    Table("sdk_sessions", ("content_session_id",), "project_id = :project"),
    Table("user_prompts", ("session_id", "prompt_id"), f"session_id IN {_SESSIONS}"),
    Table("tool_events", ("event_key",), f"session_id IN {_SESSIONS}"),
    Table("session_summaries", ("turn_id",), f"turn_id IN {_TURNS}"),
    Table("observations", ("turn_id", "ordinal"), f"turn_id IN {_TURNS}"),
    Table("turn_records", ("turn_id",), f"turn_id IN {_TURNS}"),
    Table("outside_words", ("turn_id",), f"turn_id IN {_TURNS}"),
    Table("unstored_words", ("event_key",), f"turn_id IN {_TURNS}"),
    Table("summary_events", ("summary_id", "event_id"), f"summary_id IN {_SUMMARIES}"),
    Table("observation_events", ("observation_id", "event_id"),
          f"observation_id IN {_OBSERVATIONS}"),
    Table("facts", ("project_id", "kind", "scope", "subject", "value"), "project_id = :project"),
    Table("fact_sources", ("fact_id", "turn_id", "observer"), f"fact_id IN {_FACTS}"),
    Table("pending_messages", ("turn_id",), f"session_id IN {_SESSIONS}"),
)  # fmt: skip
BY_NAME = {table.name: table for table in CANONICAL}


def read_schema(connection: sqlite3.Connection) -> Schema:
    """The columns of the canonical tables in this file, in order."""
    return {table.name: _columns(connection, table.name) for table in CANONICAL}


def _columns(connection: sqlite3.Connection, table: str) -> tuple[Column, ...]:
    rows = connection.execute('SELECT name, type, "notnull" FROM pragma_table_info(?)', (table,))
    return tuple(Column(name, kind.upper(), bool(required)) for name, kind, required in rows)


def primary_key(connection: sqlite3.Connection, table: str) -> list[str]:
    rows = connection.execute(
        "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", (table,)
    )
    return [name for (name,) in rows]

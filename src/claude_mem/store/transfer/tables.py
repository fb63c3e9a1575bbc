"""Which tables are memory, what makes a row the same in two databases, and what is only derived.

The columns are not listed here: they are read from the schema, so that a migration that adds one
is exported and restored without a word here. A new table must be named, in one list or the other.
"""

import sqlite3
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    key: tuple[str, ...]
    of_project: str  # the rows of one project, given as :project


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    required: bool


Schema = dict[str, tuple[Column, ...]]

_SESSIONS = "(SELECT id FROM sdk_sessions WHERE project_id = :project)"
_TURNS = f"(SELECT id FROM user_prompts WHERE session_id IN {_SESSIONS})"
_SUMMARIES = f"(SELECT id FROM session_summaries WHERE turn_id IN {_TURNS})"
_OBSERVATIONS = f"(SELECT id FROM observations WHERE turn_id IN {_TURNS})"

# In the order in which they can be restored: what is referred to comes first, a turn's summary
# before its observations (whose distillate it was decides about both), the queue at the end.
CANONICAL = (
    Table("projects", ("key",), "id = :project"),
    Table("project_dirs", ("directory",), "project_id = :project"),
    Table("sdk_sessions", ("content_session_id",), "project_id = :project"),
    Table("user_prompts", ("session_id", "prompt_id"), f"session_id IN {_SESSIONS}"),
    Table("tool_events", ("event_key",), f"session_id IN {_SESSIONS}"),
    Table("session_summaries", ("turn_id",), f"turn_id IN {_TURNS}"),
    Table("observations", ("turn_id", "ordinal"), f"turn_id IN {_TURNS}"),
    Table("summary_events", ("summary_id", "event_id"), f"summary_id IN {_SUMMARIES}"),
    Table("observation_events", ("observation_id", "event_id"),
          f"observation_id IN {_OBSERVATIONS}"),
    Table("pending_messages", ("turn_id",), f"session_id IN {_SESSIONS}"),
)  # fmt: skip
BY_NAME = {table.name: table for table in CANONICAL}

# Made from the others, about the file itself, or no longer memory: what was forgotten stays here.
# A virtual table stands for its shadow tables.
DERIVED = (
    "schema_migrations", "transcripts", "unindexed", "documents", "memory_text", "index_version",
    "forgotten", "forgotten_rows", "tombstones",
    "refinements", "observer_usage", "observer_breakers",
    "sqlite_sequence", "sqlite_stat1", "sqlite_stat4",
)  # fmt: skip
_SHADOWS = ("_data", "_idx", "_content", "_docsize", "_config")


def is_derived(name: str) -> bool:
    return name in DERIVED or any(name == base + end for base in DERIVED for end in _SHADOWS)


def read_schema(connection: sqlite3.Connection) -> Schema:
    """The canonical tables' columns as this file has them, in their order."""
    return {table.name: _columns(connection, table.name) for table in CANONICAL}


def _columns(connection: sqlite3.Connection, table: str) -> tuple[Column, ...]:
    rows = connection.execute('SELECT name, type, "notnull" FROM pragma_table_info(?)', (table,))
    return tuple(Column(name, kind.upper(), bool(required)) for name, kind, required in rows)


def primary_key(connection: sqlite3.Connection, table: str) -> list[str]:
    rows = connection.execute(
        "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", (table,)
    )
    return [name for (name,) in rows]

"""Named, append-only migrations of the team database, each applied and recorded in a transaction.

Any number of servers may start at once: an advisory lock lets one migrate while the others wait.
A database with an unknown migration belongs to a newer version and is not changed.
"""

import psycopg
from psycopg import sql

from claude_mem.errors import NewerDatabase
from claude_mem.team.server.migration_steps import (
    facts,
    filters,
    joining,
    matching,
    projects_and_turns,
    token_makers,
    vector_codes,
)
from claude_mem.team.server.schema import SCHEMA

LOCK = 0x636C6D65  # of the advisory lock

Migration = tuple[str, tuple[str, ...]]
MIGRATIONS: tuple[Migration, ...] = (
    (
        "0001_projects_and_turns",
        (
            projects_and_turns.TABLES,
            projects_and_turns.PARTITION_STATEMENTS,
            projects_and_turns.RIGHTS,
            projects_and_turns.FUNCTIONS,
        ),
    ),
    ("0002_codes", (vector_codes.CODES, vector_codes.RIGHTS, vector_codes.FUNCTIONS)),
    ("0003_facts", (facts.FACTS,)),
    ("0004_fact_sources", (facts.SOURCES,)),
    ("0005_joining", (joining.JOINING,)),
    ("0006_filters", (filters.FILTERED,)),
    ("0007_matching", (matching.MATCHING,)),
    ("0008_token_makers", (token_makers.MADE_BY,)),
)


def migrate(connection: psycopg.Connection) -> list[str]:
    """The names of the migrations that were applied. Needs a connection in autocommit mode."""
    connection.execute("SELECT pg_advisory_lock(%s)", (LOCK,))
    try:
        return [name for name, statements in MIGRATIONS if _apply(connection, name, statements)]
    finally:
        connection.execute("SELECT pg_advisory_unlock(%s)", (LOCK,))


def _apply(connection: psycopg.Connection, name: str, statements: tuple[str, ...]) -> bool:
    with connection.transaction():
        connection.execute(
            sql.SQL("CREATE SCHEMA IF NOT EXISTS {0}; SET LOCAL search_path = {0}, public").format(
                sql.Identifier(SCHEMA)
            )
        )
        connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_migrations ("
            "name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
        )
        if name in _applied(connection):
            return False
        for statement in statements:
            connection.execute(statement)
        connection.execute("INSERT INTO schema_migrations (name) VALUES (%s)", (name,))
        return True


def _applied(connection: psycopg.Connection) -> set[str]:
    names = {row[0] for row in connection.execute("SELECT name FROM schema_migrations")}
    unknown = sorted(names - {name for name, _ in MIGRATIONS})
    if unknown:
        raise NewerDatabase(
            f"the team database was made by a newer claude-mem (it has {unknown[0]!r}): "
            "upgrade this server"
        )
    return names


def is_current(connection: psycopg.Connection) -> bool:
    row = connection.execute(
        "SELECT to_regclass(%s) IS NOT NULL", (f"{SCHEMA}.schema_migrations",)
    ).fetchone()
    if row is None or not row[0]:
        return False
    names = connection.execute(f"SELECT name FROM {SCHEMA}.schema_migrations").fetchall()
    return {name for (name,) in names} == {name for name, _ in MIGRATIONS}

"""Named, append-only migrations of the team database, each applied and recorded in a transaction.

Any number of servers may start at once: an advisory lock lets one migrate while the others wait.
A database with an unknown migration belongs to a newer version and is not changed.
"""

import psycopg
from psycopg import sql

from claude_mem.errors import NewerDatabase
from claude_mem.team.server import (
    facts_schema,
    filter_schema,
    joining_schema,
    matching_schema,
    schema,
    search_schema,
)

LOCK = 0x636C6D65  # of the advisory lock

Migration = tuple[str, tuple[str, ...]]
MIGRATIONS: tuple[Migration, ...] = (
    (
        "0001_projects_and_turns",
        (schema.TABLES, schema.PARTITION_STATEMENTS, schema.RIGHTS, schema.FUNCTIONS),
    ),
    ("0002_codes", (search_schema.CODES, search_schema.RIGHTS, search_schema.FUNCTIONS)),
    ("0003_facts", (facts_schema.FACTS,)),
    ("0004_fact_sources", (facts_schema.SOURCES,)),
    ("0005_joining", (joining_schema.JOINING,)),
    ("0006_filters", (filter_schema.FILTERED,)),
    ("0007_matching", (matching_schema.MATCHING,)),
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
                sql.Identifier(schema.SCHEMA)
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
        "SELECT to_regclass(%s) IS NOT NULL", (f"{schema.SCHEMA}.schema_migrations",)
    ).fetchone()
    if row is None or not row[0]:
        return False
    names = connection.execute(f"SELECT name FROM {schema.SCHEMA}.schema_migrations").fetchall()
    return {name for (name,) in names} == {name for name, _ in MIGRATIONS}

"""The schema of the team database: `schema.sql`, and the named, append-only migrations after it.

Each is applied and recorded in a transaction. Any number of servers may start at once: an advisory
lock lets one migrate while the others wait. `schema.sql` is what a new database begins with, and
what one of the version before it is converted to. A database with an unknown migration belongs to a
newer version, one that cannot be converted to an older one: neither is changed.
"""

from pathlib import Path

import psycopg
from psycopg import sql

from claude_mem.errors import NewerDatabase, OlderDatabase
from claude_mem.team.server.schema import SCHEMA

LOCK = 0x636C6D65  # of the advisory lock
FROZEN = "0100_schema"
_SCHEMA = Path(__file__).with_name("schema.sql")

Migration = tuple[str, str]
MIGRATIONS: tuple[Migration, ...] = ()

# The migrations of the version at this commit, and of development after it
COMMIT = "2fba96ab"
_CONVERTED = {"0001_projects_and_turns", "0002_codes", "0003_facts", "0004_fact_sources",
              "0005_joining", "0006_filters", "0007_matching"}  # fmt: skip
_UNRELEASED = {"0008_token_makers"}
_CONVERSION = """
ALTER TABLE tokens ADD COLUMN IF NOT EXISTS made_by uuid REFERENCES tokens(id) ON DELETE SET NULL;
DROP FUNCTION term_counts(bigint[], tsquery[], integer);
DROP FUNCTION passages_by_words(bigint[], tsquery, tsquery[], float8[], integer);
DROP FUNCTION passages_by_vector(bigint[], halfvec, integer);
DELETE FROM schema_migrations;
"""


def current_names() -> list[str]:
    """Returns the names of the migrations that a database of this version has."""
    return [FROZEN, *(name for name, _ in MIGRATIONS)]


def migrate(connection: psycopg.Connection) -> list[str]:
    """The names of the migrations that were applied. Needs a connection in autocommit mode."""
    connection.execute("SELECT pg_advisory_lock(%s)", (LOCK,))
    try:
        return [name for name in current_names() if _apply(connection, name)]
    finally:
        connection.execute("SELECT pg_advisory_unlock(%s)", (LOCK,))


def _apply(connection: psycopg.Connection, name: str) -> bool:
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
        applied = {row[0] for row in connection.execute("SELECT name FROM schema_migrations")}
        _check(applied)
        if name in applied:
            return False
        if name != FROZEN:
            statements = dict(MIGRATIONS)[name]
        else:
            statements = _CONVERSION if applied else _SCHEMA.read_text("utf-8")
        connection.execute(statements.encode())
        connection.execute("INSERT INTO schema_migrations (name) VALUES (%s)", (name,))
        return True


def _check(applied: set[str]) -> None:
    unknown = sorted(applied - {*current_names(), *_CONVERTED, *_UNRELEASED})
    if unknown:
        raise NewerDatabase(
            f"the team database was made by a newer claude-mem (it has {unknown[0]!r}): "
            "upgrade this server"
        )
    if applied and FROZEN not in applied and not applied >= _CONVERTED:
        raise OlderDatabase(
            "the team database was made by a claude-mem that is too old for this one: run"
            f" claude-mem team migrate of the version at commit {COMMIT}, which converts it, first"
        )


def is_current(connection: psycopg.Connection) -> bool:
    row = connection.execute(
        "SELECT to_regclass(%s) IS NOT NULL", (f"{SCHEMA}.schema_migrations",)
    ).fetchone()
    if row is None or not row[0]:
        return False
    names = connection.execute(f"SELECT name FROM {SCHEMA}.schema_migrations").fetchall()
    return {name for (name,) in names} == set(current_names())

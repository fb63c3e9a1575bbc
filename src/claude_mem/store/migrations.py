"""The schema: `schema.sql`, and the named, append-only migrations that come after it.

Each is applied and recorded in one transaction. `schema.sql` is what a new file begins with, and
what a database of the version before it is converted to (`conversion.py`). A file with an unknown
migration was made by a newer version, one that cannot be converted by an older one: neither is
changed.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from pathlib import Path

from claude_mem.errors import NewerDatabase, OlderDatabase
from claude_mem.hook.kill_points import reach
from claude_mem.store import conversion

FROZEN = "0100_schema"
_SCHEMA = Path(__file__).with_name("schema.sql")

# Each is a function of a module of its own, which imports nothing of the package: live code may
# change, and a released migration does what it did.
Migration = tuple[str, Callable[[sqlite3.Connection], None]]
MIGRATIONS: tuple[Migration, ...] = ()


def current_names() -> list[str]:
    """Returns the names of the migrations that a database of this version has."""
    return [FROZEN, *(name for name, _ in MIGRATIONS)]


def applied_names(connection: sqlite3.Connection) -> list[str]:
    exists = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'"
    ).fetchone()
    if not exists:
        return []
    rows = connection.execute("SELECT name FROM schema_migrations ORDER BY position")
    return [name for (name,) in rows]


def check_names(names: Collection[str]) -> None:
    """Raises NewerDatabase or OlderDatabase if this version cannot use what has these."""
    known = {*current_names(), *conversion.NAMES, *conversion.UNRELEASED}
    if unknown := sorted(set(names) - known):
        raise NewerDatabase(
            f"the database was made by a newer claude-mem (it has {unknown[0]!r}), and databases"
            " are never downgraded. Upgrade this installation, or go back to a backup from before"
            " that upgrade: claude-mem worker restore"
        )
    if names and FROZEN not in names and conversion.is_older(names):
        raise OlderDatabase(
            "the database was made by a claude-mem that is too old for this one. Install the"
            f" version at commit {conversion.COMMIT}, which converts it: claude-mem worker restart."
            " Then upgrade again"
        )


def missing_migrations(connection: sqlite3.Connection) -> list[Migration]:
    """Returns the migrations not yet applied; raises if the file is newer or too old."""
    applied = applied_names(connection)
    check_names(applied)
    first: Migration = (FROZEN, _convert if applied else _create)
    return [migration for migration in (first, *MIGRATIONS) if migration[0] not in applied]


def migrate(connection: sqlite3.Connection, now: str) -> None:
    for name, apply in missing_migrations(connection):
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS schema_migrations ("
                "position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, applied_at TEXT NOT NULL)"
            )
            apply(connection)
            reach(b"migration.before_commit")
            connection.execute(
                "INSERT INTO schema_migrations (name, applied_at) VALUES (?, ?)", (name, now)
            )
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        reach(b"migration.after_commit")


def missing_tables(connection: sqlite3.Connection) -> list[str]:
    """Returns the tables that the migrations made and the file does not have."""
    names = "SELECT name FROM sqlite_master WHERE type = 'table'"
    present = {name for (name,) in connection.execute(names)}
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        fresh.row_factory = sqlite3.Row
        migrate(fresh, "")
        return [name for (name,) in fresh.execute(names) if name not in present]


def _create(connection: sqlite3.Connection) -> None:
    for statement in _schema():
        connection.execute(statement)


def _convert(connection: sqlite3.Connection) -> None:
    conversion.convert(connection, list(_schema()))


def _schema() -> Iterator[str]:
    """Gives the statements of the schema: `executescript` would commit the transaction."""
    statement = ""
    for line in _SCHEMA.read_text("utf-8").splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""

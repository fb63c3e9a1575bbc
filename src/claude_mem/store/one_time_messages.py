"""What the user is told once, at the next start of a session."""

import sqlite3

WELCOME = "welcome"
RECORD_NEARLY_FULL = "record_nearly_full"


def claim(connection: sqlite3.Connection, name: str, now_ms: int) -> bool:
    """Whether it was not given before; it counts as given from now on."""
    cursor = connection.execute(
        "INSERT INTO notices (name, given_at_epoch) VALUES (?, ?) ON CONFLICT (name) DO UPDATE"
        " SET given_at_epoch = excluded.given_at_epoch WHERE given_at_epoch IS NULL",
        (name, now_ms),
    )
    return cursor.rowcount > 0


def is_pending(connection: sqlite3.Connection, name: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM notices WHERE name = ? AND given_at_epoch IS NULL", (name,)
    ).fetchone()
    return row is not None


def withdraw(connection: sqlite3.Connection, name: str) -> None:
    """Withdraws a message: it may be given again."""
    connection.execute("DELETE FROM notices WHERE name = ?", (name,))

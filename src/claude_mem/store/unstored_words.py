"""Words that tools gave to the agent and that are not stored: what long outputs lost when they were
shortened, and outputs of tools that are not recorded.

Kept as checksums of their runs until the raw events of the turn are deleted, so that a turn can
tell which of its words are from outside.
"""

import sqlite3
from collections.abc import Iterable, Sequence

from claude_mem.types import Event


def save(connection: sqlite3.Connection, turn_id: int, events: Iterable[tuple[Event, str]]) -> None:
    connection.executemany(
        "INSERT INTO unstored_words (event_key, turn_id, checksums) VALUES (?, ?, ?)"
        " ON CONFLICT (event_key) DO NOTHING",
        [(key, turn_id, event.unstored_words) for event, key in events if event.unstored_words],
    )


def of_turn(connection: sqlite3.Connection, turn_id: int) -> dict[str, bytes]:
    """Returns the words by the key of the event, also those of an event that is not stored."""
    rows = connection.execute(
        "SELECT event_key, checksums FROM unstored_words WHERE turn_id = ?", (turn_id,)
    )
    return dict(rows.fetchall())


def of_previous(
    connection: sqlite3.Connection, session_id: int, turn_id: int, turns: int, limit: int
) -> list[bytes]:
    """Returns the words of the turns before this one, the latest first."""
    rows = connection.execute(
        "SELECT checksums FROM unstored_words WHERE turn_id IN (SELECT id FROM user_prompts"
        " WHERE session_id = ? AND id < ? ORDER BY id DESC LIMIT ?) ORDER BY rowid DESC LIMIT ?",
        (session_id, turn_id, turns, limit),
    )
    return [checksums for (checksums,) in rows]


def delete(connection: sqlite3.Connection, turn_ids: Sequence[int]) -> None:
    connection.executemany(
        "DELETE FROM unstored_words WHERE turn_id = ?", [(turn_id,) for turn_id in turn_ids]
    )

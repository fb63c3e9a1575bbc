"""Forgetting for good: nothing stays in the trash.

Rows leave it in the transaction that put them there. What may repeat the text goes too: earlier
forgettings of the same turns, contexts that sessions were given, conversations with a model. The
files are scrubbed afterwards (`file_scrubbing.py`).
"""

import json
import sqlite3

from claude_mem.store import file_scrubbing, tombstones
from claude_mem.store.sessions import drop_conversation


def erase(connection: sqlite3.Connection, forgotten_id: int, now_ms: int) -> None:
    # Damaged rows cannot be compared with what is forgotten, nor restored.
    connection.execute("DELETE FROM forgotten_rows WHERE NOT json_valid(content)")
    turns, sessions = _turns(connection, forgotten_id), _sessions(connection, forgotten_id)
    _delete_overlapping(connection, forgotten_id, turns, sessions)
    _clear_contexts_in_trash(connection)
    for session in _remaining_sessions(connection, turns):
        # The conversation contains the text.
        drop_conversation(connection, session)
    tombstones.hash_keys(connection, forgotten_id)
    connection.execute("DELETE FROM forgotten_rows WHERE forgotten_id = ?", (forgotten_id,))
    connection.execute("UPDATE forgotten SET erased = 1 WHERE id = ?", (forgotten_id,))
    file_scrubbing.request(connection, now_ms)


def _turns(connection: sqlite3.Connection, forgotten_id: int) -> list[int]:
    return _ids(
        connection, "of_table = 'user_prompts' AND forgotten_id = ?", forgotten_id
    )  # also those that stay, sealed


def _sessions(connection: sqlite3.Connection, forgotten_id: int) -> list[int]:
    return _ids(
        connection, "of_table = 'sdk_sessions' AND kind = 'gone' AND forgotten_id = ?", forgotten_id
    )


def _ids(connection: sqlite3.Connection, condition: str, forgotten_id: int) -> list[int]:
    rows = connection.execute(
        f"SELECT DISTINCT json_extract(content, '$.id') FROM forgotten_rows WHERE {condition}",
        (forgotten_id,),
    )
    return [row[0] for row in rows]


def _delete_overlapping(
    connection: sqlite3.Connection, forgotten_id: int, turns: list[int], sessions: list[int]
) -> None:
    """Deletes earlier forgettings of the same turns: their undo would bring some of it back."""
    connection.execute(
        "DELETE FROM forgotten WHERE id <> :own AND id IN (SELECT forgotten_id FROM forgotten_rows"
        " WHERE json_extract(content, '$.turn_id') IN (SELECT value FROM json_each(:turns))"
        " OR (of_table = 'user_prompts'"
        " AND json_extract(content, '$.id') IN (SELECT value FROM json_each(:turns)))"
        " OR (of_table = 'sdk_sessions' AND kind = 'gone'"
        " AND json_extract(content, '$.id') IN (SELECT value FROM json_each(:sessions))))",
        {"own": forgotten_id, "turns": json.dumps(turns), "sessions": json.dumps(sessions)},
    )


def _clear_contexts_in_trash(connection: sqlite3.Connection) -> None:
    """Contexts that sessions were given may repeat the text of any memory."""
    connection.execute(
        "UPDATE forgotten_rows SET content = json_set(content, '$.start_context', NULL)"
        " WHERE of_table = 'sdk_sessions' AND json_extract(content, '$.start_context') IS NOT NULL"
    )


def _remaining_sessions(connection: sqlite3.Connection, turns: list[int]) -> list[int]:
    rows = connection.execute(
        "SELECT DISTINCT session_id FROM user_prompts WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(turns),),
    )
    return [row[0] for row in rows]

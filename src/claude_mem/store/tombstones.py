"""What was forgotten and must not be recorded again.

Tombstones stay when the trash is emptied: whatever records sessions or turns asks for them first,
so that no transcript, late hook or old export brings forgotten rows back. Those of what was
forgotten for good are only hashes, so that the database does not even name the project or session.
"""

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from typing import Literal

TombstoneKind = Literal["project", "session", "turn"]


def hash_keys(connection: sqlite3.Connection, forgotten_id: int) -> None:
    rows = connection.execute(
        "SELECT kind, key FROM tombstones WHERE forgotten_id = ?", (forgotten_id,)
    ).fetchall()
    connection.executemany(
        "UPDATE OR REPLACE tombstones SET key = ? WHERE kind = ? AND key = ?",
        [(_hash(kind, key), kind, key) for kind, key in rows],
    )


def is_forgotten_session(connection: sqlite3.Connection, content_session_id: str) -> bool:
    return _has_any(connection, "session", [content_session_id])


def is_forgotten_turn(connection: sqlite3.Connection, prompt_id: str) -> bool:
    return _has_any(connection, "turn", [prompt_id])


def is_any_forgotten_turn(connection: sqlite3.Connection, prompt_ids: Sequence[str]) -> bool:
    return _has_any(connection, "turn", prompt_ids)


def is_forgotten_project(connection: sqlite3.Connection, key: str, started_ms: int) -> bool:
    """Whether the project was forgotten after a session that started then."""
    return _has_any(connection, "project", [key], started_ms)


def has_sealed_turn(connection: sqlite3.Connection, session_id: int) -> bool:
    """Whether a turn of the session lost some of its memories to forgetting."""
    row = connection.execute(
        "SELECT 1 FROM user_prompts WHERE session_id = ? AND sealed > 0", (session_id,)
    ).fetchone()
    return row is not None


def _has_any(
    connection: sqlite3.Connection, kind: str, keys: Sequence[str], since_ms: int = 0
) -> bool:
    keys_and_hashes = [*keys, *(_hash(kind, key) for key in keys)]
    if len(keys) == 1:  # for every event: two values are compared faster than rows of a function
        placeholders, parameters = "?, ?", keys_and_hashes
    else:
        placeholders, parameters = "SELECT value FROM json_each(?)", [json.dumps(keys_and_hashes)]
    row = connection.execute(
        f"SELECT 1 FROM tombstones WHERE kind = ? AND key IN ({placeholders})"
        " AND at_epoch >= ? LIMIT 1",
        (kind, *parameters, since_ms),
    ).fetchone()
    return row is not None


def _hash(kind: str, key: str) -> str:
    digest = hashlib.blake2b(f"{kind}\0{key}".encode("utf-8", "replace"), digest_size=16)
    return f"hash:{digest.hexdigest()}"

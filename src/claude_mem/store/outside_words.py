"""Words of memories that came from outside: tool output, web pages, files, reports of subagents.

Kept as hashes, by turn, so that a text that is forgotten is not kept here.
"""

import json
import sqlite3
from collections.abc import Sequence

LATEST_TURNS = 1_000  # of a project, for its context


def save(connection: sqlite3.Connection, turn_id: int, hashes: Sequence[str]) -> None:
    """Replaces those of the turn."""
    if not hashes:
        connection.execute("DELETE FROM outside_words WHERE turn_id = ?", (turn_id,))
        return
    connection.execute(
        "INSERT OR REPLACE INTO outside_words (turn_id, hashes) VALUES (?, ?)",
        (turn_id, " ".join(hashes)),
    )


def of_turns(connection: sqlite3.Connection, turn_ids: Sequence[int]) -> dict[int, frozenset[str]]:
    rows = connection.execute(
        "SELECT turn_id, hashes FROM outside_words"
        " WHERE turn_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(turn_ids)),),
    )
    return {turn_id: frozenset(hashes.split()) for turn_id, hashes in rows}


def of_project(connection: sqlite3.Connection, project_id: int) -> frozenset[str]:
    """Of its latest turns."""
    rows = connection.execute(
        "SELECT o.hashes FROM user_prompts t JOIN outside_words o ON o.turn_id = t.id"
        " WHERE t.project_id = ? ORDER BY t.id DESC LIMIT ?",
        (project_id, LATEST_TURNS),
    )
    return frozenset(text for (hashes,) in rows for text in hashes.split())


def of_memories(
    connection: sqlite3.Connection, table: str, ids: Sequence[int]
) -> dict[int, frozenset[str]]:
    """By the id of an observation, summary or prompt."""
    turn = "m.id" if table == "user_prompts" else "m.turn_id"
    rows = connection.execute(
        f"SELECT m.id, o.hashes FROM {table} m JOIN outside_words o ON o.turn_id = {turn}"
        " WHERE m.id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    return {memory_id: frozenset(hashes.split()) for memory_id, hashes in rows}

"""Words of memories that came from outside: tool output, web pages, files, reports of subagents.

Kept as hashes, by turn, so that a text that is forgotten is not kept here.
"""

import json
import sqlite3
from collections.abc import Sequence

from claude_mem.word_runs import ALL_WORDS

# Whether a turn came with somebody else's export: all of it is from outside.
IS_OUTSIDE = "({} IN (SELECT id FROM user_prompts WHERE outside <> 0))"

LATEST_TURNS = 1_000  # of a project, for its context
EARLIER_TURNS = 20  # of a session: what the agent read there it may repeat later


def save(
    connection: sqlite3.Connection, turn_id: int, hashes: Sequence[str], of_record: Sequence[str]
) -> None:
    """Replaces those of the turn."""
    if not hashes and not of_record:
        connection.execute("DELETE FROM outside_words WHERE turn_id = ?", (turn_id,))
        return
    connection.execute(
        "INSERT OR REPLACE INTO outside_words (turn_id, hashes, of_record) VALUES (?, ?, ?)",
        (turn_id, " ".join(hashes), " ".join(of_record)),
    )


def add(connection: sqlite3.Connection, turn_id: int, hashes: Sequence[str]) -> None:
    """Adds hashes to those of the memories of a turn."""
    connection.execute(
        "INSERT INTO outside_words (turn_id, hashes, of_record) VALUES (?, ?, '')"
        " ON CONFLICT (turn_id) DO UPDATE SET hashes = hashes || ' ' || excluded.hashes",
        (turn_id, " ".join(hashes)),
    )


# Those of a turn `t` and of the turns before it in its session, as one text.
OF_TURN = (
    f"(CASE WHEN t.outside THEN '{ALL_WORDS}' ELSE"
    " (SELECT group_concat(o.hashes || ' ' || o.of_record, ' ') FROM outside_words o"
    " WHERE o.turn_id IN (SELECT e.id FROM user_prompts e WHERE e.session_id = t.session_id"
    f" AND e.id <= t.id ORDER BY e.id DESC LIMIT {EARLIER_TURNS})) END)"
)


def is_any(connection: sqlite3.Connection) -> bool:
    return (
        connection.execute(
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM outside_words)"
            " OR EXISTS (SELECT 1 FROM user_prompts WHERE outside <> 0)"
        ).fetchone()
        is not None
    )


def of_turns(connection: sqlite3.Connection, turn_ids: Sequence[int]) -> dict[int, frozenset[str]]:
    """Returns the words of the memories and the record of each turn, and of the turns before it in
    its session."""
    rows = connection.execute(
        f"SELECT t.id, {OF_TURN} FROM user_prompts t"
        " WHERE t.id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(turn_ids)),),
    )
    return {turn_id: frozenset(hashes.split()) for turn_id, hashes in rows if hashes is not None}


def of_project(connection: sqlite3.Connection, project_id: int) -> frozenset[str]:
    """Returns the words of the latest turns of a project."""
    rows = connection.execute(
        "SELECT o.hashes FROM user_prompts t JOIN outside_words o ON o.turn_id = t.id"
        " WHERE t.project_id = ? AND t.outside = 0 ORDER BY t.id DESC LIMIT ?",
        (project_id, LATEST_TURNS),
    )
    return frozenset(text for (hashes,) in rows for text in hashes.split())

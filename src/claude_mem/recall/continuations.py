"""Memories of turns that continue an earlier one, which had started a background task."""

import json
import sqlite3
from collections.abc import Iterable

from claude_mem.recall.memory_ids import MemoryId, parse_memory_id

_TURN_OF = {"observation": "observations", "summary": "session_summaries"}


def continued_by(
    connection: sqlite3.Connection, ids: Iterable[MemoryId]
) -> dict[MemoryId, MemoryId]:
    """By the memories that continue something: what that is, the best known memory of its turn."""
    memories = list(ids)
    continued: dict[MemoryId, MemoryId] = {}
    for kind, table in _TURN_OF.items():
        numbers = [memory.number for memory in memories if memory.kind == kind]
        if not numbers:
            continue
        rows = connection.execute(
            f"SELECT m.id, {_NAME} FROM {table} m JOIN user_prompts t ON t.id = m.turn_id"
            " WHERE t.parent_turn IS NOT NULL AND m.id IN (SELECT value FROM json_each(?))",
            (json.dumps(numbers),),
        )
        for number, name in rows:
            if (parent := parse_memory_id(name)) is not None:
                continued[MemoryId(kind, number)] = parent
    return continued


_NAME = (
    "coalesce('' || (SELECT o.id FROM observations o WHERE o.turn_id = t.parent_turn"
    " ORDER BY o.ordinal LIMIT 1), 'S' || (SELECT s.id FROM session_summaries s"
    " WHERE s.turn_id = t.parent_turn), 'P' || t.parent_turn)"
)

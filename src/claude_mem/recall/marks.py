"""Which memories were edited, pinned or marked as wrong."""

import json
import sqlite3
from collections.abc import Sequence

from claude_mem.recall.memory_ids import MemoryId
from claude_mem.store import outside_words

MARKS = ("edited", "pinned", "wrong")
_COLUMNS = {
    "observation": ("observations", "edited, pinned, wrong"),
    "summary": ("session_summaries", "edited, pinned, wrong"),
    "prompt": ("user_prompts", "0, pinned, wrong"),
}


def outside_words_of(
    connection: sqlite3.Connection, ids: Sequence[MemoryId]
) -> dict[MemoryId, frozenset[str]]:
    """Of memories whose turn has words from outside."""
    words: dict[MemoryId, frozenset[str]] = {}
    for kind, (table, _) in _COLUMNS.items():
        numbers = [memory_id.number for memory_id in ids if memory_id.kind == kind]
        of_kind = outside_words.of_memories(connection, table, numbers) if numbers else {}
        words |= {MemoryId(kind, number): hashes for number, hashes in of_kind.items()}
    return words


def marks_of(
    connection: sqlite3.Connection, ids: Sequence[MemoryId]
) -> dict[MemoryId, tuple[str, ...]]:
    """Only those that have any."""
    marks: dict[MemoryId, tuple[str, ...]] = {}
    for kind, (table, columns) in _COLUMNS.items():
        numbers = [memory_id.number for memory_id in ids if memory_id.kind == kind]
        if not numbers:
            continue
        rows = connection.execute(
            f"SELECT id, {columns} FROM {table} WHERE id IN (SELECT value FROM json_each(?))"
            " AND (pinned <> 0 OR wrong <> 0 OR changed_by IS NOT NULL)",
            (json.dumps(numbers),),
        )
        for number, *flags in rows:
            names = tuple(name for name, flag in zip(MARKS, flags, strict=True) if flag)
            marks[MemoryId(kind, number)] = names
    return marks

"""What search shows of a memory besides its text: whether it was edited, pinned, marked as wrong or
has words from outside, and which earlier memory it continues."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from claude_mem.recall.memory_ids import MemoryId, parse_memory_id
from claude_mem.store import outside_words

MARKS = ("edited", "pinned", "wrong")
_COLUMNS = {
    "observation": ("observations", "edited, pinned, wrong"),
    "summary": ("session_summaries", "edited, pinned, wrong"),
    "prompt": ("user_prompts", "0, pinned, wrong"),
}
_TURN_OF = {"observation": "observations", "summary": "session_summaries"}


OutsideWords = Mapping[MemoryId, frozenset[str]]
NO_WORDS: OutsideWords = MappingProxyType({})


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


def continued_by(
    connection: sqlite3.Connection, ids: Iterable[MemoryId]
) -> dict[MemoryId, MemoryId]:
    """Of memories of turns that continue an earlier one, which had started a background task: the
    best known memory of that turn."""
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

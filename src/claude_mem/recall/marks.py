"""What search shows of a memory besides its text: whether it was edited, pinned, marked as wrong or
has words from outside, and which earlier memory it continues."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from claude_mem.recall.memory_ids import MemoryId, parse_memory_id
from claude_mem.store import outside_words

MARKS = ("edited", "pinned", "wrong")
_NAME_OF_PARENT = (
    "coalesce('' || (SELECT o.id FROM observations o WHERE o.turn_id = t.parent_turn"
    " ORDER BY o.ordinal LIMIT 1), 'S' || (SELECT s.id FROM session_summaries s"
    " WHERE s.turn_id = t.parent_turn), 'P' || t.parent_turn)"
)
_OF_MEMORIES = " FROM {table} m JOIN user_prompts t ON t.id = m.turn_id"
_FROM = {
    "observation": _OF_MEMORIES.format(table="observations"),
    "summary": _OF_MEMORIES.format(table="session_summaries"),
    "prompt": " FROM user_prompts t",
}
_COLUMNS = {
    "observation": f"m.id, m.edited, m.pinned, m.wrong, {_NAME_OF_PARENT}",
    "summary": f"m.id, m.edited, m.pinned, m.wrong, {_NAME_OF_PARENT}",
    "prompt": "t.id, 0, t.pinned, t.wrong, NULL",
}

OutsideWords = Mapping[MemoryId, frozenset[str]]
NO_WORDS: OutsideWords = MappingProxyType({})


class RowMarks(NamedTuple):
    """Of a memory."""

    marks: tuple[str, ...]
    continues: MemoryId | None  # the best known memory of the turn that started its background task
    outside_words: str  # hashes of those of its turn, separated by spaces


def marks_of(connection: sqlite3.Connection, ids: Sequence[MemoryId]) -> dict[MemoryId, RowMarks]:
    """Only those that have any."""
    notes: dict[MemoryId, RowMarks] = {}
    for kind, columns in _COLUMNS.items():
        for number, *flags, parent, words in _read(connection, kind, columns, ids):
            marks = tuple(name for name, flag in zip(MARKS, flags, strict=True) if flag)
            if marks or parent or words is not None:
                continues = parse_memory_id(parent) if parent else None
                notes[MemoryId(kind, number)] = RowMarks(marks, continues, words or "")
    return notes


def outside_words_of(
    connection: sqlite3.Connection, ids: Sequence[MemoryId]
) -> dict[MemoryId, frozenset[str]]:
    """Of memories whose turn has words from outside."""
    return {
        MemoryId(kind, number): frozenset(words.split())
        for kind, columns in _COLUMNS.items()
        for number, *_, words in _read(connection, kind, columns, ids)
        if words is not None
    }


def _read(
    connection: sqlite3.Connection, kind: str, columns: str, ids: Sequence[MemoryId]
) -> Iterable[tuple[Any, ...]]:
    numbers = [memory_id.number for memory_id in ids if memory_id.kind == kind]
    if not numbers:
        return ()
    own_id = "t.id" if kind == "prompt" else "m.id"
    # For each memory the turns before it are looked up: most of the time of the statement.
    words = outside_words.OF_TURN if outside_words.is_any(connection) else "NULL"
    return connection.execute(
        f"SELECT {columns}, {words}{_FROM[kind]}"
        f" WHERE {own_id} IN (SELECT value FROM json_each(?))",
        (json.dumps(numbers),),
    )

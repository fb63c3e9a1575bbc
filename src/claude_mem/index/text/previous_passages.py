"""The passages that the index has of turns which were changed since they were indexed.

The index needs their texts to remove their words. The store keeps the rows that a turn had before
its first change (`unindexed_turns`); a turn that has none there was only marked.
"""

import json
import sqlite3
from collections.abc import Iterable
from typing import Any

from claude_mem.index.text.documents import (
    TURN,
    Document,
    Passage,
    add_memory,
    document_id,
    load,
    memory_id_of,
    prompt_record,
    turn_passages,
)
from claude_mem.store.stored_json import parse_stored
from claude_mem.store.turn_records import parse_parts

_NOT_TEXT = dict.fromkeys(
    ("ordinal", "project_id", "session_id", "prompt_number", "created_at_epoch"), 0
) | {"type": ""}


def load_previous(
    connection: sqlite3.Connection, turn_ids: Iterable[int]
) -> dict[int, tuple[Passage, ...]]:
    """Loads the passages that turns had before they changed, by turn."""
    turns = json.dumps(list(turn_ids))
    rows = connection.execute(
        "SELECT turn_id, rows FROM unindexed_turns"
        " WHERE turn_id IN (SELECT value FROM json_each(?))",
        (turns,),
    )
    passages = {turn: _cut(parse_stored(text, {})) for turn, text in rows.fetchall()}
    unchanged = [
        document_id(TURN, row[0])
        for row in connection.execute(
            "SELECT id FROM indexed_turns WHERE id IN (SELECT value FROM json_each(?))", (turns,)
        )
        if row[0] not in passages
    ]
    for document in load(connection, unchanged):
        passages[memory_id_of(document.id)] = document.passages
    return passages


def drop(connection: sqlite3.Connection, turn_ids: Iterable[int]) -> None:
    connection.execute(
        "DELETE FROM unindexed_turns WHERE turn_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(turn_ids)),),
    )


def _cut(turn: dict[str, Any]) -> tuple[Passage, ...]:
    if not turn or turn["private"]:  # of damaged rows none: the index is found to differ
        return ()
    memories: list[Document] = []
    for kind, name in (("observation", "observations"), ("summary", "summaries")):
        for row in turn[name]:
            add_memory(memories, kind, {**_NOT_TEXT, **row})
    record = parse_parts(turn["record"]) if turn["record"] else prompt_record(turn["prompt_text"])
    return turn_passages(record, memories)

"""The texts of passages. The index has none of them: each is cut again from the memory, or from
the part of the record, that it was cut from when it was indexed.

Only of turns that are not marked as changed since then, as `passage_index.turn_rows` returns them.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from itertools import islice

from claude_mem.index.passages import NOTES_SOURCE, Passage, pack, source_text
from claude_mem.index.text.documents import (
    TURN,
    document_id,
    load,
    load_texts,
    memory_id_of,
    memory_texts,
    prompt_record,
)
from claude_mem.index.text.passage_index import PASSAGE_BITS, turn_rows
from claude_mem.store.records import load_records
from claude_mem.types import RecordPart


def texts(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, str]:
    """By id."""
    rows = connection.execute(
        "SELECT p.id, source, place FROM json_each(?) i CROSS JOIN passages p ON p.id = i.value",
        (json.dumps(list(ids)),),
    ).fetchall()
    memories = load_texts(connection, {row[1] >> 1 for row in rows if row[1] > NOTES_SOURCE})
    turns = {row[0] >> PASSAGE_BITS for row in rows if row[1] <= NOTES_SOURCE}
    records = _records(connection, turns) if turns else {}
    result: dict[int, str] = {}
    for id_, source, place in rows:
        if source > NOTES_SOURCE:
            memory = memories.get(source >> 1)
            text = memory_texts(memory)[source & 1] if memory is not None else ""
        else:
            text = source_text(records[id_ >> PASSAGE_BITS], source)
        result[id_] = next(islice(pack(text), place, None), "")
    return result


def texts_of_turn(connection: sqlite3.Connection, turn_id: int) -> Sequence[Passage]:
    """All passages, in their order; none while the turn waits for the index."""
    return texts_of_turns(connection, [turn_id]).get(turn_id, ())


def texts_of_turns(
    connection: sqlite3.Connection, turn_ids: Iterable[int]
) -> dict[int, Sequence[Passage]]:
    """By turn, without those that wait for the index."""
    indexed = turn_rows(connection, turn_ids)
    documents = load(connection, [document_id(TURN, turn_id) for turn_id in indexed])
    return {memory_id_of(document.id): document.passages for document in documents}


def _records(connection: sqlite3.Connection, turns: set[int]) -> dict[int, tuple[RecordPart, ...]]:
    records = load_records(connection, turns)
    rows = connection.execute(
        "SELECT id, prompt_text FROM user_prompts WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(turns.difference(records))),),
    )
    return records | {row[0]: prompt_record(row[1]) for row in rows}

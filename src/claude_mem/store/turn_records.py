"""The record: what was said in a turn, word for word, beside the memories that were made of it.

One row per turn. It is stored with the turn's memories and stays when the raw events go.
"""

import json
import sqlite3
from collections.abc import Iterable
from typing import cast, get_args

from claude_mem.store.stored_json import parse_stored
from claude_mem.types import Json, RecordKind, RecordPart, Speaker

_KINDS, _SPEAKERS = get_args(RecordKind), get_args(Speaker)


def save_record(
    connection: sqlite3.Connection, turn_id: int, parts: Iterable[RecordPart], ms: int
) -> bool:
    """Saves a record in place of what the turn has; False where there is nothing to record."""
    recorded = tuple(parts)
    if not recorded:
        return False
    text = dump_parts(recorded)
    connection.execute(
        "INSERT INTO turn_records (turn_id, parts, bytes, created_at_epoch) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (turn_id) DO UPDATE SET parts = excluded.parts, bytes = excluded.bytes"
        " WHERE parts <> excluded.parts",
        (turn_id, text, _bytes(text), ms),
    )
    return True


def record_size(connection: sqlite3.Connection, turn_id: int) -> int:
    """Returns the size in bytes; 0 where the turn has no record."""
    row = connection.execute(
        "SELECT bytes FROM turn_records WHERE turn_id = ?", (turn_id,)
    ).fetchone()
    return int(row[0]) if row is not None else 0


def load_records(
    connection: sqlite3.Connection, turn_ids: Iterable[int]
) -> dict[int, tuple[RecordPart, ...]]:
    rows = connection.execute(
        "SELECT turn_id, parts FROM turn_records WHERE turn_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(turn_ids)),),
    )
    return {row[0]: parse_parts(row[1]) for row in rows}


_TURN_OF = {
    "observations": "SELECT id, turn_id FROM observations",
    "summaries": "SELECT id, turn_id FROM session_summaries",
    "prompts": "SELECT id, id FROM user_prompts",
}


def records_of(
    connection: sqlite3.Connection, noun: str, ids: Iterable[int]
) -> dict[int, tuple[RecordPart, ...]]:
    """The records of the turns of these memories, by the ids of the memories."""
    rows = connection.execute(
        f"{_TURN_OF[noun]} WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),)
    )
    turns = {row[0]: row[1] for row in rows}
    records = load_records(connection, turns.values())
    return {memory: records[turn] for memory, turn in turns.items() if turn in records}


def record_data(parts: Iterable[RecordPart]) -> list[Json]:
    return [{"kind": part.kind, "speaker": part.speaker, "text": part.text} for part in parts]


def dump_parts(parts: Iterable[RecordPart]) -> str:
    return json.dumps([[p.kind, p.speaker, p.text] for p in parts], ensure_ascii=False)


def size_of(parts: Iterable[RecordPart]) -> int:
    return _bytes(dump_parts(parts))


def _bytes(text: str) -> int:
    return len(text.encode())


def parse_parts(text: str) -> tuple[RecordPart, ...]:
    return tuple(
        RecordPart(cast(RecordKind, part[0]), cast(Speaker, part[1]), part[2])
        for part in parse_stored(text, [])
        if isinstance(part, list) and len(part) == 3
    )


def is_record(value: Json) -> bool:
    """Whether this is what `parse_parts` can read."""
    return isinstance(value, list) and all(
        isinstance(part, list)
        and len(part) == 3
        and part[0] in _KINDS
        and part[1] in _SPEAKERS
        and isinstance(part[2], str)
        for part in value
    )


def record_bytes(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT coalesce(sum(bytes), 0) FROM turn_records").fetchone()
    return int(row[0])

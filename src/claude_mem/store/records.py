"""The record: what was said in a turn, word for word, beside the memories that were made of it.

One row per turn. It is stored with the turn's memories and stays when the raw events go.
"""

import json
import sqlite3
from collections.abc import Iterable
from typing import cast

from claude_mem.types import RecordKind, RecordPart, Speaker


def save_record(
    connection: sqlite3.Connection, turn_id: int, parts: Iterable[RecordPart], ms: int
) -> bool:
    """In place of the record that the turn has; False where there is nothing to record."""
    recorded = tuple(parts)
    if not recorded:
        return False
    text = dump_parts(recorded)
    connection.execute(
        "INSERT INTO turn_records (turn_id, parts, bytes, created_at_epoch) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (turn_id) DO UPDATE SET parts = excluded.parts, bytes = excluded.bytes"
        " WHERE parts <> excluded.parts",
        (turn_id, text, len(text.encode()), ms),
    )
    return True


def has_record(connection: sqlite3.Connection, turn_id: int) -> bool:
    row = connection.execute("SELECT 1 FROM turn_records WHERE turn_id = ?", (turn_id,)).fetchone()
    return row is not None


def load_records(
    connection: sqlite3.Connection, turn_ids: Iterable[int]
) -> dict[int, tuple[RecordPart, ...]]:
    rows = connection.execute(
        "SELECT turn_id, parts FROM turn_records WHERE turn_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(turn_ids)),),
    )
    return {row[0]: parse_parts(row[1]) for row in rows}


def dump_parts(parts: Iterable[RecordPart]) -> str:
    return json.dumps([[p.kind, p.speaker, p.text] for p in parts], ensure_ascii=False)


def parse_parts(text: str) -> tuple[RecordPart, ...]:
    return tuple(
        RecordPart(cast(RecordKind, kind), cast(Speaker, speaker), words)
        for kind, speaker, words in json.loads(text)
    )


def trim_records(connection: sqlite3.Connection, before_ms: int, keep_bytes: int) -> int:
    """Deletes records that are too old, then the oldest beyond a size; how many were deleted."""
    cursor = connection.execute("DELETE FROM turn_records WHERE created_at_epoch < ?", (before_ms,))
    oversize = connection.execute(
        "DELETE FROM turn_records WHERE turn_id IN (SELECT turn_id FROM (SELECT turn_id,"
        " sum(bytes) OVER (ORDER BY created_at_epoch DESC, turn_id DESC) AS total"
        " FROM turn_records) WHERE total > ?)",
        (keep_bytes,),
    )
    return cursor.rowcount + oversize.rowcount


def record_bytes(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT coalesce(sum(bytes), 0) FROM turn_records").fetchone()
    return int(row[0])

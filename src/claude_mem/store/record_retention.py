"""Deletes raw events and records that are too old, or beyond a size."""

import sqlite3

from claude_mem.store import unstored_words
from claude_mem.store.turn_records import record_bytes


def trim_records(connection: sqlite3.Connection, before_ms: int, keep_bytes: int) -> int:
    """Deletes records that are too old, then the oldest beyond a size; how many were deleted."""
    cursor = connection.execute("DELETE FROM turn_records WHERE created_at_epoch < ?", (before_ms,))
    if record_bytes(connection) <= keep_bytes:
        return cursor.rowcount
    oversize = connection.execute(
        "DELETE FROM turn_records WHERE turn_id IN (SELECT turn_id FROM (SELECT turn_id,"
        " sum(bytes) OVER (ORDER BY created_at_epoch DESC, turn_id DESC) AS total"
        " FROM turn_records) WHERE total > ?)",
        (keep_bytes,),
    )
    return cursor.rowcount + oversize.rowcount


def retire_raw_events(connection: sqlite3.Connection, before_ms: int, keep_bytes: int) -> int:
    """Deletes the raw text of events that are too old, or the oldest beyond a size.

    The rows stay as provenance. Returns how many.
    """
    total = connection.execute(
        "SELECT coalesce(sum(bytes), 0) FROM tool_events WHERE bytes > 0 AND created_at_epoch >= ?",
        (before_ms,),
    ).fetchone()[0]
    cut = before_ms
    if total > keep_bytes:
        excess = total - keep_bytes
        for row in connection.execute(
            "SELECT created_at_epoch, bytes FROM tool_events"
            " WHERE bytes > 0 AND created_at_epoch >= ? ORDER BY created_at_epoch",
            (before_ms,),
        ):
            if excess <= 0:
                break
            excess -= row["bytes"]
            cut = row["created_at_epoch"] + 1
    # A turn that is open or queued keeps its text. One without text is not distilled again, or a
    # late event would replace its memories with less.
    rows = connection.execute(
        "UPDATE tool_events SET tool_input = NULL, tool_response = NULL, text = NULL,"
        " detail = NULL, words = NULL, bytes = 0 WHERE bytes > 0 AND created_at_epoch < ?"
        " AND coalesce(turn_id, 0) NOT IN (SELECT turn_id FROM pending_messages)"
        " AND coalesce(turn_id, 0) NOT IN (SELECT id FROM user_prompts WHERE closed = 0)"
        " RETURNING turn_id",
        (cut,),
    ).fetchall()
    turn_ids = {(row["turn_id"],) for row in rows if row["turn_id"] is not None}
    connection.executemany("UPDATE user_prompts SET retired = 1 WHERE id = ?", turn_ids)
    unstored_words.delete(connection, [turn_id for (turn_id,) in turn_ids])
    return len(rows)

"""A stored turn as it is sent: its rows without what belongs to this machine, redacted again."""

import json
import sqlite3
from collections.abc import Iterable
from typing import Any

from claude_mem.redaction import Redactor
from claude_mem.store.transfer.export_reader import IDENTITY, JSON_COLUMNS
from claude_mem.team.wire import LOCAL_COLUMNS, MAX_RECORD, TurnItem, turn_uid
from claude_mem.types import Json

_MEMORIES = (("session_summaries", "turn_id"), ("observations", "turn_id, ordinal"))


def load_turn(
    connection: sqlite3.Connection,
    turn_id: int,
    redactor: Redactor,
    *,
    with_record: bool,
    changed_ms: int = 0,
) -> TurnItem | None:
    """None if nothing of the turn is to be shared: it is open, private, forgotten, empty or
    somebody else's."""
    turn = connection.execute("SELECT * FROM user_prompts WHERE id = ?", (turn_id,)).fetchone()
    if turn is None or turn["private"] or turn["outside"] or not turn["closed"]:
        return None
    session = connection.execute(
        "SELECT * FROM sdk_sessions WHERE id = ?", (turn["session_id"],)
    ).fetchone()
    memories = [
        {"table": table, **_values(row, redactor)}
        for table, order in _MEMORIES
        for row in connection.execute(
            f"SELECT * FROM {table} WHERE turn_id = ? AND wrong = 0 ORDER BY {order}", (turn_id,)
        )
    ]
    if turn["wrong"] or not (memories or turn["prompt_text"]):
        return None
    rows: list[dict[str, Json]] = [
        {"table": "sdk_sessions", **_values(session, redactor)},
        {"table": "user_prompts", **_values(turn, redactor)},
        *memories,
    ]
    if with_record:
        rows += _record(connection, turn_id, redactor)
    return TurnItem(
        uid=turn_uid(session["content_session_id"], turn["prompt_id"]),
        version=max(changed_ms, turn["updated_at_epoch"]),
        sealed=turn["sealed"],
        rows=tuple(rows),
    )


def is_waiting(connection: sqlite3.Connection, turn_id: int) -> bool:
    """Whether the turn is still to be distilled; it is marked again afterwards."""
    row = connection.execute(
        "SELECT 1 FROM pending_messages WHERE turn_id = ? AND status IN ('pending', 'processing')",
        (turn_id,),
    ).fetchone()
    return row is not None


def _record(
    connection: sqlite3.Connection, turn_id: int, redactor: Redactor
) -> Iterable[dict[str, Json]]:
    row = connection.execute(
        "SELECT * FROM turn_records WHERE turn_id = ? AND bytes <= ?", (turn_id, MAX_RECORD)
    ).fetchone()
    return [{"table": "turn_records", **_values(row, redactor)}] if row is not None else []


def _values(row: sqlite3.Row, redactor: Redactor) -> dict[str, Json]:
    return {
        name: _clean(name, row[name], redactor)
        for name in row.keys()  # noqa: SIM118 # a Row iterates over its values
        if name not in LOCAL_COLUMNS
    }


def _clean(name: str, value: Any, redactor: Redactor) -> Json:
    """What was stored by an older version may hold what is a secret by now."""
    if not isinstance(value, str) or name in IDENTITY:
        return None if isinstance(value, bytes) else value
    if name not in JSON_COLUMNS:
        return redactor.redact(value)
    inner = json.loads(value)
    redacted = redactor.redact_json(inner)
    return value if redacted == inner else json.dumps(redacted, ensure_ascii=False)

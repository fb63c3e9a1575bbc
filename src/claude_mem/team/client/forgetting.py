"""What was forgotten on another machine of the same user is forgotten here, too."""

import json
import sqlite3
from collections.abc import Sequence

from claude_mem.errors import BadInput
from claude_mem.store import Store
from claude_mem.store.forgetting import Selection


def forget_turns(store: Store, turn_ids: Sequence[int]) -> None:
    """Forgets turns with undo, as any forgetting does; an undo restores them everywhere."""
    selection = store.read(lambda c: _selection(c, turn_ids))
    preview = store.preview_forgetting(selection)
    if preview.is_empty:
        return
    try:
        store.forget(selection, preview.token).result()
    except BadInput:  # the turns have changed in between
        forget_turns(store, turn_ids)


def _selection(connection: sqlite3.Connection, turn_ids: Sequence[int]) -> Selection:
    def ids(table: str, column: str) -> tuple[int, ...]:
        rows = connection.execute(
            f"SELECT id FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))",
            (json.dumps(list(turn_ids)),),
        )
        return tuple(row[0] for row in rows)

    return Selection(
        observations=ids("observations", "turn_id"),
        summaries=ids("session_summaries", "turn_id"),
        prompts=ids("user_prompts", "id"),
    )

"""What forgetting does to facts: turns leave their sources, and those without a source go too."""

import json
from collections.abc import Sequence

from claude_mem.store.trash import Trash


def forget_facts(trash: Trash, turn_ids: Sequence[int]) -> None:
    connection, turns = trash.connection, json.dumps(list(turn_ids))
    ids = [row[0] for row in connection.execute(_ONLY_FROM, (turns,))]
    # Undo restores the links between facts after the facts: they may point at each other.
    links = connection.execute(
        "SELECT id, superseded_by FROM facts WHERE superseded_by IS NOT NULL AND"
        " (id IN (SELECT value FROM json_each(?1))"
        " OR superseded_by IN (SELECT value FROM json_each(?1)))",
        (json.dumps(ids),),
    ).fetchall()
    connection.executemany(
        "UPDATE facts SET superseded_by = NULL, status = 'holds' WHERE id = ? AND status = 'past'",
        [(link["id"],) for link in links],
    )
    trash.keep("facts", "id", ids)
    trash.keep("fact_sources", "turn_id", turn_ids)
    trash.put("facts", "changed", [dict(link) for link in links])
    connection.execute(
        "DELETE FROM fact_sources WHERE turn_id IN (SELECT value FROM json_each(?))", (turns,)
    )
    # Also those that the triggers keep: the user pinned them, or marked them as wrong.
    connection.executemany("DELETE FROM facts WHERE id = ?", [(fact,) for fact in ids])


_ONLY_FROM = (
    "SELECT DISTINCT fact_id FROM fact_sources s"
    " WHERE turn_id IN (SELECT value FROM json_each(?1))"
    " AND NOT EXISTS (SELECT 1 FROM fact_sources o WHERE o.fact_id = s.fact_id"
    " AND o.turn_id NOT IN (SELECT value FROM json_each(?1))) ORDER BY 1"
)

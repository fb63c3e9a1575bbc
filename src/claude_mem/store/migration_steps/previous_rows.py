"""What the index had of a turn, kept from the first change of the turn until it is indexed again.

The index holds no text of its own: to remove the words of a turn from full text, it needs the rows
they came from, which may have been changed or deleted by then. So the first change since a turn was
indexed stores its rows in `unindexed_turns`.

A released migration uses this, so it imports nothing that may change.
"""

_OBSERVATION = ("title", "subtitle", "narrative", "facts", "concepts", "files_read",
                "files_modified", "wrong")  # fmt: skip
_SUMMARY = ("request", "investigated", "learned", "completed", "next_steps", "notes", "commands",
            "faults", "files_read", "files_edited", "wrong")  # fmt: skip
_OF_MEMORIES = "type, project_id, turn_id, ordinal, prompt_number, created_at_epoch"
_OF_SUMMARIES = "open_steps, project_id, turn_id, prompt_number, created_at_epoch"
_COLUMNS = {
    "observations": f"{', '.join(_OBSERVATION)}, {_OF_MEMORIES}",
    "session_summaries": f"{', '.join(_SUMMARY)}, {_OF_SUMMARIES}",
    "user_prompts": "prompt_text, private, session_id, project_id, prompt_number, created_at_epoch",
    "turn_records": "turn_id, parts",
}


def _rows_of(table: str, columns: tuple[str, ...]) -> str:
    values = ", ".join(f"'{name}', {name}" for name in ("id", *columns))
    return (
        f"(SELECT json_group_array(json_object({values})) FROM"
        f" (SELECT * FROM {table} WHERE turn_id = t.id ORDER BY id))"
    )


def _keep(turn: str) -> str:
    return (
        "INSERT INTO unindexed_turns (turn_id, rows) SELECT t.id, json_object("
        "'prompt_text', t.prompt_text, 'private', t.private,"
        " 'record', (SELECT parts FROM turn_records WHERE turn_id = t.id),"
        f" 'observations', {_rows_of('observations', _OBSERVATION)},"
        f" 'summaries', {_rows_of('session_summaries', _SUMMARY)})"
        f" FROM user_prompts t WHERE t.id = {turn}"
        f" AND NOT EXISTS (SELECT 1 FROM unindexed WHERE document = {turn} * 4 + 3)"
        f" AND NOT EXISTS (SELECT 1 FROM unindexed_turns WHERE turn_id = {turn});"
    )


def _triggers(table: str, columns: str) -> list[str]:
    turn = "id" if table == "user_prompts" else "turn_id"
    events = [(f"UPDATE OF {columns}", "update", ("OLD", "NEW")), ("DELETE", "delete", ("OLD",))]
    if table != "user_prompts":  # a new turn is not in the index
        events.append(("INSERT", "insert", ("NEW",)))
    return [
        f"CREATE TRIGGER {table}_keep_on_{name} BEFORE {event} ON {table} BEGIN"
        f" {' '.join(_keep(f'{row}.{turn}') for row in rows)} END"
        for event, name, rows in events
    ]


def _mark_both_turns(table: str, columns: str) -> list[str]:
    """As before, with all columns that passages have; a memory may move to another turn."""
    turns = " UNION ".join(f"SELECT {row}.turn_id * 4 + 3" for row in ("OLD", "NEW"))
    return [
        f"DROP TRIGGER {table}_change_turn",
        f"CREATE TRIGGER {table}_change_turn AFTER UPDATE OF {columns} ON {table} BEGIN"
        f" INSERT INTO unindexed (document) {turns}; END",
    ]


STATEMENTS = (
    "CREATE TABLE unindexed_turns (turn_id INTEGER PRIMARY KEY, rows TEXT NOT NULL)",
    *(sql for table, columns in _COLUMNS.items() for sql in _triggers(table, columns)),
    "DROP TRIGGER observations_wrong",
    "DROP TRIGGER session_summaries_wrong",
    *(
        sql
        for table, columns in _COLUMNS.items()
        if table != "user_prompts"
        for sql in _mark_both_turns(table, columns)
    ),
)

"""Which turn a message belongs to: the one that started the background task it reports on."""

import sqlite3

from claude_mem.types import ClientMessage

BACKGROUND_TOOLS = ("Agent", "Task", "Monitor", "Workflow")
IN_BACKGROUND_FIELD = "run_in_background"
IN_BACKGROUND = f'"{IN_BACKGROUND_FIELD}": true'


def find_parent(
    connection: sqlite3.Connection, session_id: int, number: int, message: ClientMessage
) -> int | None:
    """Finds the turn by the call that started the task, by the task's id in its result, else the
    latest turn that started one."""
    return (
        _by_call(connection, session_id, number, message.tool_use_id)
        or _by_task(connection, session_id, number, message.task_id)
        or _latest_start(connection, session_id, number)
    )


_TURNS = (
    "SELECT t.id FROM tool_events e JOIN user_prompts t ON t.id = e.turn_id"
    " WHERE e.session_id = ? AND t.prompt_number < ?"
)


def _by_call(
    connection: sqlite3.Connection, session_id: int, number: int, tool_use_id: str | None
) -> int | None:
    return _first(
        connection, f"{_TURNS} AND e.tool_use_id = ? LIMIT 1", (session_id, number, tool_use_id)
    )


def _by_task(
    connection: sqlite3.Connection, session_id: int, number: int, task_id: str | None
) -> int | None:
    return _first(
        connection,
        f"{_TURNS} AND instr(e.tool_response, ?) > 0 ORDER BY e.id LIMIT 1",
        (session_id, number, task_id),
    )


def _latest_start(connection: sqlite3.Connection, session_id: int, number: int) -> int | None:
    places = ", ".join("?" * len(BACKGROUND_TOOLS))
    return _first(
        connection,
        f"{_TURNS} AND (e.tool_name IN ({places}) OR instr(e.tool_input, ?) > 0)"
        " ORDER BY t.prompt_number DESC LIMIT 1",
        (session_id, number, *BACKGROUND_TOOLS, IN_BACKGROUND),
    )


def _first(connection: sqlite3.Connection, query: str, values: tuple[object, ...]) -> int | None:
    row = connection.execute(query, values).fetchone() if None not in values else None
    return int(row[0]) if row is not None else None

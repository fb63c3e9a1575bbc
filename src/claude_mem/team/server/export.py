"""What a person may read, as an export that `claude-mem import` takes."""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from claude_mem.store.migrations import MIGRATIONS
from claude_mem.store.transfer.export import FORMAT, VERSION
from claude_mem.team.server.projects import TeamProject

if TYPE_CHECKING:
    from claude_mem.team.server.database import Connection

CHUNK = 500


def export(
    connection: "Connection", projects: Iterable[TeamProject], *, own: bool
) -> Iterator[bytes]:
    """Line by line. `own`: only what this person recorded.

    Within a table the rows of all projects come together, as in every export.
    """
    schema = [name for name, _ in MIGRATIONS]
    yield _line({"format": FORMAT, "version": VERSION, "schema": schema})
    count = 0
    by_id = {project.id: number for number, project in enumerate(projects, 1)}
    for row in _rows(connection, list(projects), by_id, own):
        yield _line(row)
        count += 1
    yield _line({"records": count})


def _rows(
    connection: "Connection", projects: list[TeamProject], numbers: dict[int, int], own: bool
) -> Iterator[dict[str, Any]]:
    for project in projects:
        yield {"table": "projects", "id": numbers[project.id], "key": project.key,
               "name": project.name}  # fmt: skip
    mine = " AND person_id = person()" if own else ""
    sessions: dict[tuple[int, int], int] = {}
    rows = connection.execute(
        "SELECT project_id, id, content FROM sessions"
        f" WHERE project_id = ANY (%s){mine} ORDER BY project_id, id",
        (list(numbers),),
    )
    for number, (project_id, session_id, content) in enumerate(rows, 1):
        sessions[project_id, session_id] = number
        yield {"table": "sdk_sessions", "id": number, "project_id": numbers[project_id],
               "project_dir": "", **json.loads(content)}  # fmt: skip
    turns = list(_turns(connection, sessions, numbers, mine))
    for table in ("user_prompts", "session_summaries", "observations", "turn_records"):
        identity = 0
        for turn_number, session, project_number, content in turns:
            for row in json.loads(content):
                if row["table"] != table:
                    continue
                identity += 1
                place = _place(table, identity, turn_number, session, project_number)
                yield {**row, **place}


def _turns(
    connection: "Connection",
    sessions: dict[tuple[int, int], int],
    numbers: dict[int, int],
    mine: str,
) -> Iterator[tuple[int, int, int, str]]:
    rows = connection.execute(
        "SELECT project_id, session_id, content FROM turns"
        f" WHERE project_id = ANY (%s){mine} ORDER BY project_id, session_id, number, id",
        (list(numbers),),
    )
    for number, (project_id, session_id, content) in enumerate(rows, 1):
        yield number, sessions[project_id, session_id], numbers[project_id], content


def _place(table: str, identity: int, turn: int, session: int, project: int) -> dict[str, int]:
    if table == "user_prompts":
        return {"id": turn, "session_id": session, "project_id": project}
    if table == "turn_records":
        return {"turn_id": turn}
    return {"id": identity, "turn_id": turn, "project_id": project}


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

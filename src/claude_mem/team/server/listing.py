"""Turns as others see them: with their project, and whose memory they are."""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from claude_mem.errors import NotFound
from claude_mem.types import Json

if TYPE_CHECKING:
    from claude_mem.team.server.database import Connection

MAX_TURNS = 50  # in full
MAX_DEPTH = 50
MAX_RECENT = 40

_SELECT = (
    "SELECT t.project_id, t.id, t.uid, t.created_at_epoch, t.type, t.title, t.size,"
    " pr.name, pr.key, pe.name, t.person_id = person(), t.session_id FROM turns t"
    " JOIN projects pr ON pr.id = t.project_id JOIN people pe ON pe.id = t.person_id"
)


def record(row: Sequence[object]) -> dict[str, Json]:
    names = ("project_id", "id", "uid", "created_at_epoch", "type", "title", "size", "project",
             "project_key", "owner", "is_own", "session_id")  # fmt: skip
    return dict(zip(names, row, strict=True))  # type: ignore[arg-type]


def turn_records(
    connection: "Connection", keys: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], dict[str, Json]]:
    rows = connection.execute(
        f"{_SELECT} WHERE (t.project_id, t.id) IN"
        " (SELECT * FROM unnest(%s::bigint[], %s::bigint[]))",
        ([key[0] for key in keys], [key[1] for key in keys]),
    )
    return {(row[0], row[1]): record(row) for row in rows}


def newest(
    connection: "Connection",
    projects: Iterable[int],
    limit: int,
    since: int | None = None,
    until: int | None = None,
) -> list[dict[str, Json]]:
    rows = connection.execute(
        f"{_SELECT} WHERE t.project_id = ANY (%s)"
        " AND (%s::bigint IS NULL OR t.created_at_epoch >= %s)"
        " AND (%s::bigint IS NULL OR t.created_at_epoch < %s)"
        " ORDER BY t.created_at_epoch DESC, t.id DESC LIMIT %s",
        (list(projects), since, since, until, until, limit),
    )
    return [record(row) for row in rows]


def around(
    connection: "Connection", projects: Iterable[int], moment: int, before: int, after: int
) -> list[dict[str, Json]]:
    """The turns before and after a moment, oldest first."""
    select = f"{_SELECT} WHERE t.project_id = ANY (%s) AND t.created_at_epoch"
    ids = list(projects)
    earlier = connection.execute(
        f"{select} < %s ORDER BY t.created_at_epoch DESC, t.id DESC LIMIT %s",
        (ids, moment, before),
    ).fetchall()
    later = connection.execute(
        f"{select} >= %s ORDER BY t.created_at_epoch, t.id LIMIT %s", (ids, moment, after)
    ).fetchall()
    return [record(row) for row in (*reversed(earlier), *later)]


def find(connection: "Connection", turn_id: int) -> dict[str, Json]:
    """Finds a turn by id, unique in practice; a turn of other projects does not exist."""
    row = connection.execute(
        f"{_SELECT} WHERE t.project_id IN (SELECT readable()) AND t.id = %s LIMIT 1", (turn_id,)
    ).fetchone()
    if row is None:
        raise NotFound(f"there is no memory T{turn_id}")
    return record(row)


def full(connection: "Connection", ids: Sequence[int]) -> list[dict[str, Json]]:
    """Returns the turns that exist, with all their rows, in the order of the ids."""
    rows = connection.execute(
        f"{_SELECT.replace(' FROM turns', ', t.content FROM turns', 1)}"
        " WHERE t.project_id IN (SELECT readable()) AND t.id = ANY (%s)",
        (list(ids)[:MAX_TURNS],),
    )
    turns = {row[1]: {**record(row[:-1]), "rows": json.loads(row[-1])} for row in rows}
    return [turns[turn_id] for turn_id in ids if turn_id in turns]


def recent_of_others(
    connection: "Connection", projects: Iterable[int], limit: int
) -> list[dict[str, Json]]:
    """Returns, for contexts, the newest turns with an observation or a summary. Those that the
    person recorded elsewhere are included: the client leaves out what it has itself."""
    rows = connection.execute(
        f"{_SELECT} WHERE t.project_id = ANY (%s) AND t.type <> 'prompt'"
        " ORDER BY t.created_at_epoch DESC, t.id DESC LIMIT %s",
        (list(projects), min(limit, MAX_RECENT)),
    )
    return [record(row) for row in rows]


def tombstones(connection: "Connection", since: str | None, limit: int = 1_000) -> dict[str, Json]:
    """The person's own, the oldest first. `next` continues the list; `resume` is where a later
    list begins: earlier, since a transaction that was slow to commit may come in between."""
    rows = connection.execute(
        "SELECT project_id, uid, at_epoch, received_at::text,"
        " (received_at - interval '10 minutes')::text FROM tombstones"
        " WHERE person_id = person() AND (%s::timestamptz IS NULL OR received_at > %s::timestamptz)"
        " ORDER BY received_at, uid LIMIT %s",
        (since, since, limit),
    ).fetchall()
    return {
        "tombstones": [{"project_id": r[0], "uid": r[1], "at_epoch": r[2]} for r in rows],
        "next": rows[-1][3] if len(rows) == limit else None,
        "resume": rows[-1][4] if rows else since,
    }

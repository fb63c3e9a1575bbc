"""What the server has for this machine: the newest turns of others, and what was forgotten."""

import asyncio
import sqlite3
from collections.abc import Iterable
from typing import Any

from claude_mem.store import Store
from claude_mem.store.projects import ensure_project
from claude_mem.team.client import outbox
from claude_mem.team.client.facts import fetch_facts
from claude_mem.team.client.forgetting import forget_turns
from claude_mem.team.client.membership import Membership
from claude_mem.team.client.remote import ask
from claude_mem.types import Project

RECENT = 20  # turns of a project, for its context
_RESUME = "tombstones"


async def fetch_tombstones(store: Store, membership: Membership) -> None:
    since = store.read(lambda c: outbox.get_state(c, _RESUME))
    while True:
        answer = await ask(membership, "tombstones", {"since": since} if since else {})
        uids = [str(entry["uid"]) for entry in answer["tombstones"]]
        await asyncio.to_thread(_forget, store, uids)
        if answer["next"] is None:
            break
        since = str(answer["next"])
    if answer["resume"]:
        resume = str(answer["resume"])
        await asyncio.wrap_future(store.write(lambda c: outbox.set_state(c, _RESUME, resume)))


def _forget(store: Store, uids: list[str]) -> None:
    def stored(connection: sqlite3.Connection) -> list[int]:
        local = outbox.local_turns(connection, uids, states=("sent", "stored"))
        return list(local.values())

    turns = store.read(stored)
    if turns:
        forget_turns(store, turns)


async def fetch_recent(store: Store, membership: Membership) -> list[Project]:
    """The projects of which others did something new."""
    me = await ask(membership, "me", {})
    changed: list[Project] = []
    for shared in me["projects"]:
        project = Project(str(shared["key"]), str(shared["name"]))
        body: dict[str, Any] = {"projects": [shared["id"]], "limit": 2 * RECENT}
        rows = (await ask(membership, "recent", body))["results"]
        work = store.write(lambda c, p=project, r=rows: _replace_recent(c, p, r))  # type: ignore[misc]
        if await asyncio.wrap_future(work):
            changed.append(project)
    changed += await fetch_facts(store, membership, me["projects"])
    return list(dict.fromkeys(changed))


def _replace_recent(
    connection: sqlite3.Connection, project: Project, rows: Iterable[dict[str, Any]]
) -> bool:
    """Whether anything changed. What this machine has itself is left out."""
    rows = list(rows)
    local = outbox.local_turns(connection, [str(row["uid"]) for row in rows])
    others = [row for row in rows if row["uid"] not in local][:RECENT]
    project_id = ensure_project(connection, project)
    entries = [
        (project_id, place, int(row["id"]), int(row["created_at_epoch"]), str(row["owner"]),
         str(row["type"]), str(row["title"]))
        for place, row in enumerate(others)
    ]  # fmt: skip
    previous = connection.execute(
        "SELECT project_id, place, team_turn, created_at_epoch, owner, type, title"
        " FROM team_recent WHERE project_id = ? ORDER BY place",
        (project_id,),
    ).fetchall()
    if [tuple(row) for row in previous] == entries:
        return False
    connection.execute("DELETE FROM team_recent WHERE project_id = ?", (project_id,))
    connection.executemany("INSERT INTO team_recent VALUES (?, ?, ?, ?, ?, ?, ?)", entries)
    return True

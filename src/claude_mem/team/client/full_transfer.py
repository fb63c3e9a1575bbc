"""Everything at once: all turns to the server with a check of what arrived, and all of it back."""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from claude_mem.errors import RequestFailed
from claude_mem.http_client import open_client
from claude_mem.redaction import Redactor
from claude_mem.store import Store
from claude_mem.store.clock import now_ms
from claude_mem.team.client import outbox
from claude_mem.team.client.facts import push_facts
from claude_mem.team.client.membership import Membership
from claude_mem.team.client.outbox import SharedProject
from claude_mem.team.client.outgoing_turns import is_waiting, load_turn
from claude_mem.team.client.pushing import Pusher
from claude_mem.team.client.remote import ask
from claude_mem.team.wire import digest_of

CHECKED = 10_000  # turns that are compared with a request

Write = Callable[[bytes], object]


@dataclass(frozen=True, slots=True)
class Check:
    """The check of a project: what was sent, and what the server says that it holds of it."""

    key: str
    turns: int
    turns_there: int
    is_same: bool  # every turn that was sent is there, with the same hash
    refused: int  # turns that the server did not take


def push_everything(
    store: Store,
    membership: Membership,
    redactor: Redactor,
    progress: Callable[[int], None],
) -> list[Check]:
    """Sends everything; this can be interrupted and repeated: what arrived is not stored twice."""
    shared = store.read(outbox.shared_projects)
    for project in shared:
        store.write(lambda c, p=project: outbox.mark_all(c, p)).result()  # type: ignore[misc]

    async def run() -> list[Check]:
        pusher = Pusher(store, membership, redactor, now_ms)
        await pusher.push_all(progress)
        await push_facts(store, membership, redactor, now_ms)
        return [await _check(store, membership, redactor, project) for project in shared]

    return asyncio.run(run())


async def _check(
    store: Store, membership: Membership, redactor: Redactor, project: SharedProject
) -> Check:
    pairs = await asyncio.to_thread(_pairs, store, redactor, project)
    turns_there, is_same = 0, True
    for first in range(0, len(pairs), CHECKED):
        batch = pairs[first : first + CHECKED]
        body: dict[str, Any] = {"project": project.team_id, "uids": [uid for uid, _ in batch]}
        answer = await ask(membership, "digest", body)
        turns_there += int(answer["turns"])
        is_same = is_same and answer["digest"] == digest_of(batch)
    refused = store.read(lambda c: outbox.count_refused(c, project.team_id))
    return Check(project.key, len(pairs), turns_there, is_same, refused)


def _pairs(store: Store, redactor: Redactor, project: SharedProject) -> list[tuple[str, str]]:
    def work(connection: sqlite3.Connection) -> list[tuple[str, str]]:
        rows = connection.execute(
            "SELECT t.id FROM user_prompts t JOIN projects p ON p.id = t.project_id"
            " JOIN team_turns s ON s.turn_id = t.id AND s.state = 'stored' WHERE p.key = ?",
            (project.key,),
        ).fetchall()
        items = (
            load_turn(connection, row[0], redactor, with_record=project.shares_record)
            for row in rows
            if not is_waiting(connection, row[0])
        )
        return [(item.uid, item.hash) for item in items if item is not None]

    return store.read(work)


def export_from_server(
    membership: Membership, write: Write, *, project_key: str | None, own: bool
) -> int:
    """Returns the number of records. Raises RequestFailed if the export is not complete."""
    return asyncio.run(_export(membership, write, project_key, own))


async def _export(membership: Membership, write: Write, project_key: str | None, own: bool) -> int:
    import httpx

    body = {"own": own, **({"project_key": project_key} if project_key else {})}
    headers = {"authorization": f"Bearer {membership.token}"}
    last = b""
    try:
        async with (
            open_client(membership.url) as client,
            client.stream(
                "POST", f"{membership.url}/v1/export", headers=headers, json=body
            ) as response,
        ):
            if response.status_code != 200:
                raise RequestFailed(f"the team server: status {response.status_code}")
            async for chunk in response.aiter_bytes():
                write(chunk)
                last = (last + chunk)[-4_096:]
    except httpx.HTTPError as error:
        raise RequestFailed(f"the export was interrupted ({type(error).__name__})") from None
    return _records(last)


def _records(end: bytes) -> int:
    try:
        value = json.loads(end.rstrip(b"\n").rpartition(b"\n")[2])
        return int(value["records"])
    except (ValueError, KeyError, TypeError):
        raise RequestFailed("the export is not complete") from None

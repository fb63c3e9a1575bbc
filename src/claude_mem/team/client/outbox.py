"""The durable outbox: which turns the server has to hear of, and what became of them.

A turn is named in `team_turns` before it is sent for the first time: whichever process dies, what
the server may have is known here, and can be deleted there. An entry leaves the outbox only after
the server's answer, and only if the turn did not change meanwhile.
"""

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from claude_mem.redaction import Redactor
from claude_mem.team.client.outgoing_turns import is_waiting, load_turn
from claude_mem.team.wire import Item, Tombstone, TurnItem

MAX_BATCH_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SharedProject:
    key: str
    team_id: int
    shares_record: bool


@dataclass(frozen=True, slots=True)
class Pending:
    """An item for a project of the server, and the entry of the outbox that it answers."""

    entry: int
    turn_id: int
    team_id: int
    item: Item


def shared_projects(connection: sqlite3.Connection) -> list[SharedProject]:
    rows = connection.execute("SELECT * FROM team_projects ORDER BY project_key")
    return [SharedProject(r["project_key"], r["team_id"], bool(r["shares_record"])) for r in rows]


def share(connection: sqlite3.Connection, project: SharedProject, *, with_past: bool) -> int:
    """How many turns wait for it."""
    connection.execute(
        "INSERT OR REPLACE INTO team_projects VALUES (?, ?, ?)",
        (project.key, project.team_id, project.shares_record),
    )
    return mark_all(connection, project) if with_past else 0


def mark_all(connection: sqlite3.Connection, project: SharedProject) -> int:
    """Marks all turns of a project, in the order in which they happened."""
    return connection.execute(
        "INSERT OR IGNORE INTO team_outbox (turn_id, changed_at_epoch) SELECT t.id, 0"
        " FROM user_prompts t JOIN projects p ON p.id = t.project_id WHERE p.key = ? ORDER BY t.id",
        (project.key,),
    ).rowcount


def leave(connection: sqlite3.Connection) -> None:
    for table in (
        "team_projects",
        "team_outbox",
        "team_turns",
        "team_state",
        "team_recent",
        "team_facts",
        "team_recent_facts",
    ):
        connection.execute(f"DELETE FROM {table}")


def waiting(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM team_outbox").fetchone()[0])


def claim(
    connection: sqlite3.Connection, redactor: Redactor, limit: int, now_ms: int
) -> list[Pending]:
    """The oldest entries as items; entries that need none are deleted."""
    shared = {project.key: project for project in shared_projects(connection)}
    pending: list[Pending] = []
    size = 0
    entries = connection.execute(
        "SELECT id, turn_id, changed_at_epoch FROM team_outbox ORDER BY id LIMIT ?", (limit,)
    ).fetchall()
    for entry, turn_id, changed_ms in entries:
        items = list(_items(connection, turn_id, changed_ms, shared, redactor, now_ms))
        size += sum(_size(item) for _, item in items)
        if pending and size > MAX_BATCH_BYTES:
            break
        if not items:
            connection.execute("DELETE FROM team_outbox WHERE id = ?", (entry,))
        pending += [Pending(entry, turn_id, team_id, item) for team_id, item in items]
    return pending


def _items(
    connection: sqlite3.Connection,
    turn_id: int,
    changed_ms: int,
    shared: Mapping[str, SharedProject],
    redactor: Redactor,
    now_ms: int,
) -> Iterable[tuple[int, Item]]:
    """Makes the item for the project of the turn, and a tombstone for the one it was in before."""
    sent = connection.execute("SELECT * FROM team_turns WHERE turn_id = ?", (turn_id,)).fetchone()
    project = _project_of(connection, turn_id, shared)
    if project is not None and is_waiting(connection, turn_id):
        return
    item = None
    if project is not None:
        item = load_turn(
            connection, turn_id, redactor, with_record=project.shares_record, changed_ms=changed_ms
        )
    is_there = sent is not None and sent["state"] in ("sent", "stored")
    if is_there and (item is None or project is None or project.team_id != sent["team_id"]):
        yield sent["team_id"], Tombstone(sent["uid"], now_ms)
        if item is None:
            return
    if item is not None and project is not None:
        is_restored = sent is not None and sent["state"] == "forgotten"
        connection.execute(
            "INSERT OR REPLACE INTO team_turns (turn_id, uid, team_id, state)"
            " VALUES (?, ?, ?, 'sent')",
            (turn_id, item.uid, project.team_id),
        )
        yield project.team_id, replace(item, is_restored=True) if is_restored else item


def _project_of(
    connection: sqlite3.Connection, turn_id: int, shared: Mapping[str, SharedProject]
) -> SharedProject | None:
    row = connection.execute(
        "SELECT p.key FROM user_prompts t JOIN projects p ON p.id = t.project_id WHERE t.id = ?",
        (turn_id,),
    ).fetchone()
    return shared.get(row[0]) if row is not None else None


def _size(item: Item) -> int:
    return len(json.dumps(item.as_json())) if isinstance(item, TurnItem) else 100


@dataclass(frozen=True, slots=True)
class PushAnswer:
    pending: Pending
    outcome: str
    reason: str | None = None  # of a refusal


def acknowledge(
    connection: sqlite3.Connection, answers: Sequence[PushAnswer], unanswered: Collection[int] = ()
) -> None:
    """An entry that a change has replaced meanwhile stays: the change is still to be sent. So do
    `unanswered` entries, of which only some items were."""
    for answer in answers:
        pending = answer.pending
        connection.execute(
            "UPDATE team_turns SET state = ?, reason = ?"
            " WHERE turn_id = ? AND uid = ? AND team_id = ?",
            (_state(answer), answer.reason, pending.turn_id, pending.item.uid, pending.team_id),
        )
        if pending.entry not in unanswered:
            connection.execute("DELETE FROM team_outbox WHERE id = ?", (pending.entry,))


def _state(answer: PushAnswer) -> str:
    if isinstance(answer.pending.item, Tombstone) or answer.outcome == "forgotten":
        return "forgotten"
    return "refused" if answer.outcome == "refused" else "stored"


def local_turns(
    connection: sqlite3.Connection,
    uids: Iterable[str],
    states: Sequence[str] = ("sent", "stored", "refused", "forgotten"),
) -> dict[str, int]:
    """Returns, of these turns of the server, those that this machine has itself, by uid."""
    rows = connection.execute(
        "SELECT uid, turn_id FROM team_turns s WHERE uid IN (SELECT value FROM json_each(?))"
        " AND state IN (SELECT value FROM json_each(?))"
        " AND EXISTS (SELECT 1 FROM user_prompts t WHERE t.id = s.turn_id)",
        (json.dumps(list(uids)), json.dumps(states)),
    )
    return dict(rows)


def counts(connection: sqlite3.Connection) -> dict[str, int]:
    """Counts the turns by what became of them."""
    rows = connection.execute("SELECT state, count(*) FROM team_turns GROUP BY state")
    return dict(rows)


def count_refused(connection: sqlite3.Connection, team_id: int) -> int:
    """Turns that are here, and that the server did not take."""
    row = connection.execute(
        "SELECT count(*) FROM team_turns s WHERE team_id = ? AND state = 'refused'"
        " AND EXISTS (SELECT 1 FROM user_prompts t WHERE t.id = s.turn_id)",
        (team_id,),
    ).fetchone()
    return int(row[0])


def last_refusal(connection: sqlite3.Connection) -> str | None:
    row = connection.execute(
        "SELECT reason FROM team_turns WHERE state = 'refused' ORDER BY turn_id DESC LIMIT 1"
    ).fetchone()
    return row[0] if row is not None else None


def get_state(connection: sqlite3.Connection, name: str) -> str | None:
    row = connection.execute("SELECT value FROM team_state WHERE name = ?", (name,)).fetchone()
    return row[0] if row is not None else None


def set_state(connection: sqlite3.Connection, name: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO team_state VALUES (?, ?)", (name, value))

"""Facts of shared projects that hold: what is sent, what is ended, and those of others.

There is no outbox for them: what holds here is compared with what the server has been sent, so that
any push can be repeated. A fact is shared only if a turn that it comes from is.
"""

import asyncio
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from claude_mem.errors import NotFound
from claude_mem.redaction import Redactor
from claude_mem.store import Store
from claude_mem.store.clock import Clock
from claude_mem.store.projects import ensure_project
from claude_mem.team.client.membership import Membership
from claude_mem.team.client.outbox import SharedProject, shared_projects
from claude_mem.team.client.remote import ask
from claude_mem.team.wire import FACT_KINDS, MAX_FACTS, MAX_SOURCES, FactItem, Tombstone
from claude_mem.types import Project

BATCH = 100
ENDED = ""  # instead of a hash
RECENT = 100  # facts of others that are kept for contexts and lists

Change = FactItem | Tombstone


@dataclass(frozen=True, slots=True)
class _Changes:
    team_id: int
    items: Sequence[Change]


async def push_facts(store: Store, membership: Membership, redactor: Redactor, clock: Clock) -> int:
    """Returns how many items were sent. Raises what `ask` raises."""
    count = 0
    for changes in store.read(lambda c: _changes(c, redactor, clock())):
        for first in range(0, len(changes.items), BATCH):
            batch = changes.items[first : first + BATCH]
            body: dict[str, Any] = {
                "project": changes.team_id,
                "items": [item.as_json() for item in batch],
            }
            results = (await ask(membership, "push", body))["results"]
            answers = list(zip(batch, (str(r["outcome"]) for r in results), strict=True))
            work = store.write(lambda c, t=changes.team_id, a=answers: _remember(c, t, a))  # type: ignore[misc]
            await asyncio.wrap_future(work)
            count += len(batch)
    return count


def _changes(connection: sqlite3.Connection, redactor: Redactor, now_ms: int) -> list[_Changes]:
    return [
        _Changes(project.team_id, items)
        for project in shared_projects(connection)
        if (items := _changes_of(connection, project, redactor, now_ms))
    ]


def _changes_of(
    connection: sqlite3.Connection, project: SharedProject, redactor: Redactor, now_ms: int
) -> list[Change]:
    sent = dict(
        connection.execute(
            "SELECT uid, hash FROM team_facts WHERE team_id = ?", (project.team_id,)
        ).fetchall()
    )
    current = {item.uid: item for item in _holding(connection, project, redactor)}
    ended = [uid for uid, hash_ in sent.items() if hash_ != ENDED and uid not in current]
    return [
        *(Tombstone(uid, now_ms) for uid in ended),
        *(
            replace(item, is_restored=sent.get(uid) == ENDED)
            for uid, item in current.items()
            if sent.get(uid) != item.hash
        ),
    ]


def _holding(
    connection: sqlite3.Connection, project: SharedProject, redactor: Redactor
) -> Iterable[FactItem]:
    rows = connection.execute(
        "SELECT f.kind, f.subject, f.value, f.scope, f.origin, f.last_seen_epoch, f.id"
        " FROM facts f JOIN projects p ON p.id = f.project_id"
        " WHERE p.key = ? AND f.status = 'holds'"
        f" AND f.kind IN ({', '.join('?' * len(FACT_KINDS))})"
        " AND NOT (f.kind = 'fault' AND f.subject = '')"  # told by a sentence about this machine
        " AND EXISTS (SELECT 1 FROM fact_sources s JOIN team_turns t ON t.turn_id = s.turn_id"
        " WHERE s.fact_id = f.id AND t.team_id = ? AND t.state IN ('sent', 'stored'))"
        " ORDER BY f.last_seen_epoch DESC, f.id LIMIT ?",
        (project.key, *FACT_KINDS, project.team_id, MAX_FACTS),
    )
    for kind, subject, value, scope, origin, version, fact_id in rows.fetchall():
        yield FactItem(
            kind,
            redactor.redact(subject),
            redactor.redact(value),
            redactor.redact(scope),
            origin,
            version,
            sources=_sources(connection, fact_id, project.team_id),
        )


def _sources(connection: sqlite3.Connection, fact_id: int, team_id: int) -> tuple[str, ...]:
    """The latest turns that it comes from, of those that are shared."""
    rows = connection.execute(
        "SELECT DISTINCT t.uid FROM fact_sources s JOIN team_turns t ON t.turn_id = s.turn_id"
        " WHERE s.fact_id = ? AND t.team_id = ? AND t.state IN ('sent', 'stored')"
        " ORDER BY s.seen_at_epoch DESC, t.uid LIMIT ?",
        (fact_id, team_id, MAX_SOURCES),
    )
    return tuple(sorted(row[0] for row in rows))


def _remember(
    connection: sqlite3.Connection, team_id: int, answers: Iterable[tuple[Change, str]]
) -> None:
    """What the server refused is sent again later, perhaps to a newer one."""
    for item, outcome in answers:
        if outcome != "refused":
            connection.execute(
                "INSERT OR REPLACE INTO team_facts VALUES (?, ?, ?)",
                (team_id, item.uid, item.hash if isinstance(item, FactItem) else ENDED),
            )


async def fetch_facts(
    store: Store, membership: Membership, shared: Iterable[Mapping[str, Any]]
) -> list[Project]:
    """Fetches the facts of these projects of the server; returns the projects of which facts of
    others changed."""
    changed: list[Project] = []
    for project_there in shared:
        project = Project(str(project_there["key"]), str(project_there["name"]))
        try:
            answer = await ask(membership, "facts", {"projects": [project_there["id"]]})
        except NotFound:  # an older server
            return []
        rows = answer["facts"]
        work = store.write(lambda c, p=project, r=rows: _replace_recent(c, p, r))  # type: ignore[misc]
        if await asyncio.wrap_future(work):
            changed.append(project)
    return changed


def _replace_recent(
    connection: sqlite3.Connection, project: Project, rows: Sequence[Mapping[str, Any]]
) -> bool:
    """Whether anything changed. What holds on this machine, too, is left out."""
    project_id = ensure_project(connection, project)
    own = {
        tuple(row)
        for row in connection.execute(
            "SELECT kind, subject, value, scope FROM facts WHERE project_id = ?", (project_id,)
        )
    }
    facts = [
        (str(row["kind"]), str(row["subject"]), str(row["value"]), str(row["scope"]),
         str(row["origin"]), str(row["owner"]), int(row["is_own"]), int(row["last_seen_epoch"]))
        for row in rows
    ]  # fmt: skip
    others = [fact for fact in facts if not fact[6] or fact[:4] not in own][:RECENT]
    entries = [(project_id, place, *fact) for place, fact in enumerate(others)]
    previous = connection.execute(
        "SELECT * FROM team_recent_facts WHERE project_id = ? ORDER BY place", (project_id,)
    ).fetchall()
    if [tuple(row) for row in previous] == entries:
        return False
    connection.execute("DELETE FROM team_recent_facts WHERE project_id = ?", (project_id,))
    connection.executemany(
        "INSERT INTO team_recent_facts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", entries
    )
    return True

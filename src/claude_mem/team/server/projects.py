"""The projects of a team: who is a member, what is shared, and how much may be stored."""

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from claude_mem.errors import BadInput, ClaudeMemError, NotFound
from claude_mem.types import Json

if TYPE_CHECKING:
    from claude_mem.team.server.database import Connection

ID_BITS = 48  # random: consecutive ids would show how much other projects store
MAX_KEY, MAX_NAME = 1_000, 200


class QuotaExceeded(ClaudeMemError):
    """A project would hold more than its quota; nothing of the push was stored."""

    def __init__(self, name: str, quota: str, limit: int) -> None:
        super().__init__(
            f"the project {name} is full: its quota is {limit} {quota}."
            " An operator can raise it: claude-mem team quota"
        )
        self.quota, self.limit = quota, limit


@dataclass(frozen=True, slots=True)
class TeamProject:
    id: int
    key: str
    name: str
    role: str
    shares_record: bool
    turns: int
    bytes: int
    passages: int
    max_turns: int | None
    max_bytes: int | None

    def as_json(self) -> dict[str, Json]:
        return {
            "id": self.id, "key": self.key, "name": self.name, "role": self.role,
            "record": self.shares_record, "turns": self.turns, "bytes": self.bytes,
            "max_turns": self.max_turns, "max_bytes": self.max_bytes,
        }  # fmt: skip


def random_id() -> int:
    return secrets.randbits(ID_BITS) | 1 << ID_BITS - 1


def list_projects(connection: "Connection") -> list[TeamProject]:
    """Lists the projects of the person of the transaction."""
    rows = connection.execute(
        "SELECT p.id, p.key, p.name, m.role, p.shares_record, p.turns, p.bytes, p.passages,"
        " p.max_turns, p.max_bytes FROM projects p JOIN memberships m ON m.project_id = p.id"
        " WHERE m.person_id = person() ORDER BY p.name, p.id"
    )
    return [TeamProject(*row) for row in rows]


def get_project(connection: "Connection", project_id: int) -> TeamProject:
    for project in list_projects(connection):
        if project.id == project_id:
            return project
    raise NotFound("there is no such project")


def select_projects(
    connection: "Connection", *, key: str | None, ids: tuple[int, ...] = ()
) -> list[TeamProject]:
    """Selects the projects with this key or these ids, or all; those of others do not exist."""
    return [
        project
        for project in list_projects(connection)
        if (key is None or project.key == key) and (not ids or project.id in ids)
    ]


def share_project(connection: "Connection", key: str, name: str, with_record: bool) -> TeamProject:
    """The project with this key that the person is a member of; otherwise a new one.

    Others may share a project with the same key: whether they do is not revealed.
    """
    if not key or len(key) > MAX_KEY:
        raise BadInput(f"key must have 1 to {MAX_KEY} characters", "key")
    for project in list_projects(connection):
        if project.key == key and project.role != "reader":
            return project
    new_id = random_id()
    connection.execute(
        "SELECT create_project(%s, %s, %s, %s)",
        (new_id, key, (name or key)[:MAX_NAME], with_record),
    )
    return get_project(connection, new_id)


def count_changes(
    connection: "Connection", project_id: int, turns: int, size: int, passages: int
) -> None:
    """Counts changes, last in a transaction: the row stays locked. Raises QuotaExceeded."""
    row = connection.execute(
        "UPDATE projects SET turns = turns + %s, bytes = bytes + %s, passages = passages + %s"
        " WHERE id = %s RETURNING name, turns, max_turns, bytes, max_bytes",
        (turns, size, passages, project_id),
    ).fetchone()
    if row is None:
        raise NotFound("there is no such project")
    name, all_turns, max_turns, all_bytes, max_bytes = row
    if max_turns is not None and turns > 0 and all_turns > max_turns:
        raise QuotaExceeded(name, "turns", max_turns)
    if max_bytes is not None and size > 0 and all_bytes > max_bytes:
        raise QuotaExceeded(name, "bytes", max_bytes)


def list_members(connection: "Connection", project: TeamProject) -> list[dict[str, Json]]:
    rows = connection.execute(
        "SELECT p.id::text, p.name, m.role FROM memberships m JOIN people p ON p.id = m.person_id"
        " WHERE m.project_id = %s ORDER BY p.name, p.id",
        (project.id,),
    )
    return [{"id": row[0], "name": row[1], "role": row[2]} for row in rows]


def remove_member(connection: "Connection", project: TeamProject, person_id: str) -> None:
    """What they shared stays; a removed member reads nothing more."""
    cursor = connection.execute(
        "DELETE FROM memberships WHERE project_id = %s AND person_id::text = %s",
        (project.id, person_id),
    )
    if not cursor.rowcount:
        raise NotFound("there is no such member, or you do not administer the project")

"""What a person may read, as an export that `claude-mem import` takes.

The transaction must see a snapshot: turns are read once for each table, and numbered by their
order.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from claude_mem.store.migrations import current_names
from claude_mem.store.transfer.export import FORMAT, VERSION
from claude_mem.team.server.projects import TeamProject

if TYPE_CHECKING:
    from claude_mem.team.server.database import Connection

CHUNK = 500  # rows that are read at once
_SOURCE_OBSERVER = "local"

Row = dict[str, Any]


def export(
    connection: "Connection", projects: Sequence[TeamProject], *, own: bool
) -> Iterator[bytes]:
    """Writes the export line by line. `own`: only what this person recorded.

    Within a table the rows of all projects come together, as in every export.
    """
    yield _line({"format": FORMAT, "version": VERSION, "schema": current_names()})
    count = 0
    for row in _Export(connection, projects, own).rows():
        yield _line(row)
        count += 1
    yield _line({"records": count})


@dataclass(frozen=True, slots=True)
class _Fact:
    """A fact of a project, with the turns of all who state it."""

    row: Row
    turns: dict[int, int] = field(default_factory=dict)  # when each was recorded, by its number


class _Export:
    def __init__(
        self, connection: "Connection", projects: Sequence[TeamProject], own: bool
    ) -> None:
        self._connection, self._projects = connection, projects
        self._mine = " AND person_id = person()" if own else ""
        self._sessions: dict[tuple[int, int], int] = {}

    def rows(self) -> Iterator[Row]:
        for number, project in enumerate(self._projects, 1):
            yield {"table": "projects", "id": number, "key": project.key, "name": project.name}
        yield from self._session_rows()
        for table in ("user_prompts", "session_summaries", "observations", "turn_records"):
            yield from self._rows_of_turns(table)
        facts = self._facts()
        for number, fact in enumerate(facts, 1):
            yield {"table": "facts", "id": number, **fact.row, "count": len(fact.turns)}
        for number, fact in enumerate(facts, 1):
            for turn, at in sorted(fact.turns.items()):
                yield {"table": "fact_sources", "fact_id": number, "turn_id": turn,
                       "observer": _SOURCE_OBSERVER, "seen_at_epoch": at}  # fmt: skip

    def _session_rows(self) -> Iterator[Row]:
        for project_number, project in enumerate(self._projects, 1):
            for session_id, content in self._read(project, "sessions", "id, content", "id"):
                number = len(self._sessions) + 1
                self._sessions[project.id, session_id] = number
                yield {"table": "sdk_sessions", "id": number, "project_id": project_number,
                       "project_dir": "", **json.loads(content)}  # fmt: skip

    def _rows_of_turns(self, table: str) -> Iterator[Row]:
        identity = 0
        for turn, project_number, project, (session_id, content) in self._turns(
            "session_id, content"
        ):
            for row in json.loads(content):
                if row["table"] == table:
                    identity += 1
                    session = self._sessions[project.id, session_id]
                    yield {**row, **_place(table, identity, turn, session, project_number)}

    def _turns(self, columns: str) -> Iterator[tuple[int, int, TeamProject, Sequence[Any]]]:
        """The number of each turn, that of its project, the project, and these columns."""
        turn = 0
        for project_number, project in enumerate(self._projects, 1):
            for row in self._read(project, "turns", columns, "session_id, number, id"):
                turn += 1
                yield turn, project_number, project, row

    def _read(
        self, project: TeamProject, table: str, columns: str, order: str
    ) -> Iterator[Sequence[Any]]:
        with self._connection.cursor(name="export") as cursor:
            cursor.itersize = CHUNK
            yield from cursor.execute(
                f"SELECT {columns} FROM {table} WHERE project_id = %s{self._mine} ORDER BY {order}",
                (project.id,),
            )

    def _facts(self) -> list[_Fact]:
        """One that several people state comes once. A rule of others is a candidate here, as no
        rule of theirs becomes one of this person's by itself."""
        facts: dict[tuple[int, str], _Fact] = {}
        stated_by: dict[tuple[int, str, str], list[_Fact]] = {}  # by project, person and turn
        columns = ("person_id::text, person_id = person(), uid, sources, version, kind, subject,"
                   " value, scope, origin")  # fmt: skip
        for project_number, project in enumerate(self._projects, 1):
            order = "uid, person_id <> person(), version DESC, person_id"
            for row in self._read(project, "facts", columns, order):
                person, is_own, uid, sources, version, *values = row
                fact = facts.get((project.id, uid))
                if fact is None:
                    fact = _Fact(_fact_row(project_number, version, values, is_own=is_own))
                    facts[project.id, uid] = fact
                for turn_uid in json.loads(sources):
                    stated_by.setdefault((project.id, person, turn_uid), []).append(fact)
        if stated_by:
            for turn, _, project, (person, uid, at) in self._turns(
                "person_id::text, uid, created_at_epoch"
            ):
                for fact in stated_by.get((project.id, person, uid), ()):
                    fact.turns[turn] = at
        return list(facts.values())


def _fact_row(project: int, version: int, values: Sequence[str], *, is_own: bool) -> Row:
    kind, subject, value, scope, origin = values
    return {
        "project_id": project, "kind": kind, "subject": subject, "value": value, "scope": scope,
        "origin": origin, "status": "holds" if is_own or kind != "rule" else "candidate",
        "first_seen_epoch": version, "last_seen_epoch": version,
    }  # fmt: skip


def _place(table: str, identity: int, turn: int, session: int, project: int) -> dict[str, int]:
    if table == "user_prompts":
        return {"id": turn, "session_id": session, "project_id": project}
    if table == "turn_records":
        return {"turn_id": turn}
    return {"id": identity, "turn_id": turn, "project_id": project}


def _line(value: Row) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

"""Turns as the viewer shows them: pages of a feed, single turns, and the figures of a project.

The cost of a page does not grow with the database: it continues after a cursor, by an index.
"""

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from claude_mem.errors import NotFound
from claude_mem.store import facts, turn_records
from claude_mem.store.memory_rows import OUTSIDE, JsonRow, as_json_row
from claude_mem.store.projects import DISPLAY_NAME_SQL
from claude_mem.store.turns import load_turn
from claude_mem.types import Fact, ObservationType, RecordPart, Turn

T = TypeVar("T")
DAY_MS = 86_400_000
LATEST_OBSERVATIONS = 800  # of a project, in which touched files are counted

_TURNS = (
    "SELECT t.id, t.session_id AS session_db_id, t.project_id, t.prompt_number, t.prompt_text,"
    " t.notice, t.closed, t.retired, t.imported, t.parent_turn, t.created_at_epoch,"
    f" t.updated_at_epoch, {DISPLAY_NAME_SQL} AS project,"
    " s.content_session_id, s.title AS session_title,"
    " s.dialect, s.status AS session_status,"
    " (SELECT count(*) FROM tool_events e WHERE e.turn_id = t.id AND e.tool_name IS NOT NULL)"
    " AS tools, (SELECT status FROM pending_messages m WHERE m.turn_id = t.id) AS queued,"
    " (SELECT status FROM refinements r WHERE r.turn_id = t.id AND status <> 'kept') AS refining"
    " FROM user_prompts t JOIN sdk_sessions s ON s.id = t.session_id"
    " JOIN projects p ON p.id = t.project_id"
)
# A private turn has only a number.
_SHOWN_TURNS = "t.private = 0"


@dataclass(frozen=True, slots=True)
class TurnCursor:
    created_ms: int
    turn_id: int


@dataclass(frozen=True, slots=True)
class TurnQuery:
    project_id: int | None = None
    session_db_id: int | None = None
    type: ObservationType | None = None
    before: TurnCursor | None = None
    limit: int = 30


@dataclass(frozen=True, slots=True)
class TurnPage:
    """A turn with its memories."""

    turn: JsonRow
    observations: tuple[JsonRow, ...] = ()
    summary: JsonRow | None = None


@dataclass(frozen=True, slots=True)
class TurnStory:
    """Everything that is stored of a turn."""

    page: TurnPage
    record: tuple[RecordPart, ...]
    events: tuple[JsonRow, ...]
    sources: dict[str, tuple[int, ...]]  # events by memory: "12" or "S3"
    facts: tuple[Fact, ...]
    previous: int | None  # turns of the same session
    next: int | None
    reply: str | None  # of a model, where the memories do not hold all of it
    reason: str | None  # why no model revised the draft


def list_turns(
    connection: sqlite3.Connection, query: TurnQuery
) -> tuple[list[TurnPage], TurnCursor | None]:
    """Lists turns, newest first; the cursor is None on the last page."""
    conditions = [_SHOWN_TURNS]
    values: list[int | str] = []
    for column, value in (("project_id", query.project_id), ("session_id", query.session_db_id)):
        if value is not None:
            conditions.append(f"t.{column} = ?")
            values.append(value)
    if query.type is not None:
        conditions.append(
            "EXISTS (SELECT 1 FROM observations o WHERE o.turn_id = t.id AND o.type = ?)"
        )
        values.append(query.type)
    if query.before is not None:
        conditions.append("(t.created_at_epoch, t.id) < (?, ?)")
        values += [query.before.created_ms, query.before.turn_id]
    rows = connection.execute(
        f"{_TURNS} WHERE {' AND '.join(conditions)}"
        " ORDER BY t.created_at_epoch DESC, t.id DESC LIMIT ?",
        (*values, query.limit + 1),
    ).fetchall()
    turns = [as_json_row(row) for row in rows[: query.limit]]
    cursor = None
    if len(rows) > query.limit:
        cursor = TurnCursor(int(rows[query.limit - 1]["created_at_epoch"]), rows[-2]["id"])
    return _with_memories(connection, turns), cursor


def get_turns(connection: sqlite3.Connection, ids: list[int]) -> list[TurnPage]:
    rows = connection.execute(
        f"{_TURNS} WHERE {_SHOWN_TURNS} AND t.id IN (SELECT value FROM json_each(?))"
        " ORDER BY t.created_at_epoch DESC, t.id DESC",
        (json.dumps(ids),),
    )
    return _with_memories(connection, [as_json_row(row) for row in rows])


def _with_memories(connection: sqlite3.Connection, turns: list[JsonRow]) -> list[TurnPage]:
    pages = {turn["id"]: TurnPage(turn) for turn in turns}
    ids = json.dumps(list(pages))
    observations: dict[object, list[JsonRow]] = {}
    for row in connection.execute(
        f"SELECT m.*,{OUTSIDE} FROM observations m"
        " WHERE turn_id IN (SELECT value FROM json_each(?)) ORDER BY turn_id, ordinal",
        (ids,),
    ):
        observations.setdefault(row["turn_id"], []).append(as_json_row(row))
    for row in connection.execute(
        f"SELECT m.*, 'agent' AS origin,{OUTSIDE} FROM session_summaries m"
        " WHERE turn_id IN (SELECT value FROM json_each(?))",
        (ids,),
    ):
        pages[row["turn_id"]] = replace(pages[row["turn_id"]], summary=as_json_row(row))
    return [
        replace(page, observations=tuple(observations.get(turn_id, ())))
        for turn_id, page in pages.items()
    ]


def get_story(connection: sqlite3.Connection, turn_id: int) -> TurnStory | None:
    pages = get_turns(connection, [turn_id])
    if not pages:
        return None
    turn = pages[0].turn
    rows = connection.execute(
        "SELECT id, event, tool_name, tool_use_id, agent_id, tool_input, tool_response, text,"
        " bytes, created_at_epoch FROM tool_events WHERE turn_id = ? ORDER BY id",
        (turn_id,),
    )
    refined = connection.execute(
        "SELECT reply, last_error FROM refinements WHERE turn_id = ? AND status = 'kept'",
        (turn_id,),
    ).fetchone()
    return TurnStory(
        page=pages[0],
        record=turn_records.load_records(connection, [turn_id]).get(turn_id, ()),
        events=tuple(as_json_row(row) for row in rows),
        sources=_sources(connection, pages[0]),
        facts=tuple(facts.facts_of_turn(connection, turn_id)),
        previous=_neighbour(connection, turn, "<", "DESC"),
        next=_neighbour(connection, turn, ">", "ASC"),
        reply=refined["reply"] if refined else None,
        reason=refined["last_error"] if refined else None,
    )


def _neighbour(
    connection: sqlite3.Connection, turn: JsonRow, comparison: str, order: str
) -> int | None:
    row = connection.execute(
        f"SELECT t.id FROM user_prompts t WHERE t.session_id = ? AND t.prompt_number {comparison} ?"
        f" AND {_SHOWN_TURNS} ORDER BY t.prompt_number {order} LIMIT 1",
        (turn["session_db_id"], turn["prompt_number"]),
    ).fetchone()
    return int(row[0]) if row else None


def _sources(connection: sqlite3.Connection, page: TurnPage) -> dict[str, tuple[int, ...]]:
    sources: dict[str, tuple[int, ...]] = {}
    for observation in page.observations:
        sources[str(observation["id"])] = _events_of(connection, "observation", observation["id"])
    if page.summary:
        sources[f"S{page.summary['id']}"] = _events_of(connection, "summary", page.summary["id"])
    return sources


def _events_of(connection: sqlite3.Connection, noun: str, memory_id: object) -> tuple[int, ...]:
    rows = connection.execute(
        f"SELECT event_id FROM {noun}_events WHERE {noun}_id = ? ORDER BY event_id", (memory_id,)
    )
    return tuple(row[0] for row in rows)


_TURN_OF = {
    "observation": "SELECT turn_id FROM observations WHERE id = ?",
    "summary": "SELECT turn_id FROM session_summaries WHERE id = ?",
    "prompt": "SELECT id FROM user_prompts WHERE id = ? AND private = 0",
}


def turn_of_memory(connection: sqlite3.Connection, kind: str, memory_id: int) -> int | None:
    row = connection.execute(_TURN_OF[kind], (memory_id,)).fetchone()
    return int(row[0]) if row else None


# The figures of a project


def project_list(connection: sqlite3.Connection) -> list[JsonRow]:
    """Lists the projects by last activity: what a menu shows."""
    rows = connection.execute(
        f"SELECT p.id, p.key, {DISPLAY_NAME_SQL} AS name,"
        " (SELECT max(updated_at_epoch) FROM sdk_sessions s WHERE s.project_id = p.id)"
        " AS updated_at_epoch FROM projects p ORDER BY updated_at_epoch DESC, p.key"
    )
    return [as_json_row(row) for row in rows]


def turns_per_day(
    connection: sqlite3.Connection, project_id: int, since_ms: int, offset_ms: int
) -> dict[int, int]:
    """Counts turns by the day since 1970 in a zone with this offset."""
    rows = connection.execute(
        f"SELECT (t.created_at_epoch + ?) / {DAY_MS} AS day, count(*) FROM user_prompts t"
        f" WHERE t.project_id = ? AND t.created_at_epoch >= ? AND {_SHOWN_TURNS} GROUP BY day",
        (offset_ms, project_id, since_ms),
    )
    return {row[0]: row[1] for row in rows}


def touched_files(
    connection: sqlite3.Connection, project_id: int, limit: int = 12
) -> list[tuple[str, int]]:
    """Files that most turns changed, with the number of turns, of the latest observations."""
    rows = connection.execute(
        "SELECT file.value, count(DISTINCT o.turn_id) AS turns FROM"
        " (SELECT turn_id, files_modified FROM observations WHERE project_id = ?"
        "  ORDER BY created_at_epoch DESC, id DESC LIMIT ?) o,"
        " json_each(CASE WHEN json_valid(o.files_modified) THEN o.files_modified END) file"
        " GROUP BY file.value ORDER BY turns DESC, file.value"
        " LIMIT ?",
        (project_id, LATEST_OBSERVATIONS, limit),
    )
    return [(str(row[0]), int(row[1])) for row in rows]


def last_event_ms(connection: sqlite3.Connection) -> dict[str, int]:
    """When each kind of event was last recorded, of the latest events."""
    rows = connection.execute(
        "SELECT event, max(created_at_epoch) FROM (SELECT event, created_at_epoch FROM tool_events"
        " ORDER BY id DESC LIMIT 500) GROUP BY event ORDER BY 2 DESC"
    )
    return {row[0]: row[1] for row in rows}


class ViewerReader:
    """The part of `StoreReader` that the viewer uses."""

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        raise NotImplementedError

    def turns(self, query: TurnQuery) -> tuple[list[TurnPage], TurnCursor | None]:
        """A page of turns, newest first, and where the next page begins."""
        return self.read(lambda c: list_turns(c, query))

    def get_turns(self, ids: list[int]) -> list[TurnPage]:
        return self.read(lambda c: get_turns(c, ids))

    def turn_story(self, turn_id: int) -> TurnStory:
        story = self.read(lambda c: get_story(c, turn_id))
        if story is None:
            raise NotFound(f"there is no turn {turn_id}")
        return story

    def turn_of_memory(self, kind: str, memory_id: int) -> int:
        turn_id = self.read(lambda c: turn_of_memory(c, kind, memory_id))
        if turn_id is None:
            raise NotFound(f"there is no {kind} {memory_id}")
        return turn_id

    def project_list(self) -> list[JsonRow]:
        return self.read(project_list)

    def turns_per_day(self, project_id: int, since_ms: int, offset_ms: int) -> dict[int, int]:
        return self.read(lambda c: turns_per_day(c, project_id, since_ms, offset_ms))

    def touched_files(self, project_id: int) -> list[tuple[str, int]]:
        return self.read(lambda c: touched_files(c, project_id))

    def last_event_ms(self) -> dict[str, int]:
        return self.read(last_event_ms)

    def turn_with_events(self, turn_id: int) -> Turn | None:
        """Loads a turn as an observer gets it."""
        return self.read(lambda c: load_turn(c, turn_id))

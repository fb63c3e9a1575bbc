"""The memories of a team next to those of this machine.

The team's side is asked at the same time as the local one, and has a time limit. Both rank in the
same way, so that their results are merged by score. A row says whose memory it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.search import Query, SearchResult, SearchRow
from claude_mem.recall.timeline import Timeline, TimelineQuery
from claude_mem.store.memory_rows import JsonRow
from claude_mem.types import Json

TEAM = "team"  # the kind of a memory that another machine recorded


@dataclass(frozen=True, slots=True)
class TeamRows:
    rows: tuple[SearchRow, ...]
    error: str | None = None  # why the team was not asked
    anchor: SearchRow | None = None  # of a timeline
    project_key: str = ""  # of the anchor


class TeamMemory(Protocol):
    async def search(self, query: Query) -> TeamRows: ...

    async def timeline(
        self, query: TimelineQuery, moment: int, project: str | None
    ) -> TeamRows: ...

    async def memories(
        self, ids: Sequence[MemoryId], with_record: bool
    ) -> dict[MemoryId, JsonRow]: ...


class JoinedTeam(Protocol):
    """What the worker needs of a team; `team/client/team_client.py` implements it."""

    @property
    def recall(self) -> TeamMemory: ...

    def start_if_due(self) -> None: ...

    def next_due(self) -> int | None: ...

    async def sync(self) -> dict[str, Json]: ...

    def status(self) -> dict[str, Json]: ...

    async def close(self) -> None: ...


def merge_search(local: SearchResult, team: TeamRows, query: Query) -> SearchResult:
    """`local` begins at the first result, as the team's rows do."""
    rows = [*local.rows, *team.rows]
    if query.order == "relevance" and query.text:
        rows.sort(key=lambda row: (-row.score, -row.created_at_epoch))
    else:
        rows.sort(key=lambda row: row.created_at_epoch, reverse=query.order != "date_asc")
    end = query.offset + query.limit
    return replace(
        local,
        rows=tuple(rows[query.offset : end]),
        has_more=local.has_more or len(rows) > end,
        team_error=team.error,
    )


def merge_timeline(local: Timeline | None, team: TeamRows, query: TimelineQuery) -> Timeline | None:
    anchor = team.anchor or (local.anchor if local else None)
    if anchor is None:
        return None
    unique = {row.id: row for row in (*(local.rows if local else ()), *team.rows, anchor)}
    rows = sorted(unique.values(), key=lambda row: row.created_at_epoch)  # keeps the local order
    at = next(place for place, row in enumerate(rows) if row.id == anchor.id)
    return Timeline(rows[at], tuple(rows[max(0, at - query.before) : at + query.after + 1]))

"""The team as the worker sees it: its memories come as rows, each of which says whose it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.search import Query, SearchRow
from claude_mem.recall.timeline import TimelineQuery
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

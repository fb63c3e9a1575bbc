"""Search, timeline and full memories of this machine and of the team that it joined; imported only
if it joined one.

The team is asked at the same time as this machine, and has a time limit. Both rank in the same way,
so that their results are merged by score.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from claude_mem.errors import NotFound
from claude_mem.recall.answers import Answer
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.recall import Recall
from claude_mem.recall.search import Query, SearchResult
from claude_mem.recall.team_interface import TEAM, TeamMemory, TeamRows
from claude_mem.recall.timeline import Timeline, TimelineQuery, around_moment
from claude_mem.store import StoreReader
from claude_mem.store.memory_rows import JsonRow


def recall_with_team(store: StoreReader, local: Recall, team: TeamMemory) -> Recall:
    both = _RecallWithTeam(store, local, team)
    return Recall(both.search, both.timeline, both.memories, both.answers)


class _RecallWithTeam:
    def __init__(self, store: StoreReader, local: Recall, team: TeamMemory) -> None:
        self._store, self._local, self._team = store, local, team

    async def search(
        self, make_query: Callable[[StoreReader], Query], now: datetime
    ) -> SearchResult:
        return await self._search(await asyncio.to_thread(make_query, self._store), now)

    async def _search(self, query: Query, now: datetime) -> SearchResult:
        from_first = replace(query, limit=query.offset + query.limit, offset=0)
        local, others = await asyncio.gather(
            self._local.search(lambda store: from_first, now), self._team.search(query)
        )
        return _merge_search(local, others, query)

    async def timeline(self, query: TimelineQuery, now: datetime) -> Timeline | None:
        if query.anchor is None:
            best = await self._search(Query(query.text, query.filters, limit=1), now)
            query = replace(query, anchor=best.rows[0].id) if best.rows else query
        if query.anchor is not None and query.anchor.kind == TEAM:
            return await self._timeline_of_team(query, query.anchor)
        local = await self._local.timeline(query, now)
        if local is None:
            return None
        anchor = local.anchor
        session = self._store.session(anchor.session_db_id)
        project = str(session["project_key"])
        others = await self._team.timeline(query, anchor.created_at_epoch, project)
        return _merge_timeline(local, others, query)

    async def _timeline_of_team(self, query: TimelineQuery, anchor: MemoryId) -> Timeline | None:
        others = await self._team.timeline(query, 0, None)
        if others.anchor is None:
            reason = f": {others.error}" if others.error else ""
            raise NotFound(f"there is no memory {anchor}{reason}")
        project_id = self._store.project_by_key(others.project_key)
        if project_id is None:
            return _merge_timeline(None, others, query)
        moment = others.anchor.created_at_epoch
        rows = await asyncio.to_thread(around_moment, self._store, project_id, moment, query)
        return _merge_timeline(Timeline(others.anchor, rows), others, query)

    async def memories(
        self, ids: Sequence[MemoryId], with_record: bool
    ) -> list[tuple[MemoryId, JsonRow]]:
        local = await self._local.memories(ids, with_record)
        by_id = dict(local) | await self._of_team(ids, with_record)
        return [(memory_id, by_id[memory_id]) for memory_id in ids if memory_id in by_id]

    async def answers(self, ids: Sequence[MemoryId], words: str, now: datetime) -> list[Answer]:
        """Memories of a team in full: their passages are on the server."""
        local = await self._local.answers(ids, words, now)
        by_id = {answer.id: answer for answer in local}
        for memory_id, memory in (await self._of_team(ids, False)).items():
            by_id[memory_id] = Answer(memory_id, memory, str(memory["title"]), ())
        return [by_id[memory_id] for memory_id in ids if memory_id in by_id]

    async def _of_team(self, ids: Sequence[MemoryId], with_record: bool) -> dict[MemoryId, JsonRow]:
        of_team = [memory_id for memory_id in ids if memory_id.kind == TEAM]
        return await self._team.memories(of_team, with_record) if of_team else {}


def _merge_search(local: SearchResult, team: TeamRows, query: Query) -> SearchResult:
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


def _merge_timeline(
    local: Timeline | None, team: TeamRows, query: TimelineQuery
) -> Timeline | None:
    anchor = team.anchor or (local.anchor if local else None)
    if anchor is None:
        return None
    unique = {row.id: row for row in (*(local.rows if local else ()), *team.rows, anchor)}
    rows = sorted(unique.values(), key=lambda row: row.created_at_epoch)  # keeps the local order
    at = next(place for place, row in enumerate(rows) if row.id == anchor.id)
    return Timeline(rows[at], tuple(rows[max(0, at - query.before) : at + query.after + 1]))

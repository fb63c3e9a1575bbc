"""Search, timeline and full memories: of this machine, and of the team if it has joined one.

The team is asked at the same time as this machine, and has a time limit. Both rank in the same way,
so that their results are merged by score.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from claude_mem.errors import NotFound
from claude_mem.recall.answers import Answer, find_answers
from claude_mem.recall.memories import get_memories
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.search import Query, SearchResult
from claude_mem.recall.search import search as search_here
from claude_mem.recall.team_interface import TEAM, JoinedTeam, TeamRows
from claude_mem.recall.timeline import Timeline, TimelineQuery, around_moment
from claude_mem.recall.timeline import timeline as timeline_here
from claude_mem.store import StoreReader
from claude_mem.store.memory_rows import JsonRow
from claude_mem.worker.worker import Worker


async def search(
    worker: Worker, make_query: Callable[[StoreReader], Query], now: datetime
) -> SearchResult:
    """The query is made in the thread that searches: it may have to look up a project, and a change
    of threads takes as long as a rare word."""
    store, team = worker.store, worker.team
    if team is None:
        index = worker.semantic_index
        return await asyncio.to_thread(lambda: search_here(store, make_query(store), now, index))
    return await _search_with_team(worker, team, await asyncio.to_thread(make_query, store), now)


async def _search_with_team(
    worker: Worker, team: JoinedTeam, query: Query, now: datetime
) -> SearchResult:
    from_first = replace(query, limit=query.offset + query.limit, offset=0)
    local, others = await asyncio.gather(
        asyncio.to_thread(search_here, worker.store, from_first, now, worker.semantic_index),
        team.recall.search(query),
    )
    return _merge_search(local, others, query)


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


async def timeline(worker: Worker, query: TimelineQuery, now: datetime) -> Timeline | None:
    index = worker.semantic_index
    team = worker.team
    if query.anchor is not None and query.anchor.kind == TEAM:
        return await _timeline_of_team(worker, query, query.anchor)
    if team is not None and query.anchor is None:
        best = await _search_with_team(worker, team, Query(query.text, query.filters, limit=1), now)
        query = replace(query, anchor=best.rows[0].id) if best.rows else query
        if query.anchor is not None and query.anchor.kind == TEAM:
            return await _timeline_of_team(worker, query, query.anchor)
    local = await asyncio.to_thread(timeline_here, worker.store, query, now, index)
    if team is None or local is None:
        return local
    anchor = local.anchor
    session = worker.store.session(anchor.session_db_id)
    others = await team.recall.timeline(query, anchor.created_at_epoch, str(session["project_key"]))
    return _merge_timeline(local, others, query)


async def _timeline_of_team(
    worker: Worker, query: TimelineQuery, anchor: MemoryId
) -> Timeline | None:
    others = TeamRows(())
    if worker.team is not None:
        others = await worker.team.recall.timeline(query, 0, None)
    if others.anchor is None:
        reason = f": {others.error}" if others.error else ""
        raise NotFound(f"there is no memory {anchor}{reason}")
    project_id = worker.store.project_by_key(others.project_key)
    if project_id is None:
        return _merge_timeline(None, others, query)
    moment = others.anchor.created_at_epoch
    rows = await asyncio.to_thread(around_moment, worker.store, project_id, moment, query)
    return _merge_timeline(Timeline(others.anchor, rows), others, query)


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


async def memories(
    worker: Worker, ids: Sequence[MemoryId], *, with_record: bool
) -> list[tuple[MemoryId, JsonRow]]:
    """In the order of the ids."""
    local = await asyncio.to_thread(get_memories, worker.store, ids, with_record=with_record)
    by_id = dict(local) | await _of_team(worker, ids, with_record)
    return [(memory_id, by_id[memory_id]) for memory_id in ids if memory_id in by_id]


async def answers(
    worker: Worker, ids: Sequence[MemoryId], words: str, now: datetime
) -> list[Answer]:
    """Memories of a team in full: their passages are on the server."""
    local = await asyncio.to_thread(
        find_answers, worker.store, ids, words, now, worker.semantic_index
    )
    by_id = {answer.id: answer for answer in local}
    for memory_id, memory in (await _of_team(worker, ids, False)).items():
        by_id[memory_id] = Answer(memory_id, memory, str(memory["title"]), ())
    return [by_id[memory_id] for memory_id in ids if memory_id in by_id]


async def _of_team(
    worker: Worker, ids: Sequence[MemoryId], with_record: bool
) -> dict[MemoryId, JsonRow]:
    of_team = [memory_id for memory_id in ids if memory_id.kind == TEAM]
    if worker.team is None or not of_team:
        return {}
    return await worker.team.recall.memories(of_team, with_record)

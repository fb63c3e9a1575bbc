"""The team's side of search, timeline and full memories, within a time limit.

A server that does not respond in time is not asked for a while: then nothing waits for it.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Any

from claude_mem.errors import ClaudeMemError
from claude_mem.index.text.filters import Filters
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.search import Query, SearchRow
from claude_mem.recall.team_interface import TEAM, TeamRows
from claude_mem.recall.timeline import TimelineQuery
from claude_mem.recall.tokens import tokens_of_bytes
from claude_mem.store import StoreReader
from claude_mem.store.clock import Clock, iso
from claude_mem.store.memory_rows import JsonRow
from claude_mem.store.turn_records import parse_parts, record_data
from claude_mem.team.client import outbox
from claude_mem.team.client.membership import Membership
from claude_mem.team.client.remote import ask
from claude_mem.types import Json

log = logging.getLogger("claude_mem.team")

SECONDS = 1.5
PAUSE_MS = 30_000  # after a failure


class RemoteRecall:
    def __init__(self, store: StoreReader, membership: Membership, clock: Clock) -> None:
        self._store, self._membership, self._clock = store, membership, clock
        self._not_before = 0
        self._failure = ""

    async def search(self, query: Query) -> TeamRows:
        if not _can_filter(query.filters):
            return TeamRows(())
        body = {
            "query": query.text,
            "limit": query.offset + query.limit + 1,
            "now": self._clock(),
            **self._filters(query.filters),
        }
        answer = await self._ask("search", body)
        return self._rows(answer)

    async def timeline(self, query: TimelineQuery, moment: int, project: str | None) -> TeamRows:
        """Lists the timeline around a moment, or around an anchor of the team."""
        body: dict[str, Json] = {"before": query.before, "after": query.after}
        if query.anchor is not None and query.anchor.kind == TEAM:
            body["anchor"] = query.anchor.number
        else:
            body |= {"moment": moment, **({"project_key": project} if project else {})}
        return self._rows(await self._ask("timeline", body))

    async def memories(self, ids: Sequence[MemoryId], with_record: bool) -> dict[MemoryId, JsonRow]:
        answer = await self._ask("turns", {"ids": [memory_id.number for memory_id in ids]})
        if isinstance(answer, str):
            return {}
        return {
            MemoryId(TEAM, int(turn["id"])): _memory(turn, with_record) for turn in answer["turns"]
        }

    async def _ask(self, path: str, body: dict[str, Json]) -> dict[str, Any] | str:
        """The answer, or why there is none."""
        if self._clock() < self._not_before:
            return self._failure
        try:
            async with asyncio.timeout(SECONDS):
                return await ask(self._membership, path, body, SECONDS)
        except TimeoutError:
            self._failure = "the team server did not respond in time"
        except ClaudeMemError as error:
            self._failure = str(error)
        log.warning("asking the team server: %s", self._failure)
        self._not_before = self._clock() + PAUSE_MS
        return self._failure

    def _filters(self, filters: Filters) -> dict[str, Json]:
        values: dict[str, Json] = {"types": list(filters.types)}
        if filters.project_id is not None:
            values["project_key"] = self._store.project(filters.project_id).key
        if filters.since is not None:
            values["since"] = max(0, filters.since)
        if filters.until is not None:
            values["until"] = max(0, filters.until)
        return values

    def _rows(self, answer: dict[str, Any] | str) -> TeamRows:
        """Returns the rows without the turns that this machine has itself."""
        if isinstance(answer, str):
            return TeamRows((), answer)
        results = answer["results"]
        uids = [str(result["uid"]) for result in results]
        local = self._store.read(lambda c: outbox.local_turns(c, uids))
        rows = tuple(_row(result) for result in results if result["uid"] not in local)
        anchor = answer.get("anchor")
        if not anchor:
            return TeamRows(rows)
        return TeamRows(rows, anchor=_row(anchor), project_key=str(anchor["project_key"]))


def _can_filter(filters: Filters) -> bool:
    """The server knows neither files and concepts of a turn nor sessions of this machine."""
    return not (
        filters.kinds
        or filters.concepts
        or filters.files
        or filters.statuses
        or filters.session_id is not None
    )


def _row(result: dict[str, Any]) -> SearchRow:
    return SearchRow(
        id=MemoryId(TEAM, int(result["id"])),
        created_at_epoch=int(result["created_at_epoch"]),
        type=str(result["type"]),
        title=str(result["title"]),
        file=None,
        tokens=tokens_of_bytes(int(result["size"])),
        project=str(result["project"]),
        session_db_id=0,
        score=float(result.get("score") or 0.0),
        snippet=str(result.get("snippet") or ""),
        is_strong=bool(result.get("strong", True)),
        owner=str(result["owner"]),
    )


_JSON_FIELDS = ("facts", "concepts", "files_read", "files_modified", "files_edited", "commands",
                "faults", "open_steps")  # fmt: skip


def _memory(turn: dict[str, Any], with_record: bool) -> JsonRow:
    """All that is shared of a turn, as one memory."""
    memory: dict[str, Json] = {}
    narratives: list[str] = []
    for row in turn["rows"]:
        table = row.pop("table")
        if table == "turn_records":
            if with_record:
                memory["record"] = record_data(parse_parts(row["parts"]))
            continue
        if table == "observations" and row.get("narrative"):
            title = f"{row.get('title') or ''}: ".removeprefix(": ")
            narratives.append(f"{title}{row['narrative']}")
        for name, value in row.items():
            parsed = json.loads(value) if name in _JSON_FIELDS and value else value
            if parsed and name not in memory:
                memory[name] = parsed
    if narratives:
        memory["narrative"] = "\n".join(narratives)
    return {
        **memory,
        "id": int(turn["id"]),
        "kind": TEAM,
        "type": str(turn["type"]),
        "title": str(turn["title"]),
        "project": str(turn["project"]),
        "owner": str(turn["owner"]),
        "created_at": iso(int(turn["created_at_epoch"])),
        "created_at_epoch": int(turn["created_at_epoch"]),
    }

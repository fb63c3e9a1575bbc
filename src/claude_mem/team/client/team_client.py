"""A worker's part in a team: pushes the outbox, fetches what is new, and asks for others' turns.

Everything runs beside the worker's main loop, in tasks of its own: nothing waits for the server.
"""

import asyncio
import logging
import os
import random
from collections.abc import Callable

from claude_mem.config import Layout
from claude_mem.errors import ClaudeMemError, RequestFailed
from claude_mem.hook import trouble
from claude_mem.redaction import Redactor
from claude_mem.store import Store
from claude_mem.store.clock import Clock
from claude_mem.team.client import outbox
from claude_mem.team.client.facts import push_facts
from claude_mem.team.client.fetching import fetch_recent, fetch_tombstones
from claude_mem.team.client.membership import Membership, read_membership
from claude_mem.team.client.pushing import Pusher
from claude_mem.team.client.remote_recall import RemoteRecall
from claude_mem.types import Json, Project

log = logging.getLogger("claude_mem.team")

FETCH_MS = 60_000
FIRST_RETRY_MS, LAST_RETRY_MS = 1_000, 5 * 60_000

StaleContext = Callable[[Project], None]


class TeamClient:
    def __init__(
        self,
        layout: Layout,
        store: Store,
        membership: Membership,
        redactor: Redactor,
        clock: Clock,
        *,
        on_new_memories: StaleContext,
        wake: Callable[[], None],
    ) -> None:
        self._layout, self._store, self._clock = layout, store, clock
        self._membership, self._on_new_memories, self._wake = membership, on_new_memories, wake
        self._redactor = redactor
        self._pusher = Pusher(store, membership, redactor, clock)
        self.recall = RemoteRecall(store, membership, clock)
        self._task: asyncio.Task[None] | None = None
        self._failures, self._not_before, self._fetched_at = 0, 0, 0
        self.last_error = ""

    def start_if_due(self) -> None:
        """Starts work that is due; the main loop calls it whenever something happened."""
        if self._is_running or self._clock() < self._not_before:
            return
        if self._is_fetch_due or self._store.read(outbox.waiting):
            self._task = asyncio.create_task(self._run())

    @property
    def _is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def _is_fetch_due(self) -> bool:
        return self._clock() - self._fetched_at >= FETCH_MS

    def next_due(self) -> int | None:
        """When the main loop has to come back because of the team."""
        if self._is_running:
            return None
        if self._store.read(outbox.waiting):
            return max(self._not_before, self._clock() + 100)
        return max(self._not_before, self._fetched_at + FETCH_MS)

    async def _run(self) -> None:
        try:
            if await self._pusher.push_all() or self._is_fetch_due:
                await self._push_facts()
            if self._is_fetch_due:
                await self._fetch()
        except ClaudeMemError as error:
            self._failed(error)
        except Exception:
            log.exception("the team client failed")
            self._failed(ClaudeMemError("the team client failed; the worker's log has the details"))
        else:
            self._failures, self._not_before, self.last_error = 0, 0, ""
        finally:
            self._wake()

    async def _push_facts(self) -> int:
        return await push_facts(self._store, self._membership, self._redactor, self._clock)

    async def _fetch(self) -> None:
        await fetch_tombstones(self._store, self._membership)
        for project in await fetch_recent(self._store, self._membership):
            self._on_new_memories(project)
        self._fetched_at = self._clock()

    def _failed(self, error: ClaudeMemError) -> None:
        self._failures += 1
        delay = min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** min(self._failures, 10))
        self._not_before = self._clock() + int(delay * random.uniform(0.5, 1.0))
        message = str(error)
        if message != self.last_error:
            log.warning("%s; trying again in %.0f s", message, delay / 1000)
            if not isinstance(error, RequestFailed):  # a server that is away needs nobody
                trouble.report(os.fsencode(self._layout.root), message)
        self.last_error = message

    async def sync(self) -> dict[str, Json]:
        """Push and fetch now, and wait for it. Raises what the server answers."""
        if self._is_running and self._task is not None:
            await asyncio.wait([self._task])
        count = await self._pusher.push_all() + await self._push_facts()
        await self._fetch()
        self._failures, self._not_before, self.last_error = 0, 0, ""
        return {"pushed": count}

    def status(self) -> dict[str, Json]:
        counts = self._store.read(outbox.counts)
        return {
            "url": self._membership.url,
            "person": self._membership.person,
            "waiting": self._store.read(outbox.waiting),
            "turns": dict[str, Json](counts),
            "error": self.last_error or None,
        }

    async def close(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=2)


def open_team(
    layout: Layout,
    store: Store,
    redactor: Redactor,
    clock: Clock,
    *,
    on_new_memories: StaleContext,
    wake: Callable[[], None],
) -> TeamClient | None:
    """None if this machine joined no team."""
    membership = read_membership(layout)
    if membership is None:
        return None
    logging.getLogger("httpx").setLevel(logging.WARNING)  # a line for every request
    return TeamClient(
        layout, store, membership, redactor, clock, on_new_memories=on_new_memories, wake=wake
    )

"""Sends the outbox in batches, and applies what the server answers."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from claude_mem.errors import ClaudeMemError
from claude_mem.hook.kill_points import reach
from claude_mem.redaction import Redactor
from claude_mem.store import Store
from claude_mem.store.clock import Clock
from claude_mem.team.client import outbox
from claude_mem.team.client.forgetting import forget_turns
from claude_mem.team.client.membership import Membership
from claude_mem.team.client.outbox import Pending, PushAnswer
from claude_mem.team.client.remote import ask
from claude_mem.team.wire import MAX_ITEMS, TurnItem

log = logging.getLogger("claude_mem.team")

BATCH = 100
SECONDS = 120.0  # the server redacts and embeds each turn before it answers
assert BATCH * 2 <= MAX_ITEMS  # an entry has two items at most


class Pusher:
    def __init__(
        self, store: Store, membership: Membership, redactor: Redactor, clock: Clock
    ) -> None:
        self._store, self._membership = store, membership
        self._redactor, self._clock = redactor, clock
        self._lock = asyncio.Lock()

    async def push_all(self, progress: Callable[[int], None] = lambda waiting: None) -> int:
        """Empties the outbox; returns how many items were sent. Raises what `ask` raises."""
        count = 0
        while sent := await self.push_batch():
            count += sent
            progress(self._store.read(outbox.waiting))
        return count

    async def push_batch(self) -> int:
        """Sends a batch, one at a time: the order of the entries is the order of the changes."""
        async with self._lock:
            pending = await self._claim()
            reach(b"team.after_claim")
            by_project: defaultdict[int, list[Pending]] = defaultdict(list)
            for entry in pending:
                by_project[entry.team_id].append(entry)
            answers: list[PushAnswer] = []
            failure: ClaudeMemError | None = None
            for team_id, items in by_project.items():
                try:
                    answers += await self._send(team_id, items)
                except ClaudeMemError as error:
                    failure = failure or error  # that of one project hinders no other
            reach(b"team.before_acknowledge")
            await self._acknowledge(pending, answers)
            if failure is not None:
                raise failure
            return len(pending)

    async def _claim(self) -> list[Pending]:
        """Entries without items are only deleted; then there may be more behind them."""
        while True:
            if not self._store.read(outbox.waiting):
                return []
            pending = await asyncio.wrap_future(
                self._store.write(lambda c: outbox.claim(c, self._redactor, BATCH, self._clock()))
            )
            if pending:
                return pending

    async def _send(self, team_id: int, pending: Sequence[Pending]) -> list[PushAnswer]:
        body: dict[str, Any] = {
            "project": team_id,
            "items": [entry.item.as_json() for entry in pending],
        }
        results = (await ask(self._membership, "push", body, SECONDS))["results"]
        return [
            PushAnswer(entry, str(result["outcome"]), result.get("reason"))
            for entry, result in zip(pending, results, strict=True)
        ]

    async def _acknowledge(self, pending: Sequence[Pending], answers: Sequence[PushAnswer]) -> None:
        answered = {(answer.pending.entry, answer.pending.team_id) for answer in answers}
        unanswered = {p.entry for p in pending if (p.entry, p.team_id) not in answered}
        if answers:
            await asyncio.wrap_future(
                self._store.write(lambda c: outbox.acknowledge(c, answers, unanswered))
            )
        for answer in answers:
            if answer.outcome == "refused":
                log.warning("the team server refused a turn: %s", answer.reason)
        # Another machine of this user forgot them.
        forgotten = [
            answer.pending.turn_id
            for answer in answers
            if answer.outcome == "forgotten" and isinstance(answer.pending.item, TurnItem)
        ]
        if forgotten:
            await asyncio.to_thread(forget_turns, self._store, forgotten)

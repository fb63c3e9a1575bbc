"""Runs refinements next to the worker's main loop: claims what is due, a few at a time."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from claude_mem.hook.kill_points import reach
from claude_mem.observer.models.model import Model
from claude_mem.store import Store
from claude_mem.store.clock import Clock
from claude_mem.store.spending import Caps
from claude_mem.types import Distillate, Job, Turn
from claude_mem.worker.conversation_cleanup import ConversationCleanup
from claude_mem.worker.refinement_runner import Policy, RefinementRunner

log = logging.getLogger("claude_mem.refiner")


class Refiner:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        runner: RefinementRunner,
        cleanup: ConversationCleanup,
        wake: Callable[[], None],
    ) -> None:
        self._store, self._clock = store, clock
        self._runner, self._cleanup = runner, cleanup
        self._wake = wake  # at the end of each: there is room for the next one
        self._model: Model | None = None
        self._policy = Policy(Caps(0, 0))
        self._running: dict[asyncio.Task[None], int] = {}  # and the session of each
        self._claiming = asyncio.Lock()

    async def use(self, model: Model | None, policy: Policy) -> None:
        """Switch to this model, or to none; running refinements are put back for it."""
        await self.close()
        self._policy = policy
        await self._cleanup.begin(model.name if model is not None else None)
        if model is None and not policy.upgrade_drafts:
            await asyncio.wrap_future(self._store.keep_all_drafts("no model is in use"))
        self._model = model
        await self.clean_up()

    async def close(self) -> None:
        previous, self._model = self._model, None
        await self._cancel(list(self._running))
        if previous is not None:
            await previous.close()

    async def start_due(self) -> int:
        """Start as many due refinements as may run at once; returns their number."""
        count = 0
        async with self._claiming:
            while (model := self._model) and len(self._running) < self._policy.max_concurrent:
                claimed = await asyncio.wrap_future(self._store.claim_refinement())
                if claimed is None:
                    break
                reach(b"refine.after_claim")
                job, turn = claimed
                if turn is None or turn.draft is None:
                    await asyncio.wrap_future(self._store.drop_refinement(job))
                elif self._model is not model:  # switched or closed meanwhile
                    put_back = self._store.put_back_refinement(
                        job, "", self._clock(), counted=False
                    )
                    await asyncio.wrap_future(put_back)
                else:
                    self._start(job, turn, turn.draft, model)
                    count += 1
        return count

    async def run_due(self) -> int:
        """Run all due refinements to their end; returns their number."""
        count = 0
        while await self.start_due() or self._running:
            tasks = list(self._running)
            await asyncio.wait(tasks)
            count += len(tasks)
        return count

    async def cancel_session(self, session_db_id: int, seconds: float) -> None:
        """Waits no longer than that; a client that does not end by itself is killed later."""
        deadline = asyncio.get_running_loop().time() + seconds
        tasks = [task for task, session in self._running.items() if session == session_db_id]
        await self._cancel(tasks, seconds)
        if self._model is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    await self._model.end_conversation(session_db_id)

    def next_due(self) -> int | None:
        """A refinement that is due already waits for one that runs, whose end wakes the worker."""
        due = self._store.next_refinement() if self._model is not None else None
        return due if due is not None and due > self._clock() else None

    async def clean_up(self) -> None:
        """End the conversations of finished sessions, and delete what conversations left."""
        await self._cleanup.end_finished(self._model)
        if not self._running:
            self._cleanup.delete_leftovers()

    def _start(self, job: Job, turn: Turn, draft: Distillate, model: Model) -> None:
        task = asyncio.create_task(self._runner.run(job, turn, draft, model, self._policy))
        self._running[task] = turn.session_db_id
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        if not task.cancelled() and (error := task.exception()):
            log.error("a refinement failed", exc_info=error)
        self._wake()

    async def _cancel(self, tasks: list[asyncio.Task[None]], seconds: float | None = None) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

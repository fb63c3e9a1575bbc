"""Jobs: claim a turn, have it distilled, store the result and acknowledge in one transaction.

Three tries with backoff, then the local observer, then a dead letter. One bad turn never stops
the others.
"""

import asyncio
import logging
import os
import sqlite3
from collections.abc import Awaitable, Callable

from claude_mem.config import Layout
from claude_mem.hook import trouble
from claude_mem.hook.faults import reach
from claude_mem.observer import Observer
from claude_mem.store import Store
from claude_mem.types import Distillate, Job, Project, Turn

log = logging.getLogger("claude_mem.jobs")

TRIES = 3
CLAIMS = 25  # a turn that was claimed so often without a result kills its worker

Backoff = Callable[[int], int]
Complete = Callable[[Turn], Awaitable[Turn]]
Stored = Callable[[Turn, Distillate], None]


def exponential_backoff(attempt: int) -> int:
    """Milliseconds to wait after the first, second, ... failed try."""
    return int(2_000 * 5 ** (attempt - 1))


class JobRunner:
    def __init__(
        self,
        layout: Layout,
        store: Store,
        observer: Observer,
        fallback: Observer,
        *,
        complete: Complete | None = None,
        stored: Stored | None = None,
        backoff: Backoff = exponential_backoff,
        refines: Callable[[], bool] = lambda: False,
    ) -> None:
        self._layout, self._store = layout, store
        self._observer, self._fallback = observer, fallback
        self._complete, self._stored, self._backoff = complete, stored, backoff
        self._refines = refines  # whether a model shall revise what is made here
        self._running: dict[asyncio.Task[None], Turn] = {}
        self._claiming = asyncio.Lock()

    async def run_due(self, project_id: int | None = None) -> int:
        """Works off what is due now; how many turns that were."""
        done = 0
        while task := await self._start_next(project_id):
            await self._finish(task)
            done += 1
        return done

    async def settle(self, project: Project) -> None:
        """Waits for this project's turns that another call of run_due is just distilling."""
        tasks = [task for task, turn in self._running.items() if turn.project == project]
        if tasks:
            await asyncio.wait(tasks)

    async def cancel_session(self, session_db_id: int, seconds: float) -> None:
        """Stops a session's running work and waits for it that long."""
        tasks = [t for t, turn in self._running.items() if turn.session_db_id == session_db_id]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def _start_next(self, project_id: int | None) -> asyncio.Task[None] | None:
        # Claimed and known to be running in one step, for whoever settles.
        async with self._claiming:
            while claimed := await asyncio.wrap_future(self._store.claim_job(project_id)):
                reach(b"queue.after_claim")
                job, turn = claimed
                if turn is not None:
                    task = asyncio.create_task(self._distil(job, turn))
                    self._running[task] = turn
                    task.add_done_callback(self._running.pop)
                    return task
                await asyncio.wrap_future(self._store.drop_job(job))  # deleted or private by now
        return None

    async def _finish(self, task: asyncio.Task[None]) -> None:
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()):
            raise error

    async def _distil(self, job: Job, turn: Turn) -> None:
        if job.attempts > CLAIMS:
            await self._bury(job, turn, "claimed too often without a result")
            return
        try:
            if self._complete is not None:
                turn = await self._complete(turn)
            await self._store_result(job, turn, await self._observer.distil(turn))
        except sqlite3.OperationalError:
            raise  # the disk or the file, not the turn
        except Exception as error:
            await self._after_failure(job, turn, error)

    async def _store_result(self, job: Job, turn: Turn, made: Distillate) -> None:
        finished = self._store.finish_job(job, turn, made, is_draft=self._refines())
        if await asyncio.wrap_future(finished) and self._stored:
            self._stored(turn, made)

    async def _after_failure(self, job: Job, turn: Turn, error: Exception) -> None:
        reason = f"{type(error).__name__}: {error}"
        log.warning("turn %d, try %d, %s: %s", turn.id, job.attempts, self._observer.name, reason)
        if job.attempts < TRIES:
            delay = self._backoff(job.attempts)
            await asyncio.wrap_future(self._store.retry_job(job, reason, delay))
            return
        if self._fallback is not self._observer:
            try:
                await self._store_result(job, turn, await self._fallback.distil(turn))
                return
            except sqlite3.OperationalError:
                raise
            except Exception as second:
                reason += f"; then {type(second).__name__}: {second}"
        await self._bury(job, turn, reason)

    async def _bury(self, job: Job, turn: Turn, reason: str) -> None:
        if not await asyncio.wrap_future(self._store.bury_job(job, reason)):
            return
        log.error("turn %d cannot be distilled: %s", turn.id, reason)
        trouble.report(
            os.fsencode(self._layout.root),
            f"a turn could not be remembered and was kept: claude-mem retry tries again ({reason})",
        )

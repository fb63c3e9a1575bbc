"""Jobs: claim a turn, add what its transcript tells, distil it, store the result and acknowledge
the job in one transaction.

Three tries with backoff, then a dead letter. A turn that fails never stops the others.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from claude_mem.agents.agent import TranscriptEvent
from claude_mem.config import Layout
from claude_mem.errors import BadInput
from claude_mem.hook import trouble
from claude_mem.hook.kill_points import reach
from claude_mem.intake.event_reader import EventHeader, EventReader, record_of
from claude_mem.intake.transcripts.transcript import additions_to
from claude_mem.intake.watchdog import Watchdog
from claude_mem.observer.local.observer import distil
from claude_mem.store import Store
from claude_mem.store.clock import now_ms
from claude_mem.store.database import is_of_file
from claude_mem.types import PROMPT, TOOL_FAILURE, Distillate, Event, Job, Project, Turn, Verbosity
from claude_mem.worker.announcer import Announcer
from claude_mem.worker.client_titles import ClientTitles
from claude_mem.worker.contexts import Contexts
from claude_mem.worker.session_logging import session_mark, turn_step

log = logging.getLogger("claude_mem.jobs")

TRIES = 3
TURN_SECONDS = 300  # longer than any turn takes: the worker hangs, and ends
CLAIMS = 25  # a turn that was claimed so often without a result kills its worker
STOP = "Stop"
_JUST_ENDED_MS = 60_000
_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.5)

Backoff = Callable[[int], int]


Drafter = Callable[[Turn], Awaitable[Distillate]]


def exponential_backoff(attempt: int) -> int:
    """Milliseconds to wait after the first, second, ... failed try."""
    return int(2_000 * 5 ** (attempt - 1))


class TranscriptAdditions:
    """What hooks do not report of a turn, and its transcript has."""

    def __init__(self, store: Store, reader: EventReader) -> None:
        self._store, self._reader = store, reader
        self._titles = ClientTitles(store, reader)

    async def add_to(self, turn: Turn) -> Turn:
        """The turn with what its transcript adds; that is also stored. Updates the title."""
        if not turn.transcript_path:
            return turn
        await self._titles.update(turn.session_db_id, turn.content_session_id, turn.transcript_path)
        events = await asyncio.to_thread(self._read, turn)
        for pause in _PAUSES:
            if not awaits_answer(turn, events, now_ms()):
                break
            await asyncio.sleep(pause)
            events = await asyncio.to_thread(self._read, turn)
        if not events:
            return turn
        return await asyncio.wrap_future(self._store.add_from_transcript(turn, events)) or turn

    def _read(self, turn: Turn) -> list[Event]:
        path = Path(turn.transcript_path)
        try:
            statements = additions_to(path, turn, self._stored_prompt)
            return [self._event(statement, turn) for statement in statements]
        except FileNotFoundError:
            return []  # the client deletes old transcripts, or is set to keep none
        except (OSError, ValueError, BadInput) as error:
            log.warning("turn %d: cannot read %s: %s", turn.id, path.name, error)
            return []

    def _event(self, statement: TranscriptEvent, turn: Turn) -> Event:
        at_ms = statement.at_ms if statement.at_ms is not None else turn.started_ms
        header = EventHeader(statement.kind, at_ms, turn.project_dir)
        return self._reader.read(header, statement.payload)

    def _stored_prompt(self, prompt: str) -> str | None:
        """A prompt as the store has it: redacted and truncated."""
        payload = {"session_id": "-", "prompt": prompt}
        return self._reader.read(EventHeader(PROMPT, 0), payload).prompt


def awaits_answer(turn: Turn, statements: list[Event], now: int) -> bool:
    """A client that does not send the last message may write it to its transcript only after the
    hook of the turn's end has run."""
    stops = [event for event in turn.events if event.kind == STOP]
    if not stops or stops[-1].text or now - stops[-1].at_ms > _JUST_ENDED_MS:
        return False
    last_work = max((event.at_ms for event in turn.events if event.tool_name), default=0)
    texts = (event for event in statements if event.kind not in (TOOL_FAILURE, PROMPT))
    return not any(text.arrived_ms >= last_work for text in texts)


class JobRunner:
    def __init__(
        self,
        layout: Layout,
        store: Store,
        announcer: Announcer,
        contexts: Contexts,
        *,
        draft: Drafter | None = None,
        transcript_additions: TranscriptAdditions | None = None,
        backoff: Backoff = exponential_backoff,
        watchdog: Watchdog | None = None,
    ) -> None:
        self._layout, self._store = layout, store
        self._draft = draft or self._draft_locally
        self._contexts = contexts
        self._announcer, self._backoff = announcer, backoff
        self._transcript_additions = transcript_additions
        self._watchdog = watchdog or Watchdog()
        self.queues_refinements = False  # whether a model will revise the drafts
        self.keeps_records = True
        self.verbosity: Verbosity = "normal"
        self._running: dict[asyncio.Task[None], Turn] = {}
        self._claiming = asyncio.Lock()

    async def run_due(self, project_id: int | None = None) -> int:
        """Distil all turns that are due now; returns their number."""
        count = 0
        while task := await self._start_next(project_id):
            await self._finish(task)
            count += 1
        return count

    async def wait_for_project(self, project: Project) -> None:
        """Wait for this project's turns that another call of run_due is distilling."""
        tasks = [task for task, turn in self._running.items() if turn.project == project]
        if tasks:
            await asyncio.wait(tasks)

    async def cancel_session(self, session_db_id: int, seconds: float) -> None:
        """Stop a session's running jobs and wait that long for their end."""
        tasks = [t for t, turn in self._running.items() if turn.session_db_id == session_db_id]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def _start_next(self, project_id: int | None) -> asyncio.Task[None] | None:
        # Claiming and registering are one step, so that `wait_for_project` misses no running job.
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
        self._announcer.processing()  # the queue is shorter, also after a failure
        if not task.cancelled() and (error := task.exception()):
            raise error

    async def _distil(self, job: Job, turn: Turn) -> None:
        if job.attempts > CLAIMS:
            await self._set_aside(job, turn, "claimed too often without a result")
            return
        turn_step(turn, f"distilling, try {job.attempts}")
        try:
            if self._transcript_additions is not None:
                turn = await self._transcript_additions.add_to(turn)
            with self._watchdog.limit(TURN_SECONDS):
                draft = await self._draft(turn)
            await self._store_result(job, turn, draft)
        except Exception as error:
            if is_of_file(error):
                raise  # not the turn
            await self._after_failure(job, turn, error)

    async def _draft_locally(self, turn: Turn) -> Distillate:
        """Drafts in a thread: a long turn must not stop the event loop."""
        return await asyncio.to_thread(distil, turn, self.verbosity)

    async def _store_result(self, job: Job, turn: Turn, draft: Distillate) -> None:
        parts = (event.parts for event in turn.events)
        record = record_of(turn.prompt, parts) if self.keeps_records else ()
        finished = self._store.finish_job(
            job, turn, draft, record=record, is_draft=self.queues_refinements
        )
        if await asyncio.wrap_future(finished):
            self._contexts.mark_stale(turn.project)
            self._announcer.memory_stored(turn, draft)

    async def _after_failure(self, job: Job, turn: Turn, error: Exception) -> None:
        reason = f"{type(error).__name__}: {error}"
        log_prefix = session_mark(turn.content_session_id)
        log.warning("%sturn %d, try %d: %s", log_prefix, turn.id, job.attempts, reason)
        if job.attempts < TRIES:
            delay = self._backoff(job.attempts)
            await asyncio.wrap_future(self._store.retry_job(job, reason, delay))
        else:
            await self._set_aside(job, turn, reason)

    async def _set_aside(self, job: Job, turn: Turn, reason: str) -> None:
        if not await asyncio.wrap_future(self._store.set_job_aside(job, reason)):
            return
        log_prefix = session_mark(turn.content_session_id)
        log.error("%sturn %d cannot be distilled: %s", log_prefix, turn.id, reason)
        trouble.report(
            os.fsencode(self._layout.root),
            f"a turn could not be summarised; to try again: claude-mem retry ({reason})",
        )

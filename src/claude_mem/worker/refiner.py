"""Refinements: asks a model to revise stored drafts, next to the worker's main loop.

`Refiner` claims what is due, runs a few at a time, and handles every outcome. Whatever happens, the
draft stays until something better replaces it. Each call is charged before it is made, and its
lease is renewed while it runs.
"""

import asyncio
import logging
import os
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from claude_mem.config import Layout, Settings
from claude_mem.hook import trouble
from claude_mem.hook.kill_points import reach
from claude_mem.intake.event_reader import EventReader
from claude_mem.observer.models.claude import ClaudeModel
from claude_mem.observer.models.claude_files import ClaudeFiles
from claude_mem.observer.models.failures import (
    LostSession,
    NotAllowed,
    ObserverError,
    QuotaSpent,
    RateLimited,
    Refused,
    TooLong,
    Transient,
    UnusableReply,
)
from claude_mem.observer.models.model import Model, Reply
from claude_mem.observer.models.prompts import MAX_RECORD_CHARS, ModelRequest, build_request
from claude_mem.observer.models.revision import redact_reply, revise_draft
from claude_mem.store import Store
from claude_mem.store.clock import Clock
from claude_mem.store.database import is_of_file
from claude_mem.store.queue import LEASE_MS
from claude_mem.store.spending import Caps
from claude_mem.types import Distillate, Job, Turn, Verbosity
from claude_mem.worker.announcer import Announcer
from claude_mem.worker.contexts import Contexts
from claude_mem.worker.session_logging import session_mark, turn_step

log = logging.getLogger("claude_mem.refiner")

TRIES = 4
CLAIMS = 25  # a turn that was claimed so often without a result kills its worker
RENEW_SECONDS = LEASE_MS / 3000
FIRST_WAIT_MS, MAX_WAIT_MS = 5_000, 3_600_000
BREAKER_WAIT_MS = 3_600_000  # after a refused key or a spent quota
OLDER_TURNS = 0.8  # of the daily caps, so that today's turns are revised, too
# The second limit is for a model with a small context.
RECORD_LIMITS = (MAX_RECORD_CHARS, MAX_RECORD_CHARS // 3)

Backoff = Callable[[int], int]  # milliseconds to wait after so many failures in a row


def exponential_with_jitter(failures: int) -> int:
    wait = min(MAX_WAIT_MS, FIRST_WAIT_MS * 4 ** min(failures, 10))
    return int(wait * random.uniform(0.5, 1.0))


@dataclass(frozen=True, slots=True)
class Policy:
    caps: Caps
    verbosity: Verbosity = "normal"
    upgrade_drafts: bool = False  # drafts wait for a new day or a valid login
    max_concurrent: int = 2
    backoff: Backoff = exponential_with_jitter


def policy_of(settings: Settings) -> Policy:
    return Policy(
        caps=caps_of(settings),
        verbosity=settings.observer.verbosity,
        upgrade_drafts=settings.observer.upgrade_drafts,
        max_concurrent=settings.observer.clients,
    )


def caps_of(settings: Settings) -> Caps:
    return Caps(settings.observer.daily_requests, settings.observer.daily_tokens)


class Refiner:
    def __init__(
        self,
        layout: Layout,
        store: Store,
        clock: Clock,
        announcer: Announcer,
        contexts: Contexts,
        reader: EventReader,
        claude: ClaudeFiles,
        wake: Callable[[], None],
    ) -> None:
        self._layout, self._store, self._clock = layout, store, clock
        self._announcer, self._contexts = announcer, contexts
        self._reader = reader  # whose redaction follows the settings
        self._claude = claude
        self._wake = wake  # at the end of each: there is room for the next one
        self._model: Model | None = None
        self._policy = Policy(Caps(0, 0))
        self._running: dict[asyncio.Task[None], int] = {}  # and the session of each
        self._claiming = asyncio.Lock()
        self._reported: set[type[ObserverError]] = set()

    async def use(self, model: Model | None, policy: Policy) -> None:
        """Switch to this model, or to none; running refinements are put back for it."""
        await self.close()
        self._policy = policy
        await self._drop_earlier_conversations()
        if model is None and not policy.upgrade_drafts:
            await asyncio.wrap_future(self._store.give_up_all_refinements("no model is in use"))
        self._model = model
        await self.clean_up_conversations()

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

    async def clean_up_conversations(self) -> None:
        """End the conversations of sessions that are over and have no work left, and delete what
        conversations left."""
        if self._store.has_finished_conversation():
            model = self._model
            sessions = await asyncio.wrap_future(self._store.drop_finished_conversations())
            if model is not None:
                for session in sessions:
                    await model.end_conversation(session)
        # A conversation that just began is not recorded yet. Claude Code's transcripts are deleted
        # also while another provider is in use.
        if not self._running and self._claude.has_transcripts():
            self._claude.delete_transcripts(self._store.resumable_conversations(ClaudeModel.name))

    async def _drop_earlier_conversations(self) -> None:
        """Drops the conversations of an earlier worker or observer before any client runs. None is
        resumed: a new one gets the session's memories instead."""
        self._claude.delete_pid_files()
        await asyncio.wrap_future(self._store.drop_all_conversations())

    def _start(self, job: Job, turn: Turn, draft: Distillate, model: Model) -> None:
        task = asyncio.create_task(self._refine(job, turn, draft, model))
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

    # One refinement

    async def _refine(self, job: Job, turn: Turn, draft: Distillate, model: Model) -> None:
        try:
            if job.attempts > CLAIMS:
                await self._give_up_refinement(job, "claimed too often without a result")
                return
            turn_step(turn, f"refining with {model.name}, try {job.attempts}")
            await self._attempt(job, turn, draft, model)
        except asyncio.CancelledError:
            await self._release(job, model.name)
            raise
        except ObserverError as error:
            await self._after_failure(job, turn, model.name, error)
        except Exception as error:
            if is_of_file(error):
                await self._release(job, model.name)
                raise  # not the turn
            log.exception(
                "%sturn %d, %s", session_mark(turn.content_session_id), turn.id, model.name
            )
            refused = Refused(f"{type(error).__name__}: {error}")
            await self._after_failure(job, turn, model.name, refused)

    async def _attempt(self, job: Job, turn: Turn, draft: Distillate, model: Model) -> None:
        session = turn.session_db_id
        for max_record_chars in RECORD_LIMITS:
            resume = self._store.conversation_to_resume(session, model.name)
            is_open = model.has_conversation(session)
            request = build_request(
                turn,
                draft,
                self._policy.verbosity,
                continues=is_open or resume is not None,
                max_record_chars=max_record_chars,
            )
            charge = request.max_tokens + model.conversation_tokens(session, resume)
            if not await self._is_permitted(job, model.name, charge):
                return
            try:
                reply = await self._ask(job, model, request, session, None if is_open else resume)
            except (LostSession, TooLong) as error:
                log_prefix = session_mark(turn.content_session_id)
                log.info("%sturn %d, %s: %s; starting a new conversation",
                         log_prefix, turn.id, model.name, error)  # fmt: skip
                await model.end_conversation(session)
                await asyncio.wrap_future(self._store.drop_conversation(session))
                if max_record_chars == RECORD_LIMITS[-1]:
                    raise Refused(str(error)) from None
                continue
            if reply is not None:
                turn_step(turn, f"{model.name} replied with {len(reply.text)} characters")
                await self._correct_charge(model.name, charge, reply)
                await self._store_revision(job, turn, draft, model.name, reply)
            return

    async def _is_permitted(self, job: Job, name: str, charge: int) -> bool:
        is_requested = self._store.is_requested_refinement(job)
        caps = self._policy.caps.share(OLDER_TURNS) if is_requested else self._policy.caps
        permission = await asyncio.wrap_future(self._store.ask_permission(name, charge, caps))
        if not permission.granted:
            await self._postpone(
                job, permission.reason, permission.until_ms, lasting=permission.lasting
            )
        return permission.granted

    async def _ask(
        self, job: Job, model: Model, request: ModelRequest, session: int, resume: str | None
    ) -> Reply | None:
        """None: the lease was lost meanwhile."""
        reach(b"refine.before_call")
        task = asyncio.ensure_future(model.ask(request, session, resume))
        try:
            while not (await asyncio.wait([task], timeout=RENEW_SECONDS))[0]:
                if not await asyncio.wrap_future(self._store.renew_refinement(job)):
                    return None
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        reach(b"refine.after_call")
        return task.result()

    async def _correct_charge(self, name: str, charge: int, reply: Reply) -> None:
        used = charge if reply.tokens is None else reply.tokens
        await asyncio.wrap_future(self._store.settle_charge(name, charge, used, reply.requests))

    async def _store_revision(
        self, job: Job, turn: Turn, draft: Distillate, name: str, reply: Reply
    ) -> None:
        await asyncio.wrap_future(self._store.close_breaker(name))
        await self._record_conversation(turn.session_db_id, name, reply.provider_session_id)
        # A reply of megabytes takes seconds: not in the event loop, where hooks wait.
        revision = await asyncio.to_thread(
            revise_draft, turn, draft, reply, name, self._reader.redactor
        )
        saved = await asyncio.wrap_future(
            self._store.finish_refinement(job, turn, revision.distillate, revision.kept_reply)
        )
        if saved:
            if revision.skip_reason:
                log_prefix = session_mark(turn.content_session_id)
                log.info("%sturn %d, no summary: %s", log_prefix, turn.id, revision.skip_reason)
            self._contexts.mark_stale(turn.project)
            self._announcer.memory_stored(turn, revision.distillate)

    async def _record_conversation(self, session: int, name: str, identity: str | None) -> None:
        if identity is None:
            recorded = self._store.drop_conversation(session)
        else:
            recorded = self._store.remember_conversation(session, name, identity)
        await asyncio.wrap_future(recorded)

    # Outcomes without a revision

    async def _release(self, job: Job, name: str) -> None:
        """Put the job back without counting a try, and let the breaker send another probe."""
        put_back = self._store.put_back_refinement(job, "", self._clock(), counted=False)
        await asyncio.shield(asyncio.wrap_future(put_back))
        await asyncio.shield(asyncio.wrap_future(self._store.release_probe(name)))

    async def _postpone(self, job: Job, reason: str, until_ms: int, *, lasting: bool) -> None:
        may_wait = self._policy.upgrade_drafts or self._store.is_requested_refinement(job)
        if lasting and not may_wait:
            await self._give_up_refinement(job, reason)
        else:
            await asyncio.wrap_future(
                self._store.put_back_refinement(job, reason, until_ms, counted=False)
            )

    async def _after_failure(self, job: Job, turn: Turn, name: str, error: ObserverError) -> None:
        reason = self._reader.redactor.redact(f"{name}: {error}")
        log_prefix = session_mark(turn.content_session_id)
        log.warning("%sturn %d, try %d, %s", log_prefix, turn.id, job.attempts, reason)
        if isinstance(error, NotAllowed | QuotaSpent):
            wait = max(BREAKER_WAIT_MS, int((error.retry_after or 0) * 1000))
            until = self._clock() + wait
            await asyncio.wrap_future(self._store.open_breaker(name, reason, until, lasting=True))
            self._report_once(error, reason)
            await self._postpone(job, reason, until, lasting=True)
        elif isinstance(error, RateLimited | Transient):
            await self._retry_later(job, name, error, reason)
        else:
            await asyncio.wrap_future(self._store.release_probe(name))
            reply = error.reply if isinstance(error, UnusableReply) else None
            await self._give_up_refinement(job, reason, reply)

    async def _retry_later(self, job: Job, name: str, error: ObserverError, reason: str) -> None:
        wait = self._policy.backoff(self._store.breaker_failures(name))
        if error.retry_after is not None:
            wait = max(int(error.retry_after * 1000), wait // 4)
        until = self._clock() + wait
        if isinstance(error, RateLimited):
            await asyncio.wrap_future(self._store.open_breaker(name, reason, until, lasting=False))
        else:
            await asyncio.wrap_future(self._store.note_failure(name, reason, until))
        if job.attempts >= TRIES:
            await self._give_up_refinement(job, reason)
        else:
            await asyncio.wrap_future(self._store.put_back_refinement(job, reason, until))

    async def _give_up_refinement(self, job: Job, reason: str, reply: str | None = None) -> None:
        """A reply that could not be used is stored with the job."""
        redactor = self._reader.redactor
        text = await asyncio.to_thread(redact_reply, redactor, reply) if reply else reply
        await asyncio.wrap_future(self._store.give_up_refinement(job, reason, text))

    def _report_once(self, error: ObserverError, reason: str) -> None:
        """A login that fails silently would go unnoticed for weeks."""
        if type(error) in self._reported:
            return
        self._reported.add(type(error))
        log.error("the observer cannot use its model: %s", reason)  # also `lastError` of /health
        trouble.report(
            os.fsencode(self._layout.root),
            f"the observer cannot use its model ({reason}); sessions are summarised without it. "
            "See: claude-mem observer",
        )

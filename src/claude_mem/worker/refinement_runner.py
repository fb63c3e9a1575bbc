"""One refinement: ask the model to revise a stored draft, and handle every outcome of that.

Whatever happens, the draft stays until something better replaces it. Each call is charged before
it is made, and its lease is renewed while it runs.
"""

import asyncio
import logging
import os
import random
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace

from claude_mem.config import Layout, Settings
from claude_mem.hook import trouble
from claude_mem.hook.kill_points import reach
from claude_mem.intake.dialects import EventReader
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
from claude_mem.observer.models.prompts import Request, build_request
from claude_mem.observer.models.revision import Revision, revise_draft
from claude_mem.observer.models.turn_prompt import MAX_RECORD_CHARS
from claude_mem.store import Store
from claude_mem.store.clock import Clock
from claude_mem.store.queue import LEASE_MS
from claude_mem.store.spending import Caps
from claude_mem.types import Distillate, Job, Turn, Verbosity
from claude_mem.worker.announcer import Announcer
from claude_mem.worker.rendered_contexts import StaleContexts
from claude_mem.worker.reply_redaction import redact_markup, redact_reply, redact_revision

log = logging.getLogger("claude_mem.refinement")

TRIES = 4
CLAIMS = 25  # a turn that was claimed so often without a result kills its worker
RENEW_SECONDS = LEASE_MS / 3000
FIRST_WAIT_MS, MAX_WAIT_MS = 5_000, 3_600_000
BREAKER_WAIT_MS = 3_600_000  # after a refused key or a spent quota
OLDER_TURNS = 0.8  # of the daily caps, so that the turns of today are revised, too
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


class RefinementRunner:
    def __init__(
        self,
        layout: Layout,
        store: Store,
        clock: Clock,
        announcer: Announcer,
        stale_contexts: StaleContexts,
        reader: EventReader,
    ) -> None:
        self._layout, self._store, self._clock = layout, store, clock
        self._announcer, self._stale_contexts = announcer, stale_contexts
        self._reader = reader  # whose redaction follows the settings
        self._reported: set[type[ObserverError]] = set()

    async def run(
        self, job: Job, turn: Turn, draft: Distillate, model: Model, policy: Policy
    ) -> None:
        try:
            if job.attempts > CLAIMS:
                await self._keep_draft(job, "claimed too often without a result")
                return
            await self._attempt(job, turn, draft, model, policy)
        except asyncio.CancelledError:
            await self._release(job, model.name)
            raise
        except sqlite3.OperationalError:
            await self._release(job, model.name)
            raise  # the disk or the database, not the turn
        except ObserverError as error:
            await self._after_failure(job, turn, model.name, policy, error)
        except Exception as error:
            log.exception("turn %d, %s", turn.id, model.name)
            refused = Refused(f"{type(error).__name__}: {error}")
            await self._after_failure(job, turn, model.name, policy, refused)

    async def _attempt(
        self, job: Job, turn: Turn, draft: Distillate, model: Model, policy: Policy
    ) -> None:
        session = turn.session_db_id
        for max_record_chars in RECORD_LIMITS:
            resume = self._store.conversation_to_resume(session, model.name)
            is_open = model.has_conversation(session)
            request = build_request(
                turn,
                draft,
                policy.verbosity,
                continues=is_open or resume is not None,
                max_record_chars=max_record_chars,
            )
            charge = request.max_tokens + model.conversation_tokens(session, resume)
            if not await self._is_permitted(job, model.name, policy, charge):
                return
            try:
                reply = await self._ask(job, model, request, session, None if is_open else resume)
            except (LostSession, TooLong) as error:
                log.info("turn %d, %s: %s; starting a new conversation", turn.id, model.name, error)
                await model.end_conversation(session)
                await asyncio.wrap_future(self._store.drop_conversation(session))
                if max_record_chars == RECORD_LIMITS[-1]:
                    raise Refused(str(error)) from None
                continue
            if reply is not None:
                await self._settle(model.name, charge, reply)
                await self._store_revision(job, turn, draft, model.name, reply)
            return

    async def _is_permitted(self, job: Job, name: str, policy: Policy, charge: int) -> bool:
        is_requested = self._store.is_requested_refinement(job)
        caps = policy.caps.share(OLDER_TURNS) if is_requested else policy.caps
        permission = await asyncio.wrap_future(self._store.ask_permission(name, charge, caps))
        if not permission.granted:
            await self._postpone(
                job, policy, permission.reason, permission.until_ms, lasting=permission.lasting
            )
        return permission.granted

    async def _ask(
        self, job: Job, model: Model, request: Request, session: int, resume: str | None
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

    async def _settle(self, name: str, charge: int, reply: Reply) -> None:
        used = charge if reply.tokens is None else reply.tokens
        await asyncio.wrap_future(self._store.settle_charge(name, charge, used, reply.requests))

    async def _store_revision(
        self, job: Job, turn: Turn, draft: Distillate, name: str, reply: Reply
    ) -> None:
        await asyncio.wrap_future(self._store.close_breaker(name))
        await self._record_conversation(turn.session_db_id, name, reply.provider_session_id)
        # A reply of megabytes takes seconds: not in the event loop, where hooks wait.
        revision = await asyncio.to_thread(self._revise, turn, draft, name, reply)
        saved = await asyncio.wrap_future(
            self._store.finish_refinement(job, turn, revision.distillate, revision.full_reply)
        )
        if saved:
            self._stale_contexts.add(turn.project)
            self._announcer.memory_stored(turn, revision.distillate)

    async def _record_conversation(self, session: int, name: str, identity: str | None) -> None:
        if identity is None:
            recorded = self._store.drop_conversation(session)
        else:
            recorded = self._store.remember_conversation(session, name, identity)
        await asyncio.wrap_future(recorded)

    def _revise(self, turn: Turn, draft: Distillate, name: str, reply: Reply) -> Revision:
        redactor = self._reader.redactor
        redacted = replace(reply, text=redact_markup(redactor, reply.text))
        return redact_revision(redactor, revise_draft(turn, draft, redacted, name))

    # Outcomes without a revision

    async def _release(self, job: Job, name: str) -> None:
        """Put the job back without counting a try, and let the breaker send another probe."""
        put_back = self._store.put_back_refinement(job, "", self._clock(), counted=False)
        await asyncio.shield(asyncio.wrap_future(put_back))
        await asyncio.shield(asyncio.wrap_future(self._store.give_probe_back(name)))

    async def _postpone(
        self, job: Job, policy: Policy, reason: str, until_ms: int, *, lasting: bool
    ) -> None:
        waits = policy.upgrade_drafts or self._store.is_requested_refinement(job)
        if lasting and not waits:
            await self._keep_draft(job, reason)
        else:
            await asyncio.wrap_future(
                self._store.put_back_refinement(job, reason, until_ms, counted=False)
            )

    async def _after_failure(
        self, job: Job, turn: Turn, name: str, policy: Policy, error: ObserverError
    ) -> None:
        reason = self._reader.redactor.redact(f"{name}: {error}")
        log.warning("turn %d, try %d, %s", turn.id, job.attempts, reason)
        if isinstance(error, NotAllowed | QuotaSpent):
            wait = max(BREAKER_WAIT_MS, int((error.retry_after or 0) * 1000))
            until = self._clock() + wait
            await asyncio.wrap_future(self._store.open_breaker(name, reason, until, lasting=True))
            self._report_once(error, reason)
            await self._postpone(job, policy, reason, until, lasting=True)
        elif isinstance(error, RateLimited | Transient):
            await self._retry_later(job, name, policy, error, reason)
        else:
            await asyncio.wrap_future(self._store.give_probe_back(name))
            reply = error.reply if isinstance(error, UnusableReply) else None
            await self._keep_draft(job, reason, reply)

    async def _retry_later(
        self, job: Job, name: str, policy: Policy, error: ObserverError, reason: str
    ) -> None:
        wait = policy.backoff(self._store.breaker_failures(name))
        if error.retry_after is not None:
            wait = max(int(error.retry_after * 1000), wait // 4)
        until = self._clock() + wait
        if isinstance(error, RateLimited):
            await asyncio.wrap_future(self._store.open_breaker(name, reason, until, lasting=False))
        else:
            await asyncio.wrap_future(self._store.note_failure(name, reason, until))
        if job.attempts >= TRIES:
            await self._keep_draft(job, reason)
        else:
            await asyncio.wrap_future(self._store.put_back_refinement(job, reason, until))

    async def _keep_draft(self, job: Job, reason: str, reply: str | None = None) -> None:
        """A reply that could not be used is stored with the job."""
        redactor = self._reader.redactor
        text = await asyncio.to_thread(redact_reply, redactor, reply) if reply else reply
        await asyncio.wrap_future(self._store.keep_draft(job, reason, text))

    def _report_once(self, error: ObserverError, reason: str) -> None:
        """A login that fails silently would go unnoticed for weeks."""
        if type(error) in self._reported:
            return
        self._reported.add(type(error))
        trouble.report(
            os.fsencode(self._layout.root),
            f"the observer cannot use its model ({reason}); sessions are summarised without it. "
            "See: claude-mem observer",
        )

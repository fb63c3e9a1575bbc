"""Has drafts revised by a model, beside the worker's own loop and never in its way.

A draft is already stored when its refinement is claimed; whatever happens here, it stands until
a better one takes its place. Every call is charged before it is made, its lease is renewed while it
runs, and what it ends with decides how things go on: see `_after_failure`.
"""

import asyncio
import logging
import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from claude_mem.config import Layout
from claude_mem.hook import trouble
from claude_mem.hook.faults import reach
from claude_mem.observer.models.claude import ClaudeModel
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
from claude_mem.observer.models.model import ModelObserver, Reply
from claude_mem.observer.models.prompts import MOST_CHARS, Ask
from claude_mem.store import Store
from claude_mem.store.clock import Clock
from claude_mem.store.queue import LEASE_MS
from claude_mem.store.spending import Caps
from claude_mem.types import Distillate, Job, Turn

log = logging.getLogger("claude_mem.refiner")

TRIES = 4
CLAIMS = 25  # a turn that was claimed so often without an end kills its worker
RENEW_SECONDS = LEASE_MS / 3000
FIRST_WAIT_MS, LONGEST_WAIT_MS = 5_000, 3_600_000
LASTING_WAIT_MS = 3_600_000  # a refused key or a spent quota is tried again after so long
SHORTER = (None, MOST_CHARS // 3)  # of a record: as it is, then for a model with little room

Stored = Callable[[Turn, Distillate], None]
Redact = Callable[[str], str]


class Waits(Protocol):
    def __call__(self, failures: int) -> int:
        """Milliseconds after so many failures in a row."""
        ...


def exponential_with_jitter(failures: int) -> int:
    most = min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 4 ** min(failures, 10))
    return int(most * random.uniform(0.5, 1.0))


@dataclass(frozen=True, slots=True)
class Policy:
    caps: Caps
    upgrades: bool = False  # whether drafts wait for a new day or a mended login
    at_once: int = 2
    waits: Waits = exponential_with_jitter


class Refiner:
    def __init__(
        self,
        layout: Layout,
        store: Store,
        clock: Clock,
        *,
        stored: Stored | None = None,
        woken: Callable[[], None] = lambda: None,
        redact: Redact = lambda text: text,
        sweep: Callable[[set[str]], None] = lambda known: None,
    ) -> None:
        self._layout, self._store, self._clock = layout, store, clock
        self._stored, self._woken, self._redact = stored, woken, redact
        self._sweep = sweep  # what Claude Code left, where another is used now
        self._is_tidy = False  # no conversation was given up since the last sweep
        self._observer: ModelObserver | None = None
        self._policy = Policy(Caps(0, 0))
        self._running: dict[asyncio.Task[None], int] = {}
        self._starting = asyncio.Lock()
        self._told: set[str] = set()

    @property
    def observer(self) -> ModelObserver | None:
        return self._observer

    async def use(self, observer: ModelObserver | None, policy: Policy) -> None:
        """From now on this one, or none: what runs is put back for it."""
        before, self._observer, self._policy = self._observer, None, policy
        await self._cancel(list(self._running))
        if before is not None:
            await before.model.close()
        if observer is None and not policy.upgrades:
            await asyncio.wrap_future(self._store.keep_all_drafts("no model is used now"))
        if observer is not None:  # a conversation with another provider is not gone on with
            await asyncio.wrap_future(self._store.drop_other_provider_sessions(observer.name))
        self._observer = observer
        await self.clean_up(thoroughly=True)

    async def close(self) -> None:
        before, self._observer = self._observer, None
        await self._cancel(list(self._running))
        if before is not None:
            await before.model.close()

    async def start_due(self) -> int:
        """Begins as much of what is due as may run at once; how much that was."""
        begun = 0
        async with self._starting:
            while self._observer is not None and len(self._running) < self._policy.at_once:
                claimed = await asyncio.wrap_future(self._store.claim_refinement())
                if claimed is None:
                    break
                reach(b"refine.after_claim")
                job, turn = claimed
                if turn is None:
                    await asyncio.wrap_future(self._store.drop_refinement(job))
                    continue
                self._start(job, turn, self._observer)
                begun += 1
        return begun

    async def run_due(self) -> int:
        """All that is due, to its end."""
        done = 0
        while await self.start_due() or self._running:
            tasks = list(self._running)
            await asyncio.wait(tasks)
            done += len(tasks)
        return done

    async def cancel_session(self, session_db_id: int, seconds: float) -> None:
        """Waits no longer than that; a client that does not end by itself is killed later."""
        until = asyncio.get_running_loop().time() + seconds
        await self._cancel([t for t, s in self._running.items() if s == session_db_id], seconds)
        if self._observer is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await self._observer.model.end(session_db_id)

    def next_due(self) -> int | None:
        """What is due already waits for something that wakes the worker by itself."""
        due = self._store.next_refinement() if self._observer is not None else None
        return due if due is not None and due > self._clock() else None

    async def clean_up(self, *, thoroughly: bool = False) -> None:
        """Ends conversations of sessions that are over, and deletes what is left of them."""
        nothing_to_sweep = self._is_tidy or bool(self._running)
        if nothing_to_sweep and not thoroughly and not self._store.has_finished_provider_session():
            return
        self._is_tidy = False
        ended = await asyncio.wrap_future(self._store.drop_finished_provider_sessions())
        model = self._observer.model if self._observer is not None else None
        if model is not None:
            for session in ended:
                await model.end(session)
        if self._running:  # a conversation that has just begun is not yet known by its name
            return
        if model is not None:
            model.sweep(self._store.provider_sessions(model.name))
        if model is None or model.name != ClaudeModel.name:
            self._sweep(self._store.provider_sessions(ClaudeModel.name))
        self._is_tidy = True

    def _start(self, job: Job, turn: Turn, observer: ModelObserver) -> None:
        task = asyncio.create_task(self._refine(job, turn, observer))
        self._running[task] = turn.session_db_id
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        if not task.cancelled() and (error := task.exception()):
            log.error("a refinement failed", exc_info=error)
        self._woken()

    async def _cancel(self, tasks: list[asyncio.Task[None]], seconds: float | None = None) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def _refine(self, job: Job, turn: Turn, observer: ModelObserver) -> None:
        try:
            if job.attempts > CLAIMS:
                await self._keep(job, "claimed too often without an end")
                return
            await self._attempt(job, turn, observer)
        except asyncio.CancelledError:
            self._is_tidy = False
            await self._let_go(job, observer.name)
            raise
        except sqlite3.OperationalError:
            await self._let_go(job, observer.name)
            raise  # the disk or the file, not the turn
        except ObserverError as error:
            self._is_tidy = False
            await self._after_failure(job, turn, observer.name, error)
        except Exception as error:
            log.exception("turn %d, %s", turn.id, observer.name)
            await self._after_failure(
                job, turn, observer.name, Refused(f"{type(error).__name__}: {error}")
            )

    async def _let_go(self, job: Job, name: str) -> None:
        """Not its fault: it begins anew, uncounted, and so does a probe of the breaker."""
        put_back = self._store.put_back_refinement(job, "", self._clock(), counted=False)
        await asyncio.shield(asyncio.wrap_future(put_back))
        await asyncio.shield(asyncio.wrap_future(self._store.give_probe_back(name)))

    async def _attempt(self, job: Job, turn: Turn, observer: ModelObserver) -> None:
        name, session = observer.name, turn.session_db_id
        for most in SHORTER:
            resume = self._store.provider_session_to_resume(session, name)
            known = observer.model.knows(session)
            continues = known or resume is not None
            draft, ask = observer.prepare(turn, continues=continues, most=most)
            charge = ask.tokens + observer.model.carries(session, resume)
            if not await self._may_ask(job, name, charge):
                return
            try:
                reply = await self._call(job, observer, ask, session, None if known else resume)
            except (LostSession, TooLong) as error:
                log.info("turn %d, %s: %s; begun afresh", turn.id, name, error)
                await observer.model.end(session)
                await asyncio.wrap_future(self._store.drop_provider_session(session))
                self._is_tidy = False
                if most is SHORTER[-1]:
                    raise Refused(str(error)) from None
                continue
            if reply is None:
                return  # the lease was lost
            await self._settle(name, charge, reply)
            await self._answered(job, turn, observer, draft, reply)
            return

    async def _may_ask(self, job: Job, name: str, charge: int) -> bool:
        asking = self._store.ask_permission(name, charge, self._policy.caps)
        permission = await asyncio.wrap_future(asking)
        if permission.granted:
            return True
        await self._wait_or_keep(job, permission.reason, permission.until_ms, permission.lasting)
        return False

    async def _wait_or_keep(self, job: Job, reason: str, until_ms: int, lasting: bool) -> None:
        if lasting and not self._policy.upgrades:
            await self._keep(job, reason)
        else:
            await asyncio.wrap_future(
                self._store.put_back_refinement(job, reason, until_ms, counted=False)
            )

    async def _call(
        self, job: Job, observer: ModelObserver, ask: Ask, session: int, resume: str | None
    ) -> Reply | None:
        """None: the lease was lost meanwhile, and the answer with it."""
        reach(b"refine.before_call")
        task = asyncio.ensure_future(observer.model.ask(ask, session, resume))
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

    async def _answered(
        self, job: Job, turn: Turn, observer: ModelObserver, draft: Distillate, reply: Reply
    ) -> None:
        name = observer.name
        await asyncio.wrap_future(self._store.close_breaker(name))
        await self._remember_conversation(turn, name, reply)
        # Megabytes take seconds: not in the loop, where hooks wait for an answer.
        made, beside = await asyncio.to_thread(self._read, observer, draft, reply)
        saving = self._store.finish_refinement(job, turn, made, beside)
        saved = await asyncio.wrap_future(saving)
        if saved and self._stored is not None:
            self._stored(turn, made)

    async def _settle(self, name: str, charge: int, reply: Reply) -> None:
        used = charge if reply.tokens is None else reply.tokens
        settled = self._store.settle_charge(name, charge, used, reply.requests)
        await asyncio.wrap_future(settled)

    def _read(
        self, observer: ModelObserver, draft: Distillate, reply: Reply
    ) -> tuple[Distillate, str | None]:
        return observer.read(draft, replace(reply, text=self._redact(reply.text)))

    async def _remember_conversation(self, turn: Turn, name: str, reply: Reply) -> None:
        if reply.provider_session_id is None:
            self._is_tidy = self._is_tidy and name != ClaudeModel.name
            await asyncio.wrap_future(self._store.drop_provider_session(turn.session_db_id))
        else:
            await asyncio.wrap_future(
                self._store.remember_provider_session(
                    turn.session_db_id, name, reply.provider_session_id
                )
            )

    async def _after_failure(self, job: Job, turn: Turn, name: str, error: ObserverError) -> None:
        reason = self._redact(f"{name}: {error}")
        log.warning("turn %d, try %d, %s", turn.id, job.attempts, reason)
        now = self._clock()
        if isinstance(error, NotAllowed | QuotaSpent):
            until = now + max(LASTING_WAIT_MS, int((error.retry_after or 0) * 1000))
            await asyncio.wrap_future(self._store.open_breaker(name, reason, until, lasting=True))
            self._tell(error, reason)
            await self._wait_or_keep(job, reason, until, lasting=True)
        elif isinstance(error, RateLimited | Transient):
            await self._again_later(job, name, error, reason, now)
        else:
            await asyncio.wrap_future(self._store.give_probe_back(name))
            reply = error.reply if isinstance(error, UnusableReply) else None
            await self._keep(job, reason, reply)

    async def _again_later(
        self, job: Job, name: str, error: ObserverError, reason: str, now: int
    ) -> None:
        failures = self._store.breaker_failures(name)
        wait = self._policy.waits(failures)
        if error.retry_after is not None:
            wait = max(int(error.retry_after * 1000), wait // 4)
        until = now + wait
        if isinstance(error, RateLimited):
            await asyncio.wrap_future(self._store.open_breaker(name, reason, until, lasting=False))
        else:
            await asyncio.wrap_future(self._store.note_failure(name, reason, until))
        if job.attempts >= TRIES:
            await self._keep(job, reason)
        else:
            await asyncio.wrap_future(self._store.put_back_refinement(job, reason, until))

    async def _keep(self, job: Job, reason: str, reply: str | None = None) -> None:
        """The draft stands; an answer that could not be read is kept with the job."""
        said = await asyncio.to_thread(self._redact, reply) if reply else reply
        await asyncio.wrap_future(self._store.keep_draft(job, reason, said))

    def _tell(self, error: ObserverError, reason: str) -> None:
        """The person, once: a login that fails in silence is the worst of failures."""
        kind = type(error).__name__
        if kind in self._told:
            return
        self._told.add(kind)
        trouble.report(
            os.fsencode(self._layout.root),
            f"the observer cannot use its model ({reason}); memory goes on without it. "
            "claude-mem observer says more",
        )

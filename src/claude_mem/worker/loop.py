"""The worker: wakes, drains the spool, has turns distilled, renders contexts, keeps house."""

import asyncio
import contextlib
import json
import logging
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from claude_mem import __version__
from claude_mem.config import Layout, Settings, load_usable_settings
from claude_mem.hook import trouble
from claude_mem.index.text import full_text
from claude_mem.index.vectors.semantic import SemanticIndex, open_semantic_index
from claude_mem.intake.dialects import EventReader
from claude_mem.intake.intake import DrainCounts, Intake
from claude_mem.intake.projects import Projects
from claude_mem.intake.statements import Statements
from claude_mem.observer import LocalObserver
from claude_mem.observer.models.provider import (
    Provider,
    claude_files,
    create_model,
    select_provider,
)
from claude_mem.privacy import Redactor
from claude_mem.recall.context import build_context
from claude_mem.store import Store
from claude_mem.store.clock import Clock, now_ms
from claude_mem.store.database import is_damage
from claude_mem.store.turns import SESSION_START, Recorded
from claude_mem.types import Event, Json
from claude_mem.versions import parse_version
from claude_mem.worker.activity import Activity
from claude_mem.worker.announcer import Announcer
from claude_mem.worker.contexts import (
    clear_contexts_of_other_budget,
    render_contexts,
    rendered_context,
)
from claude_mem.worker.conversations import Conversations
from claude_mem.worker.embedding import Embedding
from claude_mem.worker.feed import Feed
from claude_mem.worker.housekeeping import Housekeeping
from claude_mem.worker.jobs import JobRunner
from claude_mem.worker.observer_status import describe, policy_of
from claude_mem.worker.refiner import Refiner

log = logging.getLogger("claude_mem.worker")

SAFETY_SCAN_SECONDS = 60.0
GIVEN_CONTEXT = ("startup", "clear", "compact")


class Worker:
    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: Clock = now_ms,
        *,
        environ: Mapping[str, str],
        transcripts: Path | None = None,
    ) -> None:
        self.settings, self.store, self.clock = settings, store, clock
        self._environ = environ
        self.transcripts = transcripts  # where the client keeps its own
        full_text.keep_current(store)
        index = open_semantic_index(settings.embedder, clock)
        self.embedding = Embedding(settings.layout, store, index, clock)
        self.feed = Feed()
        self.activity = Activity(settings.layout)
        self.projects = Projects(Path(home) if (home := environ.get("HOME")) else None)
        self.reader = EventReader(
            redactor=Redactor(settings.capture.redact_allow),
            projects=self.projects,
        )
        self.reader.use(settings.capture)
        self.intake = Intake(settings.layout, store, self.reader, self._heard, self._given)
        self._wake = asyncio.Event()
        self.announcer = Announcer(self.feed, self._wake)
        self.jobs = JobRunner(
            settings.layout,
            store,
            LocalObserver(),
            self.announcer,
            statements=Statements(store, self.reader),
        )
        conversations = Conversations(store, claude_files(settings.layout, environ))
        self.refiner = Refiner(
            settings.layout, store, clock, self.announcer, conversations, self.reader
        )
        self.provider = Provider("local", "the worker is starting")
        self.housekeeping = Housekeeping(
            settings.layout, store, settings.sessions, settings.retention
        )
        self._applying = asyncio.Lock()

    @property
    def semantic_index(self) -> SemanticIndex | None:
        return self.embedding.index

    def wake(self) -> None:
        self._wake.set()

    async def reload_settings(self, *, restart_observer: bool = False) -> list[str]:
        """Read the settings again and apply them; returns the problems with them."""
        settings, problems = await asyncio.to_thread(load_usable_settings, self._environ)
        report_problems(settings.layout, problems)
        await self.apply(settings, restart_observer=restart_observer)
        return problems

    async def apply(self, settings: Settings, *, restart_observer: bool = False) -> None:
        """Make every part follow these settings, but for those that need a restart."""
        async with self._applying:
            previous, self.settings = self.settings, settings
            self.reader.use(settings.capture)
            self.housekeeping.use(settings.sessions, settings.retention)
            if settings.embedder != previous.embedder:
                await self.embedding.use(open_semantic_index(settings.embedder, self.clock))
            if clear_contexts_of_other_budget(settings.layout, settings.context.tokens):
                self.announcer.projects_changed(*(str(p["key"]) for p in self.store.projects()))
            if restart_observer or settings.observer != previous.observer:
                await self._use_observer(settings)
        self.wake()

    async def _use_observer(self, settings: Settings) -> None:
        self.provider = await asyncio.to_thread(select_provider, settings, self._environ)
        log.info("observer: %s (%s)", self.provider.active, self.provider.reason)
        self.jobs.queues_refinements = self.provider.has_model
        model = await asyncio.to_thread(create_model, self.provider, settings, self._environ)
        await self.refiner.use(model, policy_of(settings))

    def observing(self) -> dict[str, Json]:
        return describe(self.settings, self._environ, self.store, self.clock(), self.provider)

    async def run(self, outdated: Callable[[], bool]) -> None:
        """Until cancelled or outdated."""
        try:
            await self._run(outdated)
        finally:
            self.embedding.stop()

    async def _run(self, outdated: Callable[[], bool]) -> None:
        """Sleeps until something comes, or something is due."""
        await asyncio.wrap_future(self.store.free_all_leases())
        await self.apply(self.settings, restart_observer=True)
        kept_house = 0
        self.activity.reset(self.clock())  # what a worker that was killed left may be long over
        while True:
            self._wake.clear()
            try:
                await self.catch_up()
                await self.refiner.start_due()
                await self.refiner.clean_up()
                await self._index_rest()
                self.embedding.start_if_due()
                if self.clock() - kept_house >= SAFETY_SCAN_SECONDS * 1000:
                    kept_house = self.clock()
                    self.embedding.release_if_idle()
                    if await asyncio.to_thread(self.housekeeping.tick, self.clock()):
                        await self.catch_up()
                    if self.activity.is_processing and not self.store.has_open_turn():
                        self.activity.reset(self.clock())
                pause = self._pause()
                if (
                    parse_version(self.intake.newest_hook) > parse_version(__version__)
                    and outdated()
                ):
                    log.info("a newer version is installed: making room for it")
                    return
            except (sqlite3.Error, OSError) as error:
                if is_damage(error):
                    raise  # the next start checks the file and restores it
                log.exception("will try again")
                trouble.report(os.fsencode(self.settings.layout.root), f"worker: {error}")
                pause = 5.0
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause)

    async def catch_up(self, project_id: int | None = None) -> DrainCounts:
        """Drains the spool and distils what is due, of one project or of all."""
        drained = await asyncio.to_thread(self.intake.drain)
        await self.jobs.run_due(project_id)
        await self._render()
        return drained

    async def _index_rest(self) -> None:
        """What was there before the index was, a piece at a time: hooks write in between."""
        left = self.store.read(full_text.waiting)
        while left:
            before = left
            left = await asyncio.wrap_future(self.store.write(full_text.refresh))
            if left >= before:
                return  # the log says why

    async def context_for(self, project_id: int, without_session: str | None = None) -> str:
        budget = self.settings.context.tokens
        return await asyncio.to_thread(
            build_context, self.store, project_id, budget, without_session
        )

    def _pause(self) -> float:
        moments = (self.store.next_due(), self.refiner.next_due())
        due = min((moment for moment in moments if moment is not None), default=None)
        if due is None:
            return SAFETY_SCAN_SECONDS
        return min(SAFETY_SCAN_SECONDS, max(0.01, (due - self.clock()) / 1000))

    async def render_contexts(self, keys: Iterable[str]) -> None:
        """Of these projects, now."""
        self.announcer.projects_changed(*keys)
        await self._render()

    async def _render(self) -> None:
        for key in self.announcer.take_changed_projects():
            project_id = self.store.project_by_key(key)
            if project_id is not None:
                budget = self.settings.context.tokens
                await asyncio.to_thread(
                    render_contexts, self.settings.layout, self.store, project_id, budget
                )

    def _heard(self, recorded: list[tuple[Event, Recorded]]) -> None:
        if self.activity.update(recorded):
            self.feed.publish(self.processing())
        for event, outcome in recorded:
            if outcome.outcome == "stored":
                self.feed.publish({
                    "type": "event",
                    "event": event.kind,
                    "session_db_id": outcome.session_db_id,
                    "project": event.project.name,
                    "prompt_number": outcome.prompt_number,
                    "tool_name": event.tool_name,
                })  # fmt: skip

    def _given(self, event: Event) -> str | None:
        """The rendered context, which a hook without an answer gives: so does a resume then."""
        if event.kind == SESSION_START and event.detail.get("source") in GIVEN_CONTEXT:
            return rendered_context(self.settings.layout, event.project_dir)
        return None

    def processing(self) -> dict[str, Json]:
        waiting = self.store.queue_state()
        return {
            "type": "processing",
            "isProcessing": self.activity.is_processing,
            "queueDepth": waiting["pending"] + waiting["processing"],
        }


def report_problems(layout: Layout, problems: list[str]) -> None:
    """Problems with settings, in the log and to the user; each is replaced by its default."""
    for problem in problems:
        log.error("%s; the default is used", problem)
        trouble.report(os.fsencode(layout.root), f"{problem}; the default is used")


def as_json_line(value: dict[str, Json]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")

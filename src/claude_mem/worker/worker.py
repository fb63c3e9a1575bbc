"""The worker's main loop, its parts, and how they follow changed settings."""

import asyncio
import logging
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from claude_mem import __version__
from claude_mem.config import Layout, Settings, load_usable_settings
from claude_mem.errors import ClaudeMemError, DamagedDatabase, StoreError
from claude_mem.hook import trouble
from claude_mem.index import indexing
from claude_mem.index.vectors.lazy_index import SemanticIndex, open_semantic_index
from claude_mem.intake.event_reader import EventReader
from claude_mem.intake.projects import open_projects
from claude_mem.intake.spool import DrainCounts, Intake
from claude_mem.intake.watchdog import Watchdog
from claude_mem.observer.models.active_observer import (
    ActiveObserver,
    claude_files,
    create_model,
    select_observer,
)
from claude_mem.recall.recall import Recall, local_recall
from claude_mem.recall.team_interface import JoinedTeam
from claude_mem.redaction import Redactor
from claude_mem.store import Store
from claude_mem.store.clock import Clock, now_ms
from claude_mem.store.database import is_damage, is_full
from claude_mem.store.migrations import missing_tables
from claude_mem.store.turns import Recorded
from claude_mem.types import Event, Json
from claude_mem.versions import parse_version
from claude_mem.worker.announcer import Announcer
from claude_mem.worker.client_titles import ClientTitles
from claude_mem.worker.contexts import (
    Contexts,
    UnsavedContexts,
    are_of_other_budget,
    use_budget,
)
from claude_mem.worker.disk_space import describe_full_disk
from claude_mem.worker.distil_jobs import JobRunner, TranscriptAdditions
from claude_mem.worker.embedding import Embedding
from claude_mem.worker.forgetting import scrub_data_directory
from claude_mem.worker.housekeeping import Housekeeping
from claude_mem.worker.idle_distilling import IdleDistilling
from claude_mem.worker.last_error import LastError
from claude_mem.worker.observer_status import describe
from claude_mem.worker.refiner import Refiner, policy_of
from claude_mem.worker.viewer_links import OneTimeLinks

log = logging.getLogger("claude_mem.worker")

OpenTeam = Callable[["Worker"], JoinedTeam | None]

START_SECONDS = 10.0
SAFETY_SCAN_SECONDS = 60.0
FIRST_HOUSEKEEPING_SECONDS = 3.0  # after the start: whoever waits for the worker comes first
RETRY_SECONDS = 5.0


class Worker:
    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: Clock = now_ms,
        *,
        environ: Mapping[str, str],
        transcripts_dir: Path | None = None,
    ) -> None:
        layout = settings.layout
        self.settings, self.store, self.clock = settings, store, clock
        self.transcripts_dir = transcripts_dir  # of the client
        self.environ = environ
        store.run_before_commit(indexing.refresh)
        self.watchdog = Watchdog()
        self.last_error = LastError()  # the process attaches it to its log
        self.announcer = Announcer(layout, store, clock)
        self.viewer_links = OneTimeLinks(clock)
        self._wake = asyncio.Event()  # the main loop waits for it
        self.cycles = 0  # of the main loop
        self.obstacle = ""  # what its last cycle failed with, for the user
        self._damage: BaseException | None = None  # that a read or write met
        self.projects = open_projects(store, environ)
        self.reader = EventReader(Redactor(), self.projects)
        self.reader.use(settings.capture, keeps_parts=settings.record.is_on)
        self.titles = ClientTitles(store, self.reader)
        self.unsaved_contexts = UnsavedContexts(layout, store)
        self.intake = Intake(
            layout,
            store,
            self.reader,
            self._events_recorded,
            self.unsaved_contexts,
            self.watchdog,
        )
        self.intake.event_seconds = settings.capture.event_seconds
        store.watch_memories()
        self.contexts = Contexts(
            layout,
            store,
            self.projects.home,
            settings.context.tokens,
            before_rendering=self.save_contexts,  # their files are replaced then
        )
        transcript_additions = TranscriptAdditions(store, self.reader)
        self.jobs = JobRunner(
            layout,
            store,
            self.announcer,
            self.contexts,
            transcript_additions=transcript_additions,
            watchdog=self.watchdog,
        )
        self.jobs.keeps_records = settings.record.is_on
        self.refiner = Refiner(layout, store, clock, self.announcer, self.contexts,
                               self.reader, claude_files(layout, environ), self.wake)  # fmt: skip
        self.observer = ActiveObserver("local", "the worker is starting")
        index = open_semantic_index(settings, clock)
        self.embedding = Embedding(layout, store, index, clock)
        self.idle_distilling = IdleDistilling(
            store, self.reader, transcript_additions, self.contexts, clock
        )
        self.housekeeping = Housekeeping(
            layout, store, settings.sessions, settings.retention, settings.record
        )
        self.open_team: OpenTeam = lambda worker: None  # the process sets it
        self.team: JoinedTeam | None = None
        self.housekeeping.on_interrupted = self.announcer.session_changed
        self._housekeeping_due = clock() + int(FIRST_HOUSEKEEPING_SECONDS * 1000)
        self._backup: asyncio.Task[None] | None = None
        self._applying = asyncio.Lock()
        self._started = asyncio.Event()

    def _events_recorded(self, recorded: list[tuple[Event, Recorded]]) -> None:
        self.announcer.events_recorded(recorded)
        self.titles.note(recorded)

    @property
    def semantic_index(self) -> SemanticIndex | None:
        return self.embedding.index

    @property
    def recall(self) -> Recall:
        """The functions that recall from this machine, and from the team if it joined one."""
        local = local_recall(self.store, self.semantic_index)
        if self.team is None:
            return local
        from claude_mem.worker.recall_with_team import recall_with_team

        return recall_with_team(self.store, local, self.team.recall)

    def wake(self) -> None:
        self._wake.set()

    @asynccontextmanager
    async def wake_fifo(self) -> AsyncIterator[None]:
        """Hooks write a byte to it. It is open for both ends, so that a read never sees its end."""
        path = self.settings.layout.wake
        path.unlink(missing_ok=True)
        os.mkfifo(path, 0o600)
        fifo = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        loop = asyncio.get_running_loop()

        def on_byte() -> None:
            with suppress(BlockingIOError):
                os.read(fifo, 65536)
            self.wake()

        loop.add_reader(fifo, on_byte)
        try:
            yield
        finally:
            loop.remove_reader(fifo)
            os.close(fifo)

    async def reload_settings(self, *, restart_observer: bool = False) -> list[str]:
        """Read the settings again and apply them; returns the problems with them."""
        settings, errors = await asyncio.to_thread(load_usable_settings, self.environ)
        problems = [str(error) for error in errors]
        report_problems(settings.layout, problems)
        await self.apply_settings(settings, restart_observer=restart_observer)
        return problems

    async def apply_settings(self, settings: Settings, *, restart_observer: bool = False) -> None:
        """Make every part follow these settings, but for those that need a restart."""
        async with self._applying:
            previous, self.settings = self.settings, settings
            self.reader.use(settings.capture, keeps_parts=settings.record.is_on)
            self.jobs.keeps_records = settings.record.is_on
            self.jobs.verbosity = settings.observer.verbosity
            self.idle_distilling.use(settings.capture, settings.record, settings.observer.verbosity)
            self.intake.event_seconds = settings.capture.event_seconds
            context = settings.context
            self.contexts.budget = context.tokens
            settings.layout.mark_hints(context.hints, of_files=context.file_hints)
            self.housekeeping.use(settings.sessions, settings.retention, settings.record)
            if settings.embedder != previous.embedder:
                await self.embedding.use(open_semantic_index(settings, self.clock))
            if are_of_other_budget(settings.layout, context.tokens):
                # Sessions that start in the spool were given what is deleted now.
                await asyncio.to_thread(self.intake.drain)
                self.contexts.mark_all_stale()
            use_budget(settings.layout, context.tokens)
            if restart_observer or settings.observer != previous.observer:
                await self._use_observer(settings)
            await self._use_team()
        self.wake()

    async def _use_team(self) -> None:
        """The team that this machine joined, or none; read again with the settings."""
        previous, self.team = self.team, None
        if previous is not None:
            await previous.close()
        try:
            self.team = await asyncio.to_thread(self.open_team, self)
        except ClaudeMemError as error:
            log.error("%s", error)
            trouble.report(os.fsencode(self.settings.layout.root), str(error))

    async def joined_team(self) -> JoinedTeam | None:
        """Returns the team, also for a request that comes while the worker starts or reads its
        settings again."""
        if self.team is None and self.settings.layout.team.exists():
            await self.has_settings()
        return self.team

    async def has_settings(self) -> None:
        """Waits until it has started, and has applied the settings that it is reading."""
        with suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                await self._started.wait()
        async with self._applying:
            pass

    async def _use_observer(self, settings: Settings) -> None:
        self.observer = await asyncio.to_thread(select_observer, settings, self.environ)
        log.info("observer: %s (%s)", self.observer.active, self.observer.reason)
        self.jobs.queues_refinements = self.observer.has_model
        model = await asyncio.to_thread(create_model, self.observer, settings, self.environ)
        await self.refiner.use(model, policy_of(settings))

    def observer_status(self) -> dict[str, Json]:
        return describe(self.settings, self.environ, self.store, self.clock(), self.observer)

    async def run(self, outdated: Callable[[], bool]) -> None:
        """Runs until it is cancelled, or until a newer version is installed."""
        loop = asyncio.get_running_loop()

        def note_damage(error: BaseException) -> None:  # in any thread
            self._damage = error
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self.wake)

        self.store.report_damage_to(note_damage)
        try:
            await self._loop(outdated)
        finally:
            self.embedding.stop()
            self.idle_distilling.stop()
            if self._backup is not None:
                self._backup.cancel()  # the thread ends when the store is closed
            if self.team is not None:
                await self.team.close()

    async def _start(self) -> None:
        await asyncio.wrap_future(self.store.free_all_leases())
        await self.apply_settings(self.settings, restart_observer=True)
        self._started.set()
        self.announcer.activity.reset(self.clock())  # agents may have ended since the last worker

    async def _loop(self, outdated: Callable[[], bool]) -> None:
        """Works, then sleeps until an event arrives or a job is due."""
        while True:
            self._wake.clear()
            self.cycles += 1
            try:
                await self._run_once()
                pause = self._pause()
            except Exception as error:
                if is_damage(error):
                    raise  # the process repairs the file
                self._require_tables(error)
                log.exception("the worker will try again")
                self.obstacle = self._describe_obstacle(error)
                trouble.report(os.fsencode(self.settings.layout.root), self.obstacle)
                pause = RETRY_SECONDS
            else:
                self.obstacle = ""
            if self._has_newer_hook() and outdated():
                log.info("a newer version is installed: this worker ends")
                return
            await sleep_until_set(self._wake, pause)

    def _require_tables(self, error: Exception) -> None:
        if getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_ERROR:
            return
        if missing := self.store.read(missing_tables):
            raise DamagedDatabase(f"it has no table {missing[0]}") from error

    def _describe_obstacle(self, error: Exception) -> str:
        if is_full(error):
            return describe_full_disk(self.settings.layout)
        return f"worker: {error or type(error).__name__}"

    async def _run_once(self) -> None:
        if self._damage is not None:
            raise self._damage
        if not self._started.is_set():
            await self._start()
        await self.catch_up()
        await self.refiner.start_due()
        await self.refiner.clean_up_conversations()
        await self.index_waiting()
        self.embedding.start_if_due()
        self.idle_distilling.start_if_due()
        if self.team is not None:
            self.team.start_if_due()
        if self.clock() >= self._housekeeping_due:
            self._housekeeping_due = self.clock() + int(SAFETY_SCAN_SECONDS * 1000)
            await self._run_housekeeping()

    async def _run_housekeeping(self) -> None:
        self.embedding.release_if_idle()
        if self.store.needs_scrub():
            await self.scrub_data_directory()
            await self.contexts.render_stale()
        if await asyncio.to_thread(self.housekeeping.tick, self.clock()):
            await self.catch_up()
        self._start_backup_if_due()
        activity = self.announcer.activity
        if activity.is_processing and not self.store.has_open_turn():
            activity.reset(self.clock())
        self.announcer.processing()

    def _start_backup_if_due(self) -> None:
        """The main loop goes on meanwhile. What it failed with is raised the next time."""
        previous, self._backup = self._backup, None
        if previous is not None:
            if not previous.done():
                self._backup = previous
                return
            previous.result()
        backing_up = asyncio.to_thread(self.housekeeping.back_up_if_due, self.clock())
        self._backup = asyncio.create_task(backing_up)

    async def scrub_data_directory(self) -> None:
        """Scrubs the directory after forgetting for good. Housekeeping repeats what fails."""
        layout = self.settings.layout
        try:
            await asyncio.to_thread(scrub_data_directory, layout, self.store, self.contexts)
        except (StoreError, sqlite3.Error, OSError) as error:
            if is_damage(error):
                raise
            log.exception("forgotten text is not removed from all files yet")
            reason = f"forgotten text is not removed from all files yet, retrying: {error}"
            trouble.report(os.fsencode(layout.root), reason)
        else:
            log.info("forgotten text was removed from all files; logs before this were deleted")

    def _has_newer_hook(self) -> bool:
        return parse_version(self.intake.newest_hook) > parse_version(__version__)

    async def save_contexts(self) -> None:
        """Stores the starts of sessions whose contexts are not stored yet."""
        if self.unsaved_contexts.are_waiting():
            await asyncio.to_thread(self.intake.drain)

    async def catch_up(self, project_id: int | None = None) -> DrainCounts:
        """Drain the spool and distil the turns that are due, of one project or of all."""
        counts = await asyncio.to_thread(self.intake.drain)
        await self.distil_due(project_id)
        return counts

    async def distil_due(self, project_id: int | None = None) -> None:
        await self.jobs.run_due(project_id)
        for project in await self.titles.update_ended():
            self.contexts.mark_stale(project)
        await self.contexts.render_stale()

    async def index_waiting(self) -> None:
        """Memories that are older than the index, in batches: hooks write in between."""
        remaining = self.store.read(indexing.waiting)
        while remaining:
            previous = remaining
            remaining = await asyncio.wrap_future(self.store.write(indexing.refresh))
            if remaining >= previous:
                return  # it failed; the log says why

    def _pause(self) -> float:
        moments = (
            self._housekeeping_due,
            self.store.next_due(),
            self.refiner.next_due(),
            self.team.next_due() if self.team is not None else None,
        )
        due = min(moment for moment in moments if moment is not None)
        return min(SAFETY_SCAN_SECONDS, max(0.01, (due - self.clock()) / 1000))


def report_problems(layout: Layout, problems: Iterable[str]) -> None:
    """Problems with settings, in the log and to the user; each is replaced by its default."""
    for problem in problems:
        log.error("%s; the default is used", problem)
        trouble.report(os.fsencode(layout.root), f"{problem}; the default is used")


async def sleep_until_set(event: asyncio.Event, seconds: float) -> None:
    """Sleeps until the event is set, at most so many seconds.

    `asyncio.wait_for` of Python 3.11 loses a cancellation that comes at the same time as the event:
    a worker that a hook woke while it was told to stop never ended.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()

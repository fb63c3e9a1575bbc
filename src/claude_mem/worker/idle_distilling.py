"""Distils imported turns that have no memories yet, and turns that an older version of the local
observer distilled.

In the background, the most recent first, one at a time, and only while nothing else is due.
Transcripts are read in a process of their own. Each turn is stored with its new version, so a
worker that ends in between continues later. No model is asked, and no refinement is queued: that
would spend tokens on the whole past. At the end, projects of removed work trees are joined with
their repository.
"""

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

from claude_mem.config.settings import CaptureSettings, RecordSettings
from claude_mem.errors import BadInput
from claude_mem.intake.event_reader import EventReader
from claude_mem.intake.transcripts.import_options import ImportOptions
from claude_mem.intake.transcripts.importer import (
    ReadingProcess,
    ReadingStopped,
    finish_transcript,
)
from claude_mem.intake.transcripts.missing_directories import merge_known_projects
from claude_mem.observer.local.observer import distil
from claude_mem.observer.local.version import VERSION
from claude_mem.store import Store
from claude_mem.store.clock import Clock
from claude_mem.store.database import is_of_file
from claude_mem.types import TranscriptToDistil, Turn, Verbosity
from claude_mem.worker.contexts import Contexts
from claude_mem.worker.distil_jobs import TranscriptAdditions

log = logging.getLogger("claude_mem.idle_distilling")

PAUSE_SECONDS = 0.05  # between turns, for hooks and searches


class IdleDistilling:
    def __init__(
        self,
        store: Store,
        reader: EventReader,
        transcript_additions: TranscriptAdditions,
        contexts: Contexts,
        clock: Clock,
        *,
        version: int = VERSION,
    ) -> None:
        self._store, self._reader = store, reader
        self._transcript_additions = transcript_additions
        self._contexts, self._clock, self._version = contexts, clock, version
        self._options = ImportOptions("", reader.projects.home, keep_raw_since=0, reads="memories")
        self._record = RecordSettings()
        self._process = ReadingProcess()
        self._task: asyncio.Task[int] | None = None

    def use(self, settings: CaptureSettings, record: RecordSettings, verbosity: Verbosity) -> None:
        """Uses these settings for later turns."""
        self._record = record
        self._options = replace(
            self._options,
            skip_tools=settings.skip_tools,
            redact_allow=settings.redact_allow,
            verbosity=verbosity,
        )

    def start_if_due(self) -> None:
        if self._is_running or self._is_busy() or not self._store.is_any_outdated(self._version):
            return
        self._task = asyncio.create_task(self.run(PAUSE_SECONDS))

    def stop(self) -> None:
        self._process.stop()
        if self._task is not None:
            self._task.cancel()

    @property
    def _is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    def _is_busy(self) -> bool:
        due = self._store.next_due()
        return due is not None and due <= self._clock()

    async def run(self, pause: float = 0.0) -> int:
        """Distils until all is done or something else is due; returns the number of turns."""
        try:
            return await self._distil_imported(pause) + await self._distil_outdated(pause)
        except ReadingStopped:
            return 0
        except OSError:  # no process could be started: later
            log.exception("turns are distilled later")
            return 0
        finally:
            self._process.rest()

    async def _distil_imported(self, pause: float) -> int:
        count = 0
        await self._render_contexts()  # of what the import has distilled
        await asyncio.wrap_future(self._store.add_missing_transcripts())
        while not self._is_busy():
            waiting = await asyncio.to_thread(self._store.waiting_transcripts)
            if not waiting:
                await self._render_contexts()
                break
            count += await asyncio.to_thread(self._distil_transcript, waiting[0])
            await asyncio.sleep(pause)
        return count

    async def _render_contexts(self) -> None:
        projects = await asyncio.to_thread(self._store.distilled_projects)
        if projects:
            self._contexts.mark_stale(*projects.values())
            await self._contexts.render_stale()
            await asyncio.wrap_future(self._store.contexts_rendered(list(projects)))

    def _distil_transcript(self, transcript: TranscriptToDistil) -> int:
        count = self._read_transcript(transcript)
        return count + finish_transcript(self._store, transcript, self._options.verbosity)

    async def _distil_outdated(self, pause: float) -> int:
        count = 0
        while not self._is_busy():
            turn = await asyncio.to_thread(self._store.next_outdated, self._version)
            if turn is None:
                return count + await self._read_transcripts(pause)
            await self._distil(turn)
            count += 1
            await asyncio.sleep(pause)
        return count

    async def _distil(self, turn: Turn) -> None:
        try:
            turn = await self._transcript_additions.add_to(turn)
            distillate = await asyncio.to_thread(distil, turn, self._options.verbosity)
            if await asyncio.wrap_future(self._store.save_again(turn, distillate)):
                self._contexts.mark_stale(turn.project)
        except (ValueError, KeyError, TypeError, RecursionError, BadInput):
            log.exception("turn %d keeps its memories: it could not be distilled again", turn.id)
        # Also where nothing was saved, or the next turn would be this one again.
        await asyncio.wrap_future(self._store.mark_distilled(turn.id, self._version))

    async def _read_transcripts(self, pause: float) -> int:
        """Turns whose events are gone; what remains after that stays as it is."""
        count = 0
        for transcript in await asyncio.to_thread(self._store.outdated_transcripts, self._version):
            if self._is_busy():
                return count
            count += await asyncio.to_thread(self._read_transcript, transcript)
            await asyncio.wrap_future(
                self._store.mark_session_distilled(transcript.session_id, self._version)
            )
            await asyncio.sleep(pause)
        if await asyncio.to_thread(merge_known_projects, self._store, self._reader.projects):
            self._contexts.mark_all_stale()
        await asyncio.wrap_future(self._store.mark_rest_distilled(self._version))
        return count

    def _read_transcript(self, transcript: TranscriptToDistil) -> int:
        count, path = 0, Path(transcript.path)
        if not path.is_file():
            return 0  # the client deletes old transcripts
        options = replace(
            self._options.of_memories(transcript.keep_raw_since),
            keep_record_since=self._record.since_ms(self._clock()),
        )
        try:
            for turns in self._process.save_memories(self._store, transcript, options):
                count += turns
                self._contexts.mark_stale(transcript.project)
        except BadInput as error:
            log.warning("cannot read %s: %s", path.name, error)
        except (ReadingStopped, OSError):
            raise  # nothing is wrong with the transcript
        except Exception as error:  # or its other turns, and all others, would wait forever
            if is_of_file(error):
                raise
            log.exception("memories of %s are missing", path.name)
        return count

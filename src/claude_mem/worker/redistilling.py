"""Distils turns again that an older version of the local observer distilled.

In the background, the most recent first, one at a time, and only while nothing else is due. Each
turn is stored with its new version, so a worker that ends in between continues later. No model is
asked, and no refinement is queued: that would spend tokens on the whole past. At the end, projects
of removed work trees are joined with their repository.
"""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

from claude_mem.errors import BadInput
from claude_mem.intake.event_reader import EventReader
from claude_mem.intake.transcript_additions import TranscriptAdditions
from claude_mem.intake.transcripts.importer import merge_known_projects
from claude_mem.intake.transcripts.past_sessions import PastSessionReader
from claude_mem.observer.local.observer import distil
from claude_mem.observer.local.version import VERSION
from claude_mem.store import Store
from claude_mem.store.clock import Clock
from claude_mem.types import PastSession, Turn, Verbosity
from claude_mem.worker.contexts import Contexts

log = logging.getLogger("claude_mem.redistilling")

PAUSE_SECONDS = 0.05  # between turns, for hooks and searches
NEVER_RAW = 1 << 62  # of turns whose raw events were deleted, none are stored again


class Redistilling:
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
        self.verbosity: Verbosity = "normal"
        self._task: asyncio.Task[int] | None = None

    def start_if_due(self) -> None:
        if self._is_running or self._is_busy() or not self._store.is_any_outdated(self._version):
            return
        self._task = asyncio.create_task(self.run(PAUSE_SECONDS))

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    @property
    def _is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    def _is_busy(self) -> bool:
        due = self._store.next_due()
        return due is not None and due <= self._clock()

    async def run(self, pause: float = 0.0) -> int:
        """Until all is done or something else is due; returns the number of turns."""
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
            distillate = await asyncio.to_thread(distil, turn, self.verbosity)
            if await asyncio.wrap_future(self._store.save_again(turn, distillate)):
                self._contexts.mark_stale(turn.project)
        except (ValueError, KeyError, TypeError, RecursionError, BadInput):
            log.exception("turn %d keeps its memories: it could not be distilled again", turn.id)
        # Also where nothing was saved, or the next turn would be this one again.
        await asyncio.wrap_future(self._store.mark_distilled(turn.id, self._version))

    async def _read_transcripts(self, pause: float) -> int:
        """Turns whose events are gone; what remains after that stays as it is."""
        count = 0
        for session_id, path in await asyncio.to_thread(
            self._store.outdated_transcripts, self._version
        ):
            if self._is_busy():
                return count
            count += await asyncio.to_thread(self._read_transcript, session_id, Path(path))
            await asyncio.wrap_future(self._store.mark_session_distilled(session_id, self._version))
            await asyncio.sleep(pause)
        if await asyncio.to_thread(merge_known_projects, self._store, self._reader.projects):
            self._contexts.mark_all_stale()
        await asyncio.wrap_future(self._store.mark_rest_distilled(self._version))
        return count

    def _past_sessions(self, path: Path) -> Iterator[PastSession]:
        reader = PastSessionReader(path, self._reader, NEVER_RAW, verbosity=self.verbosity)
        return reader.sessions()

    def _read_transcript(self, session_id: str, path: Path) -> int:
        count = 0
        try:
            if not path.is_file():
                return 0  # the client deletes old transcripts
            for session in self._past_sessions(path):
                if session.session_id == session_id:
                    count += self._store.distil_session_again(session).result()
                    self._contexts.mark_stale(session.project)
        except (OSError, ValueError, BadInput) as error:
            log.warning("cannot read %s: %s", path.name, error)
        return count

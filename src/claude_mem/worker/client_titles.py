"""The titles that clients give their sessions, in their transcripts."""

import asyncio
import logging
from pathlib import Path

from claude_mem.errors import BadInput
from claude_mem.intake.event_reader import EventReader
from claude_mem.intake.transcripts.transcript import session_title
from claude_mem.store import Store
from claude_mem.store.turns import Recorded
from claude_mem.types import SESSION_END, Event, Project, SessionTitle

log = logging.getLogger("claude_mem.client_titles")


class ClientTitles:
    """The titles of sessions, taken after every turn, and at the end of a session, because the user
    may have renamed it since."""

    def __init__(self, store: Store, reader: EventReader) -> None:
        self._store, self._reader = store, reader
        self._ended: list[tuple[Event, int]] = []

    def note(self, recorded: list[tuple[Event, Recorded]]) -> None:
        self._ended += [
            (event, record.session_db_id)
            for event, record in recorded
            if event.kind == SESSION_END and event.transcript_path and record.outcome == "stored"
        ]

    async def update_ended(self) -> set[Project]:
        """Projects with a session that has a new title."""
        ended, self._ended = self._ended, []
        return {
            event.project
            for event, session in ended
            if await self.update(session, event.session_id, event.transcript_path)
        }

    async def update(self, session_db_id: int, session_id: str, path: str) -> bool:
        title = await asyncio.to_thread(self._read, Path(path), session_id)
        if title is None:
            return False
        return await asyncio.wrap_future(self._store.set_client_title(session_db_id, title))

    def _read(self, path: Path, session_id: str) -> SessionTitle | None:
        try:
            return session_title(path, session_id, self._reader.redactor)
        except FileNotFoundError:
            return None  # the client deletes old transcripts, or is set to keep none
        except (OSError, ValueError, BadInput) as error:
            log.warning("session %s: cannot read %s: %s", session_id, path.name, error)
            return None

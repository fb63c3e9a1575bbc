"""Exports take long and are large: how many are made and sent at once, and for how long."""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from claude_mem.errors import ClaudeMemError
from claude_mem.team.server.database import Person

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

EXPORT_SECONDS = 300  # for reading it from the database
_CHUNK = 1 << 18


class Busy(ClaudeMemError):
    """Too many exports; later there will be room."""


class Exports:
    """The exports of one process. A person has one at a time, until it is sent; at most half of the
    connections read exports."""

    def __init__(self, connections: int) -> None:
        self._reading = threading.BoundedSemaphore(max(1, connections // 2))
        self._people: set[str] = set()
        self._lock = threading.Lock()

    def take(self, person: Person) -> ExitStack:
        """Takes a place that must be closed when the export is sent. Raises Busy."""
        with self._lock:
            if person.id in self._people:
                raise Busy("an export of yours is still being sent: one at a time")
            self._people.add(person.id)
        slot = ExitStack()
        slot.callback(self._give_back, person.id)
        return slot

    def _give_back(self, person_id: str) -> None:
        with self._lock:
            self._people.discard(person_id)

    @contextmanager
    def reading(self) -> Iterator[None]:
        if not self._reading.acquire(blocking=False):
            raise Busy("several exports are being made: try again in a minute")
        try:
            yield
        finally:
            self._reading.release()


class SentFile(StreamingResponse):
    def __init__(self, file: IO[bytes], slot: ExitStack) -> None:
        super().__init__(_chunks(file), media_type="application/x-ndjson")
        self._slot = slot

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        with self._slot:
            await super().__call__(scope, receive, send)


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := await run_in_threadpool(file.read, _CHUNK):
        yield chunk

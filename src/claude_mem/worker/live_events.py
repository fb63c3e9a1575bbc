"""Live events for subscribers such as the viewer, each with a cursor to continue after.

The latest events are kept, and every subscriber reads them from there: one that comes back misses
none, and a slow one delays nobody. One that falls behind what is kept, or has a cursor of another
worker process, gets a reset instead: it has to read the pages again. An event has the items it is
about, as the pages of the API list them, so that it can be shown without another request. Nothing
is kept until the first cursor is given away: nobody could ask for it.
"""

import asyncio
import json
import secrets
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from claude_mem.types import Json

MAX_EVENTS = 5_000
MAX_BYTES = 4 * 1024 * 1024
RESET: dict[str, Json] = {"type": "reset"}


@dataclass(frozen=True, slots=True)
class Announcement:
    number: int
    cursor: str
    data: bytes  # JSON on one line


class Subscription:
    def __init__(self, events: "LiveEvents", number: int) -> None:
        self._events, self._number = events, number
        self._news = asyncio.Event()

    @property
    def cursor(self) -> str:
        """Returns the cursor after the event that it returned last."""
        return self._events.cursor_of(self._number)

    async def next(self) -> Announcement:
        while (announcement := self._next()) is None:
            await self._news.wait()
        return announcement

    def _next(self) -> Announcement | None:
        self._news.clear()  # before looking: what comes later sets it again
        announcement = self._events.after(self._number)
        if announcement is not None:
            self._number = announcement.number
        return announcement

    def take_all(self) -> list[dict[str, Any]]:
        """What happened until now."""
        events: list[dict[str, Any]] = []
        while (announcement := self._next()) is not None:
            events.append(json.loads(announcement.data))
        return events

    def notify(self) -> None:
        self._news.set()


class LiveEvents:
    def __init__(self) -> None:
        self._process = secrets.token_hex(4)
        self._lock = threading.Lock()
        self._number = 0
        self._recent: deque[Announcement] = deque()
        self._bytes = 0
        self._subscribers: set[Subscription] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.is_followed = False  # whether a cursor was given away

    @property
    def listeners(self) -> int:
        return len(self._subscribers)

    def give_cursor(self) -> str:
        """Returns the cursor after the latest event. From then on events are kept."""
        self.is_followed = True
        return self.cursor_of(self._number)

    def cursor_of(self, number: int) -> str:
        return f"{self._process}-{number}"

    @contextmanager
    def subscribe(self, after: str | None = None) -> Iterator[Subscription]:
        """Begins with the events after this cursor. Call it in the thread of the event loop."""
        self._loop = asyncio.get_running_loop()
        self.is_followed = True
        subscription = Subscription(self, self._position(after) if after else self._number)
        self._subscribers.add(subscription)
        try:
            yield subscription
        finally:
            self._subscribers.discard(subscription)

    def _position(self, cursor: str) -> int:
        """Returns the position of a cursor; -1 for one of another process."""
        process, _, digits = cursor.rpartition("-")
        is_number = digits.isascii() and digits.isdecimal() and len(digits) < 19
        number = int(digits) if is_number and process == self._process else -1
        return number if number <= self._number else -1

    def after(self, number: int) -> Announcement | None:
        """The next event, or a reset if it is not kept any more."""
        with self._lock:
            index = number - (self._number - len(self._recent))
            if index < 0:
                return Announcement(self._number, self.cursor_of(self._number), _json(RESET))
            return self._recent[index] if index < len(self._recent) else None

    def publish(self, event: dict[str, Json]) -> None:
        """Publishes an event; any thread may call this."""
        if not self.is_followed:
            return
        data = _json(event)
        with self._lock:
            self._number += 1
            cursor = self.cursor_of(self._number)
            self._recent.append(Announcement(self._number, cursor, data))
            self._bytes += len(data)
            while len(self._recent) > MAX_EVENTS or self._bytes > MAX_BYTES:
                self._bytes -= len(self._recent.popleft().data)
        self._notify()

    def forget(self) -> None:
        """Drops what is kept: some of it was forgotten, and must not be repeated."""
        with self._lock:
            self._recent.clear()
            self._bytes = 0
        self._notify()

    def _notify(self) -> None:
        if self._subscribers and self._loop is not None:
            self._loop.call_soon_threadsafe(self._notify_all)

    def _notify_all(self) -> None:
        for subscription in self._subscribers:
            subscription.notify()


def _json(event: dict[str, Json]) -> bytes:
    """Encodes in UTF-8; half of a surrogate pair, which that does not have, becomes a `?`."""
    return json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")

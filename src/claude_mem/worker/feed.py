"""Live events for subscribers such as the viewer, each with a cursor to continue after.

The latest events are kept, so that a subscriber that comes back misses none. One that was away for
too long, or since another worker process, gets a reset instead: it has to read the pages again.
"""

import asyncio
import secrets
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from claude_mem.types import Json

MAX_QUEUED = 200  # a subscriber that falls further behind gets a reset
MAX_REPLAYED = 500
RESET: dict[str, Json] = {"type": "reset"}


@dataclass(frozen=True, slots=True)
class Announcement:
    number: int
    cursor: str
    event: dict[str, Json]


@dataclass(eq=False)
class Subscription:
    cursor: str  # from which it continues
    number: int
    queue: asyncio.Queue[Announcement] = field(default_factory=asyncio.Queue)

    def deliver(self, announcement: Announcement) -> None:
        if announcement.number <= self.number:
            return  # replayed already
        if self.queue.qsize() >= MAX_QUEUED:
            self.take_all()
            announcement = Announcement(announcement.number, announcement.cursor, RESET)
        self.queue.put_nowait(announcement)

    def take_all(self) -> list[dict[str, Json]]:
        """What was delivered until now."""
        return [self.queue.get_nowait().event for _ in range(self.queue.qsize())]


class Feed:
    def __init__(self) -> None:
        self._process = secrets.token_hex(4)
        self._lock = threading.Lock()
        self._number = 0
        self._recent: deque[Announcement] = deque(maxlen=MAX_REPLAYED)
        self._subscribers: set[Subscription] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def cursor(self) -> str:
        """After the latest event."""
        return self._cursor(self._number)

    def _cursor(self, number: int) -> str:
        return f"{self._process}-{number}"

    @contextmanager
    def subscribe(self, after: str | None = None) -> Iterator[Subscription]:
        """Begins with the events after this cursor. Call it in the thread of the event loop."""
        self._loop = asyncio.get_running_loop()
        with self._lock:
            missed = self._missed(after) if after else []
            subscription = Subscription(self.cursor, self._number)
            for announcement in missed:
                subscription.queue.put_nowait(announcement)
            self._subscribers.add(subscription)
        try:
            yield subscription
        finally:
            self._subscribers.discard(subscription)

    def _missed(self, after: str) -> list[Announcement]:
        process, _, digits = after.rpartition("-")
        number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 19 else -1
        oldest = self._number - len(self._recent)
        if process != self._process or not oldest <= number <= self._number:
            return [Announcement(self._number, self.cursor, RESET)]
        return [announcement for announcement in self._recent if announcement.number > number]

    def publish(self, event: dict[str, Json]) -> None:
        """Call it from any thread."""
        with self._lock:
            self._number += 1
            announcement = Announcement(self._number, self.cursor, event)
            self._recent.append(announcement)
            if self._subscribers and self._loop is not None:
                self._loop.call_soon_threadsafe(self._deliver, announcement)

    def _deliver(self, announcement: Announcement) -> None:
        for subscription in self._subscribers:
            subscription.deliver(announcement)

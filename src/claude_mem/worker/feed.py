"""Live events for subscribers such as the viewer. Without subscribers, publishing costs nothing."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from claude_mem.types import Json

MAX_QUEUED = 200  # a subscriber that falls further behind misses events; the pages have them all


class Feed:
    def __init__(self) -> None:
        self._subscribers: set[asyncio.Queue[dict[str, Json]]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def subscribe(self) -> Iterator[asyncio.Queue[dict[str, Json]]]:
        """Call it in the thread of the event loop."""
        self._loop = asyncio.get_running_loop()
        queue: asyncio.Queue[dict[str, Json]] = asyncio.Queue(MAX_QUEUED)
        self._subscribers.add(queue)
        try:
            yield queue
        finally:
            self._subscribers.discard(queue)

    def publish(self, event: dict[str, Json]) -> None:
        """Call it from any thread."""
        if self._subscribers and self._loop is not None:
            self._loop.call_soon_threadsafe(self._publish, event)

    def _publish(self, event: dict[str, Json]) -> None:
        for queue in self._subscribers:
            if not queue.full():
                queue.put_nowait(event)

"""What happens, told to whoever listens now (the viewer). Nobody listening costs nothing."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from claude_mem.types import Json

WAITING = 200  # a listener that falls further behind misses news; the pages have them all


class Feed:
    def __init__(self) -> None:
        self._listeners: set[asyncio.Queue[dict[str, Json]]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def listen(self) -> Iterator[asyncio.Queue[dict[str, Json]]]:
        """For the event loop's thread."""
        self._loop = asyncio.get_running_loop()
        listener: asyncio.Queue[dict[str, Json]] = asyncio.Queue(WAITING)
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    def tell(self, news: dict[str, Json]) -> None:
        """From any thread."""
        if self._listeners and self._loop is not None:
            self._loop.call_soon_threadsafe(self._tell, news)

    def _tell(self, news: dict[str, Json]) -> None:
        for listener in self._listeners:
            if not listener.full():
                listener.put_nowait(news)

"""Embeds memories in the background.

A loaded model takes memory. So a few memories wait until the next search, which embeds them itself,
and an idle model is released. Many waiting memories, or all after a change of model, are embedded
at once.
"""

import asyncio
import logging
import os

from claude_mem.config import Layout
from claude_mem.errors import EmbedderError
from claude_mem.hook import trouble
from claude_mem.index.vectors.document_vectors import embed_some
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.store import Store
from claude_mem.store.clock import Clock

log = logging.getLogger("claude_mem.embedding")

MIN_WAITING_TO_LOAD_MODEL = 256  # memories for which a model is loaded
IDLE_MS = 15 * 60_000
RETRY_MS = 5 * 60_000  # after a model failed


class Embedding:
    def __init__(
        self, layout: Layout, store: Store, index: SemanticIndex | None, clock: Clock
    ) -> None:
        self._layout, self._store, self._clock = layout, store, clock
        self.index = index  # None: no semantic search
        self._task: asyncio.Task[None] | None = None
        self._not_before = 0
        self._reported = ""

    async def use(self, index: SemanticIndex | None) -> None:
        """Embed with this index from now on; waits for the batch that is running."""
        self.index = index
        await self.wait_until_idle()
        self._not_before = 0

    def start_if_due(self) -> None:
        if self.index is None or self._is_running or self._clock() < self._not_before:
            return
        least = 1 if self.index.is_loaded else MIN_WAITING_TO_LOAD_MODEL
        if self.index.waiting(self._store, least) >= least:
            self._task = asyncio.create_task(self._embed_waiting(self.index))
        elif self.index.is_copy_behind(self._store):
            copying = asyncio.to_thread(self.index.copy_vectors, self._store)
            self._task = asyncio.create_task(copying)

    async def wait_until_idle(self) -> None:
        """Wait for the running batch."""
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    def release_if_idle(self) -> None:
        if self.index is not None and not self._is_running:
            self.index.release_if_idle(self._clock() - IDLE_MS)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    @property
    def _is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    async def _embed_waiting(self, index: SemanticIndex) -> None:
        total = 0
        try:
            # Two models that fill the same table would replace each other's vectors for ever.
            while index is self.index:
                count = await asyncio.to_thread(embed_some, index, self._store)
                if not count:
                    break
                total += count
            log.info("%d memories embedded by %s", total, index.id)
        except EmbedderError as error:
            self._not_before = self._clock() + RETRY_MS
            log.warning("semantic search is off: %s", error)
            if str(error) != self._reported:
                self._reported = str(error)
                reason = f"semantic search is off, full text search still works: {error}"
                trouble.report(os.fsencode(self._layout.root), reason)
        except Exception:
            self._not_before = self._clock() + RETRY_MS
            log.exception("embedding failed; it will be tried again")

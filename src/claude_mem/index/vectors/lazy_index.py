"""The semantic index: loads what compares texts by their meaning (`LoadedIndex`) on first use.

Loading brings numpy and the model, some tens of megabytes. Before that, and after
`release_if_idle`, it costs nothing; so writing a memory only marks it in `vector_table`, and its
vector is made later (`document_vectors`).
"""

import logging
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from claude_mem.config import Settings
from claude_mem.errors import EmbedderError
from claude_mem.index import indexing
from claude_mem.index.embedders import embedder
from claude_mem.index.embedders.embedder import Embedder, seconds_left
from claude_mem.index.vectors import vector_table
from claude_mem.index.vectors.vector_table import TableState, read_state
from claude_mem.store import StoreReader
from claude_mem.store.clock import Clock, now_ms
from claude_mem.store.database import Open, open_reader
from claude_mem.urls import is_url_of_this_machine

if TYPE_CHECKING:
    from claude_mem.index.vectors.calibration import Calibration
    from claude_mem.index.vectors.chroma import ChromaCollection
    from claude_mem.index.vectors.similar_words import SimilarWords
    from claude_mem.index.vectors.vector_search import VectorCache, VectorSearch

log = logging.getLogger("claude_mem.vectors")

READ_AHEAD = 500  # waiting documents that a search may embed by itself
LARGE_MEMORY = 100_000  # turns
LOAD_AFTER = 0.2  # seconds: the search that asked for it would wait for the imports


def open_semantic_index(settings: Settings, clock: Clock = now_ms) -> "SemanticIndex | None":
    """None where the settings turn it off."""
    identity = embedder.identify(settings.embedder)
    if identity is None:
        return None
    read_ahead = READ_AHEAD if settings.embedder.kind == "static" else 0

    def load_model() -> Embedder:
        return embedder.load(settings.embedder, settings.layout)

    chroma_url = settings.embedder.chroma_url
    if chroma_url and not is_url_of_this_machine(chroma_url):
        log.warning("CLAUDE_MEM_CHROMA_URL=%s is not on this machine: not used", chroma_url)
        chroma_url = ""
    return SemanticIndex(identity, load_model, read_ahead, clock, chroma_url=chroma_url)


class SemanticIndex:
    def __init__(
        self,
        identity: str,
        load_embedder: Callable[[], Embedder],
        read_ahead: int = READ_AHEAD,
        clock: Clock = now_ms,
        open_connection: Open = open_reader,
        chroma_url: str = "",
    ) -> None:
        self.id = identity
        self._chroma: ChromaCollection | None = None
        if chroma_url:
            from claude_mem.index.vectors import chroma

            self._chroma = chroma.ChromaCollection(chroma_url, clock)
        self._load_embedder, self._read_ahead, self._clock = load_embedder, read_ahead, clock
        self._open_connection = open_connection
        self._lock = threading.RLock()
        self._begins_loading = threading.Lock()  # held until the thread that loads ahead is done
        self._loaded: LoadedIndex | None = None
        self._used_at = 0

    @property
    def is_loaded(self) -> bool:
        return self._loaded is not None

    def can_answer(self, connection: sqlite3.Connection) -> bool:
        """False where a large memory has not loaded it yet; then it is loaded in the background.

        Its vectors would not be in memory anyway, and the first search is not to wait for numpy.
        """
        if self.is_loaded or _count_turns(connection) < LARGE_MEMORY:
            return True
        if self._begins_loading.acquire(blocking=False):
            loading = threading.Timer(LOAD_AFTER, self._load_ahead)
            loading.daemon = True
            loading.start()
        return False

    def load(self) -> "LoadedIndex":
        # A server may be slow to answer whoever loads it now.
        is_server = self.id.startswith("endpoint:")
        if not self._lock.acquire(timeout=seconds_left(threading.TIMEOUT_MAX) if is_server else -1):
            raise EmbedderError("the server for embeddings has not answered yet")
        try:
            self._used_at = self._clock()
            if self._loaded is None:
                from claude_mem.index.embedders.static_model import StaticModel
                from claude_mem.index.vectors.calibration import Calibration
                from claude_mem.index.vectors.similar_words import SimilarWords
                from claude_mem.index.vectors.vector_search import VectorCache, VectorSearch

                model = self._load_embedder()
                cache = VectorCache(model, self._read_ahead, self._open_connection)
                static = model if isinstance(model, StaticModel) else StaticModel.load()
                self._loaded = LoadedIndex(
                    model,
                    cache,
                    VectorSearch(cache, self._chroma),
                    Calibration.of(model),
                    SimilarWords(static),
                )
            return self._loaded
        finally:
            self._lock.release()

    def _load_ahead(self) -> None:
        try:
            with suppress(EmbedderError):  # the next search tries again, and reports it
                self.load()
        finally:
            self._begins_loading.release()

    def release_if_idle(self, since_ms: int) -> bool:
        """Frees its memory where it was not used since then; whether it was freed."""
        with self._lock:
            idle = self.is_loaded and self._used_at < since_ms
            if idle:
                self._loaded = None
            return idle

    def waiting(self, store: StoreReader, limit: int) -> int:
        """How many documents wait for their vector, up to the limit."""

        def work(connection: sqlite3.Connection) -> int:
            if not indexing.is_current(connection):
                return 0
            return len(
                vector_table.waiting(connection, vector_table.number_of(connection, self.id), limit)
            )

        return store.read(work)

    def progress(self, store: StoreReader) -> vector_table.VectorCounts:
        def work(connection: sqlite3.Connection) -> vector_table.VectorCounts:
            if not indexing.is_current(connection):
                return vector_table.VectorCounts(0, indexing.waiting(connection))
            return vector_table.progress(connection, vector_table.number_of(connection, self.id))

        return store.read(work)

    def is_copy_behind(self, store: StoreReader) -> bool:
        """Whether a Chroma server lacks what the table of vectors has, or has more."""
        chroma = self._chroma
        if chroma is None or not chroma.is_available:
            return False

        def work(connection: sqlite3.Connection) -> bool:
            if not indexing.is_current(connection):
                return False
            state = self._table_state(connection)
            return state.model != vector_table.NO_VECTOR and chroma.copied != state

        return store.read(work)

    def copy_vectors(self, store: StoreReader) -> None:
        """Copies the vectors to a Chroma server, without loading a model."""
        chroma = self._chroma
        if chroma is not None:
            store.read(lambda c: chroma.follow(c, self._table_state(c)))

    def _table_state(self, connection: sqlite3.Connection) -> TableState:
        return read_state(connection, indexing.generation(connection), self.id, None)

    def wait_until_loaded(self) -> None:
        """Waits for the vectors of large projects, which are read in the background."""
        self.load().cache.wait_until_loaded()


class LoadedIndex(NamedTuple):
    """What searches use of it, each by itself."""

    embedder: Embedder
    cache: "VectorCache"
    vector_search: "VectorSearch"
    calibration: "Calibration"
    similar_words: "SimilarWords"


def _count_turns(connection: sqlite3.Connection) -> int:
    """Counts the turns at most, without reading them."""
    count: int = connection.execute("SELECT coalesce(max(id), 0) FROM indexed_turns").fetchone()[0]
    return count

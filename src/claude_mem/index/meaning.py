"""What texts mean: the embedder and all that it needs, loaded when somebody asks.

Loading brings numpy and the model, some tens of megabytes. Until then, and after `release`, this
costs nothing; so whoever writes memories only leaves marks (`vectors`), which are worked off here.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from claude_mem.config import Settings
from claude_mem.index import embedder, full_text, vectors
from claude_mem.index.documents import Document, load
from claude_mem.index.embedder import Embedder
from claude_mem.store import Store, StoreReader
from claude_mem.store.clock import Clock, now_ms

if TYPE_CHECKING:
    from claude_mem.index.shelf import Likeness
    from claude_mem.index.shelves import Shelves

CHUNK = 256
READ_AHEAD = 500  # waiting documents that a question may read by itself


def open_meaning(settings: Settings, clock: Clock = now_ms) -> "Meaning | None":
    """As the settings want it; None where they want none."""
    identity = embedder.identify(settings)
    if identity is None:
        return None
    read_ahead = READ_AHEAD if settings.text("CLAUDE_MEM_EMBEDDER") == "static" else 0
    return Meaning(identity, lambda: embedder.load(settings), read_ahead, clock)


class Meaning:
    def __init__(
        self,
        identity: str,
        load_embedder: Callable[[], Embedder],
        read_ahead: int = READ_AHEAD,
        clock: Clock = now_ms,
    ) -> None:
        self.id = identity
        self._load_embedder, self._read_ahead, self._clock = load_embedder, read_ahead, clock
        self._using = threading.RLock()
        self._loaded: tuple[Embedder, Shelves] | None = None
        self._used_at = 0

    @property
    def is_loaded(self) -> bool:
        return self._loaded is not None

    def release_if_idle(self, since_ms: int) -> bool:
        """Whether nobody had used it since, and its memory was given back."""
        with self._using:
            idle = self.is_loaded and self._used_at < since_ms
            if idle:
                self._loaded = None
            return idle

    def waiting(self, store: StoreReader, most: int) -> int:
        """How many documents wait for their vector, up to so many."""

        def work(connection: sqlite3.Connection) -> int:
            if not full_text.is_current(connection):
                return 0
            return len(vectors.waiting(connection, vectors.number_of(connection, self.id), most))

        return store.read(work)

    def progress(self, store: StoreReader) -> vectors.Progress:
        """How many documents have a vector of this model, and how many there are."""

        def work(connection: sqlite3.Connection) -> vectors.Progress:
            if not full_text.is_current(connection):
                return vectors.Progress(0, full_text.waiting(connection))
            return vectors.progress(connection, vectors.number_of(connection, self.id))

        return store.read(work)

    def likeness(
        self,
        connection: sqlite3.Connection,
        text: str,
        project_id: int | None = None,
        also: Iterable[int] = (),
    ) -> "Likeness":
        """Of a project's documents, or of all, to a text: of the nearest at least, and of `also`
        where they have a vector."""
        with self._using:
            return self._load()[1].likeness(connection, text, project_id, also)

    def fill_some(self, store: Store, chunk: int = CHUNK) -> int:
        """Makes vectors of some documents that wait for one; how many those were."""
        model, shelves = self._load()

        def read(
            connection: sqlite3.Connection,
        ) -> tuple[int, list[vectors.Waiting], list[Document]]:
            generation = full_text.generation(connection)
            number = vectors.number_of(connection, model.id, model.dimension)
            waiting = vectors.waiting(connection, number, chunk)
            return generation, waiting, load(connection, [row.document for row in waiting])

        generation, waiting, documents = store.read(read)
        if not waiting:
            return 0
        with self._using:
            made = shelves.encode([document.told for document in documents])
        made_of = {
            document.id: row.tobytes() for document, row in zip(documents, made, strict=True)
        }

        def write(connection: sqlite3.Connection) -> None:
            if full_text.generation(connection) == generation:
                number = vectors.register(connection, model.id, model.dimension)
                vectors.fill(
                    connection, number, [(row, made_of.get(row.document)) for row in waiting]
                )

        store.write(write).result()
        return len(waiting)

    def _load(self) -> "tuple[Embedder, Shelves]":
        with self._using:
            self._used_at = self._clock()
            if self._loaded is None:
                from claude_mem.index.shelves import Shelves

                made = self._load_embedder()
                self._loaded = made, Shelves(made, self._read_ahead)
            return self._loaded

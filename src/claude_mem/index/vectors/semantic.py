"""What texts mean: the embedder and all that it needs, loaded when somebody asks.

Loading brings numpy and the model, some tens of megabytes. Until then, and after `release`, this
costs nothing; so whoever writes memories only leaves marks (`vectors`), which are worked off here.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from claude_mem.config import EmbedderSettings
from claude_mem.index.embedders import embedder
from claude_mem.index.embedders.embedder import Embedder
from claude_mem.index.text import full_text
from claude_mem.index.text.documents import load
from claude_mem.index.vectors import duplicates, storage
from claude_mem.store import Store, StoreReader
from claude_mem.store.clock import Clock, now_ms

if TYPE_CHECKING:
    from claude_mem.index.vectors.blocks import Similarities
    from claude_mem.index.vectors.cache import VectorCache
    from claude_mem.index.vectors.calibration import Calibration

CHUNK = 256
READ_AHEAD = 500  # waiting documents that a question may read by itself


def open_semantic_index(
    settings: EmbedderSettings, clock: Clock = now_ms
) -> "SemanticIndex | None":
    """As the settings want it; None where they want none."""
    identity = embedder.identify(settings)
    if identity is None:
        return None
    read_ahead = READ_AHEAD if settings.kind == "static" else 0
    return SemanticIndex(identity, lambda: embedder.load(settings), read_ahead, clock)


class SemanticIndex:
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
        self._loaded: _Loaded | None = None
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
            return len(storage.waiting(connection, storage.number_of(connection, self.id), most))

        return store.read(work)

    def progress(self, store: StoreReader) -> storage.Progress:
        """How many documents have a vector of this model, and how many there are."""

        def work(connection: sqlite3.Connection) -> storage.Progress:
            if not full_text.is_current(connection):
                return storage.Progress(0, full_text.waiting(connection))
            return storage.progress(connection, storage.number_of(connection, self.id))

        return store.read(work)

    def similarities(
        self,
        connection: sqlite3.Connection,
        text: str,
        project_id: int | None = None,
        also: Iterable[int] = (),
    ) -> "Similarities":
        """Of a project's documents, or of all, to a text: of the nearest at least, and of `also`
        where they have a vector."""
        with self._using:
            return self._load().shelves.similarities(connection, text, project_id, also)

    def cosine(self, deviations: float) -> float:
        """That lies so far above those of texts that have nothing to do with each other."""
        return self._load().unrelated.cosine(deviations)

    def fill_some(self, store: Store, chunk: int = CHUNK) -> int:
        """Makes vectors of some documents that wait for one, and links those that say the same;
        how many those were."""
        made = store.read(lambda c: self._make_some(c, chunk))
        if made.waiting:
            store.write(lambda c: self._keep(c, made)).result()
        return len(made.waiting)

    def _make_some(self, connection: sqlite3.Connection, chunk: int) -> "_Made":
        model, shelves, _ = self._load()
        generation = full_text.generation(connection)
        number = storage.number_of(connection, model.id, model.dimension)
        waiting = storage.waiting(connection, number, chunk)
        documents = load(connection, [row.document for row in waiting])
        rows = shelves.read(documents)
        found = {one.id: some.tobytes() for one, some in zip(documents, rows, strict=True)}
        chosen = [at for at, one in enumerate(documents) if duplicates.may_have_duplicates(one.id)]
        heads = [rows[at][0] for at in chosen]
        with self._using:
            alike, seen = shelves.alike(
                connection,
                [documents[at] for at in chosen],
                heads,
                duplicates.ALIKE,
                duplicates.MOST,
            )
        return _Made(generation, waiting, found, _that_say_the_same(connection, alike), seen)

    def _keep(self, connection: sqlite3.Connection, made: "_Made") -> None:
        """Unless it is of an index that is gone, or a text has changed since."""
        if full_text.generation(connection) != made.generation:
            return
        model = self._load().embedder
        number = storage.register(connection, model.id, model.dimension)
        filled = [(row, made.vectors.get(row.document)) for row in made.waiting]
        good = storage.fill(connection, number, filled)
        others = {document for pair in made.twins for document in pair}
        good |= storage.unchanged(connection, others, made.seen)
        duplicates.link(connection, [pair for pair in made.twins if good.issuperset(pair)])

    def _load(self) -> "_Loaded":
        with self._using:
            self._used_at = self._clock()
            if self._loaded is None:
                from claude_mem.index.vectors.cache import VectorCache
                from claude_mem.index.vectors.calibration import Calibration

                made = self._load_embedder()
                self._loaded = _Loaded(
                    made, VectorCache(made, self._read_ahead), Calibration.to(made)
                )
            return self._loaded


class _Loaded(NamedTuple):
    embedder: Embedder
    shelves: "VectorCache"
    unrelated: "Calibration"


class _Made(NamedTuple):
    generation: int
    waiting: list[storage.Waiting]
    vectors: dict[int, bytes]  # by document
    twins: list[tuple[int, int]]
    seen: int  # the revision up to which others were compared


def _that_say_the_same(
    connection: sqlite3.Connection, pairs: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    known = {one.id: one for one in load(connection, list({one for pair in pairs for one in pair}))}
    return [
        (one, other)
        for one, other in pairs
        if duplicates.may_have_duplicates(other)
        and one in known
        and other in known
        and duplicates.are_duplicates(known[one], known[other])
    ]

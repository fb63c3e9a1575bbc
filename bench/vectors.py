"""What the semantic index costs: embedding, a search in many memories, and its RAM.

The baseline of a search is the least that both parts can cost: bare FTS5 for the query's words
and one scan of as many vectors in memory. `python -m bench.vectors --million` adds a million
memories of twenty projects, which takes a quarter of an hour and some gigabytes; their vectors are
random, since a scan of them costs the same.
"""

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
from tests.payloads import session_start

from bench.footprint import private_megabytes
from bench.home import Home, temporary_home
from bench.material import code
from bench.measure import Figure, in_turns, median, run, seconds_of, table
from bench.memories import OBSERVATIONS_PER_TURN, fill
from bench.search import BARE, NOW, QUESTIONS
from claude_mem.index import maintenance
from claude_mem.index.embedders.static_model import StaticModel
from claude_mem.index.text.queries import Filters, any_of
from claude_mem.index.vectors import storage
from claude_mem.index.vectors.blocks import Rows
from claude_mem.index.vectors.semantic import SemanticIndex
from claude_mem.recall.parsed_query import parse_query
from claude_mem.recall.query import Query
from claude_mem.recall.search import search
from claude_mem.server import client
from claude_mem.store import Store

TEXTS, WORDS = 20_000, 20
MEMORIES, MILLION, PROJECTS = 100_000, 1_000_000, 20
ROUNDS = 20
PORT = 47_778
MEMORY_TARGET = 140
# A turn has a prompt and a summary besides its observations: all of them are memories.
_OBSERVATIONS = OBSERVATIONS_PER_TURN / (OBSERVATIONS_PER_TURN + 2)


@dataclass(frozen=True, slots=True)
class Library:
    name: str
    store: Store
    semantic_index: SemanticIndex
    project: int
    scanned: Rows  # as many vectors as the project has

    def bare(self, question: str) -> object:
        words = parse_query(question, NOW).words
        expression = any_of(form for word in words for form in word.forms)
        rows = self.store.read(lambda c: c.execute(BARE, (expression,)).fetchall())
        return rows, np.einsum("ij,j->i", self.scanned, self.scanned[0], dtype=np.int32).argmax()

    def search(self, question: str) -> object:
        query = Query(question, Filters(project_id=self.project))
        return search(self.store, query, NOW, self.semantic_index)

    def cases(self) -> dict[tuple[str, str], Callable[[], float]]:
        return {
            (name, way): partial(seconds_of, partial(work, question))
            for name, question in QUESTIONS.items()
            for way, work in (("bare", self.bare), ("search", self.search))
        }


def measure(million: bool = False) -> list[Figure]:
    figures = [_embedding()]
    with temporary_home(PORT) as home:
        with _library(home, "one project", MEMORIES, 1, _embed) as library:
            single = _searches(library)
        figures.append(
            Figure(
                f"search at {MEMORIES:,} to bare FTS5 and a scan",
                max(single[name, "search"] / single[name, "bare"] for name in QUESTIONS),
                target=2.0,
            )
        )
        figures.append(_footprint(home))
    if million:
        with (
            temporary_home() as home,
            _library(home, f"one of {PROJECTS}", MILLION, PROJECTS, _fill_randomly) as library,
        ):
            many = _searches(library)
        figures.append(
            Figure(
                f"search in one of {PROJECTS} projects at {MILLION:,} to {MEMORIES:,} in one",
                max(many[name, "search"] / single[name, "search"] for name in QUESTIONS),
                target=1.0,
            )
        )
    return figures


def _embedding() -> Figure:
    model = StaticModel.load()
    texts = [" ".join(code(200, number).split()[:WORDS]) for number in range(TEXTS)]
    model.encode(texts[:100])
    rate = TEXTS / median([seconds_of(lambda: model.encode(texts)) for _ in range(3)])
    return Figure("short texts read in a second", rate, "", 5_000, at_least=True)


def _searches(library: Library) -> dict[tuple[str, str], float]:
    library.search("first, everything is loaded")
    timings = in_turns(library.cases(), ROUNDS)
    medians = {key: median(seconds) for key, seconds in timings.items()}
    table(
        (library.name, "bare ms", "ours ms"),
        [(name, *(f"{medians[name, way] * 1e3:.1f}" for way in ("bare", "search")))
         for name in QUESTIONS],
    )  # fmt: skip
    return medians


@contextmanager
def _library(
    home: Home,
    name: str,
    memories: int,
    projects: int,
    embed: Callable[[Store, SemanticIndex], None],
) -> Iterator[Library]:
    layout = home.layout
    with Store.open(layout.database, layout.backups) as store:
        each = int(memories * _OBSERVATIONS) // projects
        filled = [fill(layout.database, f"p{at}", f"/p{at}", each) for at in range(projects)]
        maintenance.keep_current(store)
        maintenance.rebuild(store)
        model = StaticModel.load()
        semantic_index = SemanticIndex(model.id, lambda: model)
        embed(store, semantic_index)
        passages = store.read(_passages)
        print(f"  {name}: {memories:,} memories, {passages:,} vectors in all")
        scanned = _random_rows(passages // projects, model.dimension)
        yield Library(name, store, semantic_index, filled[len(filled) // 2], scanned)


def _embed(store: Store, semantic_index: SemanticIndex) -> None:
    while semantic_index.embed_some(store, 2_000):
        pass


def _fill_randomly(store: Store, semantic_index: SemanticIndex) -> None:
    """Three random vectors for each memory, taken in turn out of a few thousand."""
    random_rows = _random_rows(3 * 4_096, 256)
    rows = [random_rows[at : at + 3].tobytes() for at in range(0, len(random_rows), 3)]

    def fill_some(connection: sqlite3.Connection) -> int:
        number = storage.register(connection, semantic_index.id, 256)
        waiting = storage.waiting(connection, number, len(rows))
        storage.fill(connection, number, zip(waiting, rows, strict=False))
        return len(waiting)

    while store.write(fill_some).result():
        pass


def _random_rows(count: int, dimension: int) -> Rows:
    rows: Rows = np.random.default_rng(1).integers(-127, 128, (count, dimension), np.int8)
    return rows


def _passages(connection: sqlite3.Connection) -> int:
    row = connection.execute(
        "SELECT sum(length(v.vector) / m.dimension) FROM vectors v"
        " JOIN vector_models m ON m.number = v.model"
    ).fetchone()
    return int(row[0])


def _footprint(home: Home) -> Figure:
    """Of a worker after one search: it holds the model and all vectors of the project."""
    home.hook(session_start())
    process = Path("/proc", str(home.worker_pid()))
    before = private_megabytes(process)
    params = urlencode({"query": QUESTIONS["a sentence"], "project": "p0"})
    client.ask_worker(home.layout, f"/api/search?{params}")
    after = private_megabytes(process)
    print(f"  the worker: {before:.1f} MB before a search, {after:.1f} MB after")
    return Figure("worker with model and vectors, private memory", after, " MB", MEMORY_TARGET)


if __name__ == "__main__":
    sys.exit(run({"vectors": partial(measure, "--million" in sys.argv[1:])}))

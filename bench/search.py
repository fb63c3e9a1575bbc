"""What a search costs as the memory grows, next to the least that it can cost on the same data.

`python -m bench.search [--full]`: turns with their records, about nine passages each. The baseline
of a search by words is bare FTS5 over the same passages (`ORDER BY bm25 LIMIT 40`) and the texts of
the first eight; that of a search by words and meaning is the same and one numpy scan of the vectors
of all passages. Each round asks with other words. Times are of the processor, so that a busy
machine does not decide. `--full` adds 100,000 turns: some minutes.
"""

import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import cycle

import numpy as np

from bench.home import temporary_home
from bench.measure import Figure, in_turns, median, run, table
from bench.turns import PASSAGES_PER_TURN, Pool, fill_turns, shared_pool
from claude_mem.index.text import passage_queries
from claude_mem.index.text.filters import Filters, any_of
from claude_mem.index.text.words import TOKENIZER
from claude_mem.index.vectors.blocks import Rows
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.parsed_query import parse_query
from claude_mem.recall.search import DEFAULT_LIMIT, Query, search
from claude_mem.recall.timeline import TimelineQuery, timeline
from claude_mem.store import Store

SIZES, FULL_SIZES = (1_000, 10_000), (1_000, 10_000, 100_000)
ROUNDS = 15
CHUNK = 10_000  # passages
TARGET = 2.0
BARE_TABLE = (
    f"CREATE VIRTUAL TABLE bare_text USING fts5(text, content='', tokenize=\"{TOKENIZER}\")"
)
BARE = "SELECT rowid FROM bare_text WHERE bare_text MATCH ? ORDER BY bm25(bare_text) LIMIT 40"
NOW = datetime(2026, 11, 1, tzinfo=UTC)
WAYS = {"search": "bare and a scan", "in a project": "bare and a scan", "by words": "bare",
        "around an id": "bare"}  # fmt: skip


def questions(words: list[str], number: int) -> dict[str, str]:
    """The first words of the pool are the most frequent; each number gets others."""
    middle = words[400 + number : 8_000 : 700]
    ends = words[2_000 + number], words[300 + number], words[9_000 + number]
    last = words[700 + number], words[4_000 + number], words[50 + number]
    return {
        "a rare word": words[-500 - number],
        "a common word": words[number % 8],
        "three words": " ".join(ends),
        "a sentence": f"why does the {' '.join(middle)} {words[20 + number]} not {words[6_500]}",
        "a sentence about a time": f"which {' '.join(last)} last week",
    }


@dataclass(frozen=True, slots=True)
class Library:
    store: Store
    semantic_index: SemanticIndex
    project: int
    turns: int
    words: list[str]
    scanned: Rows  # as many vectors as there are passages
    anchors: Iterator[int] = field(default_factory=lambda: cycle(range(100, 900, 7)))

    def bare(self, question: str) -> object:
        words = parse_query(question, NOW).words
        expression = any_of(form for word in words for form in word.forms)

        def work(connection: sqlite3.Connection) -> object:
            rows = connection.execute(BARE, (expression,)).fetchall()
            return passage_queries.texts_of_passages(
                connection, [row[0] for row in rows[:DEFAULT_LIMIT]]
            )

        return self.store.read(work)

    def bare_and_scan(self, question: str) -> object:
        texts = self.bare(question)
        products = np.einsum("ij,j->i", self.scanned, self.scanned[0], dtype=np.int32)
        return texts, np.argpartition(products, -40)[-40:]

    def by_words(self, question: str) -> object:
        return search(self.store, Query(question), NOW)

    def search(self, question: str) -> object:
        return search(self.store, Query(question), NOW, self.semantic_index)

    def in_project(self, question: str) -> object:
        query = Query(question, Filters(project_id=self.project))
        return search(self.store, query, NOW, self.semantic_index)

    def timeline(self) -> object:
        return timeline(self.store, TimelineQuery(MemoryId("prompt", next(self.anchors))), NOW)

    def cases(self) -> dict[tuple[int, str, str], Callable[[], float]]:
        ways = {"bare": self.bare, "bare and a scan": self.bare_and_scan,
                "by words": self.by_words, "search": self.search,
                "in a project": self.in_project}  # fmt: skip
        rounds = [questions(self.words, number) for number in range(ROUNDS)]
        cases: dict[tuple[int, str, str], Callable[[], float]] = {
            (self.turns, name, way): asking(work, [asked[name] for asked in rounds])
            for name in rounds[0]
            for way, work in ways.items()
        }
        cases[self.turns, "a sentence", "around an id"] = partial(
            processor_seconds_of, self.timeline
        )
        return cases


def asking(work: Callable[[str], object], texts: list[str]) -> Callable[[], float]:
    """Each call asks the next one."""
    in_order = cycle(texts)
    return lambda: processor_seconds_of(lambda: work(next(in_order)))


def processor_seconds_of(work: Callable[[], object]) -> float:
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


Timings = dict[tuple[int, str, str], list[float]]  # by turns, question and way, in seconds


def measure(sizes: tuple[int, ...] = SIZES) -> list[Figure]:
    timings: Timings = {}
    for size in sizes:
        timings |= timings_with(size)
    return _report({key: median(seconds) for key, seconds in timings.items()}, sizes)


def timings_with(turns: int) -> Timings:
    with open_library(shared_pool(), turns) as library:
        library.search("first, everything is loaded")
        library.semantic_index.wait_until_loaded()
        _print_disk(library)
        return in_turns(library.cases(), ROUNDS)


def _report(medians: dict[tuple[int, str, str], float], sizes: tuple[int, ...]) -> list[Figure]:
    rows = []
    worst = {(size, way): 0.0 for size in sizes for way in WAYS}
    for (size, name, way), seconds in medians.items():
        if way not in WAYS:
            continue
        bare = medians[size, name, WAYS[way]]
        worst[size, way] = max(worst[size, way], seconds / bare)
        rows.append((f"{way}: {name}", f"{size:,}", f"{bare * 1e3:.2f}", f"{seconds * 1e3:.2f}",
                     f"{seconds / bare:.2f}x"))  # fmt: skip
    print(f"  {ROUNDS} rounds in turns, medians of processor time in ms")
    table(("question", "turns", "bare", "ours", "ratio"), rows)
    return [Figure(f"{way} at {size:,} turns to {WAYS[way]}", ratio, target=TARGET)
            for (size, way), ratio in worst.items()]  # fmt: skip


def _print_disk(library: Library) -> None:
    """Prints the size of each table, where SQLite can tell."""
    groups = {"index": "passage%", "vectors": "vectors%", "record": "turn_records%"}

    def work(connection: sqlite3.Connection) -> dict[str, float]:
        sizes = {name: _bytes(connection, pattern) for name, pattern in groups.items()}
        return {**sizes, "database": _bytes(connection, "%")}

    try:
        sizes = library.store.read(work)
    except sqlite3.OperationalError:
        return
    each = ", ".join(f"{name} {size / library.turns:,.0f}" for name, size in sizes.items())
    print(f"  {library.turns:,} turns, bytes a turn: {each}")


def _bytes(connection: sqlite3.Connection, pattern: str) -> int:
    row = connection.execute("SELECT sum(pgsize) FROM dbstat WHERE name LIKE ?", (pattern,))
    return int(row.fetchone()[0] or 0)


def _add_bare_table(connection: sqlite3.Connection) -> None:
    """FTS5 as it is, over the same passages."""
    connection.execute(BARE_TABLE)
    ids = [row[0] for row in connection.execute("SELECT id FROM passages ORDER BY id")]
    for first in range(0, len(ids), CHUNK):
        texts = passage_queries.texts_of_passages(connection, ids[first : first + CHUNK])
        connection.executemany("INSERT INTO bare_text (rowid, text) VALUES (?, ?)", texts.items())
    connection.execute("INSERT INTO bare_text (bare_text) VALUES ('optimize')")


@contextmanager
def open_library(pool: Pool, turns: int) -> Iterator[Library]:
    with temporary_home() as home:
        layout = home.layout
        with Store.open(layout.database, layout.backups) as store:
            project = fill_turns(store, pool, "harbor", turns)
            store.write(_add_bare_table).result()
            model = pool.model
            index = SemanticIndex(model.id, lambda: model)
            count = store.read(passage_queries.passage_count)
            assert count == turns * PASSAGES_PER_TURN
            scanned = np.random.default_rng(1).integers(
                -127, 128, (count, model.dimension), np.int8
            )
            yield Library(store, index, project, turns, pool.words, scanned)


if __name__ == "__main__":
    sizes = FULL_SIZES if "--full" in sys.argv[1:] else SIZES
    sys.exit(run({"search": partial(measure, sizes)}))

"""What a search and a timeline cost as the memory grows, next to bare FTS5 on the same data.

The baseline is the least that full text can cost: the same words, `ORDER BY bm25 LIMIT 40`.
"""

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import cycle

from bench.home import temporary_home
from bench.measure import Figure, in_turns, median, run, seconds_of, table
from bench.memories import fill
from claude_mem.index import maintenance
from claude_mem.index.text.queries import Filters, any_of
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.parsed_query import parse_query
from claude_mem.recall.query import Query
from claude_mem.recall.search import search
from claude_mem.recall.timeline import TimelineQuery, timeline
from claude_mem.store import Store

SIZES = (1_000, 10_000, 100_000)
ROUNDS = 40
TARGET = 3.0
BARE = (
    "SELECT rowid, title FROM memory_text WHERE memory_text MATCH ?"
    " ORDER BY bm25(memory_text) LIMIT 40"
)
QUESTIONS = {
    "a rare word": "pier 417",
    "a common word": "relay",
    "a sentence": "why is the relay asked twice before the lamp of pier 333 is told",
    "a sentence about a time": "which lamp stayed dark at pier 77 last week",
}
NOW = datetime(2026, 11, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Library:
    store: Store
    project: int
    observations: int
    anchors: Iterator[int] = field(default_factory=lambda: cycle(range(100, 900, 7)))

    def bare(self, question: str) -> list[sqlite3.Row]:
        words = parse_query(question, NOW).words
        expression = any_of(form for word in words for form in word.forms)
        return self.store.read(lambda c: c.execute(BARE, (expression,)).fetchall())

    def search(self, question: str) -> object:
        return search(self.store, Query(question), NOW)

    def search_in_project(self, question: str) -> object:
        return search(self.store, Query(question, Filters(project_id=self.project)), NOW)

    def timeline(self) -> object:
        return timeline(self.store, TimelineQuery(MemoryId("observation", next(self.anchors))), NOW)

    def cases(self) -> dict[tuple[int, str, str], Callable[[], float]]:
        cases: dict[tuple[int, str, str], Callable[[], float]] = {}
        for name, question in QUESTIONS.items():
            for way, work in (("bare", self.bare), ("search", self.search),
                              ("in a project", self.search_in_project)):  # fmt: skip
                cases[self.observations, name, way] = partial(seconds_of, partial(work, question))
        cases[self.observations, "around an id", "timeline"] = partial(seconds_of, self.timeline)
        return cases


def measure() -> list[Figure]:
    medians: dict[tuple[int, str, str], float] = {}
    for size in SIZES:
        with _library(size) as library:
            timings = in_turns(library.cases(), ROUNDS)
            medians |= {key: median(seconds) for key, seconds in timings.items()}
    return _report(medians)


def _report(medians: dict[tuple[int, str, str], float]) -> list[Figure]:
    rows, worst = [], dict.fromkeys(SIZES, 0.0)
    for (size, name, way), seconds in medians.items():
        if way == "bare":
            continue
        bare = medians[size, "a sentence" if way == "timeline" else name, "bare"]
        worst[size] = max(worst[size], seconds / bare)
        rows.append((f"{way}: {name}", f"{size:,}", f"{bare * 1e3:.2f}", f"{seconds * 1e3:.2f}",
                     f"{seconds / bare:.2f}x"))  # fmt: skip
    print(f"  {ROUNDS} rounds in turns, medians in ms; timelines next to a bare sentence")
    table(("question", "memories", "bare FTS5", "ours", "ratio"), rows)
    return [Figure(f"search at {size:,} to bare FTS5", worst[size], target=TARGET)
            for size in SIZES]  # fmt: skip


@contextmanager
def _library(observations: int) -> Iterator[Library]:
    with temporary_home() as home:
        layout = home.layout
        with Store.open(layout.database, layout.backups) as store:
            project = fill(layout.database, "harbor", home.project_dir, observations)
            maintenance.keep_current(store)
            maintenance.rebuild(store)
            yield Library(store, project, observations)


if __name__ == "__main__":
    sys.exit(run({"search": measure}))

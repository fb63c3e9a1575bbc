"""How the time for a page or a context grows with a hundred times the memories.

Each store also has a small project, whose memories are the oldest.
"""

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from bench.home import temporary_home
from bench.measure import Figure, in_turns, median, run, seconds_of, table
from bench.memories import fill
from claude_mem.recall.context import build_context
from claude_mem.store import Store
from claude_mem.store.listing import Page
from claude_mem.store.memory_rows import JsonRow

ROUNDS = 200
FEW, MANY, SMALL = 1_000, 100_000, 100
BATCH = 40
TARGET = 2.0
NOUNS = ("observations", "summaries", "prompts", "sessions")


@dataclass(frozen=True, slots=True)
class FilledStore:
    """A store with a project of `observations` memories, and a small project."""

    store: Store
    project: int
    small_project: int
    budget: int
    observations: int
    chance: random.Random = field(default_factory=lambda: random.Random(1))

    def context(self, without_session: str | None = None) -> str:
        return build_context(self.store, self.project, self.budget, without_session)

    def page(self, noun: str, project: int | None, before: int | None = None) -> list[JsonRow]:
        return self.store.page(noun, Page(before=before), project)[0]

    def middle_page(self, noun: str, newest: int) -> list[JsonRow]:
        """A different page at each call."""
        return self.page(noun, self.project, int(newest * self.chance.uniform(0.5, 0.75)))

    def batch(self) -> list[JsonRow]:
        ids = self.chance.sample(range(SMALL, self.observations), BATCH)
        return self.store.get_many("observations", ids)

    def queries(self) -> dict[tuple[str, str], Callable[[], object]]:
        """Returns the queries by group and name."""
        latest = str(self.page("sessions", self.project)[0]["content_session_id"])
        queries: dict[tuple[str, str], Callable[[], object]] = {
            ("context", "for a new session"): self.context,
            ("context", "without the latest session"): partial(self.context, latest),
            ("batch", f"{BATCH} observations"): self.batch,
        }
        for noun in NOUNS:
            newest = int(str(self.page(noun, self.project)[0]["id"]))
            queries["first page", noun] = partial(self.page, noun, self.project)
            queries["first page of all", noun] = partial(self.page, noun, None)
            queries["page in the middle", noun] = partial(self.middle_page, noun, newest)
            queries["small project", noun] = partial(self.page, noun, self.small_project)
        return queries

    def ignores_before(self, noun: str) -> bool:
        first = self.page(noun, self.project)
        return self.page(noun, self.project, int(str(first[-1]["id"]))) == first


def measure() -> list[Figure]:
    with _filled_store(FEW) as few, _filled_store(MANY) as many:
        cases = {
            (*key, filled.observations): partial(seconds_of, query)
            for filled in (few, many)
            for key, query in filled.queries().items()
        }
        timings = in_turns(cases, ROUNDS)
        for noun in filter(few.ignores_before, NOUNS):
            print(f"  `before` has no effect for {noun}: the middle page is the first page")
    return _report({key: median(seconds) for key, seconds in timings.items()})


def _report(medians: dict[tuple[str, str, int], float]) -> list[Figure]:
    rows = []
    worst: dict[str, float] = {}
    for (group, name, size), few in sorted(medians.items()):
        if size == FEW:
            many = medians[group, name, MANY]
            rows.append((f"{group}: {name}", f"{few * 1e3:.3f}", f"{many * 1e3:.3f}",
                         f"{many / few:.2f}x"))  # fmt: skip
            worst[group] = max(worst.get(group, 0.0), many / few)
    print(f"  {ROUNDS} rounds in turns, medians in ms")
    table(("query", f"{FEW:,}", f"{MANY:,}", "ratio"), rows)
    return [Figure(f"{MANY:,} to {FEW:,}: {group}", r, target=TARGET) for group, r in worst.items()]


@contextmanager
def _filled_store(observations: int) -> Iterator[FilledStore]:
    with temporary_home() as home:
        layout = home.layout
        with Store.open(layout.database, layout.backups) as store:
            small = fill(layout.database, "small", "/home/dev/small", SMALL)
            project = fill(layout.database, "harbor", home.project_dir, observations)
            budget = home.settings.context.tokens
            yield FilledStore(store, project, small, budget, observations)


if __name__ == "__main__":
    sys.exit(run({"scale": measure}))

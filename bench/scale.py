"""What a hundred times the memory costs whoever asks for a page or a context.

Beside the large project a small one lies in each store, and its memories are the oldest there.
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
from claude_mem.store.pages import Page, Record

ROUNDS = 200
FEW, MANY, ASIDE = 1_000, 100_000, 100
BATCH = 40
TARGET = 2.0
NOUNS = ("observations", "summaries", "prompts", "sessions")


@dataclass(frozen=True, slots=True)
class Library:
    """A store with a project of so many observations, and a small one beside it."""

    store: Store
    project: int
    small_project: int
    budget: int
    observations: int
    chance: random.Random = field(default_factory=lambda: random.Random(1))

    def context(self, without_session: str | None = None) -> str:
        return build_context(self.store, self.project, self.budget, without_session)

    def page(self, noun: str, project: int | None, before: int | None = None) -> list[Record]:
        return self.store.page(noun, Page(before=before), project)[0]

    def middle_page(self, noun: str, newest: int) -> list[Record]:
        """Another one each time."""
        return self.page(noun, self.project, int(newest * self.chance.uniform(0.5, 0.75)))

    def batch(self) -> list[Record]:
        ids = self.chance.sample(range(ASIDE, self.observations), BATCH)
        return self.store.get_many("observations", ids)

    def questions(self) -> dict[tuple[str, str], Callable[[], object]]:
        """What is asked, by group and name."""
        latest = str(self.page("sessions", self.project)[0]["content_session_id"])
        asked: dict[tuple[str, str], Callable[[], object]] = {
            ("context", "for a new session"): self.context,
            ("context", "without the latest session"): partial(self.context, latest),
            ("batch", f"{BATCH} observations"): self.batch,
        }
        for noun in NOUNS:
            newest = int(str(self.page(noun, self.project)[0]["id"]))
            asked["first page", noun] = partial(self.page, noun, self.project)
            asked["first page of all", noun] = partial(self.page, noun, None)
            asked["page in the middle", noun] = partial(self.middle_page, noun, newest)
            asked["small project", noun] = partial(self.page, noun, self.small_project)
        return asked

    def ignores_before(self, noun: str) -> bool:
        first = self.page(noun, self.project)
        return self.page(noun, self.project, int(str(first[-1]["id"]))) == first


def measure() -> list[Figure]:
    with _library(FEW) as few, _library(MANY) as many:
        cases = {
            (*key, library.observations): partial(seconds_of, question)
            for library in (few, many)
            for key, question in library.questions().items()
        }
        taken = in_turns(cases, ROUNDS)
        for noun in filter(few.ignores_before, NOUNS):
            print(f"  `before` changes nothing for {noun}: their middle is the first page")
    return _report({key: median(seconds) for key, seconds in taken.items()})


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
    table(("question", f"{FEW:,}", f"{MANY:,}", "ratio"), rows)
    return [Figure(f"{MANY:,} to {FEW:,}: {group}", r, target=TARGET) for group, r in worst.items()]


@contextmanager
def _library(observations: int) -> Iterator[Library]:
    with temporary_home() as home:
        layout = home.layout
        with Store.open(layout.database, layout.backups) as store:
            small = fill(layout.database, "small", "/home/dev/small", ASIDE)
            project = fill(layout.database, "harbor", home.project_dir, observations)
            budget = home.settings.context.tokens
            yield Library(store, project, small, budget, observations)


if __name__ == "__main__":
    sys.exit(run({"scale": measure}))

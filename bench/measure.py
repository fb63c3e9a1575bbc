"""Taking turns, medians, and the tables that show them."""

import random
import statistics
import time
import traceback
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the closing table. Without a target it is only told."""

    name: str
    value: float
    unit: str = "x"
    target: float | None = None
    at_least: bool = False

    @property
    def verdict(self) -> str:
        if self.target is None:
            return "-"
        if self.at_least:
            return "ok" if self.value >= self.target else "under"
        return "ok" if self.value <= self.target else "over"

    def row(self) -> tuple[str, ...]:
        bound = "at least" if self.at_least else "at most"
        goal = "" if self.target is None else f"{bound} {self.target:g}{self.unit}"
        return self.name, amount(self.value) + self.unit, goal, self.verdict


Benchmark = Callable[[], list[Figure]]


def run(benchmarks: Mapping[str, Benchmark]) -> int:
    """Each in its turn, then all figures in one table; 1 when one of them broke."""
    figures: list[Figure] = []
    broken: list[str] = []
    for name, benchmark in benchmarks.items():
        print(f"\n== {name}", flush=True)
        try:
            figures += benchmark()
        except Exception:
            traceback.print_exc()
            broken.append(name)
    print("\n== summary")
    table(("name", "figure", "target", "verdict"), [figure.row() for figure in figures])
    if broken:
        print(f"broken: {', '.join(broken)}")
    return 1 if broken else 0


def in_turns(cases: Mapping[K, Callable[[], V]], rounds: int, warm_up: int = 2) -> dict[K, list[V]]:
    """What each case answers, round by round.

    Each round in another order: a process that follows a busy one finds cold caches.
    """
    order = list(cases)
    chance = random.Random(1)
    answers: dict[K, list[V]] = {name: [] for name in order}
    for number in range(-warm_up, rounds):
        chance.shuffle(order)
        for name in order:
            answer = cases[name]()
            if number >= 0:
                answers[name].append(answer)
    return answers


def seconds_of(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def p90(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=10, method="inclusive")[-1]


def amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}".removesuffix(".00")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """The first column to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, *rows):
        cells = [
            row[0].ljust(widths[0]),
            *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
        ]
        print(("  " + "  ".join(cells)).rstrip())
    print(flush=True)

"""Measuring in turns, medians, and tables."""

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
    """A row of the summary table; without a target it has no verdict."""

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
    """Runs each benchmark, then prints all figures in one table; 1 if a benchmark raised."""
    figures: list[Figure] = []
    failed: list[str] = []
    for name, benchmark in benchmarks.items():
        print(f"\n== {name}", flush=True)
        try:
            figures += benchmark()
        except Exception:
            traceback.print_exc()
            failed.append(name)
    print("\n== summary")
    table(("name", "figure", "target", "verdict"), [figure.row() for figure in figures])
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def in_turns(cases: Mapping[K, Callable[[], V]], rounds: int, warm_up: int = 2) -> dict[K, list[V]]:
    """The results of each case, round by round.

    Each round has another order, because a process that follows a busy one finds cold caches.
    """
    order = list(cases)
    rng = random.Random(1)
    results: dict[K, list[V]] = {name: [] for name in order}
    for number in range(-warm_up, rounds):
        rng.shuffle(order)
        for name in order:
            result = cases[name]()
            if number >= 0:
                results[name].append(result)
    return results


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
    """The first column is left-aligned, the others right-aligned."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, *rows):
        cells = [
            row[0].ljust(widths[0]),
            *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
        ]
        print(("  " + "  ".join(cells)).rstrip())
    print(flush=True)

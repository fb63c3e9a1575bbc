"""Markdown tables of medians and ratios."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.peers.samples import OURS, PEER, Sample

MISSING = "–"


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    product: str
    unit: str


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times the first is of the second, of the medians."""

    title: str
    numerator: Column
    denominator: Column


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


class Medians:
    def __init__(self, samples: Iterable[Sample]) -> None:
        self._medians = {(s.case, s.product, s.unit): s.median for s in samples if s.values}
        self.products = list(dict.fromkeys(product for _, product, _ in self._medians))
        self.cases = list(dict.fromkeys(case for case, _, _ in self._medians))

    def of(self, case: str, product: str, unit: str) -> float | None:
        return self._medians.get((case, product, unit))

    def table(
        self, title: str, columns: Sequence[Column | Ratio], cases: Iterable[str] | None = None
    ) -> str:
        rows = []
        for case in cases if cases is not None else self.cases:
            cells = [self._cell(case, column) for column in columns]
            if any(cell != MISSING for cell in cells):
                rows.append([case, *cells])
        return markdown([title, *(column.title for column in columns)], rows)

    def _cell(self, case: str, column: Column | Ratio) -> str:
        if isinstance(column, Column):
            value = self.of(case, column.product, column.unit)
            return MISSING if value is None else number(value)
        ratio = self.ratio(case, column)
        return MISSING if ratio is None else f"{number(ratio)}x"

    def ratio(self, case: str, column: Ratio) -> float | None:
        above, below = (
            self.of(case, part.product, part.unit)
            for part in (column.numerator, column.denominator)
        )
        return above / below if above is not None and below else None


def number(value: float) -> str:
    if value == int(value) or value >= 100:
        return f"{value:,.0f}"
    if value < 0.01:
        return f"{value:.4f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def pair(unit: str, title: str = "ratio") -> list[Column | Ratio]:
    """Ours, npm's, and how many times ours is npm's."""
    us, them = Column(f"ours, {unit}", OURS, unit), Column(f"npm, {unit}", PEER, unit)
    return [us, them, Ratio(title, us, them)]

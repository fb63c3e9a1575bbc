"""Activity over time, as bars that a template draws as SVG."""

from dataclasses import dataclass
from datetime import date, timedelta

EPOCH = date(1970, 1, 1)
WIDTH, HEIGHT, BASE = 720, 120, 98


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    label: str


@dataclass(frozen=True, slots=True)
class Plot:
    bars: tuple[Bar, ...]
    months: tuple[tuple[float, str], ...]
    total: int
    highest: int


def weekly_plot(turns_per_day: dict[int, int], today: date, weeks: int) -> Plot:
    """The last weeks, the current one at the right; `turns_per_day` by days since 1970."""
    first = today - timedelta(days=today.weekday(), weeks=weeks - 1)
    starts = [first + timedelta(weeks=number) for number in range(weeks)]
    counts = [
        sum(turns_per_day.get((start - EPOCH).days + day, 0) for day in range(7))
        for start in starts
    ]
    step, highest = WIDTH / weeks, max(*counts, 1)
    bars = []
    for number, (start, count) in enumerate(zip(starts, counts, strict=True)):
        height = max(2.0, (BASE - 8) * count / highest) if count else 1.0
        label = f"Week of {start.day} {start:%B %Y}: {count} {'turn' if count == 1 else 'turns'}"
        bars.append(Bar(round(number * step + 2, 1), round(BASE - height, 1), round(step - 4, 1),
                        round(height, 1), label))  # fmt: skip
    months = tuple(
        (round(number * step + 2, 1), f"{start:%b}")
        for number, start in enumerate(starts)
        if number == 0 or start.month != starts[number - 1].month
    )
    # The first label is left out if the next one would overlap it.
    spaced = months[1:] if len(months) > 1 and months[1][0] < 40 else months
    return Plot(tuple(bars), spaced, sum(counts), max(counts))

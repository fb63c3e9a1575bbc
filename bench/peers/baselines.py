"""What ours costs next to the least that it could cost: an interpreter that starts, bare FTS5 and a
scan, and events that are parsed and inserted. The benchmarks are those of `python -m bench`; here
every value of them is kept for the page.
"""

from collections.abc import Sequence
from pathlib import Path

from bench import commands, hooks, ingest, search
from bench.home import temporary_home
from bench.peers.samples import BARE, OURS, SHIPPED, Sample
from bench.peers.stores import put, store_of

MIN_SEARCH = "bare FTS5 and a scan"
MIN_SPOOL = "read, parse, insert"
INITIALIZE = "first initialize of a worker"
SPOOL = "events of a full spool, on one core"
_ALL, _ONE = "all projects", "one project"
_WAYS = {
    "search": [(SHIPPED, _ALL)],
    "in a project": [(SHIPPED, _ONE)],
    "bare and a scan": [(MIN_SEARCH, _ALL), (MIN_SEARCH, _ONE)],
}


def measure_commands(cache: Path, sizes: Sequence[int], rounds: int) -> list[Sample]:
    """Measures the commands as shipped, with so many observations."""
    samples: list[Sample] = []
    for size in sizes:
        database = store_of(cache, "full", size)
        with temporary_home() as home:
            put(database, home.layout.database)
            commands.skip_backup(home)
            costs = commands.costs_in(home, rounds)
        for name, runs in costs.items():
            product = BARE if name == commands.BARE else OURS
            case = f"{'' if product == BARE else name}, {size:,}"
            samples.append(Sample(case, product, "ms", tuple(1e3 * c.seconds for c in runs)))
            samples.append(Sample(case, product, "ms CPU", tuple(1e3 * c.processor for c in runs)))
    return samples


def measure_mcp(workers: int) -> list[Sample]:
    ours, bare = zip(*commands.first_initializes(workers), strict=True)
    return [
        Sample(INITIALIZE, OURS, "ms", tuple(1e3 * seconds for seconds in ours)),
        Sample(INITIALIZE, BARE, "ms", tuple(1e3 * seconds for seconds in bare)),
    ]


def measure_spool(rounds: int) -> list[Sample]:
    samples: list[Sample] = []
    for name, costs in ingest.costs_of(rounds).items():
        product = OURS if name == ingest.INTAKE else MIN_SPOOL
        by_clock = tuple(ingest.EVENTS / cost.seconds for cost in costs)
        by_processor = tuple(ingest.EVENTS / cost.processor for cost in costs)
        samples.append(Sample(SPOOL, product, "events/s", by_clock))
        samples.append(Sample(SPOOL, product, "events/s CPU", by_processor))
    return samples


def measure_hook_starts(rounds: int) -> list[Sample]:
    """Measures hooks with memories and a context; the prompt is looked up in 10,000 turns."""
    timings = hooks.timings_of(rounds)
    products = {hooks.BASELINE: ("", BARE)} | {name: (name, OURS) for name in hooks.TARGETS}
    return [
        Sample(case, product, "ms", tuple(1e3 * seconds for seconds in timings[name]))
        for name, (case, product) in products.items()
    ]


def measure_bare_search(sizes: Sequence[int]) -> list[Sample]:
    """Measures a search in so many turns and their records."""
    samples: list[Sample] = []
    for size in sizes:
        for (_, question, way), seconds in search.timings_with(size).items():
            values = tuple(1e3 * value for value in seconds)
            for product, scope in _WAYS.get(way, ()):
                samples.append(Sample(f"{question}, {scope}, {size:,}", product, "ms CPU", values))
    return samples

"""Search and context over HTTP as the memories grow: the same memories, the same questions.

"Ours" has no record and no vectors here, so that it does what the npm package does: full text over
the memories. "As shipped" also searches the record of each turn, and by meaning. With more than
100,000 memories ours is measured alone.
"""

import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.measure import in_turns, median, seconds_of
from bench.peers.install import Installation
from bench.peers.ours import PLAIN, ours
from bench.peers.peer import peer
from bench.peers.processes import Threads, private_memory
from bench.peers.product import Product, Session, context_path, search_path
from bench.peers.rows import PROJECT, copy_to_peer
from bench.peers.samples import OURS, PEER, SHIPPED, Sample
from bench.peers.stores import put, store_of
from bench.turns import vocabulary

ROUNDS_OF_CONTEXT = "context of a new session"
MIXED = 400  # searches before the memory is read
MAX_OF_PEER = 100_000
STARTS = 9  # a start now and then takes three times as long
FIRST, LATER = "first search after a start", "later searches"


@dataclass(frozen=True, slots=True)
class Timing:
    seconds: float
    processor: float  # of the worker


def measure(
    installation: Installation,
    cache: Path,
    sizes: Sequence[int],
    shipped_sizes: Sequence[int],
    rounds: int,
) -> list[Sample]:
    """Measures the product as shipped only at some sizes: its index takes long to make."""
    samples: list[Sample] = []
    for size in sizes:
        samples += _at(installation, cache, size, size in shipped_sizes, rounds)
    return samples


def _at(
    installation: Installation, cache: Path, size: int, shipped: bool, rounds: int
) -> list[Sample]:
    plain = store_of(cache, "plain", size)
    full = store_of(cache, "full", size) if shipped else None
    questions = _questions(plain, rounds + 2)
    with ExitStack() as stack:
        products: dict[str, Product] = {}
        for name, database, settings in ((OURS, plain, PLAIN), (SHIPPED, full, {})):
            if database is not None:
                us = stack.enter_context(ours(**settings))
                put(database, us.database)
                us.skip_backup()
                products[name] = us
        if size <= MAX_OF_PEER:
            products[PEER] = stack.enter_context(_filled_peer(installation, plain))
        samples = [
            sample for name, p in products.items() for sample in _starts(size, p, name, questions)
        ]
        cases: dict[tuple[str, str], Callable[[], Timing]] = {}
        for name, product in products.items():
            product.start()
            for case, paths in _requests(questions).items():
                cases[case, name] = _requesting(product, paths)
        timings = in_turns(cases, rounds, warm_up=2)
        samples += [_memory_after_searches(size, p, n, questions) for n, p in products.items()]
        samples += _disk(size, plain, full, products[PEER].database if PEER in products else None)
    for (case, name), values in timings.items():
        named = f"{case}, {size:,}"
        samples.append(Sample(named, name, "ms", tuple(1e3 * t.seconds for t in values)))
        samples.append(Sample(named, name, "ms CPU", tuple(1e3 * t.processor for t in values)))
    return samples


@contextmanager
def _filled_peer(installation: Installation, plain: Path) -> Iterator[Product]:
    with peer(installation) as theirs:
        theirs.start()  # creates its database
        theirs.stop()
        copy_to_peer(plain, theirs.database)
        yield theirs


def _starts(
    size: int, product: Product, name: str, questions: dict[str, list[str]]
) -> Iterator[Sample]:
    """Elapsed times of the first search of a worker and of the next ones, for rare words."""
    first: list[float] = []
    later: list[float] = []
    for _ in range(STARTS):
        product.start()
        ask = _requesting(product, [search_path(text) for text in questions["rare word"]])
        times = [1e3 * ask().seconds for _ in questions["rare word"]]
        first.append(times[0])
        later.append(median(times[1:]))
        product.stop()
    yield Sample(f"{FIRST}, {size:,}", name, "ms", tuple(first))
    yield Sample(f"{LATER}, {size:,}", name, "ms", tuple(later))


def _questions(database: Path, count: int) -> dict[str, list[str]]:
    """Other words in each round; a phrase is from a title."""
    words, rng = vocabulary(), random.Random(3)
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT title FROM observations LIMIT 5000").fetchall()
    titles = [row[0].lower().split() for row in rng.sample(rows, count)]
    return {
        "common word": [words[number % 8] for number in range(count)],
        "rare word": [words[4_000 + number] for number in range(count)],
        "phrase": [f'"{title[2]} {title[3]}"' for title in titles],
        "three words": [" ".join(words[100 + 3 * n : 103 + 3 * n]) for n in range(count)],
    }


def _requests(questions: dict[str, list[str]]) -> dict[str, list[str]]:
    """Returns by case the paths of its rounds."""
    requests = {ROUNDS_OF_CONTEXT: [context_path(PROJECT)]}
    for name, texts in questions.items():
        requests[f"{name}, all projects"] = [search_path(text) for text in texts]
        requests[f"{name}, one project"] = [search_path(text, PROJECT) for text in texts]
    return requests


def _requesting(product: Product, paths: list[str]) -> Callable[[], Timing]:
    session, worker = Session(product.address), product.pids()[:1]
    in_order = _cycle(paths)

    def ask() -> Timing:
        path, threads = next(in_order), Threads(worker)
        seconds = seconds_of(lambda: session.request("GET", path))
        return Timing(seconds, threads.processor_seconds())

    return ask


def _cycle(paths: list[str]) -> Iterator[str]:
    while True:
        yield from paths


def _memory_after_searches(
    size: int, product: Product, name: str, questions: dict[str, list[str]]
) -> Sample:
    session = Session(product.address)
    paths = [path for texts in _requests(questions).values() for path in texts]
    for path, _ in zip(_cycle(paths), range(MIXED), strict=False):
        session.request("GET", path)
    megabytes = private_memory(product.pids())
    return Sample(f"private memory after {MIXED} searches, {size:,}", name, "MB", (megabytes,))


def _disk(size: int, plain: Path, full: Path | None, theirs: Path | None) -> list[Sample]:
    def sample(case: str, name: str, amount: float) -> Sample:
        return Sample(f"{case}, {size:,}", name, "bytes per observation", (amount / size,))

    databases = {OURS: plain, PEER: theirs}
    samples = [
        sample("database", name, path.stat().st_size) for name, path in databases.items() if path
    ]
    if full is None:
        return samples
    record = partial(_bytes_of, full, ("turn_records%",))
    index = partial(_bytes_of, full, ("passage%", "vectors%", "documents%", "memory_text%",
                                      "indexed_turns%"))  # fmt: skip
    return [
        *samples,
        sample("database", SHIPPED, full.stat().st_size),
        sample("of this, record", SHIPPED, record()),
        sample("of this, index with vectors", SHIPPED, index()),
    ]


def _bytes_of(database: Path, patterns: tuple[str, ...]) -> int:
    with closing(sqlite3.connect(database)) as connection:
        return sum(
            int(
                connection.execute(
                    "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name LIKE ?", (pattern,)
                ).fetchone()[0]
            )
            for pattern in patterns
        )

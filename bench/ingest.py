"""How fast intake stores a full spool on one core, compared with the minimum of work.

The minimum: read each file, parse its JSON, insert it unchanged, one transaction per batch, with
the same durability. No redaction, no turns, no keys, and the files are not removed.
"""

import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from tests.payloads import as_bytes

from bench.home import Home, temporary_home
from bench.material import TOOLS, TURN, traffic
from bench.measure import Figure, amount, in_turns, median, run, seconds_of, table
from claude_mem.config import Layout
from claude_mem.intake.spool import BATCH, DrainCounts, waiting
from claude_mem.store import Store
from claude_mem.store.database import connect
from claude_mem.worker.worker import Worker

ROUNDS = 5
SESSIONS, TURNS = 50, 5
EVENTS = SESSIONS * TURNS * TURN
TARGET = 1_500
INTAKE, BARE = "intake", "read, parse, insert"


@dataclass(frozen=True, slots=True)
class Cost:
    seconds: float
    processor: float  # seconds of all threads of this process


def costs_of(rounds: int) -> dict[str, list[Cost]]:
    with _one_core():
        return in_turns({INTAKE: _intake, BARE: _bare}, rounds, warm_up=1)


def measure() -> list[Figure]:
    _describe_mix()
    costs = costs_of(ROUNDS)
    seconds = {name: median([cost.seconds for cost in rounds]) for name, rounds in costs.items()}
    processor = {
        name: median([cost.processor for cost in rounds]) for name, rounds in costs.items()
    }
    table(
        ("on one core", "events/s", "per processor second", "ratio of time", "of processor"),
        [
            (
                name,
                amount(EVENTS / seconds[name]),
                amount(EVENTS / processor[name]),
                f"{seconds[name] / seconds[BARE]:.2f}x",
                f"{processor[name] / processor[BARE]:.2f}x",
            )
            for name in costs
        ],
    )
    return [
        Figure("ingest on one core", EVENTS / seconds[INTAKE], "/s", TARGET, at_least=True),
        Figure(
            "ingest, processor time only", EVENTS / processor[INTAKE], "/s", TARGET, at_least=True
        ),
        Figure(f"ingest to {BARE}", seconds[INTAKE] / seconds[BARE]),
    ]


def _intake() -> Cost:
    """Makes an intake as the worker does, including its listener."""
    with _full_spool() as home:
        with Store.open(home.layout.database, home.layout.backups) as store:
            intake = Worker(home.settings, store, environ=home.environment).intake
            drained: list[DrainCounts] = []
            cost = _cost_of(lambda: drained.append(intake.drain()))
        if drained[0].stored != EVENTS:
            raise RuntimeError(f"of {EVENTS} events: {drained[0]}")
        return cost


def _bare() -> Cost:
    with _full_spool() as home, closing(connect(home.path / "bare.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, kind TEXT, body TEXT)")
        return _cost_of(lambda: _insert_all(connection, home.layout))


def _cost_of(work: Callable[[], object]) -> Cost:
    before = time.process_time()
    seconds = seconds_of(work)
    return Cost(seconds, time.process_time() - before)


def _insert_all(connection: sqlite3.Connection, layout: Layout) -> None:
    paths = waiting(layout)
    for start in range(0, len(paths), BATCH):
        connection.execute("BEGIN IMMEDIATE")
        for path in paths[start : start + BATCH]:
            body = path.read_bytes().partition(b"\n")[2].decode()
            row = (json.loads(body)["hook_event_name"], body)
            connection.execute("INSERT INTO events (kind, body) VALUES (?, ?)", row)
        connection.execute("COMMIT")


@contextmanager
def _full_spool() -> Iterator[Home]:
    with temporary_home() as home:
        for payload in traffic(SESSIONS, TURNS):
            home.spool(payload)
        yield home


@contextmanager
def _one_core() -> Iterator[None]:
    """Pins this thread and those that it starts."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _describe_mix() -> None:
    sizes = sorted(len(as_bytes(payload)) for payload in traffic(SESSIONS, TURNS))
    tools = ", ".join(f"{share}% {name}" for name, share in TOOLS.items())
    print(f"  {EVENTS:,} events of {SESSIONS} concurrent sessions; each turn is a prompt,")
    print(f"  {TURN - 2} tools ({tools}) and a Stop; {sum(sizes) / 1e6:.1f} MB in all:")
    print(f"  half under {sizes[EVENTS // 2]:,} bytes, 90% under {sizes[EVENTS * 9 // 10]:,},"
          f" the rest up to {sizes[-1]:,}")  # fmt: skip


if __name__ == "__main__":
    sys.exit(run({"ingest": measure}))

"""What the semantic index costs: embedding, the memory of a worker, and its first answer.

`python -m bench.vectors [--full]`: a worker with 10,000 turns (or 100,000) and their records, about
nine passages each. Its private memory is printed before and after 200 searches; the first search
after the start is compared with a later one.
"""

import sys
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

from tests.payloads import session_start

from bench.footprint import private_megabytes
from bench.home import Home, temporary_home
from bench.material import code
from bench.measure import Figure, median, run, seconds_of
from bench.search import questions
from bench.turns import Pool, fill_turns
from claude_mem.index.embedders.static_model import StaticModel
from claude_mem.server import client
from claude_mem.store import Store

TEXTS, WORDS = 20_000, 20
TURNS, FULL_TURNS = 10_000, 100_000
SEARCHES = 200
PORT = 47_778
MEMORY_TARGET = 150


def measure(turns: int = TURNS) -> list[Figure]:
    model = StaticModel.load()
    figures = [_embedding(model)]
    pool = Pool(model)
    with temporary_home(PORT) as home:
        with Store.open(home.layout.database, home.layout.backups) as store:
            fill_turns(store, pool, "harbor", turns)
        figures += _worker(home, pool, turns)
    return figures


def _embedding(model: StaticModel) -> Figure:
    texts = [" ".join(code(200, number).split()[:WORDS]) for number in range(TEXTS)]
    model.encode(texts[:100])
    rate = TEXTS / median([seconds_of(lambda: model.encode(texts)) for _ in range(3)])
    return Figure("short texts read in a second", rate, "", 5_000, at_least=True)


def _worker(home: Home, pool: Pool, turns: int) -> list[Figure]:
    home.hook(session_start())
    process = Path("/proc", str(home.worker_pid()))
    before = private_megabytes(process)
    texts = list(questions(pool.words, 0).values())
    first = seconds_of(partial(_search, home, texts[0]))
    for number in range(SEARCHES):
        _search(home, f"{texts[number % len(texts)]} {pool.words[number * 7]}")
    after = private_megabytes(process)
    later = median([seconds_of(partial(_search, home, texts[0])) for _ in range(5)])
    print(f"  the worker: {before:.1f} MB before a search, {after:.1f} MB after {SEARCHES}")
    print(f"  its first search took {first * 1e3:.0f} ms, a later one {later * 1e3:.0f} ms")
    name = f"worker at {turns:,} turns after {SEARCHES} searches, private memory"
    return [Figure(name, after, " MB", MEMORY_TARGET)]


def _search(home: Home, text: str) -> object:
    return client.ask_worker(home.layout, f"/api/search?{urlencode({'query': text})}")


if __name__ == "__main__":
    turns = FULL_TURNS if "--full" in sys.argv[1:] else TURNS
    sys.exit(run({"vectors": partial(measure, turns)}))

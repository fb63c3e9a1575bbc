"""Databases with many memories, made once and copied into a home."""

import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from bench.peers.copies import add_copies
from bench.peers.ours import PLAIN
from bench.peers.rows import fill, index_all
from claude_mem.config import load_settings
from claude_mem.index.vectors.lazy_index import open_semantic_index
from claude_mem.store import Store

FULL: dict[str, str] = {}
MAX_INDEXED = 100_000  # a larger database is copies of one with so many: its index takes hours
VARIANTS = {"plain": PLAIN, "full": FULL}  # by name, the settings


def make_stores(cache: Path, sizes: dict[str, list[int]]) -> None:
    """Makes the stores by variant; each in a process of its own, since most of the time goes into
    one index."""
    with ProcessPoolExecutor(len(sizes), get_context("spawn")) as processes:
        for done in [
            processes.submit(_make_all, cache, v, numbers) for v, numbers in sizes.items()
        ]:
            done.result()


def _make_all(cache: Path, variant: str, sizes: list[int]) -> None:
    for size in sorted(sizes):
        store_of(cache, variant, size)


def store_of(cache: Path, variant: str, observations: int) -> Path:
    """A database of ours with its index; with `full`, also with record and vectors."""
    path = cache / f"{variant}-{observations}.db"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as directory:
            made = Path(directory) / "memory.db"
            if observations > MAX_INDEXED:
                if observations % MAX_INDEXED:
                    raise ValueError(f"{observations} is no multiple of {MAX_INDEXED}")
                put(store_of(cache, variant, MAX_INDEXED), made)
                add_copies(made, observations // MAX_INDEXED - 1)
            else:
                _make(made, variant, observations)
            made.replace(path)
    return path


def _make(path: Path, variant: str, observations: int) -> None:
    semantic_index = open_semantic_index(
        load_settings({**VARIANTS[variant], "CLAUDE_MEM_DATA_DIR": str(path.parent)})
    )
    with Store.open(path, path.parent / "backups") as store:
        fill(path, "/home/dev/harbor", observations, record=variant == "full")
        index_all(store, semantic_index)


def put(database: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(database, target)


if __name__ == "__main__":
    for number in sys.argv[3:]:
        print(store_of(Path(sys.argv[1]), sys.argv[2], int(number)))

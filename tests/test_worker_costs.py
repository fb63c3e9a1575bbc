"""What the worker does by itself, which must not grow with the memory nor with the program."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.api import Api, open_api

FEW, MANY = 4, 40  # sessions


@contextmanager
def counted_steps(api: Api) -> Iterator[list[int]]:
    """Instructions of SQLite: of the writer and of the reader that the main loop takes.

    Nothing may use them when it ends: SQLite would wait for its own lock with Python's.
    """
    steps = [0]

    def count() -> None:
        steps[0] += 1

    store = api.worker.store
    with store._readers.connection() as reader:
        connections = [reader, store._writer._connection]
    for connection in connections:
        connection.set_progress_handler(count, 1)
    try:
        yield steps
    finally:
        for connection in connections:
            connection.set_progress_handler(None, 1)


def steps_of_a_start(directory: Path, sessions: int) -> int:
    """Counts the steps of a start and of the first cycle, when nothing waits, also not for its
    vector."""
    with open_api(directory, CLAUDE_MEM_EMBEDDER="none") as api:
        api.add_sessions(sessions)
        api.worker.store.interrupt_stale(api.clock.ms).result()
        for _ in range(2):  # the first one brings everything up to date, and makes a backup
            with counted_steps(api) as steps:
                api.runner.run(api.worker._start())
                api.runner.run(api.worker._run_once())
                assert api.worker._backup is not None
                api.runner.run(asyncio.wait([api.worker._backup]))
        return steps[0]


def test_a_start_of_the_worker_reads_no_more_of_a_larger_memory(tmp_path: Path) -> None:
    few = steps_of_a_start(tmp_path / "few", FEW)
    many = steps_of_a_start(tmp_path / "many", MANY)
    assert many - few < MANY - FEW, (few, many)


def test_the_garbage_collector_does_not_look_through_what_the_worker_imports() -> None:
    program = (
        "import gc, json, claude_mem.daemon;"
        " print(json.dumps([gc.isenabled(), gc.get_freeze_count(), len(gc.get_objects())]))"
    )
    is_enabled, imported, others = json.loads(
        subprocess.check_output([sys.executable, "-c", program])
    )
    assert is_enabled
    assert others < imported / 10

"""Opens the store for a command, which may write while a worker is running.

SQLite in WAL mode lets two processes write in turn: each waits up to ten seconds for the other's
transaction, and ours are batches of milliseconds. Creating and migrating the file must not happen
in two processes at once; the worker's lock prevents that.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from claude_mem.config import Settings
from claude_mem.errors import StoreError
from claude_mem.index import indexing
from claude_mem.server import client
from claude_mem.store import Store, StoreReader
from claude_mem.store.database import is_current
from claude_mem.worker.lock import WorkerLock


@contextmanager
def open_reader(settings: Settings) -> Iterator[StoreReader | None]:
    """None if there is no database yet: reading must not create one."""
    if not settings.layout.database.exists():
        yield None
        return
    with StoreReader.open_existing(settings.layout.database) as store:
        yield store


def open_store_for_import(settings: Settings, *, index_at_once: bool = True) -> Store:
    """Create the data directory and the database, or migrate it, if needed.

    While a worker is running, the worker migrates: an older one is replaced first; if a newer one
    is running, this command is refused. Without `index_at_once`, indexing has to
    follow.
    """
    settings.layout.create()
    lock = WorkerLock.acquire(settings.layout)
    store = _open_with_worker(settings) if lock is None else _open_alone(settings, lock)
    if index_at_once:
        store.run_before_commit(indexing.refresh)
    return store


def _open_alone(settings: Settings, lock: WorkerLock) -> Store:
    layout = settings.layout
    try:
        return Store.open(layout.database, layout.backups, settings.retention.backups)
    finally:
        lock.release()  # a worker that starts now finds the file ready


def _open_with_worker(settings: Settings) -> Store:
    layout = settings.layout
    client.start(layout, os.environ)  # waits for a worker that is starting
    if not is_current(layout.database):
        raise StoreError(
            "the running worker uses an older database schema: run "
            "`claude-mem worker restart`, then try again"
        )
    return Store(layout.database)

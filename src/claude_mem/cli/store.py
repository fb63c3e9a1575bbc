"""The store, opened for writing by a command while a worker may run beside it.

SQLite in WAL lets two processes write in turn: each waits up to ten seconds for the other's
transaction, and ours are batches of milliseconds. What must not happen twice at once is creating
and migrating the file. The worker's lock decides about that, as it does between workers.
"""

import os

from claude_mem.config import Settings
from claude_mem.errors import StoreError
from claude_mem.index.text import full_text
from claude_mem.server import client
from claude_mem.store import Store
from claude_mem.store.database import is_current
from claude_mem.worker.lock import WorkerLock


def open_store_for_import(settings: Settings) -> Store:
    """Creates the data directory and the database, or migrates it, where that is needed.

    Beside a running worker nothing is migrated: an older one is replaced, which migrates, a newer
    one stays and this command is refused.
    """
    settings.layout.create()
    lock = WorkerLock.acquire(settings.layout)
    store = _open_beside_worker(settings) if lock is None else _open_alone(settings, lock)
    full_text.keep_current(store)
    return store


def _open_alone(settings: Settings, lock: WorkerLock) -> Store:
    layout = settings.layout
    try:
        return Store.open(layout.database, layout.backups, settings.retention.backups)
    finally:
        lock.release()  # whoever starts now finds the file ready


def _open_beside_worker(settings: Settings) -> Store:
    layout = settings.layout
    client.start(layout, os.environ)  # waits for one that is just starting
    if not is_current(layout.database):
        raise StoreError(
            "the worker that runs keeps the database as an older version needs it: "
            "`claude-mem worker restart`, then try again"
        )
    return Store(layout.database)

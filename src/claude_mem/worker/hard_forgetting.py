"""After memories were forgotten for good: deletes what may repeat them outside of the tables.

Rendered contexts, rejected hook payloads and logs cannot be searched for a text reliably (it may
be escaped or cut), so they are deleted as a whole. Then the index is merged and the database
scrubbed. The worker repeats this until it succeeds, also after a crash.
"""

import os
from pathlib import Path

from claude_mem import paths
from claude_mem.config import Layout
from claude_mem.hook import trouble
from claude_mem.hook.kill_points import reach
from claude_mem.index import indexing
from claude_mem.intake import rejected_events
from claude_mem.store import Store
from claude_mem.worker.contexts import Contexts, clear_contexts


def erase_leftovers(layout: Layout, store: Store, contexts: Contexts) -> None:
    """Raises DatabaseInUse or an error of the disk; what is left to do then remains requested."""
    reach(b"erase.before_leftovers")
    clear_contexts(layout)
    contexts.mark_all_stale()
    rejected_events.delete_all(layout)
    _empty_logs(layout)
    for name in (paths.TROUBLE, trouble.SHOWN):
        layout.at(name).unlink(missing_ok=True)
    while store.write(indexing.refresh).result():
        pass  # what waits for the index still has its old words and rows
    store.write(indexing.tidy).result()
    reach(b"erase.before_scrub")
    store.scrub(layout.backups)


def _empty_logs(layout: Layout) -> None:
    for path in layout.worker_log.parent.iterdir():
        if _is_rotated(path):
            path.unlink(missing_ok=True)
        else:
            os.truncate(path, 0)  # not deleted: the worker has it open


def _is_rotated(path: Path) -> bool:
    return path.suffix != ".log"

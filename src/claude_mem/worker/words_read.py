"""Which words of a text that an agent saves it read in the latest turns of its project."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from claude_mem.observer.local.provenance import outside_words_in
from claude_mem.types import Project

if TYPE_CHECKING:  # the commands and the MCP server read requests without a worker
    from claude_mem.worker.worker import Worker

LATEST_SESSIONS = 3  # several may be at work at once


async def words_read(
    worker: "Worker", project: Project | None, texts: Sequence[str]
) -> tuple[str, ...]:
    """Returns the words as hashes of their runs. None: in any project, for an agent that does not
    say where it is."""
    await asyncio.to_thread(worker.intake.drain)  # what it read may be in the spool
    return await asyncio.to_thread(_words_read, worker, project, tuple(filter(None, texts)))


def _words_read(
    worker: "Worker", project: Project | None, texts: tuple[str, ...]
) -> tuple[str, ...]:
    project_id = worker.store.project_by_key(project.key) if project is not None else None
    if project is not None and project_id is None:
        return ()
    hashes: dict[str, None] = {}
    for turn_id in worker.store.latest_turns(project_id, LATEST_SESSIONS):
        turn = worker.store.load_turn(turn_id)
        if turn is not None:
            hashes |= dict.fromkeys(outside_words_in(turn, texts))
    return tuple(hashes)

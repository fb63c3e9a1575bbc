"""Changing stored memories: editing their text, pinning them, marking them as wrong."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from claude_mem.errors import NotFound
from claude_mem.recall.full_memories import get_memory
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.store.editing import Editor, Value
from claude_mem.store.memory_rows import JsonRow
from claude_mem.worker.words_read import words_read

if TYPE_CHECKING:  # the commands and the MCP server read requests without a worker
    from claude_mem.worker.worker import Worker

Action = Literal["edited", "pinned", "unpinned", "wrong", "unmarked", "confirmed"]


@dataclass(frozen=True, slots=True)
class EditRequest:
    """What is private and what is secret is already removed: see `params.edit_request`."""

    id: MemoryId
    values: Mapping[str, Value] = field(default_factory=dict)


async def edit_memory(worker: "Worker", request: EditRequest, editor: Editor) -> JsonRow:
    """The memory as it is now."""
    outside: tuple[str, ...] = ()
    if editor == "agent":
        values = request.values.values()
        texts = [v if isinstance(v, str) else "\n".join(v) for v in values if v]
        outside = await words_read(worker, None, texts)
    change = worker.store.edit_memory(
        request.id.kind, request.id.number, request.values, editor, outside
    )
    return await _finish(worker, request.id, change, "edited")


async def pin_memory(
    worker: "Worker", memory_id: MemoryId, editor: Editor, *, undo: bool = False
) -> JsonRow:
    change = worker.store.pin_memory(memory_id.kind, memory_id.number, not undo, editor)
    return await _finish(worker, memory_id, change, "unpinned" if undo else "pinned")


async def mark_wrong(
    worker: "Worker", memory_id: MemoryId, editor: Editor, *, undo: bool = False
) -> JsonRow:
    change = worker.store.mark_wrong(memory_id.kind, memory_id.number, not undo, editor)
    return await _finish(worker, memory_id, change, "unmarked" if undo else "wrong")


async def confirm_fact(worker: "Worker", fact_id: int, editor: Editor) -> JsonRow:
    """A candidate holds from now on."""
    change = worker.store.confirm_fact(fact_id, editor)
    return await _finish(worker, MemoryId("fact", fact_id), change, "confirmed")


async def _finish(
    worker: "Worker", memory_id: MemoryId, change: "Future[int]", action: Action
) -> JsonRow:
    project = worker.store.project(await asyncio.wrap_future(change))
    memory = await asyncio.to_thread(get_memory, worker.store, memory_id)
    if memory is None:  # forgotten meanwhile
        raise NotFound(f"there is no memory {memory_id}")
    worker.contexts.mark_stale(project)
    worker.announcer.memory_changed(project, str(memory_id), action, memory)
    await worker.contexts.render_stale()
    return memory

"""Full memories by id: the third step, after search and timeline."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import cast

from claude_mem.recall.memory_ids import MemoryId
from claude_mem.store import StoreReader
from claude_mem.store.memory_rows import JsonRow
from claude_mem.store.turn_records import record_data

NOUNS = {"observation": "observations", "summary": "summaries", "prompt": "prompts"}


async def memories_in_thread(
    store: StoreReader, ids: Sequence[MemoryId], with_record: bool
) -> list[tuple[MemoryId, JsonRow]]:
    return await asyncio.to_thread(get_memories, store, ids, with_record=with_record)


def get_memories(
    store: StoreReader, ids: Iterable[MemoryId], *, with_record: bool = False
) -> list[tuple[MemoryId, JsonRow]]:
    """Returns memories in the order of the ids; those that do not exist are left out.

    `with_record`: each has what was said in its turn.
    """
    ids = list(ids)
    records: dict[MemoryId, JsonRow] = {}
    for kind, noun in NOUNS.items():
        numbers = [memory_id.number for memory_id in ids if memory_id.kind == kind]
        parts = store.records_of(noun, numbers) if with_record else {}
        for record in store.get_many(noun, numbers):
            number = cast(int, record["id"])
            memory: JsonRow = {**record, "kind": kind}
            if with_record:
                memory["record"] = record_data(parts.get(number, ()))
            records[MemoryId(kind, number)] = memory
    return [(memory_id, records[memory_id]) for memory_id in ids if memory_id in records]


def get_memory(store: StoreReader, memory_id: MemoryId) -> JsonRow | None:
    """A memory or a fact."""
    if memory_id.kind == "fact":
        fact = store.fact(memory_id.number)
        return {**fact, "memory_kind": "fact"} if fact else None
    memories = get_memories(store, [memory_id])
    return {**memories[0][1], "memory_kind": memory_id.kind} if memories else None

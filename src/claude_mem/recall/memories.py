"""Full memories by id: the third step, after search and timeline."""

from collections.abc import Iterable
from typing import cast

from claude_mem.recall.memory_ids import MemoryId
from claude_mem.store import StoreReader
from claude_mem.store.pages import Record

_NOUNS = {"observation": "observations", "summary": "summaries", "prompt": "prompts"}


def get_memories(store: StoreReader, ids: Iterable[MemoryId]) -> list[tuple[MemoryId, Record]]:
    """In the order of the ids; those that do not exist are left out."""
    ids = list(ids)
    records: dict[MemoryId, Record] = {}
    for kind, noun in _NOUNS.items():
        numbers = [memory_id.number for memory_id in ids if memory_id.kind == kind]
        for record in store.get_many(noun, numbers):
            records[MemoryId(kind, cast(int, record["id"]))] = {**record, "kind": kind}
    return [(memory_id, records[memory_id]) for memory_id in ids if memory_id in records]

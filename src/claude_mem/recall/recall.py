"""The functions by which the worker searches and reads memories: those of this machine, for which
others stand if it joined a team."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.recall.answers import Answer, answers_in_thread
from claude_mem.recall.full_memories import memories_in_thread
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.search import Query, SearchResult, search_in_thread
from claude_mem.recall.timeline import Timeline, TimelineQuery, timeline_in_thread
from claude_mem.store import StoreReader
from claude_mem.store.memory_rows import JsonRow


@dataclass(frozen=True, slots=True)
class Recall:
    """How the worker searches and reads memories: by the functions of `recall/` that run in a
    thread, or in the same way with a team (`worker/recall_with_team.py`)."""

    search: Callable[[Callable[[StoreReader], Query], datetime], Awaitable[SearchResult]]
    timeline: Callable[[TimelineQuery, datetime], Awaitable[Timeline | None]]
    # In the order of the ids; the flag: with what was said in their turns.
    memories: Callable[[Sequence[MemoryId], bool], Awaitable[list[tuple[MemoryId, JsonRow]]]]
    answers: Callable[[Sequence[MemoryId], str, datetime], Awaitable[list[Answer]]]


def local_recall(store: StoreReader, index: SemanticIndex | None) -> Recall:
    return Recall(
        search=partial(search_in_thread, store, index),
        timeline=partial(timeline_in_thread, store, index),
        memories=partial(memories_in_thread, store),
        answers=partial(answers_in_thread, store, index),
    )

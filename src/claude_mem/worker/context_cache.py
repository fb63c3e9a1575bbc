"""Contexts in the memory of the worker, each valid until the memories that it is made of change."""

import threading
from collections import OrderedDict
from hashlib import blake2b

from claude_mem.recall.context import build_context
from claude_mem.store import Store
from claude_mem.store.memory_versions import MemoryVersion

MAX_CONTEXTS = 64
MAX_WAIT_SECONDS = 0.2

_Key = tuple[int, int, str, bytes]


class ContextCache:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._contexts: OrderedDict[_Key, tuple[MemoryVersion, str]] = OrderedDict()

    def context(self, project_id: int, budget: int, rule_files: str, branch: str) -> str:
        """As `build_context` returns it, without leaving out any session."""
        try:  # before anything is read
            version = self._store.memory_version(project_id).result(MAX_WAIT_SECONDS)
        except TimeoutError:  # the writer is busy, and a session waits
            return build_context(self._store, project_id, budget, None, rule_files, branch)
        key = project_id, budget, branch, blake2b(rule_files.encode("utf-8", "replace")).digest()
        with self._lock:
            made = self._contexts.get(key)
        if made is not None and made[0] == version:
            return made[1]
        text = build_context(self._store, project_id, budget, None, rule_files, branch)
        with self._lock:
            self._contexts[key] = version, text
            self._contexts.move_to_end(key)
            if len(self._contexts) > MAX_CONTEXTS:
                self._contexts.popitem(last=False)
        return text

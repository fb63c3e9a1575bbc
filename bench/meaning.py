"""The embedder of the settings, over a whole store, for benchmarks."""

import os

from claude_mem.config import load_settings
from claude_mem.index.vectors.semantic import SemanticIndex, open_semantic_index
from claude_mem.store import Store


def read_all(store: Store) -> SemanticIndex:
    """Every memory has its vector; CLAUDE_MEM_EMBEDDER and its kin say whose."""
    semantic_index = open_semantic_index(load_settings(os.environ).embedder)
    assert semantic_index is not None, "CLAUDE_MEM_EMBEDDER is none"
    while semantic_index.embed_some(store):
        pass
    return semantic_index

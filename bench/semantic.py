"""Embeds a store with the embedder of the settings, for benchmarks."""

import os

from claude_mem.config import load_settings
from claude_mem.index.vectors.document_vectors import embed_some
from claude_mem.index.vectors.lazy_index import SemanticIndex, open_semantic_index
from claude_mem.store import Store


def embed_all(store: Store) -> SemanticIndex:
    """Every memory, with the embedder of the environment (CLAUDE_MEM_EMBEDDER and others)."""
    semantic_index = open_semantic_index(load_settings(os.environ))
    assert semantic_index is not None, "CLAUDE_MEM_EMBEDDER is none"
    while embed_some(semantic_index, store):
        pass
    return semantic_index

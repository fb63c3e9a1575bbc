"""More like this: the memories whose meaning is nearest to that of another memory."""

import sqlite3
from dataclasses import dataclass, replace

from claude_mem.errors import BadInput, NotFound
from claude_mem.index import indexing
from claude_mem.index.text import document_queries, passage_queries
from claude_mem.index.text.documents import load
from claude_mem.index.text.filters import NO_FILTERS, Filters
from claude_mem.index.vectors.embedding_texts import passages
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.search import SearchResult, as_rows
from claude_mem.recall.weights import WEIGHTS
from claude_mem.store import StoreReader

DEFAULT_LIMIT = 10
CANDIDATES = 500


@dataclass(frozen=True, slots=True)
class RelatedQuery:
    anchor: MemoryId
    filters: Filters = NO_FILTERS  # without a project: that of the anchor
    limit: int = DEFAULT_LIMIT


def related(
    store: StoreReader, query: RelatedQuery, semantic_index: SemanticIndex | None
) -> SearchResult:
    """Lists related memories, nearest first; the score is the cosine. What is too far to answer a
    query is left out."""
    if semantic_index is None:
        raise BadInput("there is no semantic index: CLAUDE_MEM_EMBEDDER is none")
    document = query.anchor.document

    def work(connection: sqlite3.Connection) -> SearchResult:
        anchors = load(connection, [document]) if indexing.is_current(connection) else []
        if not anchors:
            raise NotFound(f"there is no memory {query.anchor}")
        filters = query.filters
        if filters.project_id is None:
            filters = replace(filters, project_id=anchors[0].project_id)
        text = "\n".join(passages(anchors[0]))
        loaded = semantic_index.load()
        similarities = loaded.vector_search.similarities(
            connection, text, filters.project_id, "observation"
        )
        threshold = loaded.calibration.cosine(WEIGHTS.min_deviations)
        nearest = {other: cosine for other, cosine in similarities.best(CANDIDATES)
                   if cosine >= threshold and other != document}  # fmt: skip
        passing = document_queries.passing(connection, list(nearest), filters)
        scores = {other: cosine for other, cosine in nearest.items() if other in passing}
        documents = passage_queries.get_matches(connection, list(scores)[: query.limit + 1])
        rows = as_rows(connection, documents[: query.limit], scores)
        has_more = len(documents) > query.limit
        return SearchResult(tuple(rows), has_more, indexing.waiting(connection))

    return store.read(work)

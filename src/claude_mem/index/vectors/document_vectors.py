"""Makes the vectors of documents that wait for one, and links observations that are duplicates."""

import sqlite3
from typing import NamedTuple

from claude_mem.index import indexing
from claude_mem.index.text import passage_writing
from claude_mem.index.text.documents import TURN, document_id, load, memory_id_of
from claude_mem.index.vectors import duplicates, vector_table
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.store import Store

CHUNK = 256


class _Batch(NamedTuple):
    generation: int
    waiting: list[vector_table.Waiting]
    vectors: dict[int, bytes]  # by document
    duplicates: list[tuple[int, int]]
    compared_revision: int  # of the vectors that they were compared with
    pieces: dict[int, list[bytes]]  # by turn, of its passages


def embed_some(index: SemanticIndex, store: Store, chunk: int = CHUNK) -> int:
    """Embeds a chunk of the waiting documents and links duplicates; how many there were."""
    batch = store.read(lambda connection: _embed(index, connection, chunk))
    if batch.waiting:
        store.write(lambda connection: _store(index, connection, batch)).result()
    return len(batch.waiting)


def _embed(index: SemanticIndex, connection: sqlite3.Connection, chunk: int) -> _Batch:
    loaded = index.load()
    model, cache, similar_words = loaded.embedder, loaded.cache, loaded.similar_words
    generation = indexing.generation(connection)
    number = vector_table.number_of(connection, model.id, model.dimension)
    waiting = vector_table.waiting(connection, number, chunk)
    documents = load(connection, [row.document for row in waiting])
    rows = cache.embed(documents)
    vectors = {d.id: passages.tobytes() for d, passages in zip(documents, rows, strict=True)}
    pieces = {
        memory_id_of(d.id): [similar_words.pieces(passage.text) for passage in d.passages]
        for d in documents
        if d.passages
    }
    candidates = [at for at, d in enumerate(documents) if duplicates.may_have_duplicates(d.id)]
    similar, revision = loaded.vector_search.similar_pairs(
        connection,
        [documents[at] for at in candidates],
        [rows[at][0] for at in candidates],
        duplicates.MIN_COSINE,
        duplicates.MAX_CANDIDATES,
    )
    pairs = _duplicate_pairs(connection, similar)
    return _Batch(generation, waiting, vectors, pairs, revision, pieces)


def _store(index: SemanticIndex, connection: sqlite3.Connection, batch: _Batch) -> None:
    """Stores vectors unless the index was rebuilt, and only for texts that have not changed."""
    if indexing.generation(connection) != batch.generation:
        return
    model = index.load().embedder
    number = vector_table.register(connection, model.id, model.dimension)
    filled = [(row, batch.vectors.get(row.document)) for row in batch.waiting]
    unchanged = vector_table.fill(connection, number, filled)
    for turn, pieces in batch.pieces.items():
        if document_id(TURN, turn) in unchanged:
            passage_writing.set_pieces(connection, turn, pieces)
    compared = {document for pair in batch.duplicates for document in pair}
    unchanged |= vector_table.unchanged(connection, compared, batch.compared_revision)
    duplicates.link(connection, [p for p in batch.duplicates if unchanged.issuperset(p)])


def _duplicate_pairs(
    connection: sqlite3.Connection, pairs: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    ids = list({document for pair in pairs for document in pair})
    documents = {document.id: document for document in load(connection, ids)}
    return [
        (first, second)
        for first, second in pairs
        if duplicates.may_have_duplicates(second)
        and first in documents
        and second in documents
        and duplicates.are_duplicates(documents[first], documents[second])
    ]

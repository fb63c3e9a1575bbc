"""More like this: memories that mean something like one that is at hand."""

import sqlite3
from dataclasses import replace

from claude_mem.errors import BadInput, NotFound
from claude_mem.index.text import full_text, matches
from claude_mem.index.text.documents import document_id, load
from claude_mem.index.text.matches import Filters
from claude_mem.index.vectors.passages import passages
from claude_mem.index.vectors.semantic import SemanticIndex
from claude_mem.recall.ranking import WEIGHTS
from claude_mem.recall.search import SearchResult, as_rows
from claude_mem.recall.timeline import read_anchor
from claude_mem.store import StoreReader

ROWS = 10
MANY = 500


def related(
    store: StoreReader,
    anchor: str,
    meaning: SemanticIndex,
    filters: Filters = Filters(),  # noqa: B008 - frozen
    limit: int = ROWS,
) -> SearchResult:
    """The nearest first, of the anchor's project unless the filters name another. Its score is the
    cosine; what is not like it enough to answer a question is left out."""
    known = read_anchor(anchor)
    if known is None:
        raise BadInput(f"{anchor[:80]!r} is not an id: 12, S3 or P4", "anchor")
    document = document_id(*known)

    def work(connection: sqlite3.Connection) -> SearchResult:
        found = load(connection, [document]) if full_text.is_current(connection) else []
        if not found:
            raise NotFound(f"there is nothing with the id {anchor}")
        within = filters
        if filters.project_id is None:
            within = replace(filters, project_id=found[0].project_id)
        text = "\n".join(passages(found[0]))
        likeness = meaning.likeness(connection, text, within.project_id)
        enough = meaning.cosine(WEIGHTS.like)
        best = {one: cosine for one, cosine in likeness.best(MANY)
                if cosine >= enough and one != document}  # fmt: skip
        passing = {one.document for one in matches.traits(connection, list(best), within)}
        chosen = {one: cosine for one, cosine in best.items() if one in passing}
        there = matches.get(connection, list(chosen)[: limit + 1])
        rows = as_rows(connection, there[:limit], chosen)
        waiting = full_text.waiting(connection)
        return SearchResult(anchor, tuple(rows), len(there) > limit, waiting)

    return store.read(work)

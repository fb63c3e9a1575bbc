"""The passages of a turn that answer a question best, word for word.

They are scored as in a search (`ranking`), so that what made a turn a result is what is read of it.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from claude_mem.errors import EmbedderError
from claude_mem.index import indexing
from claude_mem.index.embedders.embedder import time_limit
from claude_mem.index.text import passage_queries
from claude_mem.index.text.documents import MOST_PASSAGES, Passage
from claude_mem.index.text.passage_queries import PassageRow
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.recall.best_sentences import best_sentences
from claude_mem.recall.full_memories import get_memories
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.parsed_query import ParsedQuery, parse_query, stems_of
from claude_mem.recall.ranking import (
    Term,
    embedded_text,
    find_evidence,
    look_up_terms,
    match_expression,
    occurrences,
    passage_value,
)
from claude_mem.recall.search import snippet
from claude_mem.recall.tokens import estimate_tokens
from claude_mem.store import StoreReader
from claude_mem.store.memory_rows import JsonRow
from claude_mem.types import Json

log = logging.getLogger("claude_mem.answers")

BUDGET = 200  # tokens of a turn: an agent often has to open two
# What was asked for says less than what came of it, and a subagent's report is of many things.
KINDS = {"prompt": 0.7, "report": 0.9}
_SHOWN = ("id", "kind", "type", "project", "content_session_id", "created_at", "created_at_epoch")


@dataclass(frozen=True, slots=True)
class Answer:
    """A memory, and what was said in its turn about the question."""

    id: MemoryId
    memory: JsonRow
    title: str
    passages: tuple[Passage, ...]  # empty where the turn is not indexed, or was answered above

    def as_json(self) -> dict[str, Json]:
        shown = {name: self.memory[name] for name in _SHOWN if name in self.memory}
        passages: list[Json] = [{"kind": p.kind, "text": p.text} for p in self.passages]
        return {**shown, "title": self.title, "passages": passages}


async def answers_in_thread(
    store: StoreReader,
    semantic_index: SemanticIndex | None,
    ids: Sequence[MemoryId],
    words: str,
    now: datetime,
) -> list[Answer]:
    return await asyncio.to_thread(find_answers, store, ids, words, now, semantic_index)


def find_answers(
    store: StoreReader,
    ids: Iterable[MemoryId],
    words: str,
    now: datetime,
    semantic_index: SemanticIndex | None = None,
    budget: int = BUDGET,
) -> list[Answer]:
    """Finds answers in the order of the ids. Passages of a turn come with the first of its memories
    alone."""
    memories = get_memories(store, ids)
    parsed = parse_query(words, now)

    def work(connection: sqlite3.Connection) -> list[Answer]:
        may_answer = indexing.is_current(connection) and not parsed.is_empty
        answers: list[Answer] = []
        answered: set[int] = set()
        for memory_id, memory in memories:
            turn_id = turn_of(connection, memory_id)
            title = _title(memory)
            passages: Sequence[Passage] = ()
            if may_answer and turn_id is not None and turn_id not in answered:
                answered.add(turn_id)
                passages = _passages(connection, turn_id, parsed, budget, semantic_index, title)
            answers.append(Answer(memory_id, memory, title, tuple(passages)))
        return answers

    return store.read(work)


def best_passages(
    connection: sqlite3.Connection,
    turn_id: int,
    parsed: ParsedQuery,
    budget: int = BUDGET,
    semantic_index: SemanticIndex | None = None,
    title: str = "",
) -> list[Passage]:
    """Returns passages in the order of the turn: their best sentences that fit, and that say more
    than the title."""
    unweighted = passage_scores(connection, [turn_id], parsed, semantic_index)[turn_id]
    texts = dict(enumerate(passage_queries.texts_of_turn(connection, turn_id)))
    scores = {
        number: score * KINDS.get(texts[number].kind, 1.0)
        for number, score in unweighted.items()
        if number in texts  # not of a turn that was changed in between
    }
    if not scores:
        return []
    passage_texts = {number: texts[number].text for number in scores}
    selected = best_sentences(passage_texts, scores, parsed.text, budget, title)
    if not selected:
        best = max(scores, key=lambda number: (scores[number], -number))
        text = _fit(texts[best].text, parsed, budget)
        selected = {best: text} if text else {}
    return [Passage(texts[number].kind, selected[number]) for number in sorted(selected)]


def _fit(text: str, parsed: ParsedQuery, budget: int) -> str:
    """The part around the words of the query; empty if none fits."""
    length = 4 * budget
    while length > 0:
        if estimate_tokens(text) <= budget:
            return text
        text = snippet(text, stems_of(parsed), length)
        length //= 2
    return ""


def _passages(
    connection: sqlite3.Connection,
    turn_id: int,
    parsed: ParsedQuery,
    budget: int,
    semantic_index: SemanticIndex | None,
    title: str,
) -> list[Passage]:
    try:
        with time_limit():
            return best_passages(connection, turn_id, parsed, budget, semantic_index, title)
    except EmbedderError as error:
        log.warning("selecting passages by words only: %s", error)
        return best_passages(connection, turn_id, parsed, budget, title=title)


def passage_scores(
    connection: sqlite3.Connection,
    turn_ids: Sequence[int],
    parsed: ParsedQuery,
    semantic_index: SemanticIndex | None,
    terms: list[Term] | None = None,
    bm25: Mapping[int, float] | None = None,
) -> dict[int, dict[int, float]]:
    """Scores passages by turn and by their number. `terms`: those of the query, if they were looked
    up before. `bm25`: that of the best passages by words; it is 0 for others."""
    terms = look_up_terms(connection, parsed) if terms is None else terms
    expression, sole = match_expression(parsed), occurrences(parsed, terms)
    by_words = dict(bm25 or {})
    rows: list[PassageRow] = []
    for turn_id in turn_ids:
        rows += passage_queries.rows_of_turn(connection, turn_id)
        if expression and bm25 is None:
            by_words |= passage_queries.scores_in_turn(connection, expression, turn_id, sole)
    cosines: dict[int, float] = {}
    similar_words = None
    if semantic_index is not None:
        loaded = semantic_index.load()
        similar_words = loaded.similar_words
        ids = [row.id for row in rows]
        text = embedded_text(parsed, terms)
        cosines = loaded.vector_search.passage_cosines(connection, text, ids)
    scores: dict[int, dict[int, float]] = {turn_id: {} for turn_id in turn_ids}
    for row, evidence in find_evidence(rows, terms, by_words, cosines, similar_words):
        turn_id, number = divmod(row.id, MOST_PASSAGES)
        scores[turn_id][number] = passage_value(row, evidence)
    return scores


_TURNS = {
    "observation": "SELECT turn_id FROM observations WHERE id = ?",
    "summary": "SELECT turn_id FROM session_summaries WHERE id = ?",
    "prompt": "SELECT id FROM user_prompts WHERE id = ?",
}


def turn_of(connection: sqlite3.Connection, memory_id: MemoryId) -> int | None:
    row = connection.execute(_TURNS[memory_id.kind], (memory_id.number,)).fetchone()
    return row[0] if row else None


def _title(memory: JsonRow) -> str:
    """Returns the title as a search shows it: the first line of what names the memory."""
    names = ("title", "subtitle", "request", "completed", "learned", "narrative", "prompt_text")
    texts = (str(memory.get(name) or "").strip() for name in names)
    return next((text.splitlines()[0] for text in texts if text), "")

"""The passages of a turn that answer a question best, word for word.

They are scored as in a search (`ranking`), so that what made a turn a result is what is read of it.
"""

import logging
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from claude_mem.errors import EmbedderError
from claude_mem.index import indexing
from claude_mem.index.passages import MOST, Passage
from claude_mem.index.text import passage_index, passage_texts
from claude_mem.index.text.passage_index import PassageRow
from claude_mem.index.vectors.semantic import SemanticIndex
from claude_mem.recall.candidates import (
    Term,
    embedded_text,
    find_evidence,
    look_up_terms,
    match_expression,
    occurrences,
)
from claude_mem.recall.memories import get_memories
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.parsed_query import ParsedQuery, parse_query
from claude_mem.recall.ranking import score_of
from claude_mem.recall.snippets import snippet
from claude_mem.recall.tokens import estimate_tokens
from claude_mem.store import StoreReader
from claude_mem.store.json_rows import JsonRow
from claude_mem.types import Json

log = logging.getLogger("claude_mem.answers")

BUDGET = 250  # tokens of a turn
MAX_REPEATED = 0.8  # share of its words that a passage may have in common with those before it
_WORD = re.compile(r"\w+")
MIN_SCORE = 0.4  # of the best passage's: what scores less is about something else
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


def find_answers(
    store: StoreReader,
    ids: Iterable[MemoryId],
    words: str,
    now: datetime,
    semantic_index: SemanticIndex | None = None,
    budget: int = BUDGET,
) -> list[Answer]:
    """In the order of the ids. Passages of a turn come with the first of its memories alone."""
    memories = get_memories(store, ids)
    parsed = parse_query(words, now)

    def work(connection: sqlite3.Connection) -> list[Answer]:
        may_answer = indexing.is_current(connection) and not parsed.is_empty
        answers: list[Answer] = []
        answered: set[int] = set()
        for memory_id, memory in memories:
            turn_id = turn_of(connection, memory_id)
            passages: Sequence[Passage] = ()
            if may_answer and turn_id is not None and turn_id not in answered:
                answered.add(turn_id)
                passages = _passages(connection, turn_id, parsed, budget, semantic_index)
            answers.append(Answer(memory_id, memory, _title(memory), tuple(passages)))
        return answers

    return store.read(work)


def best_passages(
    connection: sqlite3.Connection,
    turn_id: int,
    parsed: ParsedQuery,
    budget: int = BUDGET,
    semantic_index: SemanticIndex | None = None,
    shown_as: Callable[[Passage], str] = lambda passage: passage.text,
    weights: Mapping[str, float] | None = None,
) -> list[Passage]:
    """In the order of the turn; the best ones, each of which adds something, that fit.

    `shown_as` gives the text that a passage is shown with; empty: not at all. `weights` are those
    of kinds of passages, 1.0 if they have none.
    """
    scores = passage_scores(connection, [turn_id], parsed, semantic_index)[turn_id]
    texts = passage_texts.texts_of_turn(connection, turn_id)
    if weights:
        scores = {n: score * weights.get(texts[n].kind, 1.0) for n, score in scores.items()}
    by_score = sorted(range(len(texts)), key=lambda number: (-scores.get(number, 0.0), number))
    least = MIN_SCORE * max(scores.values(), default=0.0)
    selected: dict[int, Passage] = {}
    shown: set[str] = set()
    remaining = budget
    for number in by_score:
        if scores.get(number, 0.0) < least:
            break
        passage = Passage(texts[number].kind, shown_as(texts[number]))
        if not passage.text:
            continue
        if not selected:
            passage = Passage(passage.kind, _fit(passage.text, parsed, budget))
        words = set(_WORD.findall(passage.text.lower()))
        tokens = estimate_tokens(passage.text)
        if tokens > remaining or len(words & shown) > MAX_REPEATED * len(words):
            continue
        selected[number] = passage
        shown |= words
        remaining -= tokens
    return [selected[number] for number in sorted(selected)]


def _fit(text: str, parsed: ParsedQuery, budget: int) -> str:
    length = 4 * budget
    while estimate_tokens(text) > budget and length > 0:
        text = snippet(text, parsed, length)
        length //= 2
    return text


def _passages(
    connection: sqlite3.Connection,
    turn_id: int,
    parsed: ParsedQuery,
    budget: int,
    semantic_index: SemanticIndex | None,
) -> list[Passage]:
    try:
        return best_passages(connection, turn_id, parsed, budget, semantic_index)
    except EmbedderError as error:
        log.warning("selecting passages by words only: %s", error)
        return best_passages(connection, turn_id, parsed, budget)


def passage_scores(
    connection: sqlite3.Connection,
    turn_ids: Sequence[int],
    parsed: ParsedQuery,
    semantic_index: SemanticIndex | None,
    terms: list[Term] | None = None,
    bm25: Mapping[int, float] | None = None,
) -> dict[int, dict[int, float]]:
    """By turn, by the number of the passage. `terms`: those of the query, if they were looked up
    before. `bm25`: that of the best passages by words; it is 0 for others."""
    terms = look_up_terms(connection, parsed) if terms is None else terms
    expression, sole = match_expression(parsed, terms), occurrences(parsed, terms)
    by_words = dict(bm25 or {})
    rows: list[PassageRow] = []
    for turn_id in turn_ids:
        rows += passage_index.rows_of_turn(connection, turn_id)
        if expression and bm25 is None:
            by_words |= passage_index.scores_in_turn(connection, expression, turn_id, sole)
    cosines: dict[int, float] = {}
    if semantic_index is not None:
        ids = [row.id for row in rows]
        text = embedded_text(parsed, terms)
        cosines = semantic_index.passage_cosines(connection, text, ids)
    scores: dict[int, dict[int, float]] = {turn_id: {} for turn_id in turn_ids}
    for candidate in find_evidence(rows, terms, by_words, cosines, semantic_index):
        turn_id, number = divmod(candidate.row.id, MOST)
        scores[turn_id][number] = score_of(candidate)
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
    """As a search shows it: the first line of what names the memory."""
    names = ("title", "subtitle", "request", "completed", "learned", "narrative", "prompt_text")
    texts = (str(memory.get(name) or "").strip() for name in names)
    return next((text.splitlines()[0] for text in texts if text), "")

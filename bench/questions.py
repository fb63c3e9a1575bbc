"""Asks a store the questions of a file: which turns are found, and how much must be read.

A hit is a turn of the right session whose record or memories hold all terms of the answer. What an
agent reads is the reply of the MCP tool `search`, then `get_observations` for one row after the
other, best first, with the question as `words`, until what it has read of the right session holds
all terms. Search is measured by words, by words and meaning, and by meaning.
"""

import json
import random
import sqlite3
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.semantic import embed_all
from claude_mem.index.text.passage_queries import PASSAGE_BITS
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.mcp.tools import fenced
from claude_mem.recall.answers import find_answers, turn_of
from claude_mem.recall.formatting import answers_text, search_text
from claude_mem.recall.search import Query, SearchRow, search
from claude_mem.recall.tokens import estimate_tokens
from claude_mem.store import Store
from claude_mem.store.memories import column_texts
from claude_mem.store.memory_rows import JsonRow, as_json_row
from claude_mem.store.turn_records import load_records, record_bytes

FIELDS = {
    "observations": ("title", "subtitle", "narrative", "facts", "files_read", "files_modified"),
    "summaries": ("request", "investigated", "learned", "completed", "next_steps", "notes",
                  "commands", "faults", "files_read", "files_edited"),
}  # fmt: skip
_TABLES = {"observations": "observations", "summaries": "session_summaries"}
RANKED = 40
TOPS = (1, 5, 10)
FEW_TOKENS = 1_000
SAMPLES = 2_000  # of the bootstrap
INTERVAL = (0.025, 0.975)


@dataclass(frozen=True, slots=True)
class Question:
    session_id: str
    text: str
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one question, by words and meaning."""

    rank: int | None
    is_strong: bool  # the right turn, if it is among the first ten
    tokens: int | None  # read until all terms were there


@dataclass(frozen=True, slots=True)
class Turn:
    session_id: str
    text: str  # of its record and its memories

    def answers(self, question: Question) -> bool:
        return self.session_id == question.session_id and _has_all(self.text, question.terms)


def read_questions(path: Path) -> list[Question]:
    return [
        Question(x["session_id"], x["question"], tuple(x["answer_terms"])) for x in _objects(path)
    ]


def _objects(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def ask(
    store: Store,
    questions: Sequence[Question],
    unanswerable: Iterable[Path],
    text_bytes: int,
    seed: int,
) -> None:
    """Prints all figures; `text_bytes` is the size of what was said in the sessions."""
    semantic_index = embed_all(store)
    print(f"\nembedder: {semantic_index.id}")
    turns = store.read(load_turns)
    methods = _methods(store, semantic_index)
    ranks: dict[str, list[int | None]] = {name: [] for name in methods}
    results: list[Result] = []
    for question in questions:
        for name, method in methods.items():
            ranks[name].append(_rank(method(question.text), turns, question))
        results.append(_read(store, turns, question, semantic_index))
        shown = ", ".join(f"{name} {ranks[name][-1] or '-':>2}" for name in methods)
        print(f"  {shown}: {question.text[:70]}")
    for name, of_method in ranks.items():
        print(f"{name:>8}: {_hits(of_method)}")
    _print_intervals(ranks["both"], seed)
    _print_replies(store, questions, semantic_index)
    within = _print_reading(results)
    strong = sum(result.is_strong for result in results)
    print(f"right turn among the first 10 and strong: {strong} of {len(results)}")
    for path in unanswerable:
        _print_strong_share(store, path, semantic_index)
    memory, recorded = store.read(memory_bytes), store.read(record_bytes)
    print(f"text {text_bytes:,} bytes, memory {memory:,}, record {recorded:,}")
    print(f"{_hits(ranks['both'])}, within {FEW_TOKENS} tokens {within},"
          f" memory {100 * memory / max(1, text_bytes):.1f}% of text,"
          f" record {100 * recorded / max(1, text_bytes):.1f}%")  # fmt: skip


def _print_strong_share(store: Store, path: Path, semantic_index: SemanticIndex) -> None:
    texts = [str(line["question"]) for line in _objects(path)]
    strong = sum(
        any(row.is_strong for row in search(store, Query(text), _now(), semantic_index).rows)
        for text in texts
    )
    print(f"strong results for questions without an answer: {strong} of {len(texts)} ({path.name})")


# Search


Method = Callable[[str], list[int]]  # from a question to the ids of turns, best first


def _methods(store: Store, semantic_index: SemanticIndex) -> dict[str, Method]:
    def fused(text: str, index: SemanticIndex | None = semantic_index) -> list[int]:
        rows = search(store, Query(text, limit=RANKED), _now(), index).rows
        return store.read(lambda c: [_turn_id(c, row) for row in rows])

    def by_meaning(text: str) -> list[int]:
        vectors = semantic_index.load().vector_search
        similarities = store.read(lambda c: vectors.similarities(c, text))
        best = [passage >> PASSAGE_BITS for passage, _ in similarities.best(20 * RANKED)]
        return list(dict.fromkeys(best))

    return {"words": lambda text: fused(text, None), "both": fused, "meaning": by_meaning}


def _now() -> datetime:
    return datetime.now(UTC)


def _turn_id(connection: sqlite3.Connection, row: SearchRow) -> int:
    turn = turn_of(connection, row.id)
    assert turn is not None
    return turn


def _rank(ids: Iterable[int], turns: dict[int, Turn], question: Question) -> int | None:
    return next((rank for rank, id_ in enumerate(ids, 1) if turns[id_].answers(question)), None)


def _has_all(text: str, terms: Iterable[str]) -> bool:
    return all(term in text for term in terms)


# What an agent reads


def _read(
    store: Store, turns: dict[int, Turn], question: Question, semantic_index: SemanticIndex
) -> Result:
    rows = search(store, Query(question.text, limit=max(TOPS)), _now(), semantic_index).rows
    ids = store.read(lambda c: [_turn_id(c, row) for row in rows])
    rank = _rank(ids, turns, question)
    is_strong = rank is not None and rows[rank - 1].is_strong
    return Result(rank, is_strong, _tokens_read(store, turns, question, semantic_index))


def _tokens_read(
    store: Store, turns: dict[int, Turn], question: Question, semantic_index: SemanticIndex
) -> int | None:
    result = search(store, Query(question.text), _now(), semantic_index)
    ids = store.read(lambda c: [_turn_id(c, row) for row in result.rows])
    is_right = [turns[id_].session_id == question.session_id for id_ in ids]
    tokens = estimate_tokens(fenced(search_text(result, UTC)))
    texts = [
        search_text(replace(result, rows=(row,)), UTC)
        for row, right in zip(result.rows, is_right, strict=True)
        if right
    ]
    for row, right in zip(result.rows, is_right, strict=True):
        if _has_all("\n".join(texts), question.terms):
            return tokens
        answers = find_answers(store, [row.id], question.text, _now(), semantic_index)
        opened = fenced(answers_text(answers))
        tokens += estimate_tokens(opened)
        if right:
            texts.append(opened)
    return tokens if _has_all("\n".join(texts), question.terms) else None


def _print_replies(
    store: Store, questions: Sequence[Question], semantic_index: SemanticIndex
) -> None:
    replies = [
        fenced(search_text(search(store, Query(question.text), _now(), semantic_index), UTC))
        for question in questions
    ]
    if replies:
        print("tokens of a search reply, median: "
              f"{statistics.median(map(estimate_tokens, replies)):.0f}")  # fmt: skip


def _print_reading(results: Sequence[Result]) -> int:
    tokens = [result.tokens for result in results if result.tokens is not None]
    if tokens:
        print(f"tokens read until all terms were there, median of {len(tokens)} questions: "
              f"{statistics.median(tokens):.0f}")  # fmt: skip
    return sum(count <= FEW_TOKENS for count in tokens)


# Figures


def _hits(ranks: Sequence[int | None]) -> str:
    counts = (f"@{top} {_count(ranks, top)}" for top in TOPS)
    return f"hits {' '.join(counts)} of {len(ranks)}"


def _count(ranks: Iterable[int | None], top: int) -> int:
    return sum(rank is not None and rank <= top for rank in ranks)


def _print_intervals(ranks: Sequence[int | None], seed: int) -> None:
    if not ranks:
        return
    rng = random.Random(seed)
    samples = [rng.choices(ranks, k=len(ranks)) for _ in range(SAMPLES)]
    for top in TOPS[1:]:
        counts = sorted(_count(sample, top) for sample in samples)
        low, high = (counts[int(share * (SAMPLES - 1))] for share in INTERVAL)
        print(f"@{top}: {_count(ranks, top)}, 95% of bootstrap samples from {low} to {high}")


# The texts of a store


def load_turns(connection: sqlite3.Connection) -> dict[int, Turn]:
    rows = connection.execute(
        "SELECT t.id, t.prompt_text, s.content_session_id FROM user_prompts t"
        " JOIN sdk_sessions s ON s.id = t.session_id"
    ).fetchall()
    records = load_records(connection, [row[0] for row in rows])
    memories = memory_texts(connection)
    turns: dict[int, Turn] = {}
    for turn_id, prompt, session_id in rows:
        parts = [part.text for part in records.get(turn_id, ())]
        texts = [prompt or "", *parts, *memories.get(turn_id, ())]
        turns[turn_id] = Turn(session_id, "\n".join(texts))
    return turns


def memory_texts(connection: sqlite3.Connection) -> dict[int, list[str]]:
    """Returns the texts by turn."""
    texts: dict[int, list[str]] = {}
    for noun, table in _TABLES.items():
        for row in connection.execute(f"SELECT * FROM {table}"):
            texts.setdefault(row["turn_id"], []).append(full_text(noun, as_json_row(row)))
    return texts


def full_text(noun: str, memory: JsonRow) -> str:
    parts: list[str] = []
    for name in FIELDS[noun]:
        value = column_texts(memory, name) or memory[name]
        parts += map(str, value) if isinstance(value, list) else [str(value)] if value else []
    return "\n".join(parts)


def memory_bytes(connection: sqlite3.Connection) -> int:
    texts = memory_texts(connection).values()
    return sum(len(text.encode()) for of_turn in texts for text in of_turn)

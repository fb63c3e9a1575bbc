"""Fills a store with many turns, their records and their index, from a pool of passages.

About nine passages a turn. Rows of the index are copied from the pool instead of computed from each
text, and inserted in bulk: 100,000 turns take minutes, and what a search reads is the same as if
they had been indexed one by one. Words are those of the shipped model, as frequent as words of a
language are (Zipf).
"""

import random
import sqlite3
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from bench.memories import Row, insert, insert_many, moment, session_row
from claude_mem.index import indexing
from claude_mem.index.embedders.static_model import SHIPPED, StaticModel
from claude_mem.index.text import passage_writing, term_hashes
from claude_mem.index.text.documents import TURN, document_id, part_source
from claude_mem.index.text.passage_queries import PASSAGE_BITS
from claude_mem.index.text.words import searchable
from claude_mem.index.vectors import vector_table
from claude_mem.index.vectors.blocks import Rows, quantise
from claude_mem.index.vectors.similar_words import SimilarWords
from claude_mem.store import Store
from claude_mem.store.clock import iso
from claude_mem.store.turn_records import dump_parts
from claude_mem.types import RecordPart

POOL = 20_000
PASSAGES_PER_TURN, TURNS_PER_SESSION = 9, 10
WORDS_PER_PASSAGE = 60
CHUNK = 10_000  # turns of a transaction


@dataclass(frozen=True, slots=True)
class PooledPassage:
    text: str
    indexed: str
    terms: bytes
    pieces: bytes
    title: str
    title_stems: str


class Pool:
    def __init__(self, model: StaticModel, size: int = POOL, seed: int = 1) -> None:
        self.model, self.words = model, vocabulary()
        rng = random.Random(seed)
        weights = list(accumulate(1 / (rank + 10) for rank in range(len(self.words))))
        texts = [
            " ".join(rng.choices(self.words, cum_weights=weights, k=WORDS_PER_PASSAGE)).capitalize()
            + "."
            for _ in range(size)
        ]
        similar_words = SimilarWords(model)
        self.vectors = quantise(model.encode(texts))
        self.passages = [_pooled(text, similar_words) for text in texts]


@cache
def shared_pool() -> Pool:
    """Made once for all benchmarks of a run."""
    return Pool(StaticModel.load())


def _pooled(text: str, similar_words: SimilarWords) -> PooledPassage:
    title = text[:60]
    return PooledPassage(
        text,
        searchable(text),
        term_hashes.hashed_terms(text),
        similar_words.pieces(text),
        title,
        " ".join(sorted(term_hashes.terms_of(title))),
    )


def vocabulary() -> list[str]:
    """Words of the shipped model, the same at every run, in an order of their own."""
    pieces = (SHIPPED / "vocabulary.txt").read_text("utf-8").splitlines()
    words = [piece for piece in pieces if piece.isascii() and piece.isalpha() and len(piece) > 3]
    random.Random(2).shuffle(words)
    return words


class DrawnTurn(NamedTuple):
    id: int
    number: int  # in its session
    drawn: list[int]  # places in the pool
    passages: list[PooledPassage]
    vectors: Rows

    @property
    def session(self) -> int:
        """The id of the turn before its session."""
        return self.id - self.number


def draw_turns(pool: Pool, before: int, count: int, passages: int) -> list[DrawnTurn]:
    """The same for the same turn before them."""
    numbers = np.random.default_rng(before)
    # In equal steps: a text is indexed once in a turn.
    size = len(pool.passages)
    steps = numbers.integers(1, size // passages, (count, 1))
    places = (numbers.integers(0, size, (count, 1)) + steps * np.arange(passages)) % size
    # Equal vectors would be candidates together: a little noise tells them apart.
    vectors = pool.vectors[places].astype(np.int16)
    vectors += numbers.integers(-6, 7, vectors.shape, np.int16)
    noisy = np.clip(vectors, -127, 127).astype(np.int8)
    return [
        DrawnTurn(
            before + at + 1,
            at % TURNS_PER_SESSION + 1,
            drawn,
            [pool.passages[place] for place in drawn],
            noisy[at],
        )
        for at, drawn in enumerate(places.tolist())
    ]


def fill_turns(
    store: Store, pool: Pool, key: str, turns: int, passages: int = PASSAGES_PER_TURN
) -> int:
    """Creates a project with that many turns and their records; returns its id."""
    if not store.read(indexing.is_current):
        indexing.rebuild(store)
    project = store.write(lambda c: _add_project(c, key)).result()
    for first in range(0, turns, CHUNK):
        count = min(CHUNK, turns - first)
        store.write(
            partial(_add_turns, pool=pool, project=project, count=count, passages=passages)
        ).result()
    store.write(indexing.tidy).result()
    return project


def _add_project(connection: sqlite3.Connection, key: str) -> int:
    return insert(connection, "projects", {"key": key, "name": key})


def _add_turns(
    connection: sqlite3.Connection, pool: Pool, project: int, count: int, passages: int
) -> None:
    model = vector_table.register(connection, pool.model.id, pool.model.dimension)
    before = connection.execute("SELECT coalesce(max(id), 0) FROM user_prompts").fetchone()[0]
    turns = draw_turns(pool, before, count, passages)
    sessions = {
        turn.id - 1: insert(connection, "sdk_sessions", _session(project, turn))
        for turn in turns
        if turn.number == 1
    }
    prompts = [_prompt(turn, project, sessions[turn.session]) for turn in turns]
    insert_many(connection, "user_prompts", prompts)
    insert_many(connection, "turn_records", [_record(turn) for turn in turns])
    _index_turns(connection, project, sessions, turns)
    connection.executemany(
        "INSERT INTO vectors (document, project_id, model, vector) VALUES (?, ?, ?, ?)",
        [(document_id(TURN, turn.id), project, model, turn.vectors.tobytes()) for turn in turns],
    )
    connection.execute("DELETE FROM unindexed")


def _session(project: int, turn: DrawnTurn) -> Row:
    return session_row(project, "/home/dev/harbor", turn.session, TURNS_PER_SESSION)


def _prompt(turn: DrawnTurn, project: int, session: int) -> Row:
    return {
        "id": turn.id,
        "session_id": session,
        "prompt_id": f"prompt-{turn.id}",
        "prompt_text": turn.passages[0].text,
        "closed": 1,
        "updated_at_epoch": moment(turn.id),
        "project_id": project,
        "prompt_number": turn.number,
        "created_at": iso(moment(turn.id)),
        "created_at_epoch": moment(turn.id),
    }


def _record(turn: DrawnTurn) -> Row:
    statements = [RecordPart("statement", "agent", passage.text) for passage in turn.passages[1:]]
    parts = dump_parts([RecordPart("prompt", "user", turn.passages[0].text), *statements])
    return {"turn_id": turn.id, "parts": parts, "bytes": len(parts),
            "created_at_epoch": moment(turn.id)}  # fmt: skip


def _index_turns(
    connection: sqlite3.Connection, project: int, sessions: dict[int, int], turns: list[DrawnTurn]
) -> None:
    words = WORDS_PER_PASSAGE
    connection.executemany(
        "INSERT INTO indexed_turns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(turn.id, project, sessions[turn.session], turn.number, moment(turn.id),
          document_id("prompt", turn.id), "prompt", first.title, first.title_stems,
          words * len(turn.passages), 400 * len(turn.passages))
         for turn in turns for first in turn.passages[:1]],
    )  # fmt: skip
    connection.executemany(
        "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(document_id("prompt", turn.id), project, sessions[turn.session], turn.number << 20,
          moment(turn.id), "prompt", first.title, "", "[]", "[]", len(first.text))
         for turn in turns for first in turn.passages[:1]],
    )  # fmt: skip
    passages = [
        (turn.id << PASSAGE_BITS | ordinal, ordinal, passage)
        for turn in turns
        for ordinal, passage in enumerate(turn.passages)
    ]
    connection.executemany(
        "INSERT INTO passages (id, kind, words, names_time, source, place, terms, pieces)"
        " VALUES (?, ?, ?, 0, ?, 0, ?, ?)",
        [(id_, "statement" if part else "prompt", words, part_source(part), p.terms, p.pieces)
         for id_, part, p in passages],
    )  # fmt: skip
    texts = [(id_, passage.indexed) for id_, _, passage in passages]
    passage_writing.add_texts(connection, project, texts)

"""Fills a store with many turns, their records and their index, from a pool of passages.

About nine passages a turn. Rows of the index are copied from the pool instead of computed from each
text: 100,000 turns take minutes, and what a search reads is the same as if they had been indexed
one by one. Words are those of the shipped model, as frequent as words of a language are (Zipf).
"""

import random
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from bench.memories import Row, insert, moment, session_row
from claude_mem.index import indexing
from claude_mem.index.embedders.static_model import SHIPPED, StaticModel
from claude_mem.index.passages import part_source
from claude_mem.index.text import passage_index
from claude_mem.index.text.documents import TURN, document_id
from claude_mem.index.text.passage_index import PASSAGE_BITS
from claude_mem.index.text.words import searchable
from claude_mem.index.vectors import vector_table
from claude_mem.index.vectors.blocks import quantise
from claude_mem.index.vectors.soft_words import SoftWords
from claude_mem.store import Store
from claude_mem.store.clock import iso
from claude_mem.store.records import dump_parts
from claude_mem.types import RecordPart

POOL = 20_000
PASSAGES_PER_TURN, TURNS_PER_SESSION = 9, 10
WORDS_PER_PASSAGE = 60
CHUNK = 2_000


@dataclass(frozen=True, slots=True)
class PooledPassage:
    text: str
    indexed: str
    terms: bytes
    pieces: bytes
    vector: bytes


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
        soft_words = SoftWords(model)
        self.passages = [
            PooledPassage(
                text,
                searchable(text),
                passage_index.hashed_terms(text),
                soft_words.pieces(text),
                vector.tobytes(),
            )
            for text, vector in zip(texts, quantise(model.encode(texts)), strict=True)
        ]


def vocabulary() -> list[str]:
    """Words of the shipped model, the same at every run, in an order of their own."""
    pieces = (SHIPPED / "vocabulary.txt").read_text("utf-8").splitlines()
    words = [piece for piece in pieces if piece.isascii() and piece.isalpha() and len(piece) > 3]
    random.Random(2).shuffle(words)
    return words


class DrawnTurn(NamedTuple):
    id: int
    number: int  # in its session
    passages: list[PooledPassage]
    vectors: bytes


def draw_turns(pool: Pool, before: int, count: int, passages: int) -> Iterator[DrawnTurn]:
    """The same for the same turn before them."""
    rng = random.Random(before)
    numbers = np.random.default_rng(before)
    for place in range(count):
        selected = rng.choices(pool.passages, k=passages)
        # Equal vectors would be candidates together: a little noise tells them apart.
        flat = np.frombuffer(b"".join(p.vector for p in selected), np.int8).astype(np.int16)
        noisy = np.clip(flat + numbers.integers(-6, 7, len(flat)), -127, 127).astype(np.int8)
        number = place % TURNS_PER_SESSION + 1
        yield DrawnTurn(before + place + 1, number, selected, noisy.tobytes())


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
    session = 0
    for turn, number, selected, vectors in draw_turns(pool, before, count, passages):
        if number == 1:
            row = session_row(project, "/home/dev/harbor", turn - 1, TURNS_PER_SESSION)
            session = insert(connection, "sdk_sessions", row)
        _add_turn(connection, project, session, turn, number, selected)
        _index_turn(connection, project, session, turn, number, selected)
        _add_vector(connection, document_id(TURN, turn), project, model, vectors)
    connection.execute("DELETE FROM unindexed")


def _add_turn(
    connection: sqlite3.Connection,
    project: int,
    session: int,
    turn: int,
    number: int,
    selected: list[PooledPassage],
) -> None:
    origin: Row = {
        "project_id": project,
        "prompt_number": number,
        "created_at": iso(moment(turn)),
        "created_at_epoch": moment(turn),
    }
    prompt: Row = {
        "id": turn,
        "session_id": session,
        "prompt_id": f"prompt-{turn}",
        "prompt_text": selected[0].text,
        "closed": 1,
        "updated_at_epoch": moment(turn),
    }
    insert(connection, "user_prompts", prompt | origin)
    statements = [RecordPart("statement", "agent", passage.text) for passage in selected[1:]]
    parts = dump_parts([RecordPart("prompt", "user", selected[0].text), *statements])
    insert(connection, "turn_records", {
        "turn_id": turn, "parts": parts, "bytes": len(parts), "created_at_epoch": moment(turn),
    })  # fmt: skip


def _index_turn(
    connection: sqlite3.Connection,
    project: int,
    session: int,
    turn: int,
    number: int,
    selected: list[PooledPassage],
) -> None:
    title = selected[0].text[:60]
    stems = " ".join(sorted(passage_index.terms_of(title)))
    shown, at, words = document_id("prompt", turn), moment(turn), WORDS_PER_PASSAGE
    connection.execute(
        "INSERT INTO indexed_turns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (turn, project, session, number, at, shown, "prompt", title, stems,
         words * len(selected), 400 * len(selected)),
    )  # fmt: skip
    place = number << 20
    connection.execute(
        "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (shown, project, session, place, at, "prompt", title, "", None, "[]", "[]",
         len(selected[0].text)),
    )  # fmt: skip
    ids = [turn << PASSAGE_BITS | ordinal for ordinal in range(len(selected))]
    connection.executemany(
        "INSERT INTO passages (id, kind, words, names_time, source, place, terms, pieces)"
        " VALUES (?, ?, ?, 0, ?, 0, ?, ?)",
        [(id_, "statement" if part else "prompt", words, part_source(part), p.terms, p.pieces)
         for part, (id_, p) in enumerate(zip(ids, selected, strict=True))],
    )  # fmt: skip
    texts = [(id_, p.indexed) for id_, p in zip(ids, selected, strict=True)]
    passage_index.add_texts(connection, project, texts)


def _add_vector(
    connection: sqlite3.Connection, document: int, project: int, model: int, vector: bytes
) -> None:
    connection.execute(
        "INSERT INTO vectors (document, project_id, model, vector) VALUES (?, ?, ?, ?)",
        (document, project, model, vector),
    )

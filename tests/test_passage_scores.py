"""The bm25 of passages, whose lengths are in their ids, next to FTS5's own over the same texts."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from claude_mem.index.text import passage_queries, passage_writing
from claude_mem.index.text.passage_queries import PASSAGE_BITS
from claude_mem.index.text.term_counts import term_counts
from claude_mem.index.text.words import TOKENIZER, stem

PROJECT, OTHER = 3, 4
WORDS = ("harbor", "lamp", "pier", "rope", "tide", "wave", "mast", "keel")
Scores = dict[int, float]


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    """Passages of 1 to 60 words, in which each word occurs several times or not at all; the same in
    a plain FTS5 table."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(passage_writing.TABLES)
        database.execute(f'CREATE VIRTUAL TABLE plain USING fts5(text, tokenize="{TOKENIZER}")')
        rng = random.Random(5)
        for project, first in ((PROJECT, 1), (OTHER, 200)):
            texts = [
                (turn << PASSAGE_BITS | number, _text(rng))
                for turn in range(first, first + 100)
                for number in range(3)
            ]
            passage_writing.add_texts(database, project, texts)
            database.executemany("INSERT INTO plain (rowid, text) VALUES (?, ?)", texts)
        yield database


def _text(rng: random.Random) -> str:
    words = rng.choices(WORDS, weights=[1, 2, 3, 5, 8, 13, 21, 34], k=rng.randint(1, 60))
    return " ".join(words)


def plain_scores(connection: sqlite3.Connection, expression: str) -> Scores:
    return dict(
        connection.execute(
            "SELECT rowid, -bm25(plain) FROM plain WHERE plain MATCH ?", (expression,)
        ).fetchall()
    )


@pytest.mark.parametrize("word", ["harbor", "pier", "keel"])
def test_one_word_has_the_bm25_of_fts5(connection: sqlite3.Connection, word: str) -> None:
    count = term_counts(connection, [stem(word)], 1)[stem(word)]
    scores = passage_queries.passages_by_words(connection, word, None, 1_000, occurrences=count)
    assert scores == pytest.approx(plain_scores(connection, word), rel=1e-6)


def test_several_words_have_it_where_each_occurs_once(connection: sqlite3.Connection) -> None:
    texts = dict(connection.execute("SELECT rowid, text FROM plain").fetchall())
    once = {
        passage
        for passage, text in texts.items()
        if text.split().count("harbor") == text.split().count("lamp") == 1
    }
    scores = passage_queries.passages_by_words(connection, "harbor lamp", None, 1_000)
    plain = plain_scores(connection, "harbor lamp")
    assert once
    assert {passage: scores[passage] for passage in once} == pytest.approx(
        {passage: plain[passage] for passage in once}, rel=1e-6
    )


def test_a_project_has_only_its_own_passages(connection: sqlite3.Connection) -> None:
    passages = [
        passage_queries.passages_by_words(connection, "keel", project, 1_000)
        for project in (PROJECT, OTHER, OTHER + 1)
    ]
    turns = [{passage >> PASSAGE_BITS for passage in of_project} for of_project in passages]
    assert turns[0] and turns[0] <= set(range(1, 101))
    assert turns[1] and turns[1] <= set(range(200, 300))
    assert not turns[2]


def test_passages_of_three_words_have_a_score() -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(passage_writing.TABLES)
        texts = [(turn << PASSAGE_BITS, "the relay clicked") for turn in (1, 2)]
        passage_writing.add_texts(database, PROJECT, texts)
        scores = passage_queries.passages_by_words(database, "relay OR yesterday", None, 10)
    assert len(scores) == 2
    assert all(value > 0 for value in scores.values())

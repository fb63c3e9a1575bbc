"""How many passages hold a word: counts of common words are kept for a while."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from claude_mem.index.text import term_counts as counts
from claude_mem.index.text.passage_queries import passage_count
from claude_mem.index.text.term_counts import COMMON, read_ahead, should_read_ahead, term_counts
from claude_mem.index.vectors.document_vectors import embed_some
from tests.embedders import new_index
from tests.remembering import remember, titles
from tests.story import Story


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "index.db", isolation_level=None)) as opened:
        opened.execute("CREATE VIRTUAL TABLE passage_text USING fts5(text)")
        opened.execute("CREATE VIRTUAL TABLE passage_terms USING fts5vocab(passage_text, row)")
        yield opened


def add(connection: sqlite3.Connection, text: str, count: int) -> None:
    rows = [(text,)] * count
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO passage_text VALUES (?)", rows)
    connection.execute("COMMIT")


def test_rare_words_are_always_counted_and_common_ones_after_a_hundredth_more(
    connection: sqlite3.Connection,
) -> None:
    many = 5 * COMMON
    add(connection, "lamp", many)
    add(connection, "horn", 3)
    assert term_counts(connection, ["lamp", "horn", "sea"], many) == {"lamp": many, "horn": 3}
    add(connection, "lamp horn", 2)
    assert term_counts(connection, ["lamp", "horn"], many + 5) == {"lamp": many, "horn": 5}
    add(connection, "lamp", 20)
    assert term_counts(connection, ["lamp", "horn"], many + 25) == {"lamp": many + 22, "horn": 5}


def test_counts_are_those_of_their_own_database(
    connection: sqlite3.Connection, tmp_path: Path
) -> None:
    add(connection, "lamp", COMMON + 1)
    assert term_counts(connection, ["lamp"], COMMON + 1) == {"lamp": COMMON + 1}
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE VIRTUAL TABLE passage_text USING fts5(text)")
        other.execute("CREATE VIRTUAL TABLE passage_terms USING fts5vocab(passage_text, row)")
        assert term_counts(other, ["lamp"], COMMON + 1) == {}


def test_counts_of_common_words_are_read_ahead_in_a_large_memory(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "COUNTED_AHEAD", 2 * COMMON)
    many = 5 * COMMON
    add(connection, "lamp", many)
    add(connection, "horn", 2 * COMMON)
    total = many + 2 * COMMON
    assert not should_read_ahead(connection, total)  # a small memory
    monkeypatch.setattr(counts, "LARGE", total - 1)
    assert should_read_ahead(connection, total)
    read_ahead(connection, total)
    add(connection, "lamp horn", 2)
    assert term_counts(connection, ["lamp", "horn"], total + 2) == {
        "lamp": many,  # from then
        "horn": 2 * COMMON + 2,
    }
    assert not should_read_ahead(connection, total + 2)
    assert should_read_ahead(connection, total + total // 50)


def test_a_search_of_a_large_memory_counts_common_words_in_the_background(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(story, "The lamp blinks twice", "Its relay closes twice.")
    index = new_index()
    while embed_some(index, story.store):
        pass
    monkeypatch.setattr(counts, "LARGE", 0)
    assert titles(story, "lamp", semantic_index=index) == ["The lamp blinks twice"]
    index.wait_until_loaded()
    assert not story.store.read(lambda c: should_read_ahead(c, passage_count(c)))

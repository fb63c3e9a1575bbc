"""How many passages hold a word: counts of common words are kept for a while."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from claude_mem.index.text.term_counts import COMMON, term_counts


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

"""Values that readers keep are as they are in the database."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from claude_mem.store.database import connect, open_reader
from claude_mem.store.read_cache import ReadConnection, read_once


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect(tmp_path / "words.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE words (word TEXT)")
        yield connection


@pytest.fixture
def reader(writer: sqlite3.Connection, tmp_path: Path) -> Iterator[ReadConnection]:
    with closing(open_reader(tmp_path / "words.db")) as connection:
        yield connection


calls: list[str] = []


@read_once
def count(connection: sqlite3.Connection, word: str) -> int:
    calls.append(word)
    row = connection.execute("SELECT count(*) FROM words WHERE word = ?", (word,)).fetchone()
    return int(row[0])


def counted(reader: ReadConnection, word: str) -> tuple[int, int]:
    """The value, and how often it was read."""
    calls.clear()
    reader.begin_snapshot()
    value = count(reader, word)
    reader.end_snapshot()
    return value, len(calls)


def test_a_value_is_read_again_only_after_a_commit(
    writer: sqlite3.Connection, reader: ReadConnection
) -> None:
    assert counted(reader, "lamp") == (0, 1)
    assert counted(reader, "lamp") == (0, 0)
    assert counted(reader, "gull") == (0, 1)
    writer.execute("INSERT INTO words VALUES ('lamp')")
    assert counted(reader, "lamp") == (1, 1)
    assert counted(reader, "lamp") == (1, 0)


def test_a_moment_that_began_before_a_commit_keeps_its_values(
    writer: sqlite3.Connection, reader: ReadConnection
) -> None:
    reader.begin_snapshot()
    writer.execute("INSERT INTO words VALUES ('lamp')")
    assert count(reader, "lamp") == 0
    reader.end_snapshot()
    assert counted(reader, "lamp") == (1, 1)


def test_outside_of_a_moment_every_value_is_read(
    writer: sqlite3.Connection, reader: ReadConnection
) -> None:
    assert counted(reader, "lamp") == (0, 1)
    calls.clear()
    assert [count(reader, "lamp"), count(reader, "lamp"), count(writer, "lamp")] == [0, 0, 0]
    assert len(calls) == 3


def test_a_value_that_cannot_be_read_is_not_kept(
    writer: sqlite3.Connection, reader: ReadConnection
) -> None:
    writer.execute("DROP TABLE words")
    reader.begin_snapshot()
    with pytest.raises(sqlite3.OperationalError):
        count(reader, "lamp")
    reader.end_snapshot()
    writer.execute("CREATE TABLE words (word TEXT)")
    assert counted(reader, "lamp") == (0, 1)

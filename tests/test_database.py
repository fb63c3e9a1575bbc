"""The writer's group commit, and readers beside it."""

import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path

import pytest

from claude_mem.store import Store, StoreReader
from claude_mem.store.database import LARGEST_GROUP, Readers, Writer, connect

Work = Callable[[sqlite3.Connection], object]
PATIENCE = 10.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    database = tmp_path / "some.db"
    with closing(connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE words (word TEXT PRIMARY KEY)")
        connection.execute("CREATE TABLE echoes (word TEXT REFERENCES words(word))")
    return database


@pytest.fixture
def writer(path: Path) -> Iterator[Writer]:
    writer = Writer(path)
    yield writer
    writer.close()


def words(path: Path) -> list[str]:
    """What another connection sees."""
    with closing(connect(path, readonly=True)) as connection:
        return [word for (word,) in connection.execute("SELECT word FROM words ORDER BY rowid")]


def add(*some: str) -> Work:
    def work(connection: sqlite3.Connection) -> int:
        for word in some:
            connection.execute("INSERT INTO words VALUES (?)", (word,))
        return len(some)

    return work


def add_then_fail(word: str) -> Work:
    def work(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO words VALUES (?)", (word,))
        raise ValueError(word)

    return work


class Pause:
    """A write that holds the writer until others wait behind it, so that they become one group."""

    def __init__(self, writer: Writer) -> None:
        self._begun, self._go_on = threading.Event(), threading.Event()
        self._done = writer.submit(self._hold)
        assert self._begun.wait(PATIENCE)

    def _hold(self, _: sqlite3.Connection) -> None:
        self._begun.set()
        assert self._go_on.wait(PATIENCE)

    def end(self) -> None:
        self._go_on.set()
        self._done.result(PATIENCE)


def as_group(writer: Writer, *works: Work) -> list["Future[object]"]:
    pause = Pause(writer)
    futures = [writer.submit(work) for work in works]
    pause.end()
    return futures


# One write


def test_a_write_gives_what_its_work_gave_and_is_then_seen_by_others(
    writer: Writer, path: Path
) -> None:
    assert writer.submit(add("one", "two")).result(PATIENCE) == 2
    assert words(path) == ["one", "two"]


def test_a_failing_write_gives_its_own_error_and_leaves_nothing(writer: Writer, path: Path) -> None:
    with pytest.raises(ValueError, match="bad"):
        writer.submit(add_then_fail("bad")).result(PATIENCE)
    assert words(path) == []


def test_closing_waits_for_every_write_that_was_submitted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(path)
    pause = Pause(writer)
    futures = [writer.submit(add(f"word {n}")) for n in range(10)]
    join = threading.Thread.join

    def let_go_and_join(thread: threading.Thread, timeout: float | None = None) -> None:
        pause.end()
        join(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", let_go_and_join)
    writer.close()
    assert all(future.done() for future in futures)
    assert len(words(path)) == 10


def test_a_write_after_closing_fails_and_keeps_nobody_waiting(path: Path) -> None:
    writer = Writer(path)
    writer.close()
    try:
        late = writer.submit(add("late")).exception(PATIENCE)
    except sqlite3.Error as refused:
        late = refused
    assert late is not None
    assert words(path) == []


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def submit_until_refused(writer: Writer, futures: list["Future[object]"]) -> None:
    while not futures or not futures[-1].done() or futures[-1].exception() is None:
        futures.append(writer.submit(add()))


@pytest.mark.usefixtures("restless")
def test_every_write_submitted_while_closing_is_done_or_refused(path: Path) -> None:
    for _ in range(20):
        writer = Writer(path)
        submitted: list[list[Future[object]]] = [[], [], []]
        threads = [
            threading.Thread(target=submit_until_refused, args=(writer, futures))
            for futures in submitted
        ]
        for thread in threads:
            thread.start()
        writer.close()
        for thread in threads:
            thread.join()
        assert all(future.done() for futures in submitted for future in futures)


# A group


def test_writes_that_wait_together_are_committed_together(writer: Writer, path: Path) -> None:
    futures: list[Future[object]] = []

    def look(_: sqlite3.Connection) -> tuple[list[str], bool]:
        return words(path), futures[0].done()

    pause = Pause(writer)
    futures += [writer.submit(work) for work in (add("one"), look, add("two"))]
    pause.end()
    assert futures[1].result(PATIENCE) == ([], False)
    assert [future.result(PATIENCE) for future in futures[::2]] == [1, 1]
    assert words(path) == ["one", "two"]


def test_a_later_write_of_a_group_sees_the_earlier_ones(writer: Writer) -> None:
    def count(connection: sqlite3.Connection) -> object:
        return connection.execute("SELECT count(*) FROM words").fetchone()[0]

    futures = as_group(writer, add("one"), count, add("two"), count)
    assert [future.result(PATIENCE) for future in futures] == [1, 1, 1, 2]


def test_a_failing_write_takes_nothing_else_of_its_group_with_it(
    writer: Writer, path: Path
) -> None:
    works = (add("one"), add_then_fail("bad"), add("two"), add("one"), add("three"))
    first, bad, second, twice, three = as_group(writer, *works)
    assert [future.result(PATIENCE) for future in (first, second, three)] == [1, 1, 1]
    assert isinstance(bad.exception(PATIENCE), ValueError)
    assert isinstance(twice.exception(PATIENCE), sqlite3.IntegrityError)
    assert words(path) == ["one", "two", "three"]


def test_more_writes_than_a_group_holds_are_all_done_in_order(writer: Writer, path: Path) -> None:
    count = LARGEST_GROUP * 2 + 1
    futures = as_group(writer, *(add(f"{n:04}") for n in range(count)))
    assert [future.result(PATIENCE) for future in futures] == [1] * count
    assert words(path) == [f"{n:04}" for n in range(count)]


# What the disk does to a group


def roll_back(connection: sqlite3.Connection) -> None:
    """Rolls back as SQLite does by itself when the disk fails in the middle of a transaction."""
    connection.execute("INSERT INTO words VALUES ('begun')")
    connection.execute("ROLLBACK")
    raise sqlite3.OperationalError("disk I/O error")


def break_at_commit(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA defer_foreign_keys = ON")
    connection.execute("INSERT INTO echoes VALUES ('never said')")


@pytest.mark.parametrize("failure", [roll_back, break_at_commit], ids=lambda f: f.__name__)
def test_a_failure_of_the_transaction_undoes_the_group_and_all_are_told(
    writer: Writer, path: Path, failure: Work
) -> None:
    futures = as_group(writer, add("one"), failure, add("two"))
    for future in futures:
        assert isinstance(future.exception(PATIENCE), sqlite3.Error)
    assert words(path) == []
    assert writer.submit(add("three")).result(PATIENCE) == 1
    assert words(path) == ["three"]


def test_a_group_that_gets_no_lock_fails_and_the_next_one_does_not(
    writer: Writer, path: Path
) -> None:
    writer.submit(lambda c: c.execute("PRAGMA busy_timeout = 0").fetchone()).result(PATIENCE)
    with closing(connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert isinstance(writer.submit(add("one")).exception(PATIENCE), sqlite3.OperationalError)
    assert writer.submit(add("two")).result(PATIENCE) == 1
    assert words(path) == ["two"]


def test_a_full_disk_fails_the_write_that_met_it_and_spoils_no_other(
    writer: Writer, path: Path
) -> None:
    def limit(connection: sqlite3.Connection) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}").fetchone()

    writer.submit(limit).result(PATIENCE)
    first, large, second = as_group(writer, add("one"), add("x" * 1_000_000), add("two"))
    error = large.exception(PATIENCE)
    assert isinstance(error, sqlite3.OperationalError)
    stored = [word for word, future in (("one", first), ("two", second)) if not future.exception()]
    assert words(path) == stored
    with closing(connect(path, readonly=True)) as connection:
        assert connection.execute("PRAGMA quick_check").fetchone()[0] == "ok"


def test_whoever_stops_waiting_for_a_write_does_not_stop_the_writer(
    writer: Writer, path: Path
) -> None:
    """As a cancelled task does to the future it awaits."""
    pause = Pause(writer)
    abandoned, other = writer.submit(add("one")), writer.submit(add("two"))
    abandoned.cancel()
    pause.end()
    assert other.result(PATIENCE) == 1
    assert writer.submit(add("three")).result(PATIENCE) == 1
    assert words(path)[-2:] == ["two", "three"]


# Readers


def test_a_reader_sees_what_is_committed_and_no_more(writer: Writer, path: Path) -> None:
    readers = Readers(path)

    def look(_: sqlite3.Connection) -> int:
        with readers.connection() as connection:
            return int(connection.execute("SELECT count(*) FROM words").fetchone()[0])

    _, during = as_group(writer, add("one"), look)
    assert during.result(PATIENCE) == 0
    with readers.connection() as connection:
        assert look(connection) == 1
    readers.close()


def test_a_reader_cannot_write(path: Path) -> None:
    readers = Readers(path)
    with readers.connection() as connection, pytest.raises(sqlite3.OperationalError):
        connection.execute("INSERT INTO words VALUES ('no')")
    readers.close()
    assert words(path) == []


def test_two_callers_at_once_have_a_connection_each_and_leave_them_to_the_next(
    path: Path,
) -> None:
    readers = Readers(path)
    with readers.connection() as first, readers.connection() as second:
        assert first is not second
    with readers.connection() as third:
        assert third in (first, second)
    readers.close()


def test_a_connection_is_given_back_after_an_error(path: Path) -> None:
    readers = Readers(path)
    with pytest.raises(sqlite3.OperationalError), readers.connection() as first:
        first.execute("SELECT * FROM nowhere")
    with readers.connection() as second:
        assert second is first
    readers.close()


# The file


@pytest.mark.parametrize("name", ["a b.db", "50%.db", "why?.db", "a#b.db", "日本.db", "a&mode=x"])
def test_a_database_may_lie_anywhere(tmp_path: Path, name: str) -> None:
    directory = tmp_path / name
    directory.mkdir()
    with Store.open(directory / name, directory / "backups") as store:
        assert store.counts()["sessions"] == 0
        names = {file.name for file in directory.iterdir()}
    assert names <= {name, f"{name}-wal", f"{name}-shm"}
    assert (directory / name).stat().st_size > 0


def test_a_closed_store_is_one_whole_file(tmp_path: Path) -> None:
    with Store.open(tmp_path / "memory.db", tmp_path / "backups") as store:
        assert store.counts()["sessions"] == 0
    assert [file.name for file in tmp_path.iterdir()] == ["memory.db"]


def test_foreign_keys_are_enforced_on_every_connection(path: Path) -> None:
    for readonly in (False, True):
        with closing(connect(path, readonly=readonly)) as connection:
            assert connection.execute("PRAGMA foreign_keys").fetchone()[0] == 1


def test_a_commit_is_on_disk_before_it_returns(writer: Writer) -> None:
    full = writer.submit(lambda c: c.execute("PRAGMA synchronous").fetchone()[0])
    assert full.result(PATIENCE) == 2


def test_a_missing_file_is_not_made_by_reading(tmp_path: Path) -> None:
    missing = tmp_path / "missing.db"
    with pytest.raises(sqlite3.OperationalError):
        connect(missing, readonly=True)
    assert not missing.exists()


def test_the_reader_that_was_used_last_is_used_next(path: Path) -> None:
    readers = Readers(path)
    with readers.connection() as first, readers.connection() as second:
        assert first is not second
    for _ in range(3):
        with readers.connection() as connection:
            assert connection is first
    readers.close()


def test_what_is_read_of_one_moment_does_not_change_meanwhile(writer: Writer, path: Path) -> None:
    def counts(connection: sqlite3.Connection, word: str) -> list[int]:
        before = connection.execute("SELECT count(*) FROM words").fetchone()
        writer.submit(add(word)).result(PATIENCE)
        return [before[0], connection.execute("SELECT count(*) FROM words").fetchone()[0]]

    with StoreReader(path) as reader:
        assert reader.read_snapshot(lambda c: counts(c, "one")) == [0, 0]
        assert reader.read(lambda c: counts(c, "two")) == [1, 2]


def test_a_failure_ends_the_moment(path: Path) -> None:
    with StoreReader(path) as reader:
        with pytest.raises(sqlite3.OperationalError):
            reader.read_snapshot(lambda c: c.execute("SELECT * FROM nothing"))
        assert not reader.read(lambda c: c.in_transaction)

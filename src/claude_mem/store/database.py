"""The database file: safe opening, one writer thread with group commit, separate readers.

Writes that wait at the same time share a transaction and so one fsync; each has a savepoint, so
that a failure does not affect the others. `synchronous=FULL`: a commit that returned is on disk.
"""

import errno
import itertools
import logging
import queue
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from claude_mem.errors import DamagedDatabase, ForeignDatabase
from claude_mem.store.backups import BEFORE_MIGRATION, back_up, newest_first
from claude_mem.store.change_counters import ChangeCounters, ChangeCounts
from claude_mem.store.clock import iso, now_ms
from claude_mem.store.migrations import (
    applied_names,
    migrate,
    missing_migrations,
    missing_tables,
)

T = TypeVar("T")

log = logging.getLogger("claude_mem.store")

APPLICATION_ID = 0x434D454D  # "CMEM": marks a file as created by this program
LARGEST_GROUP = 64

_SQLITE = b"SQLite format 3\0"
# Fields of the SQLite header
_PAGE_SIZE_BYTES, _PAGE_COUNT_BYTES = slice(16, 18), slice(28, 32)
_APPLICATION_ID_BYTES = slice(68, 72)


def connect(path: Path, *, readonly: bool = False) -> sqlite3.Connection:
    return open_reader(path) if readonly else _connect(path, "rwc")


def open_reader(path: Path) -> sqlite3.Connection:
    return _connect(path, "ro")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=10,
    )
    connection.row_factory = sqlite3.Row
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA cache_size = -4096")
        if mode != "ro":
            connection.execute("PRAGMA secure_delete = ON")  # overwrites deleted rows
    except sqlite3.Error:
        connection.close()
        raise
    return connection


Open = Callable[[Path], sqlite3.Connection]
OnDamage = Callable[[BaseException], object]


def prepare(path: Path, backups: Path, keep: int) -> None:
    """Creates or migrates the file; makes a backup before every migration."""
    is_new = require_own(path)
    if is_new and path.exists() and newest_first(backups):
        raise DamagedDatabase(f"{path} is empty, but there are backups of it")
    if not is_new and not has_own_journal(path):
        raise DamagedDatabase(f"the journal of {path} belongs to another database")
    with _report_damage(path), closing(connect(path)) as connection:
        missing = missing_migrations(connection)  # or raises before writing to the file
        path.chmod(0o600)
        if is_new:
            # Before WAL mode: the id must be in the file's header, not only in its journal.
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if missing and applied_names(connection):
            back_up(connection, backups, keep, label=BEFORE_MIGRATION)
        migrate(connection, iso(now_ms()))


@contextmanager
def _report_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            raise DamagedDatabase(f"{path} is damaged: {error}") from error
        raise


def is_current(path: Path) -> bool:
    """Whether the file needs no migration; raises if it is not ours, or of another version."""
    require_own(path)
    with _report_damage(path), closing(connect(path, readonly=True)) as connection:
        return not missing_migrations(connection)


def require_own(path: Path) -> bool:
    """Raises if the file is not ours; returns whether it has yet to be created. Reads the header
    only: opening another program's database could change its journal."""
    try:
        with path.open("rb") as file:
            head = file.read(_APPLICATION_ID_BYTES.stop)
    except FileNotFoundError:
        return True
    if not head:
        return True
    _check_header(head, path)
    return False


def has_own_journal(path: Path) -> bool:
    """SQLite reads any journal that is beside the file. Nobody may open a file for writing with
    that of another database, which would be copied into it."""
    with _report_damage(path), closing(connect(path, readonly=True)) as connection:
        return bool(connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID)


def _check_header(head: bytes, path: Path) -> None:
    if not head.startswith(_SQLITE):
        raise DamagedDatabase(f"{path} is damaged: file is not a database")
    if int.from_bytes(head[_APPLICATION_ID_BYTES]) != APPLICATION_ID:
        raise ForeignDatabase(
            f"{path} was not created by this claude-mem. Move it away, or set "
            "CLAUDE_MEM_DATA_DIR to a different directory."
        )


def size_in_header(head: bytes, path: Path) -> int:
    """The size of the file that begins with these bytes; raises if it is not ours."""
    _check_header(head, path)
    size = int.from_bytes(head[_PAGE_SIZE_BYTES])  # 1: 65,536, which does not fit
    return (65_536 if size == 1 else size) * int.from_bytes(head[_PAGE_COUNT_BYTES])


def is_damage(error: BaseException) -> bool:
    """Whether the file itself is broken, as opposed to busy, full or unreachable."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # not of SQLite: a text that is not UTF-8, as the module sqlite3 reports it
        is_text = type(error) is sqlite3.OperationalError
        return is_text or isinstance(error, DamagedDatabase)
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_of_file(error: BaseException) -> bool:
    """Whether the disk or the file is at fault, and not what was to be written."""
    return isinstance(error, sqlite3.OperationalError) or is_damage(error)


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_full(error: BaseException) -> bool:
    """Whether the disk is full, or what the user may take of it."""
    if isinstance(error, OSError):
        return error.errno in _FULL
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL


def check_integrity(path: Path) -> str | None:
    """A description of the damage, or None."""
    try:
        with closing(connect(path, readonly=True)) as connection:
            verdict: str = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if verdict != "ok":
                return verdict
            missing = missing_tables(connection) if not missing_migrations(connection) else []
    except sqlite3.DatabaseError as error:
        return str(error)
    return f"it has no table {missing[0]}" if missing else None


class StoreClosed(sqlite3.OperationalError):
    pass


@dataclass(frozen=True, slots=True)
class _Write:
    work: Callable[[sqlite3.Connection], Any]
    done: "Future[Any]"
    alone: bool = False  # not in a transaction


class Writer:
    """The thread that owns the write connection."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)
        self._connection.execute("PRAGMA synchronous = FULL")
        self._derive: Callable[[sqlite3.Connection], object] | None = None
        self._derive_error = repr(None)
        self.on_damage: OnDamage = lambda error: None
        self._changes = ChangeCounters()
        self._submitting = threading.Lock()  # nothing is queued after the end marker
        self._closed = False
        self._waiting: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[sqlite3.Connection], T]) -> "Future[T]":
        """Runs `work` in the next transaction; the future is done when it is on disk."""
        done: Future[T] = Future()
        self._put(_Write(work, done))
        return done

    def submit_alone(self, work: Callable[[sqlite3.Connection], T]) -> "Future[T]":
        """Runs `work` outside of a transaction, for statements that allow none."""
        done: Future[T] = Future()
        self._put(_Write(work, done, alone=True))
        return done

    def _put(self, write: _Write) -> None:
        with self._submitting:
            closed = self._closed
            if not closed:
                self._waiting.put(write)
        if closed:
            write.done.set_exception(StoreClosed("the store is closed"))

    def run_before_commit(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Runs `work` at the end of every transaction, to update what is derived from it."""
        self._derive = work

    def watch_memories(self) -> "Future[None]":
        return self.submit_alone(self._changes.watch)

    def change_counts(self, project_id: int) -> "Future[ChangeCounts]":
        """Returns the counts after all writes that were submitted before."""
        return self.submit_alone(lambda c: self._changes.current(c, project_id))

    def close(self) -> None:
        with self._submitting:
            self._closed = True
            self._waiting.put(None)
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while True:
            group, last = self._next_group()
            for alone, writes in itertools.groupby(group, lambda write: write.alone):
                if alone:
                    for write in writes:
                        self._run_alone(write)
                else:
                    self._commit(list(writes))
            if last:
                return

    def _next_group(self) -> tuple[list[_Write], bool]:
        write = self._waiting.get()
        group: list[_Write] = []
        while write is not None:
            group.append(write)
            if len(group) >= LARGEST_GROUP:
                return group, False
            try:
                write = self._waiting.get_nowait()
            except queue.Empty:
                return group, False
        return group, True

    def _commit(self, waiting: list[_Write]) -> None:
        # Leaves out what was cancelled; from here on nothing can be.
        group = [write for write in waiting if write.done.set_running_or_notify_cancel()]
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            results = [(write, *_run_in_savepoint(connection, write.work)) for write in group]
            self._run_derive()
            connection.execute("COMMIT")
        except BaseException as error:  # full disk, lock: the group is rolled back
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            self._changes.roll_back()
            for write in group:
                self._fail(write, error)
            return
        self._changes.commit()
        for write, value, failure in results:
            if failure is None:
                write.done.set_result(value)
            else:
                self._fail(write, failure)

    def _fail(self, write: _Write, error: BaseException) -> None:
        write.done.set_exception(error)
        if is_damage(error):
            self.on_damage(error)

    def _run_alone(self, write: _Write) -> None:
        if not write.done.set_running_or_notify_cancel():
            return
        try:
            value = write.work(self._connection)
        except Exception as error:
            self._fail(write, error)
        else:
            write.done.set_result(value)
        finally:
            self._changes.commit()

    def _run_derive(self) -> None:
        """A failure does not undo the writes, and is logged once."""
        if self._derive is None:
            return
        _, error = _run_in_savepoint(self._connection, self._derive)
        if error is not None and is_damage(error):
            self.on_damage(error)
        if error is not None and repr(error) != self._derive_error:
            log.error("the index is out of date: run `claude-mem reindex`", exc_info=error)
        self._derive_error = repr(error)


def _run_in_savepoint(
    connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], Any]
) -> tuple[Any, BaseException | None]:
    connection.execute("SAVEPOINT write")
    try:
        value = work(connection)
    except Exception as error:
        connection.execute("ROLLBACK TO write")
        connection.execute("RELEASE write")
        return None, error
    connection.execute("RELEASE write")
    return value, None


class Readers:
    """A pool of read connections, each used by one caller at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.on_damage: OnDamage = lambda error: None
        # The one that was used last comes first: its cache is full.
        self._free: deque[sqlite3.Connection] = deque()

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = self._free.pop()
        except IndexError:
            connection = open_reader(self._path)
        try:
            yield connection
        except Exception as error:
            if is_damage(error):
                self.on_damage(error)
            raise
        finally:
            self._free.append(connection)

    def close(self) -> None:
        with suppress(IndexError):
            while True:
                self._free.pop().close()

"""Compressed backups of the database, made while others read and write, and their rotation.

A backup is `memory-<time>.db.gz`; earlier versions made `memory-<time>.db`. Unfinished files end in
`.part`.
"""

import gzip
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from claude_mem.errors import BackupCancelled, DamagedDatabase
from claude_mem.hook.kill_points import reach
from claude_mem.store import index_tables

_NAMES = "memory-*"
COMPRESSED = ".db.gz"
_SUFFIXES = (COMPRESSED, ".db")
_PART = ".part"
BEFORE_MIGRATION = "before-migration"
# Three backups of a project take 0.5 to 0.6 times the space of its database. Level 6 saves a tenth
# of that for twice the processor time; lzma a third for seven times, and not every system has `xz`.
_LEVEL = 3
_CHUNK = 1 << 20
_STEP_PAGES = 2_000
_STEP_INSTRUCTIONS = 10_000  # of SQLite: less than a millisecond
IsCancelled = Callable[[], bool]


def back_up(
    connection: sqlite3.Connection,
    directory: Path,
    keep: int,
    label: str = "",
    is_cancelled: IsCancelled = lambda: False,
) -> Path:
    """A consistent backup while others read and write; keeps only the newest `keep` backups.

    Raises BackupCancelled soon after `is_cancelled` returns True."""
    directory.mkdir(mode=0o700, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    name = f"memory-{stamp}{'-' + label if label else ''}"
    with (
        _unfinished(directory / f"{name}{COMPRESSED}{_PART}") as compressed,
        _unfinished(directory / f"{name}.db{_PART}") as plain,
    ):
        _copy(connection, plain, is_cancelled)
        _compress(plain, compressed, is_cancelled)
        reach(b"backup.before_rename")
        target = compressed.with_suffix("")
        compressed.replace(target)
    for old in newest_first(directory)[keep:]:
        old.unlink(missing_ok=True)
    return target


def newest_first(directory: Path) -> list[Path]:
    """Lists backups of this and of earlier versions; their names begin with the time."""
    paths = (path for path in directory.glob(_NAMES) if path.name.endswith(_SUFFIXES))
    return sorted((path for path in paths if path.is_file()), reverse=True)


def before_upgrade(directory: Path) -> Path | None:
    """The newest one that was made before a migration."""
    names = (path for path in newest_first(directory) if BEFORE_MIGRATION in path.name)
    return next(names, None)


def unfinished(directory: Path, before: float) -> list[Path]:
    """What a process left that was killed, if nothing was written to it since then."""
    paths = []
    for path in directory.glob(f"{_NAMES}{_PART}*"):
        with suppress(FileNotFoundError):  # another process has just finished it
            if path.stat().st_mtime < before:
                paths.append(path)
    return paths


@contextmanager
def _unfinished(path: Path) -> Iterator[Path]:
    """An empty file that only its owner may read, deleted afterwards if it is still there."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield path
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)


def _copy(source: sqlite3.Connection, target: Path, is_cancelled: IsCancelled) -> None:
    """What a backup contains, as a database file without free pages."""
    with (
        _unfinished(target.with_suffix(f".full{_PART}")) as full,
        closing(sqlite3.connect(full, isolation_level=None)) as copy,
        _interruptible(copy, is_cancelled),
    ):
        # Neither is needed for a file that is deleted if anything fails.
        copy.execute("PRAGMA synchronous = OFF")
        copy.execute("PRAGMA journal_mode = OFF")
        _copy_pages(source, copy, is_cancelled)
        copy.execute("PRAGMA journal_mode = DELETE")  # the file is in WAL mode, as its source
        copy.execute("PRAGMA journal_mode = OFF")
        verdict = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":  # or rotation would replace the good backups with damaged ones
            raise DamagedDatabase(f"the database is damaged, as its backup shows: {verdict}")
        index_tables.drop(copy)  # derived: the worker rebuilds it after a restore
        with suppress(sqlite3.OperationalError):  # a database that has yet to be migrated
            copy.execute("DELETE FROM unindexed_turns")  # what the index had
        name = os.fsencode(target)  # it need not be UTF-8
        copy.execute("VACUUM INTO CAST(? AS TEXT)", (name,))


def _copy_pages(
    source: sqlite3.Connection, copy: sqlite3.Connection, is_cancelled: IsCancelled
) -> None:
    """Copies the pages in one read transaction: otherwise it would begin anew whenever another
    process writes."""

    def check(status: int, remaining: int, total: int) -> None:
        _check(is_cancelled)

    source.execute("BEGIN")
    try:
        source.execute("SELECT count(*) FROM sqlite_master").fetchone()
        source.backup(copy, pages=_STEP_PAGES, progress=check)
    finally:
        source.rollback()


@contextmanager
def _interruptible(copy: sqlite3.Connection, is_cancelled: IsCancelled) -> Iterator[None]:
    copy.set_progress_handler(is_cancelled, _STEP_INSTRUCTIONS)
    try:
        yield
    except sqlite3.OperationalError:
        _check(is_cancelled)
        raise


def _compress(source: Path, target: Path, is_cancelled: IsCancelled) -> None:
    with source.open("rb") as plain, target.open("wb") as file:
        with gzip.GzipFile("", "wb", _LEVEL, file) as compressed:
            while chunk := plain.read(_CHUNK):
                _check(is_cancelled)
                compressed.write(chunk)  # other threads run meanwhile
        file.flush()
        os.fsync(file.fileno())


def _check(is_cancelled: IsCancelled) -> None:
    if is_cancelled():
        raise BackupCancelled("the backup was cancelled: the store is being closed")

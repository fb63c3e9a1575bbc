"""Replaces a damaged database by what can be read of it, or by the newest intact backup.

Backups are not trusted: a file may be cut, damaged, or expand to more than the disk holds.
"""

import logging
import os
import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from claude_mem.errors import DamagedDatabase, NoSpaceToRestore, OtherVersion, StoreError
from claude_mem.hook.kill_points import reach
from claude_mem.store import index_tables
from claude_mem.store.backups import COMPRESSED, newest_first
from claude_mem.store.database import (
    check_integrity,
    connect,
    has_own_journal,
    is_current,
    is_full,
    prepare,
    require_own,
    size_in_header,
)
from claude_mem.store.salvage import Salvaged, salvage

log = logging.getLogger("claude_mem.store")

_CHUNK, _INPUT = 1 << 20, 1 << 16
_MAX_RATIO = 1_100  # deflate cannot compress better than 1:1032
_SPARE_BYTES = 16_000_000  # left on the disk
_JOURNALS = ("-wal", "-shm")
_RESTORING, _SALVAGING = ".restoring", ".salvaging"
DAMAGED, REPLACED = ".damaged-", ".replaced-"  # what follows the name of a file that was set aside
_IO_ERROR = sqlite3.SQLITE_IOERR  # also beyond a limit of the size of a file


@dataclass(frozen=True, slots=True)
class Recovery:
    """`backup`: from which the database was restored as a whole. `salvaged`: what was read of the
    damaged file, if that could be used."""

    aside: Path
    backup: Path | None = None
    salvaged: Salvaged | None = None

    def describe(self) -> str:
        if self.salvaged is None:
            restored = f"the backup {self.backup.name} was restored" if self.backup else ""
            action = restored or "no backup was intact, memory starts empty"
        elif not self.salvaged.damaged_tables:
            action = "all of its rows could be read, nothing is lost"
            if count := self.salvaged.damaged_texts:
                action = f"all of its rows could be read, {count} texts without damaged characters"
        else:
            tables = ", ".join(sorted(self.salvaged.damaged_tables))
            action = f"its rows were kept but for damaged ones of {tables}"
            if self.backup is not None:
                action += f"; {self.salvaged.from_backup} came from the backup {self.backup.name}"
        return f"It was kept as {self.aside.name}; {action}."


def recover(path: Path, backup_dir: Path, *, is_sound: bool = False) -> Recovery:
    """Replaces a damaged file by what can be read of it and, for what cannot, by the newest intact
    backup. Raises NoSpaceToRestore if that does not fit on the disk.

    `is_sound`: SQLite's own check finds no damage. If no row has any either, the file stays, and
    DamagedDatabase is raised: another copy would change nothing."""
    unpacked = path.with_name(path.name + _RESTORING)
    readable = path.with_name(path.name + _SALVAGING)
    _delete(readable)
    try:
        backup, no_space = _unpack_newest(backup_dir, unpacked)
        salvaged = _salvage(path, readable, unpacked if backup else None, backup_dir, no_space)
        if is_sound and salvaged is not None and not salvaged.has_damage:
            raise DamagedDatabase(f"no damage was found in {path}: claude-mem worker logs")
        if salvaged is not None and not (no_space and salvaged.damaged_tables):
            return Recovery(set_aside(path, readable), backup, salvaged)
        if backup is not None:
            return Recovery(set_aside(path, unpacked), backup)
        if no_space is not None:
            raise no_space
        return Recovery(set_aside(path))
    finally:
        _delete(unpacked)
        _delete(readable)


def _unpack_newest(backup_dir: Path, target: Path) -> tuple[Path | None, NoSpaceToRestore | None]:
    """The newest intact backup, or why there may be one that cannot be used."""
    no_space: NoSpaceToRestore | None = None
    for backup in newest_first(backup_dir):
        try:
            unpack(backup, target)
        except NoSpaceToRestore as error:
            no_space = error
        except StoreError as error:
            log.warning("%s", error)
        else:
            return backup, None
    _delete(target)
    return None, no_space


def _salvage(
    path: Path,
    target: Path,
    backup: Path | None,
    backup_dir: Path,
    no_space: NoSpaceToRestore | None,
) -> Salvaged | None:
    try:
        if require_own(path):
            return None  # empty
        if not has_own_journal(path):
            _set_journals_aside(path, _stamped_name(path, DAMAGED))
        prepare(target, backup_dir, 0)
        salvaged = salvage(path, target, backup)
        if damage := check_integrity(target):
            raise DamagedDatabase(damage)
    except OtherVersion:
        raise
    except StoreError as error:
        log.warning("the rows of the damaged database cannot be read: %s", error)
        return None
    except sqlite3.Error as error:
        if not is_full(error) and getattr(error, "sqlite_errorcode", 0) & 0xFF != _IO_ERROR:
            log.warning("the rows of the damaged database cannot be copied", exc_info=error)
            return None
        reason = f"no space on the disk to repair {path.name}: free space, then run"
        raise no_space or NoSpaceToRestore(f"{reason} claude-mem worker restart") from error
    return salvaged


def drop_index(path: Path) -> None:
    """Drops the index of a file whose pages are sound."""
    with closing(connect(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        index_tables.drop(connection)
        connection.execute("COMMIT")


def put_in_place(path: Path, backup: Path) -> Path | None:
    """Replaces the database by a backup, and returns its new name; None if there was no database.
    Raises OtherVersion and changes nothing if this version cannot use the backup either."""
    unpacked = path.with_name(path.name + _RESTORING)
    try:
        unpack(backup, unpacked)
        is_current(unpacked)
        if not path.exists():
            unpacked.replace(path)
            return None
        return set_aside(path, unpacked, REPLACED)
    finally:
        _delete(unpacked)


def unpack(backup: Path, target: Path) -> None:
    """Raises DamagedDatabase, ForeignDatabase or NoSpaceToRestore."""
    try:
        _write(backup, target)
    except OSError as error:
        if is_full(error):
            raise NoSpaceToRestore(f"no space on the disk for the backup {backup.name}") from error
        raise DamagedDatabase(f"{backup.name} cannot be unpacked: {error}") from error
    if require_own(target):
        raise DamagedDatabase(f"{backup.name} is empty")
    if damage := check_integrity(target):
        raise DamagedDatabase(f"{backup.name} is damaged: {damage}")


def _write(backup: Path, target: Path) -> None:
    _delete(target)
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        remaining = _space(backup, target)
        for chunk in _chunks(backup):
            remaining -= len(chunk)
            if remaining < 0:
                raise DamagedDatabase(f"{backup.name} is longer than the database that it holds")
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def opened(backup: Path) -> Iterator[Path]:
    """A file that SQLite can read: the backup, or what it contains, unpacked next to it."""
    if not _is_compressed(backup):
        yield backup
        return
    target = backup.with_name(f"{backup.name}.{token_hex(4)}.part")
    try:
        unpack(backup, target)
        yield target
    finally:
        _delete(target)


def set_aside(path: Path, replacement: Path | None = None, kind: str = DAMAGED) -> Path:
    """Renames a file and its journal, and puts the replacement in its place. Returns the new
    name."""
    aside = _stamped_name(path, kind)
    # A process that finds no file makes an empty database: the damaged one stays until the end.
    if replacement is None or not _linked(path, aside):
        path.replace(aside)
    _set_journals_aside(path, aside)
    reach(b"recovery.before_replace")
    if replacement is not None:
        replacement.replace(path)
    return aside


def _stamped_name(path: Path, kind: str) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    return path.with_name(f"{path.name}{kind}{stamp}")


def _set_journals_aside(path: Path, aside: Path) -> None:
    for suffix in _JOURNALS:
        journal = path.with_name(path.name + suffix)
        if journal.exists():
            journal.replace(aside.with_name(aside.name + suffix))


def replaced_copies(database: Path) -> list[Path]:
    """Lists earlier databases that were replaced, and backups whose restoring was killed."""
    kinds = (DAMAGED, REPLACED, _RESTORING, _SALVAGING)
    return [path for kind in kinds for path in database.parent.glob(f"{database.name}{kind}*")]


def delete_copies(database: Path) -> None:
    """Deletes the copies as a whole: nothing can be removed from them selectively."""
    for path in replaced_copies(database):
        path.unlink(missing_ok=True)


def _linked(path: Path, name: Path) -> bool:
    try:
        os.link(path, name)
    except OSError:  # a file system without links
        return False
    return True


def _space(backup: Path, target: Path) -> int:
    """The number of bytes that it may take."""
    length = size = backup.stat().st_size
    if _is_compressed(backup):
        size = size_in_header(next(_chunks(backup), b""), backup)
        if size > length * _MAX_RATIO:
            raise DamagedDatabase(f"{backup.name} is damaged: it cannot contain {size} bytes")
    if size + _SPARE_BYTES > shutil.disk_usage(target.parent).free:
        raise NoSpaceToRestore(
            f"the backup {backup.name} takes {size // 1_000_000 + 1} MB: free space on the disk,"
            " then run claude-mem worker restart"
        )
    return size


def _chunks(backup: Path) -> Iterator[bytes]:
    try:
        with backup.open("rb") as file:
            if _is_compressed(backup):
                yield from _decompressed(file)
            else:
                yield from iter(partial(file.read, _CHUNK), b"")
    except (OSError, zlib.error) as error:
        raise DamagedDatabase(f"{backup.name} cannot be read: {error}") from error


def _decompressed(file: BinaryIO) -> Iterator[bytes]:
    """Decompresses one gzip member; the module gzip would read any number, and zeros behind
    them."""
    decompressor = zlib.decompressobj(wbits=31)
    while not decompressor.eof:
        data = decompressor.unconsumed_tail or file.read(_INPUT)
        if chunk := decompressor.decompress(data, _CHUNK):
            yield chunk
        elif not data:
            raise zlib.error("it ends too early")


def _is_compressed(backup: Path) -> bool:
    return backup.name.endswith(COMPRESSED)


def _delete(path: Path) -> None:
    for suffix in ("", *_JOURNALS):
        path.with_name(path.name + suffix).unlink(missing_ok=True)

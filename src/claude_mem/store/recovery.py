"""Puts the newest intact backup in the place of a damaged database.

Backups are not trusted: a file may be cut, damaged, or expand to more than the disk holds.
"""

import errno
import logging
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from claude_mem.errors import DamagedDatabase, NoSpaceToRestore, StoreError
from claude_mem.hook.kill_points import reach
from claude_mem.store.backups import COMPRESSED, newest_first
from claude_mem.store.database import check_integrity, is_current, require_own, size_in_header

log = logging.getLogger("claude_mem.store")

_CHUNK, _INPUT = 1 << 20, 1 << 16
_MAX_RATIO = 1_100  # deflate cannot compress better than 1:1032
_SPARE_BYTES = 16_000_000  # left on the disk
_JOURNALS = ("-wal", "-shm")
_RESTORING = ".restoring"
DAMAGED, REPLACED = ".damaged-", ".replaced-"  # what follows the name of a file that was set aside


def restore_newest(path: Path, backup_dir: Path) -> tuple[Path, Path | None]:
    """Renames the damaged file, and replaces it by a backup. Returns its new name and the backup,
    which is None if none is intact. Raises NoSpaceToRestore if one may be, but does not fit."""
    unpacked = path.with_name(path.name + _RESTORING)
    no_space: NoSpaceToRestore | None = None
    try:
        for backup in newest_first(backup_dir):
            try:
                unpack(backup, unpacked)
            except NoSpaceToRestore as error:
                no_space = error
            except StoreError as error:
                log.warning("%s", error)
            else:
                return set_aside(path, unpacked), backup
    finally:
        _delete(unpacked)
    if no_space is not None:
        raise no_space
    return set_aside(path), None


def put_in_place(path: Path, backup: Path) -> Path | None:
    """Replaces the database by a backup, and returns its new name; None if there was no database.
    Raises NewerDatabase and changes nothing if this version cannot use the backup either."""
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
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
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
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    aside = path.with_name(f"{path.name}{kind}{stamp}")
    # A process that finds no file makes an empty database: the damaged one stays until the end.
    if replacement is None or not _linked(path, aside):
        path.replace(aside)
    for suffix in _JOURNALS:
        journal = path.with_name(path.name + suffix)
        if journal.exists():
            journal.replace(aside.with_name(aside.name + suffix))
    reach(b"recovery.before_replace")
    if replacement is not None:
        replacement.replace(path)
    return aside


def delete_copies(database: Path) -> None:
    """Of earlier databases that were replaced, and of backups whose restoring was killed: nothing
    can be removed from them selectively."""
    for kind in (DAMAGED, REPLACED, _RESTORING):
        for path in database.parent.glob(f"{database.name}{kind}*"):
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
    """Of one gzip member; the module gzip would read any number of them, and zeros behind them."""
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

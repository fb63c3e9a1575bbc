"""A copy of another program's database, to read from.

The original is never opened: even a read-only connection to a database in WAL mode writes files
next to it.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from claude_mem.errors import BadInput, NotFound, StoreError
from claude_mem.store.database import APPLICATION_ID

COPY_ATTEMPTS = 5


@contextmanager
def open_copy(path: Path) -> Iterator[sqlite3.Connection]:
    """The copy is readable by its owner only, and removed afterwards."""
    _check_file(path)
    with tempfile.TemporaryDirectory(prefix="claude-mem-") as directory:
        copy = Path(directory) / "copy.db"
        _copy(path, copy)
        with closing(sqlite3.connect(copy)) as connection:
            connection.row_factory = sqlite3.Row
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            yield connection


def _check_file(path: Path) -> None:
    if path.exists() and not path.is_file():
        # Opening a FIFO would wait for a writer.
        raise BadInput(f"{path} cannot be read: it is not a file")
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None
    if not head.startswith(b"SQLite format 3\0"):
        raise BadInput(f"{path} is not a database")
    if int.from_bytes(head[68:72]) == APPLICATION_ID:
        raise BadInput(
            f"{path} is a database of this claude-mem: run `claude-mem export` and import that file"
        )


def _copy(path: Path, copy: Path) -> None:
    """Copies file and journal of the same moment; starts over when something was written."""
    for _ in range(COPY_ATTEMPTS):
        before = _state(path)
        for suffix in ("", "-wal", "-journal"):
            source = path.with_name(path.name + suffix)
            target = copy.with_name(copy.name + suffix)
            target.unlink(missing_ok=True)
            if source.exists():
                shutil.copyfile(source, target)
        if _state(path) == before:
            return
    raise StoreError(f"{path} is being written to: stop that claude-mem and try again")


def _state(path: Path) -> tuple[object, ...]:
    """Changes with every checkpoint (the file) and every restart of the journal (its header)."""
    status = path.stat()
    journal = path.with_name(path.name + "-wal")
    header = b""
    if journal.exists():
        with journal.open("rb") as file:
            header = file.read(32)
    has_rollback_journal = path.with_name(path.name + "-journal").exists()
    return status.st_mtime_ns, status.st_size, header, has_rollback_journal

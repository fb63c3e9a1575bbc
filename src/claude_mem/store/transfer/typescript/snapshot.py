"""Another program's database, copied to be read: what is not ours is never opened in its place.

To open a database in WAL mode, even only to read, is to write beside it.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from claude_mem.errors import BadInput, NotFound, StoreError
from claude_mem.store.database import APPLICATION_ID

COPIES_TRIED = 5


@contextmanager
def open_copy(path: Path) -> Iterator[sqlite3.Connection]:
    """A copy for the owner alone, gone afterwards."""
    _check_file(path)
    with tempfile.TemporaryDirectory(prefix="claude-mem-") as directory:
        copy = Path(directory) / "copy.db"
        _copy(path, copy)
        with closing(sqlite3.connect(copy)) as connection:
            connection.row_factory = sqlite3.Row
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            yield connection


def _check_file(path: Path) -> None:
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
            f"{path} is a database of this claude-mem: `claude-mem export` it and import that file"
        )


def _copy(path: Path, copy: Path) -> None:
    """File and journal of one moment: whoever writes meanwhile makes us begin again."""
    for _ in range(COPIES_TRIED):
        before = _state(path)
        for ending in ("", "-wal", "-journal"):
            beside = path.with_name(path.name + ending)
            target = copy.with_name(copy.name + ending)
            target.unlink(missing_ok=True)
            if beside.exists():
                shutil.copyfile(beside, target)
        if _state(path) == before:
            return
    raise StoreError(f"{path} is being written to: stop that claude-mem and try again")


def _state(path: Path) -> tuple[object, ...]:
    """A checkpoint changes the file, a new round of the journal its head."""
    found = path.stat()
    journal = path.with_name(path.name + "-wal")
    head = b""
    if journal.exists():
        with journal.open("rb") as file:
            head = file.read(32)
    return found.st_mtime_ns, found.st_size, head, path.with_name(path.name + "-journal").exists()

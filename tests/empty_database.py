"""New databases for tests, as copies of one that the store created.

Creating one waits for the disk several times; most tests are not about that.
"""

import tempfile
from functools import cache
from pathlib import Path

from claude_mem.store import Store


def put_empty_database(path: Path) -> None:
    """Puts an empty database there, unless there is one already."""
    if not path.exists():
        path.touch(0o600)
        path.write_bytes(_empty_database())


@cache
def _empty_database() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "memory.db"
        Store.open(path, Path(directory) / "backups").close()
        assert not path.with_name("memory.db-wal").exists()  # all of it is in the one file
        return path.read_bytes()

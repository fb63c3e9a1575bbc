"""Online backups of the database with rotation, and moving a damaged file away."""

import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from claude_mem.errors import DamagedDatabase

_PATTERN = "memory-*.db"
# Tables of the index, more than half of the file. It is derived: a backup leaves it out, and the
# worker rebuilds it after a restore.
INDEX_TABLES = (
    "memory_text", "documents", "index_version", "indexed_turns", "passages", "passage_terms",
    "passage_text", "passage_count", "vectors", "vector_models", "vector_losses", "twins",
)  # fmt: skip


def back_up(connection: sqlite3.Connection, directory: Path, keep: int, label: str = "") -> Path:
    """A consistent copy while others read and write; keeps only the newest `keep` copies."""
    directory.mkdir(mode=0o700, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    target = directory / f"memory-{stamp}{'-' + label if label else ''}.db"
    unfinished = target.with_suffix(".part")
    with closing(sqlite3.connect(unfinished)) as copy:
        unfinished.chmod(0o600)
        connection.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        verdict = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict == "ok":
            _drop_index(copy)
    if verdict != "ok":
        unfinished.unlink()  # or rotation would replace the good copies with damaged ones
        raise DamagedDatabase(f"the database is damaged, as its backup shows: {verdict}")
    unfinished.replace(target)
    for old in newest_first(directory)[keep:]:
        old.unlink(missing_ok=True)
    return target


def _drop_index(copy: sqlite3.Connection) -> None:
    for table in INDEX_TABLES:
        copy.execute(f"DROP TABLE IF EXISTS {table}")
    with suppress(sqlite3.OperationalError):  # a database that has yet to be migrated
        copy.execute("DELETE FROM unindexed_turns")  # what the index had
    copy.commit()
    copy.execute("VACUUM")


def newest_first(directory: Path) -> list[Path]:
    return sorted(directory.glob(_PATTERN), reverse=True)


def set_aside(path: Path) -> Path:
    """Renames a damaged file and its journal; returns the new name."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    path.replace(aside)
    for suffix in ("-wal", "-shm"):
        journal = path.with_name(path.name + suffix)
        if journal.exists():
            journal.replace(aside.with_name(aside.name + suffix))
    return aside

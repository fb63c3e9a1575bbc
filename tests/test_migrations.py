"""The file: made, migrated, kept safe, and never anybody else's."""

import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from claude_mem.errors import DamagedDatabase, ForeignDatabase, NewerDatabase, StoreError
from claude_mem.store import Store, StoreReader, backups, migrations
from claude_mem.store.database import APPLICATION_ID, check_integrity, connect, prepare
from claude_mem.store.index_tables import INDEX_TABLES
from claude_mem.store.migrations import MIGRATIONS, Migration, applied_names, current_names
from claude_mem.store.sessions import register_memory_session
from claude_mem.store.store import open_or_restore
from tests.live_files import unpacked
from tests.payloads import edit, prompt, stop
from tests.story import Story

KNOWN = current_names()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def backup_dir(tmp_path: Path) -> Path:
    return tmp_path / "backups"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(path: Path) -> list[str]:
    with closing(connect(path, readonly=True)) as connection:
        return applied_names(connection)


def schema(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()


def without_index(path: Path) -> list[tuple[str, str]]:
    """The schema that a backup has."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        for table in INDEX_TABLES:
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        rows = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
        connection.execute("ROLLBACK")
    return rows


def files(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Every file, with its mode and its bytes."""
    return {
        str(file.relative_to(directory)): (mode(file), file.read_bytes())
        for file in directory.rglob("*")
        if file.is_file()
    }


# A new file, and the same again


def test_a_fresh_file_is_ours_and_has_every_migration(path: Path, backup_dir: Path) -> None:
    prepare(path, backup_dir, 3)
    assert names(path) == KNOWN
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert tables >= {
        "sdk_sessions", "user_prompts", "observations", "session_summaries", "pending_messages",
        "tool_events",
    }  # fmt: skip
    assert not backup_dir.exists()


def test_preparing_again_changes_nothing(path: Path, backup_dir: Path) -> None:
    prepare(path, backup_dir, 3)
    before = schema(path)
    prepare(path, backup_dir, 3)
    assert schema(path) == before
    assert names(path) == KNOWN
    assert not backup_dir.exists()


def test_an_empty_file_is_as_good_as_none(path: Path, backup_dir: Path) -> None:
    path.touch()
    prepare(path, backup_dir, 3)
    assert names(path) == KNOWN


def test_the_file_is_for_its_owner_alone(path: Path, backup_dir: Path) -> None:
    path.touch(mode=0o644)
    with Store.open(path, backup_dir) as store:
        assert mode(path) == 0o600
        assert mode(store.back_up(backup_dir, 1)) == 0o600
        assert {mode(file) for file in path.parent.glob("memory.db*")} == {0o600}
    assert mode(backup_dir) == 0o700


def test_names_of_migrations_are_unique_and_in_order() -> None:
    assert sorted(set(KNOWN)) == KNOWN


# Another version


def add_lamps(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE lamps (id INTEGER PRIMARY KEY)")


def break_down(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE lamps (id INTEGER PRIMARY KEY)")
    raise ValueError("halfway")


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Path]:
    """A database with a memory in it, as the version before made it."""
    with Story(tmp_path) as story:
        story.tell(prompt(), edit(), stop())
        story.distil()
    yield story.layout.database


def upgrade(monkeypatch: pytest.MonkeyPatch, *added: Migration) -> None:
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, *added))


def test_a_migration_is_applied_once_and_recorded(
    old: Path, backup_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade(monkeypatch, ("9002_lamps", add_lamps))
    for _ in range(2):
        prepare(old, backup_dir, 3)
    assert names(old) == [*KNOWN, "9002_lamps"]
    with StoreReader.open_existing(old) as store:
        assert store.counts()["summaries"] == 1


def test_a_backup_is_made_before_a_migration(
    old: Path, backup_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade(monkeypatch, ("9002_lamps", add_lamps))
    prepare(old, backup_dir, 3)
    (backup,) = backup_dir.iterdir()
    assert backup.name.endswith("-before-migration.db.gz")
    copy = unpacked(backup)
    assert names(copy) == KNOWN
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT count(*) FROM session_summaries").fetchone() == (1,)


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    old: Path, backup_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = schema(old)
    upgrade(monkeypatch, ("9002_lamps", break_down))
    with pytest.raises(ValueError, match="halfway"):
        prepare(old, backup_dir, 3)
    assert schema(old) == before
    assert names(old) == KNOWN


def test_migrations_before_a_failing_one_stay_and_it_is_tried_again(
    old: Path, backup_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade(monkeypatch, ("9002_lamps", add_lamps), ("9003_lamps_again", break_down))
    with pytest.raises(sqlite3.OperationalError, match="lamps already exists"):
        prepare(old, backup_dir, 3)
    assert names(old) == [*KNOWN, "9002_lamps"]
    upgrade(monkeypatch, ("9002_lamps", add_lamps), ("9003_nothing", lambda _: None))
    prepare(old, backup_dir, 3)
    assert names(old) == [*KNOWN, "9002_lamps", "9003_nothing"]


def test_a_reader_does_not_migrate(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = schema(old)
    upgrade(monkeypatch, ("9002_lamps", add_lamps))
    with pytest.raises(StoreError, match="claude-mem worker restart"):
        StoreReader.open_existing(old)
    assert schema(old) == before


@pytest.fixture
def newer(old: Path) -> Path:
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.execute(
            "INSERT INTO schema_migrations (name, applied_at) VALUES ('0999_of_next_year', '')"
        )
    return old


def test_a_database_of_a_newer_version_is_refused_and_not_touched(
    newer: Path, backup_dir: Path
) -> None:
    before = newer.read_bytes()
    with pytest.raises(NewerDatabase, match="0999_of_next_year"):
        Store.open(newer, backup_dir)
    with pytest.raises(NewerDatabase):
        StoreReader.open_existing(newer)
    with pytest.raises(NewerDatabase):
        open_or_restore(newer, backup_dir, 3)
    assert newer.read_bytes() == before
    assert not backup_dir.exists()


# A database that is not ours


def make_foreign(path: Path, *statements: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    path.chmod(0o644)
    return path


FOREIGN = {
    "with tables": [
        "CREATE TABLE observations (id INTEGER)",
        "INSERT INTO observations VALUES (1)",
    ],
    "with another mark": ["PRAGMA application_id = 1234", "CREATE TABLE t (x)"],
    "with a mark and no table": ["PRAGMA application_id = 1234"],
    "in WAL": ["PRAGMA journal_mode = WAL", "CREATE TABLE t (x)"],
}


@pytest.mark.parametrize("statements", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_database_of_others_is_refused_and_not_written_to(
    tmp_path: Path, statements: list[str]
) -> None:
    path = make_foreign(tmp_path / "theirs" / "memory.db", *statements)
    before = files(path.parent)
    for attempt in (
        lambda: Store.open(path, tmp_path / "backups"),
        lambda: open_or_restore(path, tmp_path / "backups", 3),
        lambda: StoreReader.open_existing(path),
    ):
        with pytest.raises(ForeignDatabase, match="CLAUDE_MEM_DATA_DIR"):
            attempt()
    assert files(path.parent) == before
    assert not (tmp_path / "backups").exists()


def test_the_journal_of_a_database_of_others_is_not_worked_in(tmp_path: Path) -> None:
    """Their writer died: what it had committed is in the journal, which is theirs to work in."""
    live, dead = tmp_path / "live.db", tmp_path / "theirs" / "memory.db"
    dead.parent.mkdir()
    with closing(sqlite3.connect(live, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("INSERT INTO t VALUES (1)")
        for suffix in ("", "-wal"):
            dead.with_name(dead.name + suffix).write_bytes(
                live.with_name(live.name + suffix).read_bytes()
            )
    before = files(dead.parent)
    with pytest.raises(ForeignDatabase):
        Store.open(dead, tmp_path / "backups")
    after = files(dead.parent)
    assert {name: after.get(name) for name in before} == before


# Damage


def remembered(store: Store) -> int:
    return store.counts()["summaries"]


def set_aside(path: Path) -> list[Path]:
    files = path.parent.glob(f"{path.name}.damaged-*")
    return [file for file in files if not file.name.endswith(("-wal", "-shm"))]


def garbage(path: Path) -> None:
    path.write_bytes(b"this is no database at all, and long enough to be sure " * 200)


def cut_in_half(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def cut_to_a_page(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:4096])


def cut_within_a_page(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1000])


def overwrite_the_schema(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100:4096] = b"\xff" * 3996
    path.write_bytes(data)


def overwrite_a_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'tool_events'"
        (page,) = connection.execute(query).fetchone()
    data = bytearray(path.read_bytes())
    data[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    path.write_bytes(data)


DAMAGES = [garbage, cut_in_half, cut_to_a_page, cut_within_a_page, overwrite_the_schema]


@pytest.fixture
def backed_up(old: Path, backup_dir: Path) -> Path:
    """A database with a good backup."""
    with Store.open(old, backup_dir) as store:
        store.back_up(backup_dir, 3)
    return old


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_file_is_set_aside_and_the_newest_good_backup_serves(
    backed_up: Path, backup_dir: Path, damage: Callable[[Path], None]
) -> None:
    damage(backed_up)
    damaged = backed_up.read_bytes()
    store, message = open_or_restore(backed_up, backup_dir, 3)
    with store:
        assert remembered(store) == 1
        assert store.integrity() is None
    (aside,) = set_aside(backed_up)
    (backup,) = backup_dir.iterdir()
    assert message is not None
    assert aside.name in message and backup.name in message
    assert aside.read_bytes() == damaged
    assert mode(backed_up) == 0o600


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_without_a_good_backup_memory_starts_anew_and_the_person_is_told(
    old: Path, backup_dir: Path, damage: Callable[[Path], None]
) -> None:
    damage(old)
    store, message = open_or_restore(old, backup_dir, 3)
    with store:
        assert remembered(store) == 0
    assert message is not None and "no backup was intact" in message
    assert len(set_aside(old)) == 1


def test_a_sound_file_is_opened_without_a_word(old: Path, backup_dir: Path) -> None:
    store, message = open_or_restore(old, backup_dir, 3)
    with store:
        assert (remembered(store), message) == (1, None)
    assert set_aside(old) == []


def test_after_a_disorderly_end_damage_is_found_wherever_it_lies(
    backed_up: Path, backup_dir: Path
) -> None:
    overwrite_a_table(backed_up)
    store, message = open_or_restore(backed_up, backup_dir, 3, suspicious=True)
    with store:
        assert remembered(store) == 1
        assert store.integrity() is None
    assert message is not None and len(set_aside(backed_up)) == 1


@pytest.mark.parametrize("exists", [True, False])
def test_a_suspicion_that_is_unfounded_changes_nothing(
    old: Path, backup_dir: Path, exists: bool
) -> None:
    path = old if exists else old.with_name("new.db")
    store, message = open_or_restore(path, backup_dir, 3, suspicious=True)
    with store:
        assert (remembered(store), message) == (int(exists), None)


@pytest.mark.parametrize("bad", [b"", b"no database " * 500], ids=["empty", "garbage"])
def test_a_bad_backup_is_passed_over_for_an_older_good_one(
    backed_up: Path, backup_dir: Path, bad: bytes
) -> None:
    (good,) = backup_dir.iterdir()
    for suffix in ("", ".gz"):
        (backup_dir / f"memory-99991231T235959000000.db{suffix}").write_bytes(bad)
    garbage(backed_up)
    store, message = open_or_restore(backed_up, backup_dir, 3)
    with store:
        assert remembered(store) == 1
    assert message is not None and good.name in message


def test_the_journal_of_a_damaged_file_is_set_aside_with_it(
    backed_up: Path, backup_dir: Path
) -> None:
    journal = backed_up.with_name("memory.db-wal")
    garbage(backed_up)
    journal.write_bytes(b"left behind")
    store, _ = open_or_restore(backed_up, backup_dir, 3)
    with store:
        assert remembered(store) == 1
    (aside,) = backed_up.parent.glob("memory.db.damaged-*-wal")
    assert aside.read_bytes() == b"left behind"


def test_damage_is_an_error_of_its_own_for_whoever_only_opens(old: Path, backup_dir: Path) -> None:
    garbage(old)
    with pytest.raises(DamagedDatabase):
        Store.open(old, backup_dir)
    with pytest.raises(DamagedDatabase):
        StoreReader.open_existing(old)
    assert check_integrity(old) is not None


# Backups


def test_the_oldest_backups_beyond_the_number_kept_go(old: Path, backup_dir: Path) -> None:
    with Store.open(old, backup_dir) as store:
        copies = [store.back_up(backup_dir, 2) for _ in range(4)]
    assert sorted(copies) == copies
    assert sorted(backup_dir.iterdir()) == copies[2:]
    assert backups.newest_first(backup_dir) == [copies[3], copies[2]]


def test_rotation_leaves_files_of_others_alone(old: Path, backup_dir: Path) -> None:
    backup_dir.mkdir()
    mine = backup_dir / "my-own-copy.db"
    mine.write_bytes(b"x")
    with Store.open(old, backup_dir) as store:
        for _ in range(3):
            store.back_up(backup_dir, 1)
    assert mine.exists()
    assert len(list(backup_dir.iterdir())) == 2


def test_a_backup_is_whole_while_the_store_is_open(old: Path, backup_dir: Path) -> None:
    with Store.open(old, backup_dir) as store:
        store.write(lambda c: register_memory_session(c, 1)).result()
        copy = store.back_up(backup_dir, 1)
        assert check_integrity(unpacked(copy)) is None
        assert schema(unpacked(copy)) == without_index(old)
        assert list(backup_dir.glob("*")) == [copy]


def test_copies_of_a_damaged_file_do_not_displace_the_good_ones(
    backed_up: Path, backup_dir: Path
) -> None:
    """The damage lies where nobody has looked since; the daily copies would spread it."""
    overwrite_a_table(backed_up)
    with Store.open(backed_up, backup_dir) as store:
        assert store.integrity() is not None
        for _ in range(3):
            with suppress(sqlite3.DatabaseError, StoreError):
                store.back_up(backup_dir, 2)
    (good,) = backups.newest_first(backup_dir)
    assert check_integrity(unpacked(good)) is None

"""Compressed backups: what they contain and take, and restoring from them and from older ones."""

import gzip
import os
import resource
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from claude_mem.errors import BackupCancelled, DamagedDatabase, NoSpaceToRestore
from claude_mem.server import client
from claude_mem.store import Store, backups, recovery
from claude_mem.store.database import check_integrity, connect, size_in_header
from claude_mem.store.store import open_or_restore
from claude_mem.worker.housekeeping import HOUR
from tests.conftest import Home, wait_until
from tests.live_files import contents_below, plain_bytes, unpacked
from tests.payloads import bash, edit, prompt, stop
from tests.story import Story

DOCS = Path(__file__).parent.parent / "docs"
FIRST, SECOND, THIRD = (f"memory-2026010{day}T120000000000.db" for day in (1, 2, 3))
NEWEST = "memory-99991231T235959000000.db.gz"


def tell_turn(story: Story, about: str, output: str = "", answer: str = "Done.") -> None:
    turn = {"session_id": f"session-{about}", "prompt_id": f"prompt-of-{about}"}
    story.tell(prompt(f"Explain {about}", **turn), edit(**turn), bash("cat it", output, **turn))
    story.tell(stop(f"{about} is done. {answer}", **turn))
    story.distil()


def prompts(database: Path) -> list[str]:
    with closing(connect(database, readonly=True)) as connection:
        rows = connection.execute("SELECT prompt_text FROM user_prompts ORDER BY id")
        return [row[0].removeprefix("Explain ") for row in rows]


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture
def damaged(story: Story) -> Path:
    """A damaged database without a backup."""
    story.store.close()
    story.layout.database.write_bytes(b"no database " * 1_000)
    return story.layout.database


@pytest.fixture
def copies(tmp_path: Path) -> dict[str, bytes]:
    """The contents of backups after one turn, after two and after three, compressed."""
    contents = {}
    with Story(tmp_path / "copied") as story:
        for name, about in ((FIRST, "one"), (SECOND, "two"), (THIRD, "three")):
            tell_turn(story, about)
            contents[name] = story.store.back_up(story.layout.backups, 1).read_bytes()
    return contents


def put(backup_dir: Path, name: str, content: bytes) -> None:
    backup_dir.mkdir(exist_ok=True)
    (backup_dir / name).write_bytes(content)


def restore(damaged: Path) -> tuple[list[str], str]:
    """The prompts of the restored database, and the message."""
    store, message = open_or_restore(damaged, damaged.parent / "backups", 3)
    store.close()
    assert message is not None and not list(damaged.parent.glob("*.restoring*"))
    assert check_integrity(damaged) is None and mode(damaged) == 0o600
    return prompts(damaged), message


# What a backup is


def test_three_backups_take_less_than_the_database(story: Story) -> None:
    for path in sorted(DOCS.glob("*.md")):
        text = path.read_text("utf-8")
        tell_turn(story, path.stem, output=text, answer=text[:2_000])
    made = [story.store.back_up(story.layout.backups, 3) for _ in range(3)]
    story.store.close()
    assert sorted(story.layout.backups.iterdir()) == made
    database = story.layout.database.stat().st_size
    assert database > 500_000
    assert sum(path.stat().st_size for path in made) < 0.75 * database


@pytest.mark.skipif(not shutil.which("gunzip"), reason="needs gunzip")
def test_a_person_can_unpack_a_backup_without_claude_mem(story: Story, tmp_path: Path) -> None:
    tell_turn(story, "the lamp")
    backup = story.store.back_up(story.layout.backups, 1)
    database = tmp_path / "by-hand" / "memory.db"
    database.parent.mkdir()
    with database.open("wb") as file:
        subprocess.run(["gunzip", "-c", backup], stdout=file, check=True)
    with Store.open(database, tmp_path / "none"):
        assert prompts(database) == ["the lamp"]


def test_the_header_of_a_backup_has_its_exact_size(story: Story) -> None:
    copy = unpacked(story.store.back_up(story.layout.backups, 1))
    assert size_in_header(copy.read_bytes()[:100], copy) == copy.stat().st_size


def test_a_directory_whose_name_is_not_utf_8_gets_backups(story: Story, tmp_path: Path) -> None:
    tell_turn(story, "the lamp")
    backup_dir = tmp_path / os.fsdecode(b"caf\xe9")
    backup_dir.mkdir()
    assert prompts(unpacked(story.store.back_up(backup_dir, 1))) == ["the lamp"]


def test_others_write_at_every_moment_of_a_backup_which_is_of_one_moment(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is copied in many steps, as a larger one."""
    monkeypatch.setattr(backups, "_STEP_PAGES", 5)
    for number in range(40):
        tell_turn(story, f"turn {number}", output=os.urandom(4_000).hex())
    (name,) = story.column("SELECT name FROM projects")
    (pages,) = story.column("PRAGMA page_count")
    moments = 0

    def write() -> bool:
        nonlocal moments
        moments += 1
        assert moments < 10 * pages, "the copy begins anew with every write"
        story.store.write(
            lambda c: c.execute("UPDATE projects SET name = ?", (f"written {moments}",))
        ).result(timeout=10)
        return False

    with closing(connect(story.layout.database, readonly=True)) as connection:
        backup = backups.back_up(connection, story.layout.backups, 1, is_cancelled=write)
    assert moments > pages / 5
    copy = unpacked(backup)
    assert check_integrity(copy) is None and len(prompts(copy)) == 40
    with closing(connect(copy, readonly=True)) as connection:
        assert connection.execute("SELECT name FROM projects").fetchone()[0] == name


# A backup that is not completed


def test_a_backup_can_be_cancelled_at_every_moment_and_leaves_nothing(story: Story) -> None:
    story.store.write(
        lambda c: c.execute(
            "CREATE TABLE large AS WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1"
            " FROM numbers LIMIT 20000) SELECT n, randomblob(500) AS bytes FROM numbers"
        )
    ).result()
    for limit in range(0, 100, 3):
        checks = 0

        def is_cancelled(limit: int = limit) -> bool:
            nonlocal checks
            checks += 1
            return checks > limit

        with closing(connect(story.layout.database, readonly=True)) as connection:
            try:
                backups.back_up(connection, story.layout.backups, 1, is_cancelled=is_cancelled)
            except BackupCancelled:
                assert list(story.layout.backups.iterdir()) == []
            else:
                break
    assert 10 < limit < 99


def test_a_store_that_is_closed_makes_no_backup(story: Story) -> None:
    tell_turn(story, "the lamp")
    story.store.close()
    with pytest.raises(BackupCancelled):
        story.store.back_up(story.layout.backups, 1)
    assert list(story.layout.backups.iterdir()) == []


_BACK_UP = """
import os, sys
os.umask(0)
from contextlib import closing
from pathlib import Path
from claude_mem.store import backups
from claude_mem.store.database import connect
with closing(connect(Path(sys.argv[1]), readonly=True)) as connection:
    backups.back_up(connection, Path(sys.argv[2]), 1)
"""


def test_a_process_killed_meanwhile_leaves_unfinished_files_which_are_deleted_later(
    story: Story, tmp_path: Path
) -> None:
    tell_turn(story, "the lamp")
    backup_dir, marker = story.layout.backups, tmp_path / "armed"
    good = story.store.back_up(backup_dir, 1)
    marker.touch()
    done = subprocess.run(
        [sys.executable, "-c", _BACK_UP, story.layout.database, backup_dir],
        env={**os.environ, "CLAUDE_MEM_FAULT": f"backup.before_rename:{marker}"},
    )
    assert done.returncode == -9
    left = [path for path in backup_dir.iterdir() if path != good]
    assert left and all(path.suffix == ".part" and mode(path) == 0o600 for path in left)
    assert backups.newest_first(backup_dir) == [good]

    now = int(datetime.now(UTC).timestamp() * 1000)
    assert story.store.delete_unfinished_backups(backup_dir, now - HOUR) == []
    assert set(story.store.delete_unfinished_backups(backup_dir, now + HOUR)) == set(left)
    assert list(backup_dir.iterdir()) == [good]


def test_a_session_is_recorded_while_a_backup_is_being_made(home: Home, tmp_path: Path) -> None:
    for payload in (prompt("Wind the clock"), stop("It is wound.")):
        home.hook(payload)
    home.wait_settled()
    client.stop(home.layout)
    for backup in home.layout.backups.glob("memory-*"):
        backup.unlink()
    marker = tmp_path / "armed"
    marker.write_text("hang")
    home.environment["CLAUDE_MEM_FAULT"] = f"backup.before_rename:{marker}"
    home.start_worker()
    wait_until(lambda: not marker.exists(), "the backup")
    other = {"prompt_id": "bbbbbbbb-0000-4000-8000-000000000002"}
    for payload in (prompt("Oil the bell", **other), stop("It is oiled.", **other)):
        home.hook(payload)
    home.wait_settled()
    assert len(home.rows("SELECT 1 FROM session_summaries")) == 2
    assert not list(home.layout.backups.glob("*.gz"))
    home.kill_worker()


# Those of earlier versions


def test_rotation_counts_backups_of_both_kinds(story: Story) -> None:
    backup_dir = story.layout.backups
    for name in (FIRST, SECOND, THIRD):
        put(backup_dir, name, b"of an earlier version")
    made = story.store.back_up(backup_dir, 3)
    assert sorted(path.name for path in backup_dir.iterdir()) == [SECOND, THIRD, made.name]


@pytest.mark.parametrize(
    "compressed",
    [(False, False, False), (True, True, True), (True, False, True), (False, True, False)],
)
def test_the_newest_backup_is_restored_whatever_its_kind(
    damaged: Path, copies: dict[str, bytes], compressed: tuple[bool, ...]
) -> None:
    for (name, content), is_compressed in zip(copies.items(), compressed, strict=True):
        suffix, data = (".gz", content) if is_compressed else ("", gzip.decompress(content))
        put(damaged.parent / "backups", name + suffix, data)
    restored, message = restore(damaged)
    assert restored == ["one", "two", "three"]
    assert f"the backup {THIRD}" in message


def test_hard_forgetting_replaces_backups_of_both_kinds_and_unfinished_ones(
    story: Story, copies: dict[str, bytes]
) -> None:
    tell_turn(story, "the lamp")
    put(story.layout.backups, FIRST, gzip.decompress(copies[THIRD]))
    put(story.layout.backups, f"{SECOND}.gz", copies[THIRD])
    put(story.layout.backups, f"{THIRD}.gz.part", copies[THIRD])
    assert sum(b"Explain three" in data for data in contents_below(story.layout.root).values()) == 3
    story.store.scrub(story.layout.backups)
    assert not any(b"Explain three" in data for data in contents_below(story.layout.root).values())
    (fresh,) = story.layout.backups.iterdir()
    assert b"Explain the lamp" in plain_bytes(fresh)


# Restoring that does not come to its end


_RESTORE = """
import sys
from pathlib import Path
from claude_mem.store.store import open_or_restore
open_or_restore(Path(sys.argv[1]), Path(sys.argv[2]), 3)
"""


@pytest.mark.parametrize("has_journal", [True, False])
def test_a_process_killed_while_it_restores_leaves_the_damaged_file_in_place(
    damaged: Path, copies: dict[str, bytes], tmp_path: Path, has_journal: bool
) -> None:
    backup_dir, marker = damaged.parent / "backups", tmp_path / "armed"
    put(backup_dir, f"{THIRD}.gz", copies[THIRD])
    content, journal = damaged.read_bytes(), damaged.with_name(f"{damaged.name}-wal")
    if has_journal:
        journal.write_bytes(b"of the damaged file")
    marker.touch()
    done = subprocess.run(
        [sys.executable, "-c", _RESTORE, damaged, backup_dir],
        env={**os.environ, "CLAUDE_MEM_FAULT": f"recovery.before_replace:{marker}"},
    )
    assert done.returncode == -9
    assert damaged.read_bytes() == content and not journal.exists()
    restored, _ = restore(damaged)
    assert restored == ["one", "two", "three"]
    assert any(path.read_bytes() == b"of the damaged file"
               for path in damaged.parent.glob("*.damaged-*-wal")) == has_journal  # fmt: skip


def test_hard_forgetting_deletes_what_a_killed_restoring_left(
    story: Story, copies: dict[str, bytes]
) -> None:
    tell_turn(story, "the lamp")
    database = story.layout.database
    for name in ("memory.db.restoring", "memory.db.damaged-20260101T000000000000"):
        put(database.parent, name, gzip.decompress(copies[THIRD]))
    story.store.scrub(story.layout.backups)
    assert not any(b"Explain three" in data for data in contents_below(story.layout.root).values())


def test_a_disk_that_becomes_full_meanwhile_leaves_the_damaged_file(
    damaged: Path, copies: dict[str, bytes]
) -> None:
    put(damaged.parent / "backups", f"{THIRD}.gz", copies[THIRD])
    before, limits = damaged.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(NoSpaceToRestore, match="no space"):
            open_or_restore(damaged, damaged.parent / "backups", 3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert damaged.read_bytes() == before
    assert not list(damaged.parent.glob("memory.db.*"))


# Backups that cannot be used


def truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


def without_its_end(content: bytes) -> bytes:
    return content[:-4]


def with_a_changed_byte(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


def with_a_wrong_checksum(content: bytes) -> bytes:
    return content[:-8] + bytes(4) + content[-4:]


def of_a_damaged_database(content: bytes) -> bytes:
    data = bytearray(gzip.decompress(content))
    data[4096 : 4096 * 20] = os.urandom(4096 * 19)
    return gzip.compress(data)


def of_a_shorter_file(content: bytes) -> bytes:
    return gzip.compress(gzip.decompress(content)[:-8192])


def of_a_longer_file(content: bytes) -> bytes:
    """Small on disk, large in place; what it announces is harmless."""
    return gzip.compress(gzip.decompress(content) + bytes(300_000_000), 1)


def of_an_impossible_size(content: bytes) -> bytes:
    data = bytearray(gzip.decompress(content))
    data[28:32] = b"\xff" * 4
    return gzip.compress(data)


def of_another_program(content: bytes) -> bytes:
    data = bytearray(gzip.decompress(content))
    data[68:72] = b"\0" * 4
    return gzip.compress(data)


BAD: list[Callable[[bytes], bytes]] = [
    truncated, without_its_end, with_a_changed_byte, with_a_wrong_checksum, of_a_damaged_database,
    of_a_shorter_file, of_a_longer_file, of_an_impossible_size, of_another_program,
    lambda content: b"", lambda content: gzip.compress(b""), lambda content: content[:10],
    lambda content: zlib.compress(content), lambda content: gzip.compress(content),
]  # fmt: skip


@pytest.mark.parametrize("spoil", BAD, ids=lambda spoil: spoil.__name__)
def test_a_bad_backup_is_passed_over_for_an_older_one(
    damaged: Path, copies: dict[str, bytes], spoil: Callable[[bytes], bytes]
) -> None:
    put(damaged.parent / "backups", f"{FIRST}.gz", copies[FIRST])
    put(damaged.parent / "backups", NEWEST, spoil(copies[THIRD]))
    restored, message = restore(damaged)
    assert restored == ["one"] and FIRST in message


def test_a_name_that_is_no_file_is_no_backup(damaged: Path, copies: dict[str, bytes]) -> None:
    put(damaged.parent / "backups", f"{FIRST}.gz", copies[FIRST])
    (damaged.parent / "backups" / NEWEST).mkdir()
    assert restore(damaged)[0] == ["one"]


def too_large(content: bytes, path: Path) -> None:
    """More than any disk has, in a sparse file that could contain it. Zeros follow, which a
    reader of several gzip members would read to the end."""
    data = bytearray(gzip.decompress(content)[:4096])
    data[28:32] = b"\xff" * 4
    path.write_bytes(gzip.compress(data))
    os.truncate(path, 20_000_000_000)


def test_a_backup_that_does_not_fit_on_the_disk_is_passed_over(
    damaged: Path, copies: dict[str, bytes]
) -> None:
    put(damaged.parent / "backups", f"{FIRST}.gz", copies[FIRST])
    too_large(copies[THIRD], damaged.parent / "backups" / NEWEST)
    assert restore(damaged)[0] == ["one"]


def test_memory_does_not_start_empty_if_the_only_backup_does_not_fit(
    damaged: Path, copies: dict[str, bytes]
) -> None:
    before = damaged.read_bytes()
    (damaged.parent / "backups").mkdir(exist_ok=True)
    too_large(copies[THIRD], damaged.parent / "backups" / NEWEST)
    with pytest.raises(NoSpaceToRestore, match="free space"):
        open_or_restore(damaged, damaged.parent / "backups", 3)
    assert damaged.read_bytes() == before
    assert not list(damaged.parent.glob("memory.db.*"))


def test_a_backup_is_read_in_place_only_while_it_is_needed(story: Story) -> None:
    tell_turn(story, "the lamp")
    backup = story.store.back_up(story.layout.backups, 1)
    with recovery.opened(backup) as database:
        assert prompts(database) == ["the lamp"] and mode(database) == 0o600
    assert list(story.layout.backups.iterdir()) == [backup]
    backup.write_bytes(truncated(backup.read_bytes()))
    with pytest.raises(DamagedDatabase), recovery.opened(backup):
        pass
    assert list(story.layout.backups.iterdir()) == [backup]

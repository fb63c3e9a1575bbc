"""Damage of what the worker keeps: it survives, loses no more than the damaged bytes, and tells.

Each fault is done to the files of a home with memories, a backup and later memories. Then a hook
starts a real worker, which must record its event.
"""

import json
import os
import random
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from claude_mem.store.index_tables import INDEX_TABLES
from tests.conftest import Home, wait_until
from tests.payloads import bash, edit, prompt, session_start, stop
from tests.story import Story

BACKED_UP, LATER = 36, 6  # turns
PAGE = 4096


def tell_turn(story: Story, number: int) -> None:
    turn = {"session_id": f"session-{number // 4}", "prompt_id": f"prompt-{number}"}
    story.tell(prompt(f"Explain lamp{number}", **turn), edit(**turn))
    story.tell(bash(f"cat lamp{number}.txt", f"lamp{number} " * 900, **turn))
    story.tell(stop(f"Lamp{number} is done. It blinks.", **turn))
    story.distil()


@dataclass(frozen=True)
class Remembered:
    """The files of a data directory, and the prompts in it and in its backup."""

    directory: Path
    prompts: frozenset[str]
    backed_up: frozenset[str]


def prompts_in(database: Path) -> frozenset[str]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT prompt_text FROM user_prompts")
        return frozenset(row[0] for row in rows if row[0] is not None)


@pytest.fixture(scope="module")
def remembered(tmp_path_factory: pytest.TempPathFactory) -> Remembered:
    with Story(tmp_path_factory.mktemp("remembered")) as story:
        for number in range(BACKED_UP):
            tell_turn(story, number)
        story.store.back_up(story.layout.backups, 3)
        backed_up = prompts_in(story.layout.database)
        for number in range(BACKED_UP, BACKED_UP + LATER):
            tell_turn(story, number)
        layout = story.layout
    return Remembered(layout.root, prompts_in(layout.database), backed_up)


@pytest.fixture
def damaged(home: Home, remembered: Remembered) -> Home:
    """A home with these memories, to be damaged."""
    shutil.copy(remembered.directory / "memory.db", home.layout.database)
    shutil.copytree(remembered.directory / "backups", home.layout.backups, dirs_exist_ok=True)
    return home


def recorded(home: Home, text: str) -> bool:
    try:
        return text in prompts_in(home.layout.database)
    except sqlite3.Error:
        return False


def distilled(home: Home) -> bool:
    waiting = "SELECT 1 FROM pending_messages WHERE status IN ('pending', 'processing')"
    return not home.rows(waiting)


def record(home: Home, text: str) -> None:
    """Records by hooks, which start a worker; waits until it has recorded the event."""
    turn = {"session_id": "late", "prompt_id": text}
    home.hook(prompt(text, **turn))
    home.hook(stop("Done.", **turn))
    wait_until(lambda: recorded(home, text), "the event in the database")


def shown(home: Home) -> str:
    """Returns what is shown at the start of a session."""
    answer = json.loads(home.hook(session_start(session_id="s")).stdout)
    return str(answer.get("systemMessage", ""))


def assert_told(home: Home, told: str) -> None:
    """Damage that nothing has read yet is found by doctor, and repaired by it."""
    if told not in (message := shown(home)):
        report = home.command("doctor").stdout
        assert "is damaged" in report, f"{message}\n{report}"
        home.command("doctor", "--fix")
        assert told in shown(home)


def assert_survived(home: Home, expected: frozenset[str], told: str = "") -> None:
    """Events are recorded, before and after the user is told; these prompts are there and found."""
    record(home, "after the damage")
    if told:
        assert_told(home, told)
    record(home, "much later")
    wait_until(lambda: distilled(home), "memories of every turn")
    assert expected - prompts_in(home.layout.database) == frozenset()
    report = home.command("doctor").stdout
    assert "KB, no errors" in report and "index is damaged" not in report, report
    with closing(sqlite3.connect(home.layout.database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    some = sorted(expected)[0].removeprefix("Explain ") if expected else "later"
    wait_until(lambda: some in home.command("search", some).stdout.lower(), "a result")


# Pages


def damage_pages(database: Path, seed: int, count: int = 10) -> None:
    chosen = random.Random(seed)
    pages = database.stat().st_size // PAGE
    with database.open("r+b") as file:
        for page in chosen.sample(range(1, pages), count):
            file.seek(page * PAGE)
            file.write(chosen.randbytes(PAGE))


SEEDS = [pytest.param(seed, marks=[] if seed < 3 else pytest.mark.extra) for seed in range(24)]


@pytest.mark.parametrize("seed", SEEDS)
def test_ten_damaged_pages_cost_no_more_than_their_rows(
    damaged: Home, remembered: Remembered, seed: int
) -> None:
    damage_pages(damaged.layout.database, seed)
    assert_survived(damaged, remembered.backed_up, "damaged")


def damage_roots(database: Path, *tables: str) -> None:
    """The first page of each of these tables, so that none of their rows can be read."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        marks = ", ".join("?" * len(tables))
        roots = connection.execute(
            f"SELECT rootpage FROM sqlite_master WHERE name IN ({marks})", tables
        ).fetchall()
    with database.open("r+b") as file:
        for (root,) in roots:
            file.seek((root - 1) * PAGE)
            file.write(b"\xa5" * PAGE)


def test_one_damaged_page_of_texts_costs_only_rows_that_no_backup_has(
    damaged: Home, remembered: Remembered
) -> None:
    """Memories of the later turns are in no backup: they stay, also without the prompts."""
    before = {
        table: damaged.column(f"SELECT * FROM {table}")
        for table in ("observations", "session_summaries")
    }
    damage_roots(damaged.layout.database, "user_prompts")
    assert_survived(damaged, remembered.backed_up, "user_prompts")
    for table in before:
        assert set(before[table]) <= set(damaged.column(f"SELECT * FROM {table}")), table


def test_what_was_forgotten_after_the_backup_stays_forgotten(
    damaged: Home, remembered: Remembered
) -> None:
    forgotten = damaged.command("forget", "--session", "session-2", "--yes")
    assert forgotten.returncode == 0, forgotten.stderr
    kept = prompts_in(damaged.layout.database)
    assert kept < remembered.prompts
    damaged.command("worker", "stop")
    tables = ("user_prompts", "sdk_sessions", "observations", "session_summaries")
    damage_roots(damaged.layout.database, *tables)
    assert_survived(damaged, kept & remembered.backed_up, "damaged")
    assert prompts_in(damaged.layout.database) & (remembered.prompts - kept) == frozenset()


def test_a_fact_stays_though_the_one_that_replaced_it_is_lost(
    damaged: Home, remembered: Remembered
) -> None:
    run_sql(
        damaged,
        "PRAGMA foreign_keys = OFF",
        "INSERT INTO facts (id, project_id, kind, subject, value, origin, status, first_seen_epoch,"
        " last_seen_epoch, superseded_by) SELECT 901, id, 'decision', 'lamp', 'oil', 'agent',"
        " 'past', 1, 1, 999 FROM projects LIMIT 1",
    )
    damage_roots(damaged.layout.database, "hints")
    assert_survived(damaged, remembered.prompts, "hints")
    assert damaged.column("SELECT superseded_by FROM facts WHERE id = 901") == [None]


# The file


def zero_length(home: Home) -> None:
    home.layout.database.write_bytes(b"")


def cut_in_half(home: Home) -> None:
    os.truncate(home.layout.database, home.layout.database.stat().st_size // 2 // PAGE * PAGE)


def cut_within_a_page(home: Home) -> None:
    os.truncate(home.layout.database, home.layout.database.stat().st_size - 1000)


def only_a_header(home: Home) -> None:
    os.truncate(home.layout.database, 100)


def replaced_by_text(home: Home) -> None:
    home.layout.database.write_bytes(b"this is no database\n" * 5000)


def header_of_zeros(home: Home) -> None:
    with home.layout.database.open("r+b") as file:
        file.write(bytes(100))


def impossible_page_size(home: Home) -> None:
    with home.layout.database.open("r+b") as file:
        file.seek(16)
        file.write(b"\x00\x07")


FILES = (zero_length, cut_in_half, cut_within_a_page, only_a_header, replaced_by_text,
         header_of_zeros, impossible_page_size)  # fmt: skip


@pytest.mark.parametrize("spoil", FILES, ids=lambda spoil: spoil.__name__)
def test_a_damaged_file_is_kept_aside_and_what_it_held_comes_back(
    damaged: Home, remembered: Remembered, spoil: Callable[[Home], None]
) -> None:
    spoil(damaged)
    assert_survived(damaged, remembered.backed_up, "damaged")


def test_an_empty_file_without_a_backup_is_a_new_start(home: Home) -> None:
    zero_length(home)
    record(home, "the first")
    assert "damaged" not in shown(home)
    assert not list(home.layout.root.glob("memory.db.damaged-*"))


def test_a_command_does_not_take_an_empty_file_beside_a_backup_for_a_new_start(
    damaged: Home, tmp_path: Path
) -> None:
    zero_length(damaged)
    assert "there are backups" in damaged.command("doctor").stdout
    assert "there are backups" in damaged.command("reindex").stderr
    assert damaged.layout.database.stat().st_size == 0


@pytest.mark.parametrize("bad", [b"", b"no backup", None], ids=["empty", "text", "foreign"])
def test_backups_that_are_damaged_too_cost_only_what_cannot_be_read(
    damaged: Home, remembered: Remembered, bad: bytes | None
) -> None:
    (backup,) = damaged.layout.backups.iterdir()
    backup.write_bytes(
        bad if bad is not None else remembered.directory.joinpath("memory.db").read_bytes()[:PAGE]
    )
    damage_roots(damaged.layout.database, "passages")
    assert_survived(damaged, remembered.prompts, "nothing is lost")


# The journal


@pytest.fixture
def killed(damaged: Home) -> Home:
    """A worker that was killed after it had recorded: its last events are in the journal."""
    record(damaged, "in the journal")
    damaged.kill_worker()
    assert journal(damaged).stat().st_size
    return damaged


def journal(home: Home, suffix: str = "-wal") -> Path:
    return home.layout.database.with_name(f"memory.db{suffix}")


def journal_missing(home: Home) -> None:
    journal(home).unlink()
    journal(home, "-shm").unlink(missing_ok=True)


def journal_damaged(home: Home) -> None:
    data = bytearray(journal(home).read_bytes())
    data[len(data) // 2 :] = random.Random(1).randbytes(len(data) - len(data) // 2)
    journal(home).write_bytes(data)


def journal_foreign(home: Home) -> None:
    other = home.path / "other.db"
    with closing(sqlite3.connect(other, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE other (text)")
        connection.execute("INSERT INTO other VALUES (?)", ("x" * 50_000,))
        journal(home).write_bytes(other.with_name("other.db-wal").read_bytes())


def journal_of_text(home: Home) -> None:
    journal(home).write_bytes(b"no journal " * 1000)


def shared_memory_damaged(home: Home) -> None:
    journal(home, "-shm").write_bytes(random.Random(2).randbytes(32768))


JOURNALS = (journal_missing, journal_damaged, journal_foreign, journal_of_text,
            shared_memory_damaged)  # fmt: skip


@pytest.mark.parametrize("spoil", JOURNALS, ids=lambda spoil: spoil.__name__)
def test_a_damaged_journal_costs_only_what_was_in_it(
    killed: Home, remembered: Remembered, spoil: Callable[[Home], None]
) -> None:
    spoil(killed)
    assert_survived(killed, remembered.backed_up)


# The index


def run_sql(home: Home, *statements: str) -> None:
    with closing(sqlite3.connect(home.layout.database, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        for statement in statements:
            connection.execute(statement)


INDEX_FAULTS = {
    "every table dropped": [f"DROP TABLE IF EXISTS {name}" for name in INDEX_TABLES],
    "no configuration": ["DELETE FROM memory_text_config"],
    "no table of configuration": ["DROP TABLE passage_text_config"],
    "no words": ["DELETE FROM passage_text_data"],
    "no table of words": ["DROP TABLE memory_text_data"],
    "no table of segments": ["DROP TABLE passage_text_idx"],
    "words of zeros": ["UPDATE passage_text_data SET block = zeroblob(length(block))"],
    "short words": ["UPDATE memory_text_data SET block = substr(block, 1, 3)"],
    "another structure": ["UPDATE passage_text_data SET block = x'ffffffff' WHERE id = 10"],
    "no passages": ["DROP TABLE passages"],
    "an older version": ["UPDATE index_version SET version = 0"],
}


@pytest.mark.parametrize("statements", INDEX_FAULTS.values(), ids=INDEX_FAULTS)
def test_a_broken_index_is_built_again_and_costs_nothing(
    damaged: Home, remembered: Remembered, statements: list[str]
) -> None:
    run_sql(damaged, *statements)
    assert_survived(damaged, remembered.prompts)
    assert not list(damaged.layout.root.glob("memory.db.damaged-*"))


def test_doctor_names_a_broken_index_and_reindex_builds_it_again(damaged: Home) -> None:
    run_sql(damaged, "UPDATE passage_text_data SET block = zeroblob(length(block))")
    assert "the search index is damaged" in damaged.command("doctor").stdout
    assert "Indexed" in damaged.command("reindex").stdout
    assert "index is damaged" not in damaged.command("doctor").stdout
    assert "lamp7" in damaged.command("search", "lamp7").stdout.lower()


def test_an_index_that_only_a_search_finds_broken_is_built_again(
    damaged: Home, remembered: Remembered
) -> None:
    damaged.start_worker()
    run_sql(damaged, "DELETE FROM passage_text_data WHERE id > 10")
    wait_until(lambda: "lamp7" in damaged.command("search", "lamp7").stdout.lower(), "a result")
    assert_survived(damaged, remembered.prompts)


# Tables and values


@pytest.mark.parametrize("table", ["turn_records", "hints", "facts", "pending_messages"])
def test_a_missing_table_is_made_again_and_filled_from_the_backup(
    damaged: Home, remembered: Remembered, table: str
) -> None:
    run_sql(damaged, "PRAGMA foreign_keys = OFF", f"DROP TABLE {table}")
    assert_survived(damaged, remembered.prompts, table)


JSON_VALUES = {
    "tool_events": ("tool_input", "tool_response", "words"),
    "observations": ("facts", "concepts", "files_read", "files_modified"),
    "session_summaries": ("files_read", "files_edited", "commands", "faults", "open_steps"),
    "turn_records": ("parts",),
}


@pytest.mark.parametrize("table", JSON_VALUES)
def test_a_value_that_is_no_json_hides_nothing_else(
    damaged: Home, remembered: Remembered, table: str
) -> None:
    """The open turn is read by the next distillation, the others by contexts and searches."""
    record(damaged, "before the damage")
    damaged.kill_worker()
    changes = ", ".join(f"{column} = '[{{'" for column in JSON_VALUES[table])
    run_sql(damaged, f"UPDATE {table} SET {changes}")
    run_sql(damaged, "INSERT INTO unindexed (document) SELECT id * 4 + 3 FROM user_prompts")
    record(damaged, "after the damage")
    damaged.wait_settled()
    context = damaged.context(session_start(session_id="another"))
    assert "lamp" in context.lower()
    report = damaged.command("doctor").stdout
    assert f"{table}.{JSON_VALUES[table][0]}" in report
    assert remembered.prompts <= prompts_in(damaged.layout.database)
    wait_until(lambda: "lamp7" in damaged.command("search", "lamp7").stdout.lower(), "a result")


def test_a_queued_turn_with_a_damaged_event_is_distilled(damaged: Home) -> None:
    turn = {"session_id": "queued", "prompt_id": "queued"}
    damaged.hook(prompt("Repair the beacon", **turn))
    damaged.hook(bash("make beacon", "built", **turn))
    wait_until(lambda: recorded(damaged, "Repair the beacon"), "the prompt")
    wait_until(lambda: not list(damaged.layout.spool.glob("*.event")), "the command")
    run_sql(damaged, "UPDATE tool_events SET tool_input = '{\"command' WHERE tool_name = 'Bash'")
    damaged.hook(stop("The beacon is repaired.", **turn))
    damaged.wait_settled()
    assert "a stored value is damaged" in shown(damaged)
    assert damaged.rows("SELECT 1 FROM pending_messages WHERE status = 'dead'") == []


def test_text_that_is_not_utf_8_is_read_as_far_as_it_is(
    damaged: Home, remembered: Remembered
) -> None:
    run_sql(
        damaged,
        "UPDATE session_summaries SET request = CAST(x'ff4c616d70' AS TEXT)",
        "UPDATE turn_records SET parts = CAST(x'ff' AS TEXT) WHERE turn_id = 3",
    )
    assert_survived(damaged, remembered.prompts)


# What cannot be written


@pytest.fixture
def immutable(damaged: Home) -> Iterator[Callable[[Path], None]]:
    """Makes a file unchangeable, even for root."""
    fixed: list[Path] = []

    def fix(path: Path) -> None:
        done = subprocess.run(["chattr", "+i", path], capture_output=True)
        if done.returncode:
            pytest.skip("files cannot be made immutable here")
        fixed.append(path)

    if shutil.which("chattr") is None:
        pytest.skip("needs chattr")
    yield fix
    for path in fixed:
        subprocess.run(["chattr", "-i", path], check=True)
        fixed = []


def test_a_database_that_cannot_be_written_keeps_the_events_waiting(
    damaged: Home, remembered: Remembered, immutable: Callable[[Path], None]
) -> None:
    immutable(damaged.layout.database)
    damaged.hook(prompt("while it is fixed", session_id="late", prompt_id="fixed"))
    wait_until(lambda: (damaged.layout.root / "trouble").exists(), "the report")
    assert "worker" in shown(damaged)
    subprocess.run(["chattr", "-i", damaged.layout.database], check=True)
    assert_survived(damaged, remembered.prompts)
    assert recorded(damaged, "while it is fixed")


# Entries of the spool


EARLY = "00000000000000000001-1.event"


def a_directory(path: Path) -> None:
    path.mkdir()
    (path / "something").touch()


def a_loop(path: Path) -> None:
    path.symlink_to(path.name)


def a_link_to_nothing(path: Path) -> None:
    path.symlink_to("nothing")


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_fifo(path: Path) -> None:
    os.mkfifo(path)


def a_huge_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 33)


def an_empty_file(path: Path) -> None:
    path.touch()


ENTRIES = (a_directory, a_loop, a_link_to_nothing, a_device, a_fifo, a_huge_file, an_empty_file)


@pytest.mark.parametrize("make", ENTRIES, ids=lambda make: make.__name__)
def test_an_odd_entry_of_the_spool_holds_nothing_up_and_is_reported_once(
    damaged: Home, remembered: Remembered, make: Callable[[Path], None]
) -> None:
    make(damaged.layout.spool / EARLY)
    assert_survived(damaged, remembered.prompts, EARLY)
    assert EARLY not in shown(damaged)
    report = damaged.command("doctor").stdout
    assert "left out" in report or "could not be parsed" in report


def test_an_event_that_cannot_be_deleted_is_recorded_once_and_named(
    damaged: Home, remembered: Remembered, immutable: Callable[[Path], None]
) -> None:
    with damaged.without_worker():
        damaged.hook(prompt("fixed in the spool", session_id="late", prompt_id="fixed"))
    (path,) = damaged.layout.spool.glob("*.event")
    immutable(path)
    record(damaged, "behind it")
    damaged.kill_worker()
    record(damaged, "behind it again")
    assert path.name in shown(damaged)
    assert damaged.column("SELECT count(*) FROM user_prompts WHERE prompt_id = 'fixed'") == [1]
    assert f"delete {path}" in damaged.command("doctor").stdout
    assert "1 set aside" in damaged.command("status").stdout
    assert json.loads(damaged.command("worker", "status", "--json").stdout)["spool"]["waiting"] == 0


# The disk


@pytest.fixture
def small_disk(home: Home) -> Iterator[Path]:
    """The data directory of the home, on a disk of its own."""
    root = home.layout.root
    root.rename(root.with_name("original"))
    root.mkdir(mode=0o700)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", root], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no disk can be mounted here")
    try:
        shutil.copytree(root.with_name("original"), root, dirs_exist_ok=True)
        yield root
    finally:
        home.end_worker()
        subprocess.run(["umount", "-l", root], check=True)


def fill(root: Path) -> Path:
    ballast = root / "ballast"
    descriptor = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    with suppress(OSError):
        while os.write(descriptor, bytes(PAGE)):
            pass
    os.close(descriptor)
    return ballast


def test_a_full_disk_is_named_and_events_are_recorded_when_there_is_space(
    home: Home, small_disk: Path
) -> None:
    record(home, "before")
    wait_until(lambda: distilled(home), "memories")
    ballast = fill(small_disk)
    saved = home.command("remember", "the harbour is closed")
    assert saved.returncode == 1 and "the disk is full" in saved.stderr, saved.stderr
    assert "df -h" in saved.stderr
    assert "the disk is full" in home.command("status").stdout
    assert "the disk is full" in home.command("doctor").stdout
    ballast.unlink()
    assert_survived(home, frozenset(["before"]))
    assert "the disk is full" not in home.command("status").stdout


# Other files of the worker


def lock_has_text(home: Home) -> None:
    home.layout.lock.write_text("99999")


def state_is_binary(home: Home) -> None:
    home.layout.worker_state.write_bytes(b"\xff\x00[")


def marks_are_binary(home: Home) -> None:
    home.layout.intake_mark.write_bytes(b"\xff" * 300)
    home.layout.intake_suspects.write_bytes(b"\xff")
    home.layout.undeletable.write_bytes(b"\xff")


OTHERS = (lock_has_text, state_is_binary, marks_are_binary)


@pytest.mark.parametrize("spoil", OTHERS, ids=lambda spoil: spoil.__name__)
def test_odd_files_beside_the_database_hold_nothing_up(
    damaged: Home, remembered: Remembered, spoil: Callable[[Home], None]
) -> None:
    spoil(damaged)
    assert_survived(damaged, remembered.prompts)


def test_memories_of_the_future_hold_nothing_up(damaged: Home, remembered: Remembered) -> None:
    """As after a clock that was wrong, and is set back."""
    later = 70 * 365 * 86_400_000
    run_sql(
        damaged,
        f"UPDATE user_prompts SET created_at_epoch = created_at_epoch + {later},"
        f" updated_at_epoch = updated_at_epoch + {later}",
        f"UPDATE sdk_sessions SET updated_at_epoch = updated_at_epoch + {later}",
    )
    for path in damaged.layout.backups.iterdir():
        os.utime(path, (4e9, 4e9))
    assert_survived(damaged, remembered.prompts)


def test_a_file_in_the_place_of_a_directory_is_named(home: Home) -> None:
    if home.layout.rejected.is_dir():
        home.layout.rejected.rmdir()
    home.layout.rejected.write_text("")
    home.hook(prompt())
    wait_until(lambda: (home.layout.root / "trouble").exists(), "the report")
    assert "it cannot start" in shown(home) and "rejected" in home.layout.hook_log.read_text()

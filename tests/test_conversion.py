"""Data of the version before the schema was frozen (`tests/fixtures`): converted and restored."""

import ast
import gzip
import inspect
import json
import shutil
import sqlite3
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from claude_mem.errors import OlderDatabase
from claude_mem.store import conversion, migrations
from claude_mem.store.database import connect, prepare
from claude_mem.store.index_tables import INDEX_TABLES
from claude_mem.store.migrations import MIGRATIONS, applied_names, current_names
from claude_mem.store.store import open_or_restore
from claude_mem.worker.lock import is_held
from tests.conftest import Home, wait_until
from tests.importing import run_import
from tests.live_files import unpacked
from tests.payloads import prompt, session_start
from tests.test_exactly_once import arm
from tests.test_migrations import overwrite_a_table
from tests.transcripts import PROJECTS

FIXTURES = Path(__file__).parent / "fixtures"
BACKUP = "memory-20261120T000000000000.db.gz"
COMMIT = "2fba96ab"

# What a developer's database may have of the migrations after that commit.
UNRELEASED = {
    "0043_outside_turns": (
        "ALTER TABLE user_prompts ADD COLUMN outside INTEGER NOT NULL DEFAULT 0",
        "CREATE INDEX outside_turns ON user_prompts(id) WHERE outside <> 0",
    ),
    "0044_unstored_words": (
        "CREATE TABLE unstored_words (event_key TEXT PRIMARY KEY, turn_id INTEGER NOT NULL"
        " REFERENCES user_prompts(id) ON DELETE CASCADE, checksums BLOB NOT NULL)",
        "CREATE INDEX unstored_words_of_turn ON unstored_words(turn_id)",
    ),
    "0045_project_checkouts": (
        "CREATE TABLE project_checkouts (main TEXT PRIMARY KEY, identity TEXT NOT NULL,"
        " project_id INTEGER NOT NULL REFERENCES projects(id) ON DELETE CASCADE) WITHOUT ROWID",
        "CREATE INDEX checkouts_of_project ON project_checkouts(project_id)",
    ),
    "0046_empty_prompts": (
        "DROP INDEX prompts_without_text",
        "CREATE INDEX prompts_without_text ON user_prompts(id)"
        " WHERE private OR coalesce(prompt_text, '') = ''",
    ),
}


def unpack(name: str, target: Path) -> Path:
    target.write_bytes(gzip.decompress((FIXTURES / name).read_bytes()))
    return target


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return unpack("memory.db.gz", tmp_path / "memory.db")


def make_too_old(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DELETE FROM schema_migrations WHERE name = '0042_conversations_index'")


def schema(database: Path) -> dict[str, str]:
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute(
            "SELECT name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"
        ).fetchall()
    derived = {*INDEX_TABLES, "sqlite_sequence"}
    return {
        name: "".join(sql.split())
        for name, table, sql in rows
        if not any(part.startswith(tuple(derived)) for part in (name, table))
    }


def contents(database: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(database)) as connection:
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%'"
            " ESCAPE '!'"
        ).fetchall()
        return {
            name: connection.execute(f"SELECT * FROM {name}").fetchall()
            for (name,) in names
            if not name.startswith(tuple(INDEX_TABLES))
        }


# The conversion


@pytest.mark.parametrize(
    "names", [(), ("0043_outside_turns",), ("0044_unstored_words", "0046_empty_prompts"),
              tuple(UNRELEASED)],
)  # fmt: skip
def test_a_converted_database_has_the_schema_of_a_new_one(
    old: Path, tmp_path: Path, names: tuple[str, ...]
) -> None:
    with closing(sqlite3.connect(old)) as connection, connection:
        for name in names:
            for statement in UNRELEASED[name]:
                connection.execute(statement)
            connection.execute(
                "INSERT INTO schema_migrations (name, applied_at) VALUES (?, '')", (name,)
            )
    new = tmp_path / "new.db"
    for path in (old, new):
        prepare(path, tmp_path / f"backups-of-{path.name}", 1)
    assert schema(old) == schema(new)
    with closing(connect(old)) as connection:
        assert applied_names(connection) == current_names()
        assert connection.execute("PRAGMA quick_check").fetchone()[0] == "ok"
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_a_conversion_changes_no_row_but_lines_that_are_no_prompts(
    old: Path, tmp_path: Path
) -> None:
    before = contents(old)
    prepare(old, tmp_path / "backups", 1)
    after = contents(old)
    marks = {"unindexed", "unindexed_turns", "team_outbox"}  # by triggers
    for table in before.keys() - marks - {"user_prompts", "schema_migrations"}:
        assert after[table] == before[table], table
    changed = [
        (row[0], then[: len(row)])
        for row, then in zip(before["user_prompts"], after["user_prompts"], strict=True)
        if row != then[: len(row)]
    ]
    line = "Read the output file to retrieve the result: /tmp/t9.output"
    (notice,) = (row for row in before["user_prompts"] if line in row)
    assert [turn for turn, _ in changed] == [notice[0]]
    with closing(sqlite3.connect(old)) as connection:
        turn = "SELECT prompt_text, notice, outside FROM user_prompts WHERE id = ?"
        assert connection.execute(turn, (notice[0],)).fetchone() == (None, 1, 0)
        # Its words leave the index.
        assert connection.execute("SELECT turn_id FROM unindexed_turns").fetchall() == [
            (notice[0],)
        ]


def test_a_backup_is_made_before_the_conversion(old: Path, tmp_path: Path) -> None:
    before = contents(old)
    prepare(old, tmp_path / "backups", 1)
    (backup,) = (tmp_path / "backups").iterdir()
    assert backup.name.endswith("-before-migration.db.gz")
    assert contents(unpacked(backup)) == before


def test_later_migrations_come_after_the_conversion(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add_lamps(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE lamps (id INTEGER PRIMARY KEY)")

    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, ("9002_lamps", add_lamps)))
    new = tmp_path / "new.db"
    for path in (old, new):
        prepare(path, tmp_path / f"backups-of-{path.name}", 1)
        with closing(connect(path)) as connection:
            assert applied_names(connection) == [*current_names()]
            assert applied_names(connection)[-1] == "9002_lamps"
    assert schema(old) == schema(new)


def test_no_live_code_runs_in_a_migration() -> None:
    modules = {conversion, *(inspect.getmodule(step) for _, step in MIGRATIONS)}
    for module in modules:
        assert module is not None
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0 and not str(node.module).startswith("claude_mem"), module
            elif isinstance(node, ast.Import):
                assert not any(name.name.startswith("claude_mem") for name in node.names), module


def test_a_conversion_that_is_killed_changes_nothing_and_is_made_again(
    home: Home, tmp_path: Path
) -> None:
    unpack("memory.db.gz", home.layout.database)
    before = schema(home.layout.database)
    marker = arm(home, tmp_path, "migration.before_commit")
    home.hook(session_start(), "Wake")
    wait_until(lambda: not marker.exists(), "the kill")
    wait_until(lambda: not is_held(home.layout), "the worker's death")
    assert schema(home.layout.database) == before
    home.start_worker()
    assert home.rows("SELECT name FROM schema_migrations") == [
        {"name": name} for name in current_names()
    ]


# What users have


def import_export(home: Home) -> None:
    file = unpack("export.jsonl.gz", home.path / "export.jsonl")
    done = home.command("import", "--own", str(file))
    assert done.returncode == 0, done.stderr


def in_place(home: Home) -> None:
    unpack("memory.db.gz", home.layout.database)
    home.start_worker()


def from_backup(home: Home) -> None:
    home.layout.backups.mkdir(exist_ok=True)
    shutil.copy(FIXTURES / BACKUP, home.layout.backups / BACKUP)
    done = home.command("worker", "restore", BACKUP, "--yes")
    assert done.returncode == 0, done.stderr
    home.start_worker()


def from_export(home: Home) -> None:
    home.start_worker()
    import_export(home)


@pytest.fixture(params=[in_place, from_backup, from_export], ids=lambda way: way.__name__)
def upgraded(home: Home, request: pytest.FixtureRequest) -> Iterator[Home]:
    home.environment["CLAUDE_MEM_UNDO_HOURS"] = "1000000"  # since the files were made
    way: Callable[[Home], None] = request.param
    way(home)
    yield home


def titles(home: Home, query: str) -> list[str]:
    done = home.command("search", query, "--json", "--project", "*")
    assert done.returncode == 0, done.stderr
    return [str(row["title"]) for row in json.loads(done.stdout)["results"]]


def import_transcripts_again(home: Home) -> None:
    with tarfile.open(FIXTURES / "transcripts.tar.gz") as archive:
        archive.extractall(home.path / PROJECTS, filter="data")
    run_import(home, "--again", "--wait")
    home.wait_settled()


DECISIONS = {
    "SELECT title FROM observations WHERE pinned": [
        "paint.py: the quay is painted with tar, because salt eats paint"
    ],
    "SELECT title FROM observations WHERE wrong": ["weigh.py: `blink(1)` became `blink(2)`"],
    "SELECT title FROM observations WHERE edited": ["The annex door has a new spring from Oslo"],
    "SELECT value FROM facts WHERE kind = 'rule' AND status = 'wrong'": [
        "Don't push to the main branch."
    ],
    "SELECT value FROM facts WHERE kind = 'rule' AND status = 'holds' AND changed_by = 'person'": [
        "Never commit without make lint."
    ],
    "SELECT title FROM observations WHERE observer = 'person'": [
        "The harbour master answers on channel 16."
    ],
    "SELECT p.name FROM sdk_sessions s JOIN projects p ON p.id = s.project_id"
    " WHERE s.content_session_id IN ('annex', 'wharf') ORDER BY 1": ["annex", "quay"],
}


def decisions(home: Home) -> dict[str, list[object]]:
    return {query: [next(iter(row.values())) for row in home.rows(query)] for query in DECISIONS}


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("beacon relay 5 V", "beacon.py: the beacon flickers because its relay needs 5 V"),
        ("new spring from Oslo", "The annex door has a new spring from Oslo"),
        ("harbour master channel", "The harbour master answers on channel 16."),
    ],
    ids=["of an import", "edited", "saved"],
)
def test_memories_of_every_kind_are_found(upgraded: Home, query: str, title: str) -> None:
    # The index is made while the worker already answers.
    wait_until(lambda: title in titles(upgraded, query), title)


def test_decisions_of_the_user_outlast_an_import(upgraded: Home) -> None:
    assert decisions(upgraded) == DECISIONS
    import_transcripts_again(upgraded)
    assert decisions(upgraded) == DECISIONS


def test_a_forgotten_turn_does_not_come_back_by_an_import(upgraded: Home) -> None:
    turns = "SELECT prompt_text FROM user_prompts WHERE session_id IN"
    turns += " (SELECT id FROM sdk_sessions WHERE content_session_id = 'gulls') ORDER BY id"
    expected = [{"prompt_text": None}, {"prompt_text": "Feed the seals"}]
    assert upgraded.rows(turns) == expected
    import_transcripts_again(upgraded)
    assert upgraded.rows(turns) == expected
    assert [t for t in titles(upgraded, "gulls on the pier") if "gulls" in t] == []


@pytest.mark.parametrize("way", [in_place, from_backup], ids=lambda way: way.__name__)
def test_what_exports_do_not_hold_is_kept(home: Home, way: Callable[[Home], None]) -> None:
    home.environment["CLAUDE_MEM_UNDO_HOURS"] = "1000000"
    way(home)
    assert home.rows("SELECT directory, name FROM project_overrides o JOIN projects p"
                     " ON p.id = o.project_id") == [
        {"directory": "/tmp/claude-mem-fixtures/work/harbour/annex", "name": "annex"}
    ]  # fmt: skip
    assert home.rows("SELECT a.key, name FROM project_aliases a JOIN projects p"
                     " ON p.id = a.project_id") == [
        {"key": "/tmp/claude-mem-fixtures/work/wharf", "name": "quay"}
    ]  # fmt: skip
    assert [row["owner"] for row in home.rows("SELECT owner FROM team_recent")] == ["Bob"]
    assert [row["state"] for row in home.rows("SELECT state FROM team_turns")] == ["stored"]
    assert [row["status"] for row in home.rows("SELECT status FROM refinements")] == ["held"]
    assert len(home.rows("SELECT 1 FROM hints")) == 1
    # A session that was forgotten for good stays so, whatever is imported.
    import_transcripts_again(home)
    import_export(home)
    assert decisions(home) == DECISIONS
    assert home.rows("SELECT 1 FROM sdk_sessions WHERE content_session_id = 'treasure'") == []
    assert home.rows("SELECT 1 FROM user_prompts WHERE prompt_text LIKE '%gulls%'") == []
    # What is in the trash can be restored.
    done = home.command("forget", "--undo")
    assert done.returncode == 0, done.stderr
    restored = home.rows("SELECT prompt_text FROM user_prompts WHERE prompt_text LIKE '%gulls%'")
    assert restored == [{"prompt_text": "Count the gulls on the pier"}]


# Too old


def test_a_database_that_is_too_old_is_refused_and_events_wait(home: Home) -> None:
    make_too_old(unpack("memory.db.gz", home.layout.database))
    before = home.layout.database.read_bytes()
    for payload in (prompt(), prompt(prompt_id="second")):
        assert home.hook(payload).returncode == 0
    wait_until(lambda: (home.layout.root / "trouble").exists(), "the report")
    wait_until(lambda: not is_held(home.layout), "the end of the worker")
    message = json.loads(home.hook(session_start()).stdout)["systemMessage"]
    assert COMMIT in message and "nothing is lost" in message
    wait_until(lambda: not is_held(home.layout), "the end of the worker")
    assert len(list(home.layout.spool.glob("*.event"))) == 3
    assert home.layout.database.read_bytes() == before
    assert [path.name for path in home.layout.root.glob("memory.db.*-*")] == []
    checks = json.loads(home.command("doctor", "--json").stdout)
    (check,) = [check for check in checks if check["check"] == "database"]
    assert check["verdict"] == "wrong" and COMMIT in check["found"]
    # The version at that commit would convert it.
    with closing(sqlite3.connect(home.layout.database)) as connection, connection:
        connection.execute("INSERT INTO schema_migrations (name, applied_at)"
                           " VALUES ('0042_conversations_index', '')")  # fmt: skip
    home.start_worker()
    home.wait_settled()
    assert len(home.rows("SELECT 1 FROM user_prompts WHERE prompt_id = 'second'")) == 1


def test_a_backup_that_is_too_old_is_not_restored(home: Home, old: Path) -> None:
    home.start_worker()
    before = home.rows("SELECT name FROM schema_migrations")
    make_too_old(old)
    home.layout.backups.mkdir(exist_ok=True)
    (home.layout.backups / BACKUP).write_bytes(gzip.compress(old.read_bytes()))
    done = home.command("worker", "restore", BACKUP, "--yes")
    assert done.returncode == 1 and COMMIT in done.stderr
    assert home.rows("SELECT name FROM schema_migrations") == before
    assert list(home.layout.root.glob("memory.db.re*")) == []


def test_a_damaged_database_that_is_too_old_is_not_set_aside(old: Path, tmp_path: Path) -> None:
    make_too_old(old)
    overwrite_a_table(old)
    before = old.read_bytes()
    with pytest.raises(OlderDatabase, match=COMMIT):
        open_or_restore(old, tmp_path / "backups", 3, suspicious=True)
    assert old.read_bytes() == before
    assert list(tmp_path.glob("memory.db.*-*")) == []


def test_an_export_that_is_too_old_is_refused(home: Home) -> None:
    file = unpack("export.jsonl.gz", home.path / "export.jsonl")
    data = file.read_bytes().replace(b',"0042_conversations_index"', b"", 1)
    file.write_bytes(data)
    home.start_worker()
    done = home.command("import", str(file))
    assert done.returncode == 1 and COMMIT in done.stderr
    assert home.rows("SELECT 1 FROM sdk_sessions") == []

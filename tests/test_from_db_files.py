"""Import of the TypeScript claude-mem's database: the file is untrusted and never touched."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.cli.imports import import_database
from claude_mem.config import Layout, load_settings
from claude_mem.errors import BadInput, NotFound, StoreError
from claude_mem.redaction import Redactor
from claude_mem.store import Store
from claude_mem.store.transfer.typescript.importer import import_typescript
from claude_mem.store.transfer.typescript.values import as_list, time_of
from tests.conftest import Home
from tests.legacy_database import (
    LATEST,
    SECRET,
    LegacyDatabase,
    T,
    everything,
    imported,
)
from tests.payloads import prompt, session_start, stop
from tests.story import START, Story

pytestmark = pytest.mark.usefixtures("no_temporary_files_remain")


# Privacy


def test_private_text_and_secrets_are_left_behind(story: Story, legacy: LegacyDatabase) -> None:
    legacy.session(user_prompt="<private>all of it</private>")
    legacy.prompt(1, "<private>all of it</private>")
    legacy.prompt(2, f"use <private>my door code</private> and {SECRET}")
    legacy.observation("of the private one", prompt_number=1)
    legacy.summary("of the private one", prompt_number=1)
    legacy.observation("of the other", prompt_number=2, narrative=f"it is {SECRET}",
                    facts=json.dumps([f"{SECRET}", "<private>x y z</private>"]))  # fmt: skip
    report = imported(story, legacy)
    stored = json.dumps(everything(story))
    for text in ("all of it", "door code", SECRET, "of the private one", "x y z"):
        assert text not in stored
    assert story.column("SELECT private FROM user_prompts ORDER BY id") == [1, 0]
    assert report.added == {"prompts": 2, "observations": 1}


# The file


def test_a_database_in_use_is_read_with_its_journal_and_nothing_of_it_changes(
    story: Story, tmp_path: Path
) -> None:
    directory = tmp_path / "theirs"
    directory.mkdir()
    legacy = LegacyDatabase(directory / "claude-mem.db")
    with closing(sqlite3.connect(legacy.path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("BEGIN")
        connection.execute("SELECT 1 FROM sdk_sessions").fetchall()  # it is at work
        legacy.session()
        legacy.observation("in the journal")
        before = {
            path: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.iterdir()
        }
        assert any(path.name.endswith("-wal") and data for path, (data, _) in before.items())
        assert imported(story, legacy).added["observations"] == 1
        after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.iterdir()}
        assert after == before


def test_a_file_in_a_directory_that_cannot_be_written_is_read(story: Story, tmp_path: Path) -> None:
    directory = tmp_path / "theirs"
    directory.mkdir()
    legacy = LegacyDatabase(directory / "claude-mem.db")
    legacy.session()
    legacy.path.chmod(0o400)
    directory.chmod(0o500)
    try:
        assert imported(story, legacy).sessions == {"added": 1}
    finally:
        directory.chmod(0o700)


def test_what_is_no_database_of_theirs_is_refused(story: Story, tmp_path: Path) -> None:
    def refused(path: Path, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            import_typescript(story.store, path, Redactor())

    refused(tmp_path / "nowhere", NotFound, "no file")
    refused(tmp_path, BadInput, "cannot be read")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", BadInput, "not a file")  # without waiting for a writer
    refused(story.layout.database, BadInput, "claude-mem export")
    text = tmp_path / "text"
    text.write_text("no database " * 100)
    refused(text, BadInput, "not a database")
    empty = LegacyDatabase(tmp_path / "empty.db", "CREATE TABLE cats (name TEXT);")
    refused(empty.path, BadInput, "none of its tables")


def test_of_a_damaged_database_what_can_be_read_is_kept(
    story: Story, legacy: LegacyDatabase
) -> None:
    for number in range(50):
        legacy.session(f"c{number}")
    for number in range(50):
        legacy.observation("x" * 9000, f"c{number}")
    data = bytearray(legacy.path.read_bytes())
    place = len(data) * 3 // 4
    data[place : place + 8192] = b"\xff" * 8192
    legacy.path.write_bytes(data)
    report = imported(story, legacy)
    assert 0 < report.sessions["added"] < 50 and report.refused > 0
    assert "cannot be" in report.reasons[0].reason
    legacy.path.write_bytes(data[:100] + b"\xff" * (len(data) - 100))
    with pytest.raises(StoreError, match="cannot be read"):
        imported(story, legacy)


def test_a_command_takes_it_over_beside_a_worker_and_the_next_session_knows(
    home: Home, tmp_path: Path
) -> None:
    legacy = LegacyDatabase(tmp_path / "claude-mem.db")
    home.start_worker()
    home.hook(prompt("hello", session_id="mine"))
    home.hook(stop(session_id="mine"))
    home.wait_settled()
    for number in range(40):
        legacy.session(f"c{number}")
        legacy.observation(f"Lamp {number} seen", f"c{number}", created_at_epoch=START + number)
    here = load_settings({"CLAUDE_MEM_DATA_DIR": str(home.layout.root)})
    report = import_database(here, legacy.path)
    assert report.sessions == {"added": 40}
    assert "Lamp 39 seen" in home.context(session_start(session_id="new"))


def test_a_killed_import_is_completed_by_the_next(legacy: LegacyDatabase, tmp_path: Path) -> None:
    for number in range(40):
        legacy.session(f"c{number}")
        legacy.observation(f"Lamp {number} seen", f"c{number}")
    layout, marker = Layout(tmp_path / "fresh"), tmp_path / "marker"
    marker.touch()
    program = (
        "import sys; from pathlib import Path; from claude_mem.config import load_settings\n"
        "from claude_mem.cli.imports import import_database\n"
        "import_database(load_settings({'CLAUDE_MEM_DATA_DIR': sys.argv[1]}), Path(sys.argv[2]))"
    )
    killed = subprocess.run(
        [sys.executable, "-c", program, str(layout.root), str(legacy.path)],
        env={
            **os.environ,
            "CLAUDE_MEM_FAULT": f"import_database.after_session:{marker}",
            "TMPDIR": str(tmp_path),
        },
        timeout=60,
    )
    assert killed.returncode == -9
    report = import_database(load_settings({"CLAUDE_MEM_DATA_DIR": str(layout.root)}), legacy.path)
    assert report.sessions["unchanged"] > 0 and report.sessions.total() == 40
    with Store.open(layout.database, layout.backups) as store:
        counts = store.counts()
    assert (counts["sessions"], counts["prompts"], counts["observations"]) == (40, 40, 40)


# Values


@pytest.mark.parametrize(
    ("row", "ms"),
    [
        ({"at_epoch": T}, T),
        ({"at_epoch": T // 1000}, T),
        ({"at_epoch": T * 1000}, T),
        ({"at_epoch": float(T)}, T),
        ({"at_epoch": str(T)}, T),
        ({"at_epoch": None, "at": "2025-06-15T15:06:40.000Z"}, T),
        ({"at": "2025-06-15 15:06:40"}, T),
        ({"at": "2025-06-15T17:06:40+02:00"}, T),
        ({"at": str(T // 1000)}, T),
        ({"at_epoch": 0, "at": "soon"}, None),
        ({"at_epoch": float("inf")}, None),
        ({"at_epoch": 2**63 - 1}, None),
        ({}, None),
    ],
)
def test_a_time_is_read_in_whatever_unit(row: dict[str, Any], ms: int | None) -> None:
    assert time_of(row, "at") == ms


@pytest.mark.parametrize(
    ("value", "items"),
    [
        ('["a, b", "c"]', ["a, b", "c"]),
        ("a.py, b.py", ["a.py", " b.py"]),
        ("a, b\nc", ["a, b", "c"]),
        ('["cut off', ['["cut off']),
        ('"one"', ["one"]),
        ('[1, {"a": 2}]', ["1", '{"a": 2}']),
        ("[]", []),
        ("", []),
        (None, []),
        (7, []),
    ],
)
def test_a_list_is_read_however_it_was_written(value: object, items: list[str]) -> None:
    assert as_list(value, ",") == items


_ANY = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.binary(max_size=20),
                 st.text(st.characters(exclude_categories=["Cs"]), max_size=20))  # fmt: skip


def any_values(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(dict.fromkeys(names, _ANY))


@given(
    any_values(
        "text", "facts", "created_at_epoch", "type", "prompt_number", "narrative", "project"
    ),
    any_values("completed", "created_at", "files_read"),
    any_values("project", "started_at_epoch", "user_prompt"),
)
def test_whatever_a_row_holds_it_is_kept_or_told(
    tmp_path_factory: pytest.TempPathFactory,
    observation: dict[str, Any],
    summary: dict[str, Any],
    session: dict[str, Any],
) -> None:
    directory = tmp_path_factory.mktemp("any")
    legacy = LegacyDatabase(directory / "claude-mem.db", LATEST.replace("NOT NULL", ""))
    legacy.session(**session)
    legacy.observation(None, **observation)
    legacy.summary("", **summary)
    with Story(directory) as story:
        report = imported(story, legacy)
        assert report.added["observations"] + report.added["summaries"] + report.refused <= 2
        story.store.projects()
        for noun in ("observations", "summaries", "prompts"):
            story.store.get_many(noun, [1, 2])

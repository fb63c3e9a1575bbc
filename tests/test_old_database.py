"""A database of the version before is migrated, searched, and gets its record from transcripts."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import Home, wait_until
from tests.importing import run_import
from tests.rows import CommittedRows
from tests.test_greeting import message
from tests.test_record import SAID, everything_said, records
from tests.transcripts import OLD, harbour

DUMP = Path(__file__).parent / "database_0006.sql"
# With an observation, summary and prompt of hooks and imports, one that was saved by the user,
# a private turn and one that was forgotten.
COUNTS = {"observations": 6, "session_summaries": 7, "user_prompts": 9, "forgotten": 1}


@pytest.fixture
def upgraded(home: Home) -> Home:
    home.environment["CLAUDE_MEM_UNDO_HOURS"] = "1000000"  # since the file was made
    home.layout.create()
    with closing(sqlite3.connect(home.layout.database)) as connection:
        connection.executescript(DUMP.read_text("utf-8"))
        assert {table: count(connection, table) for table in COUNTS} == COUNTS
    home.start_worker()
    return home


def count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def rows(database: CommittedRows, table: str) -> int:
    return len(database.rows(f"SELECT * FROM {table}"))


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("what is the bell set to", "Ring the bell at noon"),
        ("cracked bell", "The bell is cracked"),
        ("make the harbour light blink twice", "blink twice"),
    ],
    ids=["of hooks", "saved by the user", "of an import"],
)
def test_memories_of_every_kind_are_kept_and_found(upgraded: Home, query: str, answer: str) -> None:
    # Local observations may be distilled again meanwhile: the same work, other words.
    kept = {table: rows(upgraded, table) for table in COUNTS if table != "observations"}
    assert kept == {table: COUNTS[table] for table in kept}
    assert rows(upgraded, "turn_records") == 0
    # The index is made while the worker already answers.
    wait_until(lambda: answer in upgraded.command("search", query).stdout, answer)


def test_the_user_is_told_once_of_the_record(upgraded: Home) -> None:
    assert "the text of every turn is stored on this machine" in message(upgraded)
    assert "the text of every turn" not in message(upgraded)


def test_an_import_fills_in_the_record_where_the_transcript_still_exists(upgraded: Home) -> None:
    everything_said(OLD).save_in(upgraded.path)
    harbour(start=OLD + 86_400_000).save_in(upgraded.path)
    before = upgraded.rows("SELECT id, prompt_id FROM user_prompts ORDER BY id")
    report = run_import(upgraded)
    assert report["records"] + report["turns"] == 4
    assert upgraded.rows("SELECT id, prompt_id FROM user_prompts ORDER BY id") == before
    assert SAID in records(upgraded.layout.database)
    assert rows(upgraded, "turn_records") == 4
    again = run_import(upgraded, "--again")
    assert (again["records"], again["turns"]) == (0, 0)
    done = upgraded.command("search", "fuse below deck", "--json")
    assert json.loads(done.stdout)["results"], done.stdout  # only the record has these words


def test_what_was_forgotten_before_stays_so_and_can_be_undone(upgraded: Home) -> None:
    forgotten = "SELECT prompt_text FROM user_prompts WHERE sealed > 0"
    assert upgraded.rows(forgotten) == [{"prompt_text": None}]
    done = upgraded.command("forget", "--undo")
    assert done.returncode == 0, done.stderr
    assert upgraded.rows("SELECT 1 FROM user_prompts WHERE prompt_text = 'Count the gulls'")

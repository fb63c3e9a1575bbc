"""The TypeScript claude-mem's database: every generation read, nothing of it touched."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.cli.restore import import_database, report_of_database
from claude_mem.config import Layout, load_settings
from claude_mem.errors import BadInput, NotFound, StoreError
from claude_mem.privacy import Redactor
from claude_mem.store import Store
from claude_mem.store.transfer.typescript.takeover import TakeoverReport, inherit
from claude_mem.store.transfer.typescript.values import as_list, headline, time_of
from tests.conftest import Home
from tests.payloads import PROJECT_DIR, SESSION, edit, prompt, session_start, stop
from tests.story import START, Story

T = 1_750_000_000_000
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2

# Its generations, by what they call things and what they have. The times are always
# `created_at` and `created_at_epoch`, but for a session's `started_at`.
FIRST = """
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, claude_session_id TEXT UNIQUE NOT NULL,
  sdk_session_id TEXT UNIQUE, project TEXT NOT NULL, user_prompt TEXT, started_at TEXT NOT NULL,
  started_at_epoch INTEGER NOT NULL, completed_at TEXT, completed_at_epoch INTEGER, status TEXT);
CREATE TABLE observations (id INTEGER PRIMARY KEY, sdk_session_id TEXT NOT NULL,
  project TEXT NOT NULL, text TEXT NOT NULL, type TEXT NOT NULL, created_at TEXT NOT NULL,
  created_at_epoch INTEGER NOT NULL);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, sdk_session_id TEXT NOT NULL,
  project TEXT NOT NULL, request TEXT, investigated TEXT, learned TEXT, completed TEXT,
  next_steps TEXT, files_read TEXT, files_edited TEXT, notes TEXT, created_at TEXT NOT NULL,
  created_at_epoch INTEGER NOT NULL);
"""
_PROMPTS = """
CREATE TABLE user_prompts (id INTEGER PRIMARY KEY, {id} TEXT NOT NULL,
  prompt_number INTEGER NOT NULL, prompt_text TEXT NOT NULL, created_at TEXT NOT NULL,
  created_at_epoch INTEGER NOT NULL);
"""
_FIELDS = ("title", "subtitle", "facts", "narrative", "concepts", "files_read", "files_modified")
HIERARCHICAL = (
    FIRST.replace("text TEXT NOT NULL,", "text TEXT,")
    + "".join(f"ALTER TABLE observations ADD COLUMN {name} TEXT;\n" for name in _FIELDS)
    + "ALTER TABLE observations ADD COLUMN prompt_number INTEGER;\n"
    "ALTER TABLE session_summaries ADD COLUMN prompt_number INTEGER;\n"
    "ALTER TABLE sdk_sessions ADD COLUMN prompt_counter INTEGER DEFAULT 0;\n"
    + _PROMPTS.format(id="claude_session_id")
)
RENAMED = (
    HIERARCHICAL.replace("claude_session_id", "content_session_id").replace(
        "sdk_session_id", "memory_session_id"
    )
    + "ALTER TABLE observations ADD COLUMN discovery_tokens INTEGER DEFAULT 0;\n"
    "ALTER TABLE session_summaries ADD COLUMN discovery_tokens INTEGER DEFAULT 0;\n"
)
LATEST = (
    RENAMED.replace("content_session_id TEXT UNIQUE NOT NULL", "content_session_id TEXT NOT NULL")
    + "ALTER TABLE sdk_sessions ADD COLUMN custom_title TEXT;\n"
    "ALTER TABLE sdk_sessions ADD COLUMN platform_source TEXT NOT NULL DEFAULT 'claude';\n"
    "ALTER TABLE observations ADD COLUMN content_hash TEXT;\n"
    "ALTER TABLE observations ADD COLUMN generated_by_model TEXT;\n"
    "ALTER TABLE user_prompts ADD COLUMN session_db_id INTEGER;\n"
    "CREATE INDEX by_session ON observations(memory_session_id);\n"
    "CREATE VIRTUAL TABLE observations_fts USING fts5(title, content='observations');\n"
)
GENERATIONS = {"first": FIRST, "hierarchical": HIERARCHICAL, "renamed": RENAMED, "latest": LATEST}
_OLD_NAMES = {"content_session_id": "claude_session_id", "memory_session_id": "sdk_session_id"}


class Predecessor:
    """A database that the other program left, in the words of its latest version."""

    def __init__(self, path: Path, schema: str = LATEST) -> None:
        self.path = path
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(schema)

    def add(self, table: str, **values: Any) -> None:
        """As far as this generation has the columns."""
        with closing(sqlite3.connect(self.path)) as connection:
            has = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            renamed = {
                name if name in has else _OLD_NAMES.get(name, name): value
                for name, value in values.items()
            }
            kept = {name: value for name, value in renamed.items() if name in has}
            places = ", ".join("?" * len(kept))
            connection.execute(
                f"INSERT INTO {table} ({', '.join(kept)}) VALUES ({places})", tuple(kept.values())
            )
            connection.commit()

    def session(self, name: str = "c1", **values: Any) -> None:
        self.add("sdk_sessions", **{
            "content_session_id": name, "memory_session_id": f"m-{name}", "project": "harbor",
            "user_prompt": "Blink twice", "started_at": "2025-06-15T15:06:40Z",
            "started_at_epoch": T, "status": "completed", **values,
        })  # fmt: skip

    def prompt(self, number: int, text: str, session: str = "c1", **values: Any) -> None:
        self.add("user_prompts", **{
            "content_session_id": session, "prompt_number": number, "prompt_text": text,
            "created_at": "x", "created_at_epoch": T + number * 1000, **values,
        })  # fmt: skip

    def observation(self, title: Any, session: str = "c1", **values: Any) -> None:
        self.add("observations", **{
            "memory_session_id": f"m-{session}", "project": "harbor", "type": "discovery",
            "title": title, "text": title or "", "prompt_number": 1, "created_at": "x",
            "created_at_epoch": T + 1500, **values,
        })  # fmt: skip

    def summary(self, request: str, session: str = "c1", **values: Any) -> None:
        self.add("session_summaries", **{
            "memory_session_id": f"m-{session}", "project": "harbor", "request": request,
            "prompt_number": 1, "created_at": "x", "created_at_epoch": T + 1800, **values,
        })  # fmt: skip


@pytest.fixture
def old(tmp_path: Path) -> Predecessor:
    return Predecessor(tmp_path / "claude-mem.db")


def taken(story: Story, old: Predecessor) -> TakeoverReport:
    return inherit(story.store, old.path, Redactor())


def everything(story: Story) -> list[list[dict[str, Any]]]:
    tables = ("projects", "sdk_sessions", "user_prompts", "observations", "session_summaries")
    return [story.rows(f"SELECT * FROM {table}") for table in tables]


@pytest.mark.parametrize("schema", GENERATIONS.values(), ids=GENERATIONS.keys())
def test_a_session_of_every_generation_becomes_one_of_ours(
    story: Story, tmp_path: Path, schema: str
) -> None:
    old = Predecessor(tmp_path / "claude-mem.db", schema)
    old.session()
    if "user_prompts" in schema:
        old.prompt(1, "Blink twice")
    old.observation("The lamp is slow", narrative="It warms up first", facts='["2 s", "0 °C"]')
    old.summary("Make it blink", completed="It blinks", files_edited='["light.py"]')
    report = taken(story, old)
    assert report.sessions == {"added": 1}
    assert report.added == {"prompts": 1, "summaries": 1, "observations": 1}
    assert (report.refused, report.reasons) == (0, [])
    session = story.session("c1")
    assert (session["memory_session_id"], session["project_key"]) == ("m-c1", "name:harbor")
    assert (session["title"], session["status"]) == ("Blink twice", "completed")
    assert (session["prompt_counter"], session["started_at_epoch"]) == (1, T)
    memories: Any = story.store.memories_of_session(story.session_db_id("c1"))
    (observation,), (summary,) = memories["observations"], memories["summaries"]
    (asked,) = memories["prompts"]
    assert (observation["title"], observation["type"]) == ("The lamp is slow", "discovery")
    assert (observation["observer"], observation["prompt_number"]) == ("claude-mem-ts", 1)
    assert observation["created_at_epoch"] == T + 1500
    assert summary["completed"] == "It blinks" and summary["files_edited"] == ["light.py"]
    assert asked["prompt_text"] == "Blink twice"
    if "narrative" in schema:
        assert observation["narrative"] == "It warms up first"
        assert observation["facts"] == ["2 s", "0 °C"]


def test_taking_it_over_twice_is_taking_it_over_once(story: Story, old: Predecessor) -> None:
    old.session()
    for number in (1, 2):
        old.prompt(number, f"do {number}")
        old.observation(f"seen {number}", prompt_number=number)
        old.summary(f"done {number}", prompt_number=number)
    taken(story, old)
    before = everything(story)
    again = taken(story, old)
    assert (again.sessions, again.added.total()) == ({"kept": 1}, 0)
    assert everything(story) == before


def test_what_a_session_has_gained_since_is_added_to_it(story: Story, old: Predecessor) -> None:
    old.session()
    old.prompt(1, "do 1")
    old.observation("one")
    old.observation("two")
    taken(story, old)
    with closing(sqlite3.connect(old.path)) as connection:
        connection.execute("DELETE FROM observations WHERE title = 'one'")
        connection.commit()
    old.prompt(2, "do 2")
    old.observation("three", prompt_number=2)
    report = taken(story, old)
    assert report.sessions == {"grown": 1}
    assert report.added == {"prompts": 1, "observations": 1}
    titles = story.column("SELECT title FROM observations ORDER BY id")
    assert titles == ["one", "two", "three"]


def test_a_session_that_hooks_brought_is_already_known(story: Story, old: Predecessor) -> None:
    story.tell(session_start(), prompt(), edit(), stop())
    story.distil()
    old.session(SESSION)
    old.observation("Theirs", SESSION)
    before = everything(story)
    report = taken(story, old)
    assert report.sessions == {"known": 1}
    assert everything(story) == before
    assert "1 already known" in "\n".join(report_of_database(report))


def test_a_session_taken_over_can_be_gone_on_with(story: Story, old: Predecessor) -> None:
    old.session(SESSION)
    old.prompt(1, "Blink twice", SESSION)
    old.observation("Theirs", SESSION)
    taken(story, old)
    story.tell(prompt("And once more", prompt_id="new"), edit(prompt_id="new"))
    story.tell(stop(prompt_id="new"))
    assert story.distil() == 1
    assert story.column("SELECT prompt_number FROM user_prompts ORDER BY id") == [1, 2]
    assert "Theirs" in story.column("SELECT title FROM observations")
    assert story.session()["status"] == "active"
    old.prompt(2, "Meanwhile there", SESSION)
    assert taken(story, old).added == {"prompts": 1}
    numbers = story.rows("SELECT prompt_number, prompt_text FROM user_prompts ORDER BY 1")
    assert numbers[-1] == {"prompt_number": 3, "prompt_text": "Meanwhile there"}


# Projects


@pytest.mark.parametrize(
    ("named", "name"),
    [("harbor", "harbor"), ("harbor/pier-worktree", "harbor"), ("/home/dev/harbor", "harbor"),
     ("", "unknown"), ("  ", "unknown")],
)  # fmt: skip
def test_a_project_has_the_key_that_its_name_allows(
    story: Story, old: Predecessor, named: str, name: str
) -> None:
    old.session(project=named)
    old.observation("x", project=named)
    taken(story, old)
    assert story.rows("SELECT key, name FROM projects") == [{"key": f"name:{name}", "name": name}]


def test_the_one_project_of_that_name_is_taken_for_it(story: Story, old: Predecessor) -> None:
    story.tell(prompt(), stop())
    old.session("c1")
    old.session("c2")
    report = taken(story, old)
    assert story.column("SELECT key FROM projects") == [PROJECT_DIR]
    assert report.projects == [1]


def test_of_two_projects_of_that_name_none_is_guessed(story: Story, old: Predecessor) -> None:
    story.tell(prompt(), stop())
    story.tell(prompt(session_id="e", prompt_id="e"), project_dir="/srv/harbor")
    old.session()
    taken(story, old)
    assert story.session("c1")["project_key"] == "name:harbor"


def test_sessions_of_its_own_observer_are_no_memory(story: Story, old: Predecessor) -> None:
    old.session(project="observer-sessions")
    old.observation("x", project="observer-sessions")
    assert taken(story, old).sessions == {}
    assert story.store.counts()["projects"] == 0


# What rows may look like


def test_memories_without_a_number_go_to_the_prompt_of_their_time(
    story: Story, old: Predecessor
) -> None:
    old.session()
    old.prompt(1, "first", created_at_epoch=T + 1000)
    old.prompt(2, "second", created_at_epoch=T + 2000)
    for title, ms in (("before", 500), ("in the first", 1500), ("in the second", 9000)):
        old.observation(title, prompt_number=None, created_at_epoch=T + ms)
    taken(story, old)
    rows = story.rows("SELECT title, prompt_number FROM observations ORDER BY created_at_epoch")
    assert [row["prompt_number"] for row in rows] == [1, 1, 2]


def test_without_prompts_each_summary_is_a_turn_with_what_came_before_it(
    story: Story, tmp_path: Path
) -> None:
    old = Predecessor(tmp_path / "claude-mem.db", FIRST)
    old.session(user_prompt=None)
    for request, ms in (("one", 2000), ("two", 4000)):
        old.summary(request, created_at_epoch=T + ms)
    for title, ms in (("a", 1000), ("b", 3000), ("c", 5000)):
        old.observation(title, created_at_epoch=T + ms)
    taken(story, old)
    assert story.rows(
        "SELECT m.request, group_concat(o.title, '') AS titles FROM session_summaries m"
        " JOIN observations o USING (turn_id) GROUP BY m.id ORDER BY m.id"
    ) == [{"request": "one", "titles": "a"}, {"request": "two", "titles": "bc"}]
    assert story.session("c1")["title"] == "one"


def test_a_session_without_a_prompt_gets_a_turn_and_one_without_anything_is_passed_over(
    story: Story, old: Predecessor
) -> None:
    old.session("c1", user_prompt=None, memory_session_id="m-c1")
    old.observation("seen", prompt_number=None)
    old.session("c2", user_prompt=None)
    assert taken(story, old).sessions == {"added": 1}
    assert story.rows("SELECT prompt_number, prompt_text, closed FROM user_prompts") == [
        {"prompt_number": 1, "prompt_text": None, "closed": 1}
    ]
    assert story.store.queue_state()["pending"] == 0


def test_of_several_summaries_of_a_prompt_the_last_is_kept_and_the_others_told(
    story: Story, old: Predecessor
) -> None:
    old.session()
    for request, ms in (("first", 1000), ("third", 3000), ("second", 2000)):
        old.summary(request, created_at_epoch=T + ms)
    report = taken(story, old)
    assert story.column("SELECT request FROM session_summaries") == ["third"]
    assert report.refused == 2 and "several summaries" in report.reasons[0].reason


def test_a_type_that_we_do_not_have_becomes_change(story: Story, old: Predecessor) -> None:
    old.session()
    for kind in ("bugfix", "security_alert", ""):
        old.observation(kind or "none", type=kind)
    taken(story, old)
    assert story.column("SELECT type FROM observations ORDER BY id") == [
        "bugfix", "change", "change",
    ]  # fmt: skip


def test_old_text_becomes_title_and_narrative(story: Story, old: Predecessor) -> None:
    old.session()
    text = "The lamp is slow. " * 20 + "\nIt warms up first."
    old.observation(None, text=text)
    old.observation(None, text="Short")
    taken(story, old)
    long, short = story.rows("SELECT title, narrative FROM observations ORDER BY id")
    assert (
        long["narrative"] == text and long["title"] == headline(text) and len(long["title"]) <= 80
    )
    assert short == {"title": "Short", "narrative": None}


def test_memories_whose_session_is_gone_are_kept_in_one_of_their_own(
    story: Story, old: Predecessor
) -> None:
    old.observation("orphan", "gone", project="pier")
    old.prompt(1, "who asked", "nobody")
    report = taken(story, old)
    assert report.sessions == {"added": 2}
    assert story.session("claude-mem-ts:m-gone")["project"] == "pier"
    assert story.session("nobody")["project"] == "unknown"


def test_rows_that_make_no_sense_are_told_and_the_rest_kept(story: Story, old: Predecessor) -> None:
    old.session("")
    old.session("c1", started_at="then", started_at_epoch="never")
    old.prompt(1, "do it")
    old.observation("", text="")
    old.observation("when?", created_at_epoch=-5, created_at="yesterday")
    old.observation(b"\xff bytes", narrative=b"\0\x01", facts=b"{", prompt_number="odd")
    old.summary("", completed=None)
    report = taken(story, old)
    told = {refusal.place: refusal.reason for refusal in report.reasons}
    assert told == {
        "sdk_sessions 1": "has no session id",
        "observations 1": "says nothing",
        "observations 2": "has no time that can be read",
        "session_summaries 1": "says nothing",
    }
    assert story.column("SELECT title FROM observations") == ["\ufffd bytes"]
    assert "4 could not be used:" in report_of_database(report)


def test_one_id_of_two_clients_stays_two_sessions(story: Story, old: Predecessor) -> None:
    old.session("c1", memory_session_id="m-1", platform_source="codex", user_prompt="codex asks")
    old.session("c1", memory_session_id="m-2", platform_source="claude", user_prompt="claude asks")
    old.prompt(1, "of codex", session_db_id=1)
    old.prompt(1, "of claude", session_db_id=2)
    assert taken(story, old).sessions == {"added": 2}
    assert story.session("c1")["user_prompt"] == "of claude"
    assert story.session("codex:c1")["user_prompt"] == "of codex"
    assert taken(story, old).sessions == {"kept": 2}


def test_a_memory_session_id_that_is_taken_is_made_up_anew(story: Story, old: Predecessor) -> None:
    story.tell(prompt(), stop())
    story.register_memory_session(1, "m-c1")
    old.session()
    old.observation("x")
    assert taken(story, old).added["observations"] == 1
    assert story.session("c1")["memory_session_id"] not in ("m-c1", None)
    assert story.session()["memory_session_id"] == "m-c1"


# Privacy


def test_private_text_and_secrets_are_left_behind(story: Story, old: Predecessor) -> None:
    old.session(user_prompt="<private>all of it</private>")
    old.prompt(1, "<private>all of it</private>")
    old.prompt(2, f"use <private>my door code</private> and {SECRET}")
    old.observation("of the private one", prompt_number=1)
    old.summary("of the private one", prompt_number=1)
    old.observation("of the other", prompt_number=2, narrative=f"it is {SECRET}",
                    facts=json.dumps([f"{SECRET}", "<private>x y z</private>"]))  # fmt: skip
    report = taken(story, old)
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
    old = Predecessor(directory / "claude-mem.db")
    with closing(sqlite3.connect(old.path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("BEGIN")
        connection.execute("SELECT 1 FROM sdk_sessions").fetchall()  # it is at work
        old.session()
        old.observation("in the journal")
        before = {
            path: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.iterdir()
        }
        assert any(path.name.endswith("-wal") and data for path, (data, _) in before.items())
        assert taken(story, old).added["observations"] == 1
        after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.iterdir()}
        assert after == before


def test_a_file_in_a_directory_that_cannot_be_written_is_read(story: Story, tmp_path: Path) -> None:
    directory = tmp_path / "theirs"
    directory.mkdir()
    old = Predecessor(directory / "claude-mem.db")
    old.session()
    old.path.chmod(0o400)
    directory.chmod(0o500)
    try:
        assert taken(story, old).sessions == {"added": 1}
    finally:
        directory.chmod(0o700)


def test_what_is_no_database_of_theirs_is_refused(story: Story, tmp_path: Path) -> None:
    def refused(path: Path, error: type[Exception], said: str) -> None:
        with pytest.raises(error, match=said):
            inherit(story.store, path, Redactor())

    refused(tmp_path / "nowhere", NotFound, "no file")
    refused(tmp_path, BadInput, "cannot be read")
    refused(story.layout.database, BadInput, "claude-mem export")
    text = tmp_path / "text"
    text.write_text("no database " * 100)
    refused(text, BadInput, "not a database")
    empty = Predecessor(tmp_path / "empty.db", "CREATE TABLE cats (name TEXT);")
    refused(empty.path, BadInput, "none of its tables")


def test_of_a_damaged_database_what_can_be_read_is_kept(story: Story, old: Predecessor) -> None:
    for number in range(50):
        old.session(f"c{number}")
    for number in range(50):
        old.observation("x" * 9000, f"c{number}")
    data = bytearray(old.path.read_bytes())
    place = len(data) * 3 // 4
    data[place : place + 8192] = b"\xff" * 8192
    old.path.write_bytes(data)
    report = taken(story, old)
    assert 0 < report.sessions["added"] < 50 and report.refused > 0
    assert "cannot be" in report.reasons[0].reason
    old.path.write_bytes(data[:100] + b"\xff" * (len(data) - 100))
    with pytest.raises(StoreError, match="cannot be read"):
        taken(story, old)


def test_a_command_takes_it_over_beside_a_worker_and_the_next_session_knows(
    home: Home, tmp_path: Path
) -> None:
    old = Predecessor(tmp_path / "claude-mem.db")
    home.start_worker()
    home.hook(prompt("hello", session_id="mine"))
    home.hook(stop(session_id="mine"))
    home.wait_settled()
    for number in range(40):
        old.session(f"c{number}")
        old.observation(f"seen {number}", f"c{number}", created_at_epoch=START + number)
    here = load_settings({"CLAUDE_MEM_DATA_DIR": str(home.layout.root)})
    report = import_database(here, old.path)
    assert report.sessions == {"added": 40}
    assert "seen 39" in home.context(session_start(session_id="new"))


def test_a_killed_import_is_completed_by_the_next(old: Predecessor, tmp_path: Path) -> None:
    for number in range(40):
        old.session(f"c{number}")
        old.observation(f"seen {number}", f"c{number}")
    layout, marker = Layout(tmp_path / "fresh"), tmp_path / "marker"
    marker.touch()
    program = (
        "import sys; from pathlib import Path; from claude_mem.config import load_settings\n"
        "from claude_mem.cli.restore import import_database\n"
        "import_database(load_settings({'CLAUDE_MEM_DATA_DIR': sys.argv[1]}), Path(sys.argv[2]))"
    )
    killed = subprocess.run(
        [sys.executable, "-c", program, str(layout.root), str(old.path)],
        env={
            **os.environ,
            "CLAUDE_MEM_FAULT": f"inherit.after_session:{marker}",
            "TMPDIR": str(tmp_path),
        },
        timeout=60,
    )
    assert killed.returncode == -9
    report = import_database(load_settings({"CLAUDE_MEM_DATA_DIR": str(layout.root)}), old.path)
    assert report.sessions["kept"] > 0 and report.sessions.total() == 40
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
    old = Predecessor(directory / "claude-mem.db", LATEST.replace("NOT NULL", ""))
    old.session(**session)
    old.observation(None, **observation)
    old.summary("", **summary)
    with Story(directory) as story:
        report = taken(story, old)
        assert report.added["observations"] + report.added["summaries"] + report.refused <= 2
        story.store.projects()
        for noun in ("observations", "summaries", "prompts"):
            story.store.get_many(noun, [1, 2])


@pytest.fixture(autouse=True)
def _nothing_left_in_the_temporary_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    yield
    assert list(place.iterdir()) == []

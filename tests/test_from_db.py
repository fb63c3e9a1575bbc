"""Import of the TypeScript claude-mem's database: every generation of its schema is read."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from claude_mem.cli.imports import report_of_database
from claude_mem.store.transfer.typescript.values import headline
from tests.legacy_database import FIRST, GENERATIONS, LegacyDatabase, T, everything, imported
from tests.payloads import PROJECT_DIR, SESSION, edit, prompt, session_start, stop
from tests.story import Story

pytestmark = pytest.mark.usefixtures("no_temporary_files_remain")


@pytest.mark.parametrize("schema", GENERATIONS.values(), ids=GENERATIONS.keys())
def test_a_session_of_every_generation_becomes_one_of_ours(
    story: Story, tmp_path: Path, schema: str
) -> None:
    legacy = LegacyDatabase(tmp_path / "claude-mem.db", schema)
    legacy.session()
    if "user_prompts" in schema:
        legacy.prompt(1, "Blink twice")
    legacy.observation("The lamp is slow", narrative="It warms up first", facts='["2 s", "0 °C"]')
    legacy.summary("Make it blink", completed="It blinks", files_edited='["light.py"]')
    report = imported(story, legacy)
    assert report.sessions == {"added": 1}
    assert report.added == {"prompts": 1, "summaries": 1, "observations": 1}
    assert (report.refused, report.reasons) == (0, [])
    session = story.session("c1")
    assert (session["memory_session_id"], session["project_key"]) == ("m-c1", "name:harbor")
    assert (session["title"], session["status"]) == ("Blink twice", "completed")
    assert (session["prompt_counter"], session["started_at_epoch"]) == (1, T)
    memories: Any = story.store.memories_of_session(story.session_db_id("c1"))
    (observation,), (summary,) = memories["observations"], memories["summaries"]
    (prompt_record,) = memories["prompts"]
    assert (observation["title"], observation["type"]) == ("The lamp is slow", "discovery")
    assert (observation["observer"], observation["prompt_number"]) == ("claude-mem-ts", 1)
    assert observation["created_at_epoch"] == T + 1500
    assert summary["completed"] == "It blinks" and summary["files_edited"] == ["light.py"]
    assert prompt_record["prompt_text"] == "Blink twice"
    if "narrative" in schema:
        assert observation["narrative"] == "It warms up first"
        assert observation["facts"] == ["2 s", "0 °C"]


def test_taking_it_over_twice_is_taking_it_over_once(story: Story, legacy: LegacyDatabase) -> None:
    legacy.session()
    for number in (1, 2):
        legacy.prompt(number, f"do {number}")
        legacy.observation(f"seen {number}", prompt_number=number)
        legacy.summary(f"done {number}", prompt_number=number)
    imported(story, legacy)
    before = everything(story)
    again = imported(story, legacy)
    assert (again.sessions, again.added.total()) == ({"unchanged": 1}, 0)
    assert everything(story) == before


def test_what_a_session_has_gained_since_is_added_to_it(
    story: Story, legacy: LegacyDatabase
) -> None:
    legacy.session()
    legacy.prompt(1, "do 1")
    legacy.observation("one")
    legacy.observation("two")
    imported(story, legacy)
    with closing(sqlite3.connect(legacy.path)) as connection:
        connection.execute("DELETE FROM observations WHERE title = 'one'")
        connection.commit()
    legacy.prompt(2, "do 2")
    legacy.observation("three", prompt_number=2)
    report = imported(story, legacy)
    assert report.sessions == {"updated": 1}
    assert report.added == {"prompts": 1, "observations": 1}
    titles = story.column("SELECT title FROM observations ORDER BY id")
    assert titles == ["one", "two", "three"]


def test_a_session_that_hooks_brought_is_already_known(
    story: Story, legacy: LegacyDatabase
) -> None:
    story.tell(session_start(), prompt(), edit(), stop())
    story.distil()
    legacy.session(SESSION)
    legacy.observation("Theirs", SESSION)
    before = everything(story)
    report = imported(story, legacy)
    assert report.sessions == {"skipped": 1}
    assert everything(story) == before
    assert "1 already stored" in "\n".join(report_of_database(report))


def test_a_session_taken_over_can_be_gone_on_with(story: Story, legacy: LegacyDatabase) -> None:
    legacy.session(SESSION)
    legacy.prompt(1, "Blink twice", SESSION)
    legacy.observation("Theirs", SESSION)
    imported(story, legacy)
    story.tell(prompt("And once more", prompt_id="new"), edit(prompt_id="new"))
    story.tell(stop(prompt_id="new"))
    assert story.distil() == 1
    assert story.column("SELECT prompt_number FROM user_prompts ORDER BY id") == [1, 2]
    assert "Theirs" in story.column("SELECT title FROM observations")
    assert story.session()["status"] == "active"
    legacy.prompt(2, "Meanwhile there", SESSION)
    assert imported(story, legacy).added == {"prompts": 1}
    numbers = story.rows("SELECT prompt_number, prompt_text FROM user_prompts ORDER BY 1")
    assert numbers[-1] == {"prompt_number": 3, "prompt_text": "Meanwhile there"}


# Projects


@pytest.mark.parametrize(
    ("named", "name"),
    [("harbor", "harbor"), ("harbor/pier-worktree", "harbor"), ("/home/dev/harbor", "harbor"),
     ("", "unknown"), ("  ", "unknown")],
)  # fmt: skip
def test_a_project_has_the_key_that_its_name_allows(
    story: Story, legacy: LegacyDatabase, named: str, name: str
) -> None:
    legacy.session(project=named)
    legacy.observation("x", project=named)
    imported(story, legacy)
    assert story.rows("SELECT key, name FROM projects") == [{"key": f"name:{name}", "name": name}]


def test_the_one_project_of_that_name_is_taken_for_it(story: Story, legacy: LegacyDatabase) -> None:
    story.tell(prompt(), stop())
    legacy.session("c1")
    legacy.session("c2")
    report = imported(story, legacy)
    assert story.column("SELECT key FROM projects") == [PROJECT_DIR]
    assert report.projects == [1]


def test_of_two_projects_of_that_name_none_is_guessed(story: Story, legacy: LegacyDatabase) -> None:
    story.tell(prompt(), stop())
    story.tell(prompt(session_id="e", prompt_id="e"), project_dir="/srv/harbor")
    legacy.session()
    imported(story, legacy)
    assert story.session("c1")["project_key"] == "name:harbor"


def test_sessions_of_its_own_observer_are_no_memory(story: Story, legacy: LegacyDatabase) -> None:
    legacy.session(project="observer-sessions")
    legacy.observation("x", project="observer-sessions")
    assert imported(story, legacy).sessions == {}
    assert story.store.counts()["projects"] == 0


# What rows may look like


def test_memories_without_a_number_go_to_the_prompt_of_their_time(
    story: Story, legacy: LegacyDatabase
) -> None:
    legacy.session()
    legacy.prompt(1, "first", created_at_epoch=T + 1000)
    legacy.prompt(2, "second", created_at_epoch=T + 2000)
    for title, ms in (("before", 500), ("in the first", 1500), ("in the second", 9000)):
        legacy.observation(title, prompt_number=None, created_at_epoch=T + ms)
    imported(story, legacy)
    rows = story.rows("SELECT title, prompt_number FROM observations ORDER BY created_at_epoch")
    assert [row["prompt_number"] for row in rows] == [1, 1, 2]


def test_without_prompts_each_summary_is_a_turn_with_what_came_before_it(
    story: Story, tmp_path: Path
) -> None:
    legacy = LegacyDatabase(tmp_path / "claude-mem.db", FIRST)
    legacy.session(user_prompt=None)
    for request, ms in (("one", 2000), ("two", 4000)):
        legacy.summary(request, created_at_epoch=T + ms)
    for title, ms in (("a", 1000), ("b", 3000), ("c", 5000)):
        legacy.observation(title, created_at_epoch=T + ms)
    imported(story, legacy)
    assert story.rows(
        "SELECT m.request, group_concat(o.title, '') AS titles FROM session_summaries m"
        " JOIN observations o USING (turn_id) GROUP BY m.id ORDER BY m.id"
    ) == [{"request": "one", "titles": "a"}, {"request": "two", "titles": "bc"}]
    assert story.session("c1")["title"] == "one"


def test_a_session_without_a_prompt_gets_a_turn_and_one_without_anything_is_passed_over(
    story: Story, legacy: LegacyDatabase
) -> None:
    legacy.session("c1", user_prompt=None, memory_session_id="m-c1")
    legacy.observation("seen", prompt_number=None)
    legacy.session("c2", user_prompt=None)
    assert imported(story, legacy).sessions == {"added": 1}
    assert story.rows("SELECT prompt_number, prompt_text, closed FROM user_prompts") == [
        {"prompt_number": 1, "prompt_text": None, "closed": 1}
    ]
    assert story.store.queue_state()["pending"] == 0


def test_of_several_summaries_of_a_prompt_the_last_is_kept_and_the_others_told(
    story: Story, legacy: LegacyDatabase
) -> None:
    legacy.session()
    for request, ms in (("first", 1000), ("third", 3000), ("second", 2000)):
        legacy.summary(request, created_at_epoch=T + ms)
    report = imported(story, legacy)
    assert story.column("SELECT request FROM session_summaries") == ["third"]
    assert report.refused == 2 and "several summaries" in report.reasons[0].reason


def test_a_type_that_we_do_not_have_becomes_change(story: Story, legacy: LegacyDatabase) -> None:
    legacy.session()
    for kind in ("bugfix", "security_alert", ""):
        legacy.observation(kind or "none", type=kind)
    imported(story, legacy)
    assert story.column("SELECT type FROM observations ORDER BY id") == [
        "bugfix", "change", "change",
    ]  # fmt: skip


def test_old_text_becomes_title_and_narrative(story: Story, legacy: LegacyDatabase) -> None:
    legacy.session()
    text = "The lamp is slow. " * 20 + "\nIt warms up first."
    legacy.observation(None, text=text)
    legacy.observation(None, text="Short")
    imported(story, legacy)
    long, short = story.rows("SELECT title, narrative FROM observations ORDER BY id")
    assert (
        long["narrative"] == text and long["title"] == headline(text) and len(long["title"]) <= 80
    )
    assert short == {"title": "Short", "narrative": None}


def test_memories_whose_session_is_gone_are_kept_in_one_of_their_own(
    story: Story, legacy: LegacyDatabase
) -> None:
    legacy.observation("orphan", "gone", project="pier")
    legacy.prompt(1, "who asked", "nobody")
    report = imported(story, legacy)
    assert report.sessions == {"added": 2}
    assert story.session("claude-mem-ts:m-gone")["project"] == "pier"
    assert story.session("nobody")["project"] == "unknown"


def test_rows_that_make_no_sense_are_told_and_the_rest_kept(
    story: Story, legacy: LegacyDatabase
) -> None:
    legacy.session("")
    legacy.session("c1", started_at="then", started_at_epoch="never")
    legacy.prompt(1, "do it")
    legacy.observation("", text="")
    legacy.observation("when?", created_at_epoch=-5, created_at="yesterday")
    legacy.observation(b"\xff bytes", narrative=b"\0\x01", facts=b"{", prompt_number="odd")
    legacy.summary("", completed=None)
    report = imported(story, legacy)
    reasons = {refusal.place: refusal.reason for refusal in report.reasons}
    assert reasons == {
        "sdk_sessions 1": "has no session id",
        "observations 1": "is empty",
        "observations 2": "has no readable time",
        "session_summaries 1": "is empty",
    }
    assert story.column("SELECT title FROM observations") == ["\ufffd bytes"]
    assert "4 records rejected:" in report_of_database(report)


def test_one_id_of_two_clients_stays_two_sessions(story: Story, legacy: LegacyDatabase) -> None:
    legacy.session("c1", memory_session_id="m-1", platform_source="codex", user_prompt="codex asks")
    legacy.session(
        "c1", memory_session_id="m-2", platform_source="claude", user_prompt="claude asks"
    )
    legacy.prompt(1, "of codex", session_db_id=1)
    legacy.prompt(1, "of claude", session_db_id=2)
    assert imported(story, legacy).sessions == {"added": 2}
    assert story.session("c1")["user_prompt"] == "of claude"
    assert story.session("codex:c1")["user_prompt"] == "of codex"
    assert imported(story, legacy).sessions == {"unchanged": 2}


def test_a_memory_session_id_that_is_taken_is_made_up_anew(
    story: Story, legacy: LegacyDatabase
) -> None:
    story.tell(prompt(), stop())
    story.register_memory_session(1, "m-c1")
    legacy.session()
    legacy.observation("x")
    assert imported(story, legacy).added["observations"] == 1
    assert story.session("c1")["memory_session_id"] not in ("m-c1", None)
    assert story.session()["memory_session_id"] == "m-c1"

"""Messages of the client in place of a prompt: turns of their own, under the one they report to."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from claude_mem.cli.show import _print_record, _session_records
from claude_mem.recall.formatting import search_text, timeline_text
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.search import Query, search
from claude_mem.recall.timeline import TimelineQuery, timeline
from claude_mem.redaction import Redactor
from claude_mem.store.listing import Page
from claude_mem.store.transfer.restore import restore
from tests.contents import contents_of
from tests.exports import dump
from tests.importing import ImportTarget
from tests.payloads import SESSION, edit, prompt, stop, tool
from tests.story import Story
from tests.transcripts import Chat

CALL = "toolu_000000000000000000000777"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def notification(task: str = "t9", call: str = CALL, result: str = "The cellar is damp.") -> str:
    named = f"<tool-use-id>{call}</tool-use-id>\n" if call else ""
    return (
        f"<task-notification>\n<task-id>{task}</task-id>\n{named}<status>completed</status>\n"
        f'<summary>Agent "Survey" finished</summary>\n<result>{result}</result>\n'
        "</task-notification>"
    )


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    with Story(tmp_path) as story:
        yield story


def start_task(story: Story, prompt_id: str = "p1", **changes: Any) -> None:
    of = {"prompt_id": prompt_id}
    agent = {
        "tool_use_id": CALL,
        "tool_input": {"description": "Survey the cellar", "run_in_background": True},
        "tool_response": {"status": "async_launched", "agentId": "t9"},
    }
    story.tell(prompt("Survey the house", **of), tool("Agent", **{**agent, **of, **changes}),
               edit(**of), stop("The survey of the house runs in `lamp.py`.", **of))  # fmt: skip


def report(story: Story, text: str, prompt_id: str = "n1") -> None:
    of = {"prompt_id": prompt_id}
    story.tell(prompt(text, **of), edit("/home/dev/harbor/cellar.py", **of),
               stop("Fixed the damp cellar by sealing `cellar.py`.", **of))  # fmt: skip
    story.distil()


def parents(story: Story) -> dict[str, int | None]:
    rows = story.rows("SELECT prompt_id, parent_turn FROM user_prompts WHERE notice = 1")
    return {row["prompt_id"]: row["parent_turn"] for row in rows}


# Its turn


def test_a_notice_is_a_turn_under_the_one_that_started_the_task(story: Story) -> None:
    start_task(story)
    story.tell(prompt("Light the lamp", prompt_id="p2"), stop(prompt_id="p2"))
    report(story, notification())
    assert parents(story) == {"n1": 1}


def test_without_the_call_the_task_id_names_the_turn(story: Story) -> None:
    start_task(story)
    start_task(story, "p2", tool_use_id="other", tool_response={"agentId": "t10"})
    report(story, notification(call=""))
    assert parents(story) == {"n1": 1}


def test_without_any_id_it_belongs_to_the_latest_turn_that_started_a_task(story: Story) -> None:
    start_task(story)
    start_task(story, "p2", tool_use_id="other")
    story.tell(prompt("Light the lamp", prompt_id="p3"), stop(prompt_id="p3"))
    report(story, notification("unknown", ""))
    assert parents(story) == {"n1": 2}


def test_a_notice_in_a_session_without_tasks_has_no_parent(story: Story) -> None:
    report(story, notification())
    assert parents(story) == {"n1": None}


def test_a_notice_that_arrives_twice_or_late_is_one_turn_and_not_private(story: Story) -> None:
    start_task(story)
    of = {"prompt_id": "n1"}
    story.tell(edit(**of), prompt(notification(), **of), prompt(notification(), **of), stop(**of))
    assert parents(story) == {"n1": 1}
    assert story.column("SELECT private FROM user_prompts") == [0, 0]
    assert story.column("SELECT count(*) FROM tool_events WHERE turn_id = 2") == [3]


def test_its_text_is_no_prompt_no_title_and_no_first_prompt_of_its_session(story: Story) -> None:
    report(story, notification())
    assert story.store.page("prompts", Page())[0] == []
    (session,) = story.rows("SELECT title, subtitle, user_prompt FROM sdk_sessions")
    assert session["user_prompt"] is None
    titles = story.column("SELECT title FROM observations UNION ALL SELECT request FROM"
                          " session_summaries")  # fmt: skip
    for text in (*titles, session["title"], session["subtitle"]):
        assert "Survey" not in (text or "") and "background" not in (text or "")


def test_its_report_is_kept_in_the_record_and_its_work_is_remembered(story: Story) -> None:
    start_task(story)
    report(story, notification())
    (parts,) = story.column("SELECT parts FROM turn_records WHERE turn_id = 2")
    assert '["report", "subagent", "The cellar is damp."]' in parts
    assert '"user"' not in parts
    assert "cellar.py" in str(story.rows("SELECT * FROM session_summaries WHERE turn_id = 2"))


# Shown


def test_search_timeline_and_memories_say_what_it_continues(story: Story) -> None:
    start_task(story)
    report(story, notification())
    (first,) = story.column("SELECT id FROM session_summaries WHERE turn_id = 1")
    named = story.column("SELECT id FROM observations WHERE turn_id = 1 ORDER BY ordinal LIMIT 1")
    parent = f"#{named[0]}" if named else f"S{first}"
    (mine,) = story.column("SELECT id FROM session_summaries WHERE turn_id = 2")
    shown = search_text(search(story.store, Query("damp cellar"), NOW), UTC)
    assert f"continues {parent})" in shown
    rows = timeline(story.store, TimelineQuery(MemoryId("summary", mine)), NOW)
    assert f"continues {parent})" in timeline_text(rows, UTC)
    (record,) = story.store.get_many("summaries", [mine])
    assert record["continues"] == parent
    (before,) = story.store.get_many("summaries", [first])
    assert before["continues"] is None


def test_the_words_of_a_session_include_those_of_its_notices(
    story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    start_task(story)
    report(story, notification())
    for kind, record in _session_records(story.store, SESSION, with_record=True):
        _print_record(kind, record)
    shown = capsys.readouterr().out
    assert shown.count("The cellar is damp.") == 1
    assert shown.count("user, prompt") == 1
    assert "continues: " in shown


# Elsewhere


def test_a_transcript_gives_the_same_turns(tmp_path: Path) -> None:
    chat = Chat().prompt("Survey the house")
    chat.tool("Agent", {"description": "Survey", "run_in_background": True},
              {"status": "async_launched", "agentId": "t9"}, call=CALL)  # fmt: skip
    chat.agent("It runs.").prompt("Light the lamp").agent("Lit.")
    chat.prompt(notification(call="")).agent("Sealed `cellar.py`.")
    chat.prompt(notification()).edit("/home/dev/harbor/cellar.py").agent("Sealed it again.")
    file = tmp_path / f"{chat.session}.jsonl"
    file.write_bytes(chat.data())
    target = ImportTarget(tmp_path / "data")
    for _ in range(2):
        target.run(file, again=True)
        turns = target.contents["prompts"]
        assert [row[4] for row in sorted(turns, key=lambda row: row[2])] == [
            "Survey the house", "Light the lamp", None, None,
        ]  # fmt: skip
        with Story(tmp_path) as story:
            rows = story.rows(
                "SELECT notice, parent_turn, private FROM user_prompts ORDER BY prompt_number"
            )
            assert [(r["notice"], r["parent_turn"], r["private"]) for r in rows] == [
                (0, None, 0), (0, None, 0), (1, 1, 0), (1, 1, 0),
            ]  # fmt: skip


def test_an_export_keeps_the_link(story: Story, tmp_path: Path) -> None:
    start_task(story)
    report(story, notification())
    file = tmp_path / "export.jsonl"
    file.write_bytes(dump(story.store))
    with Story(tmp_path / "other") as other:
        other.tell(prompt("Elsewhere", session_id="before"))
        restore(other.store, file, Redactor())
        (child,) = other.rows("SELECT parent_turn FROM user_prompts WHERE notice = 1")
        (parent,) = other.rows("SELECT id FROM user_prompts WHERE prompt_id = 'p1'")
        assert child["parent_turn"] == parent["id"]


def test_forgetting_the_parent_leaves_the_notice_without_one(story: Story) -> None:
    start_task(story)
    report(story, notification())
    before = contents_of(story.layout.database)
    story.store.write(lambda c: c.execute("DELETE FROM user_prompts WHERE id = 1")).result()
    assert parents(story) == {"n1": None}
    assert contents_of(story.layout.database) != before


# Slash commands


def test_a_slash_command_in_tags_is_stored_as_it_was_typed(story: Story) -> None:
    wrapped = (
        "<command-message>review</command-message>\n<command-name>/review</command-name>\n"
        "<command-args>the lamp</command-args>"
    )
    story.tell(prompt(wrapped), stop("The lamp leaks oil."))
    assert story.column("SELECT prompt_text FROM user_prompts") == ["/review the lamp"]

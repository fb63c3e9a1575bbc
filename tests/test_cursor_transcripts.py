"""Payload shapes of Cursor's transcripts, which have no ids, no times and no results of tools."""

import json
from pathlib import Path

import pytest

from claude_mem.agents.cursor import directories_called, folder_name
from claude_mem.errors import BadInput
from claude_mem.intake.transcripts.importer import import_transcripts
from claude_mem.intake.transcripts.transcript import open_transcript
from claude_mem.language.prompt import parse_prompt
from tests import agent_payloads, agent_transcripts
from tests.agent_payloads import ANSWER, LIGHT, REQUEST
from tests.payloads import PROJECT_DIR
from tests.story import Story
from tests.test_agent_payloads import record
from tests.test_agent_transcripts import OPTIONS, observations, summary


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    return agent_transcripts.cursor(tmp_path / "home")


def test_a_transcript_gives_the_events_of_the_session(transcript: Path) -> None:
    opened = open_transcript(transcript)
    events = list(opened.events())
    assert opened.dialect == "cursor"
    assert [event.kind for event in events] == [
        "SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUse", "PostToolUse",
        "Statement", "Stop", "SessionEnd",
    ]  # fmt: skip
    assert parse_prompt(str(events[1].payload["prompt"])).typed == REQUEST
    assert [event.payload["tool_name"] for event in events[2:5]] == ["Bash", "Edit", "Bash"]
    assert events[6].payload["last_assistant_message"] == ANSWER
    assert {event.payload.get("cwd", PROJECT_DIR) for event in events} == {PROJECT_DIR}


def test_the_import_gives_the_memory_of_the_hooks_except_for_results_of_commands(
    story: Story, other: Story, transcript: Path
) -> None:
    record(story, "cursor", agent_payloads.cursor())
    story.distil()
    report = import_transcripts(other.store, [transcript], OPTIONS)
    assert (report.all.turns, report.troubles) == (1, [])
    live, imported = summary(story), summary(other)
    known_only_to_hooks = ("commands", "faults", "notes")
    assert [run["outcome"] for run in live["commands"]] == ["failed"]
    assert imported["commands"] in (None, [])
    for name in known_only_to_hooks:
        live.pop(name)
        imported.pop(name)
    assert imported == live
    assert observations(other) == observations(story)


def test_nothing_of_a_session_that_hooks_recorded_is_imported(
    story: Story, transcript: Path
) -> None:
    record(story, "cursor", agent_payloads.cursor())
    story.distil()
    with transcript.open("a") as file:
        file.write('{"role": "user", "message": {"content": "And once more"}}\n')
    report = import_transcripts(story.store, [transcript], OPTIONS)
    assert (report.all.turns, report.all.existing) == (0, 2)
    assert len(story.rows("SELECT 1 FROM user_prompts")) == 1


def test_a_session_that_went_on_is_imported_again_without_doubles(
    story: Story, transcript: Path
) -> None:
    import_transcripts(story.store, [transcript], OPTIONS)
    for _ in range(2):
        with transcript.open("a") as file:
            file.write('{"role": "user", "message": {"content": "Once more"}}\n')
            file.write('{"role": "assistant", "message": {"content": "Done."}}\n')
        import_transcripts(story.store, [transcript], OPTIONS)
    prompts = story.rows("SELECT prompt_text FROM user_prompts ORDER BY prompt_number")
    assert [row["prompt_text"] for row in prompts] == [REQUEST, "Once more", "Once more"]


def test_a_private_prompt_makes_its_turn_private(story: Story, transcript: Path) -> None:
    private = f"<private>{REQUEST}</private>"
    transcript.write_text(transcript.read_text().replace(REQUEST, private))
    report = import_transcripts(story.store, [transcript], OPTIONS)
    assert (report.all.turns, report.all.private) == (0, 1)
    assert story.rows("SELECT 1 FROM session_summaries") == []


def test_the_directory_is_that_of_a_path_in_the_session_or_one_that_exists(
    tmp_path: Path, transcript: Path
) -> None:
    assert folder_name("/home/dev/.nosync/dp-2.0") == "home-dev-nosync-dp-2-0"
    (tmp_path / "code" / "my_app").mkdir(parents=True)
    name = folder_name(f"{tmp_path}/code/my_app")
    assert list(directories_called(name)) == [f"{tmp_path}/code/my_app"]
    (tmp_path / "code" / "my" / "app").mkdir(parents=True)
    assert len(list(directories_called(name))) == 2
    lines = [json.loads(line) for line in transcript.read_text().splitlines()]
    agent_transcripts.write_lines(transcript, [lines[0], lines[3]])  # no path names the directory
    with pytest.raises(BadInput, match="the directory of this session is not known"):
        list(open_transcript(transcript).events())
    assert LIGHT.startswith(PROJECT_DIR) and not Path(PROJECT_DIR).exists()

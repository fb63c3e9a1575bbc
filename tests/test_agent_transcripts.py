"""Past sessions of other agents: their transcripts give the memory that their hooks give."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from claude_mem.agents import all_agents
from claude_mem.intake.transcripts.import_options import ImportOptions
from claude_mem.intake.transcripts.importer import import_transcripts
from claude_mem.intake.transcripts.transcript import open_transcript
from claude_mem.language.prompt import parse_prompt
from claude_mem.worker.distil_jobs import JobRunner, TranscriptAdditions
from tests import agent_payloads, agent_transcripts
from tests.agent_payloads import ANSWER, FAILURE, REQUEST
from tests.agent_transcripts import TRANSCRIPTS
from tests.conftest import Home
from tests.live_files import contents_below
from tests.payloads import PROJECT_DIR
from tests.story import Story
from tests.test_agent_payloads import record

BY_NAME = {agent.name: agent for agent in all_agents()}
OPTIONS = ImportOptions(own_root="/nowhere", home="", keep_raw_since=0)
TEXTS = ("request", "investigated", "learned", "completed", "files_edited", "files_read", "notes",
         "commands", "faults")  # fmt: skip


def summary(story: Story) -> dict[str, Any]:
    (row,) = story.rows("SELECT * FROM session_summaries")
    return {name: _without_sources(row[name]) for name in TEXTS}


def _without_sources(text: Any) -> Any:
    try:
        value = json.loads(text)
    except (TypeError, ValueError):
        return text
    return [{k: v for k, v in item.items() if k != "sources"} if isinstance(item, dict) else item
            for item in value]  # fmt: skip


def observations(story: Story) -> list[tuple[Any, ...]]:
    rows = story.rows("SELECT type, title, narrative, files_modified FROM observations ORDER BY id")
    return [tuple(row.values()) for row in rows]


@pytest.mark.parametrize("name", [n for n in TRANSCRIPTS if n != "cursor"])
def test_a_transcript_gives_the_events_of_the_session(name: str, tmp_path: Path) -> None:
    path = TRANSCRIPTS[name](tmp_path)
    transcript = open_transcript(path)
    events = list(transcript.events())
    assert transcript.dialect == name
    assert [event.kind for event in events] == [
        "SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUse", "PostToolUseFailure",
        "Statement", "Stop", "SessionEnd",
    ]  # fmt: skip
    assert parse_prompt(str(events[1].payload["prompt"])).typed == REQUEST
    response: Any = events[2].payload["tool_response"]
    assert response["stdout"].strip() == "built"
    assert events[4].payload["error"] == f"Exit code 2\n{FAILURE}"
    assert events[6].payload["last_assistant_message"] == ANSWER
    assert all(
        event.payload["session_id"] == agent_transcripts.session_id(name) for event in events
    )
    assert {event.payload.get("cwd", PROJECT_DIR) for event in events} == {PROJECT_DIR}
    assert all(event.at_ms for event in events)


def distil_as_the_worker_does(story: Story) -> None:
    transcript_additions = TranscriptAdditions(story.store, story.reader)
    jobs = JobRunner(
        story.layout,
        story.store,
        story.announcer,
        story.contexts,
        transcript_additions=transcript_additions,
    )
    asyncio.run(jobs.run_due())


def with_transcript(payloads: agent_payloads.Story, path: Path) -> agent_payloads.Story:
    """The payloads of a client that writes its transcript to this file."""
    paths = {"transcript_path": str(path), "transcriptPath": str(path)}
    return [(kind, {k: paths.get(k, v) for k, v in payload.items()}) for kind, payload in payloads]


@pytest.mark.parametrize("name", [n for n in TRANSCRIPTS if n != "cursor"])
def test_imported_and_recorded_sessions_have_the_same_memory(
    name: str, story: Story, other: Story, tmp_path: Path
) -> None:
    """Codex's hooks do not report failures, and Copilot's not the last message: the worker reads
    them from the transcript."""
    path = TRANSCRIPTS[name](tmp_path / "home")
    record(story, name, with_transcript(agent_payloads.STORIES[name](), path))
    distil_as_the_worker_does(story)
    import_transcripts(other.store, [path], OPTIONS)
    assert summary(other) == summary(story)
    assert observations(other) == observations(story)
    (session,) = other.rows("SELECT dialect FROM sdk_sessions")
    assert session["dialect"] == name


def test_a_failure_that_only_the_transcript_knows_is_stored_once(
    story: Story, tmp_path: Path
) -> None:
    payloads = with_transcript(agent_payloads.codex(), TRANSCRIPTS["codex"](tmp_path / "home"))
    for _ in range(2):  # the second time as after a crash of the worker
        record(story, "codex", payloads)
        distil_as_the_worker_does(story)
    rows = story.rows("SELECT event, text FROM tool_events WHERE tool_name = 'Bash' ORDER BY id")
    assert [tuple(row.values()) for row in rows] == [
        ("PostToolUse", None),
        ("PostToolUseFailure", f"Exit code 2\n{FAILURE}"),
    ]


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_a_session_that_hooks_recorded_is_not_imported_again(
    name: str, story: Story, tmp_path: Path
) -> None:
    record(story, name, agent_payloads.STORIES[name]())
    story.distil()
    report = import_transcripts(story.store, [TRANSCRIPTS[name](tmp_path / "home")], OPTIONS)
    assert (report.all.turns, report.all.existing) == (0, 1)
    assert len(story.rows("SELECT 1 FROM user_prompts")) == 1


def test_an_export_of_opencode_is_imported(story: Story, tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    path.write_text(json.dumps(agent_transcripts.opencode_session(), indent=1))
    report = import_transcripts(story.store, [path], OPTIONS)
    assert (report.all.turns, report.troubles) == (1, [])
    assert summary(story)["files_edited"] == ["light.py"]


@pytest.mark.parametrize("name", [n for n in TRANSCRIPTS if n != "opencode"])
def test_private_text_and_damaged_lines_are_left_out(
    name: str, story: Story, tmp_path: Path
) -> None:
    path = TRANSCRIPTS[name](tmp_path / "home")
    text = path.read_text().replace(ANSWER, "Done. <private>the code is marmalade</private>")
    path.write_text(text + '{"type": "user", "half a li\n')
    report = import_transcripts(story.store, [path], OPTIONS)
    assert (report.all.turns, report.unreadable) == (1, 1)
    assert not any(b"marmalade" in data for data in contents_below(story.layout.root).values())


def test_the_command_finds_the_sessions_of_all_agents(home: Home) -> None:
    for name, write in TRANSCRIPTS.items():
        agent = BY_NAME[name]
        write(home.path / (agent.data_home or agent.home))
    only = home.command("import", "--agent", "gemini", "--dry-run", "--json")
    assert json.loads(only.stdout)["sessions"] == 1, only.stderr
    done = home.command("import", "--json")
    assert json.loads(done.stdout)["sessions"] == len(TRANSCRIPTS), done.stderr
    dialects = {row["dialect"] for row in home.rows("SELECT dialect FROM sdk_sessions")}
    assert dialects == set(TRANSCRIPTS)

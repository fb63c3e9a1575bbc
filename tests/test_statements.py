"""The statements of one turn are statements in the transcript of its session."""

import os
from pathlib import Path
from typing import Any

import pytest

from claude_mem.errors import BadInput
from claude_mem.intake.transcripts.transcript import additions_to
from claude_mem.types import Project, Turn
from tests.payloads import PROJECT_DIR
from tests.transcripts import OLD, SESSION, Chat, read_events


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / f"{SESSION}.jsonl"


def turn_of(prompt_id: str, **changes: Any) -> Turn:
    values: dict[str, Any] = {
        "id": 1, "session_db_id": 1, "content_session_id": SESSION, "memory_session_id": "",
        "project": Project("k", "n"), "project_dir": PROJECT_DIR, "transcript_path": "",
        "prompt_id": prompt_id, "prompt_number": 1, "prompt": "", "started_ms": OLD, "events": (),
    }  # fmt: skip
    return Turn(**{**values, **changes})


def test_statements_of_a_turn_are_its_sessions_and_no_others(file: Path) -> None:
    mine = Chat().prompt("One").agent("Mine.")
    prompt_id = f"prompt-{SESSION}-0001"
    other = Chat("another").user("One", promptId=prompt_id).agent("Not mine.")
    file.write_bytes(other.data() + mine.data() + other.data())
    statements = additions_to(file, turn_of(prompt_id))
    assert [event.payload["statement"] for event in statements] == ["Mine."]
    assert additions_to(file, turn_of(prompt_id, content_session_id="a-third")) == []


def test_statements_are_those_of_the_turn_and_not_of_the_next(file: Path) -> None:
    chat = Chat().prompt("One").agent("1.").prompt("Two").agent("2.").prompt("Three").agent("3.")
    file.write_bytes(chat.data())
    second = read_events(file, chat)[4].payload["prompt_id"]
    statements = additions_to(file, turn_of(str(second)))
    assert [event.payload["statement"] for event in statements] == ["2."]


def test_without_prompt_ids_a_turn_in_the_same_words_is_found_by_its_number(file: Path) -> None:
    chat = Chat(prompt_ids=False)
    for text in ("First.", "Second.", "Third."):
        chat.prompt(" go on\n").agent(text)
    file.write_bytes(chat.data())
    for number, text in ((1, "First."), (2, "Second."), (3, "Third.")):
        turn = turn_of(f"number-{number}", prompt="go on", prompt_number=number)
        assert [event.payload["statement"] for event in additions_to(file, turn)] == [text]


def test_without_prompt_ids_a_turn_that_hooks_saw_late_is_found_by_its_time(file: Path) -> None:
    chat = Chat(prompt_ids=False)
    for text in ("First.", "Second."):
        chat.prompt("go on").agent(text)
    turn = turn_of("number-7", prompt="go on", prompt_number=7, started_ms=OLD + 3100)
    file.write_bytes(chat.data())
    assert [event.payload["statement"] for event in additions_to(file, turn)] == ["Second."]


@pytest.mark.parametrize("has_ids", [True, False])
def test_a_prompt_that_no_hook_reported_comes_from_the_transcript(
    file: Path, has_ids: bool
) -> None:
    chat = Chat(prompt_ids=has_ids).prompt("One").agent("1.").prompt("Two").agent("2.")
    file.write_bytes(chat.data())
    prompts = [event for event in read_events(file, chat) if event.kind == "UserPromptSubmit"]
    prompt_id = str(prompts[1].payload["prompt_id"]) if has_ids else "number-1"
    started = (prompts[1].at_ms or 0) + 1
    prompt, statement = additions_to(file, turn_of(prompt_id, prompt=None, started_ms=started))
    assert prompt.payload["prompt"] == "Two" and statement.payload["statement"] == "2."


def test_a_turn_that_the_file_does_not_have_yet_has_no_statements(file: Path) -> None:
    file.write_bytes(Chat().prompt("One").agent("1.").data())
    assert additions_to(file, turn_of("not-there")) == []
    assert additions_to(file, turn_of("number-1", prompt="Another")) == []
    file.write_bytes(b"")
    assert additions_to(file, turn_of("not-there")) == []


def test_a_pipe_in_a_transcripts_place_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(BadInput, match="is not a file"):
        additions_to(tmp_path / "pipe.jsonl", turn_of("x"))

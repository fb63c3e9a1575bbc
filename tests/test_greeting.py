"""What the user sees: a line at the start of a session, and each problem once."""

import json
import os
from datetime import datetime

import pytest

from claude_mem.hook import trouble
from claude_mem.store.given_hints import GivenLine
from claude_mem.store.listing import RememberedCounts
from claude_mem.worker.lock import WorkerLock
from claude_mem.worker.session_start import (
    FIRST_LINE_WIDTH,
    LINE_WIDTH,
    NOTHING_YET,
    greeting,
    welcome,
)
from tests.conftest import Home
from tests.importing import run_import
from tests.payloads import PROJECT_DIR, prompt, session_end, session_start, stop, tool
from tests.remembering import remember
from tests.story import Story
from tests.transcripts import PROJECTS, Chat


def message(home: Home, source: str = "startup", session: str = "now") -> str:
    answer = json.loads(home.hook(session_start(source, session_id=session)).stdout)
    return str(answer.get("systemMessage", ""))


@pytest.fixture
def running(home: Home) -> Home:
    home.start_worker()
    return home


def live(home: Home, session: str, text: str) -> None:
    identity = {"session_id": session, "prompt_id": f"{session}-1"}
    home.hook(session_start(session_id=session))
    for payload in (prompt(text, **identity), stop(**identity), session_end(**identity)):
        home.hook(payload)
    home.wait_settled()


def test_the_first_session_is_told_that_memory_is_on(running: Home) -> None:
    text = message(running)
    assert text.startswith("claude-mem: memory is on.")
    assert "claude-mem open" in text and "Tip: " in text
    assert_fits_a_terminal(text)
    assert message(running, session="next") == "", "it comes once"


def assert_fits_a_terminal(text: str) -> None:
    first, *others = text.splitlines()
    assert len(first) <= FIRST_LINE_WIDTH
    assert others and max(map(len, others)) <= LINE_WIDTH


def test_a_welcome_to_a_long_past_fits_a_terminal() -> None:
    assert_fits_a_terminal(welcome(RememberedCounts(sessions=12_345, projects=678)))


def test_the_first_session_after_an_import_is_told_what_is_remembered(home: Home) -> None:
    for number in (1, 2):
        chat = Chat(f"past-{number}").prompt(f"Light lamp {number}").agent(f"Lamp {number} is lit.")
        chat.save(home.path / PROJECTS / "-home-dev-harbor" / f"past-{number}.jsonl")
    run_import(home)
    home.start_worker()
    first = message(home)
    assert "2 sessions in 1 project remembered" in first
    assert_fits_a_terminal(first)
    assert "claude-mem open" in first and "Tip: " in first
    live(home, "one", "Light the lamp")
    assert message(home, session="next").startswith("claude-mem: the agent got the last session")


def test_the_welcome_waits_while_a_problem_is_shown(running: Home) -> None:
    trouble.report(os.fsencode(running.layout.root), "the disk is full")
    assert "the disk is full" in message(running, session="one")
    assert message(running, session="two").startswith("claude-mem: memory is on.")
    assert message(running, session="three") == ""


def test_the_welcome_waits_for_a_session_that_has_a_worker(home: Home) -> None:
    lock = WorkerLock.acquire(home.layout)  # no worker can start
    assert lock is not None
    try:
        assert message(home, session="one") == ""
    finally:
        lock.release()
    home.start_worker()
    home.wait_settled()
    assert message(home, session="two").startswith("claude-mem: memory is on.")
    assert message(home, session="three") == ""


@pytest.mark.parametrize("source", ["resume", "compact", "fork"])
def test_the_welcome_waits_for_a_new_session(running: Home, source: str) -> None:
    assert message(running, source, session="one") == ""
    assert message(running, "clear", session="two").startswith("claude-mem: memory is on.")


def test_what_was_saved_by_hand_before_it_is_no_session(running: Home) -> None:
    assert running.command("remember", "The bell is cracked", "--project", "harbor").returncode == 1
    done = running.command("remember", "The bell is cracked", CLAUDE_PROJECT_DIR=PROJECT_DIR)
    assert done.returncode == 0, done.stderr
    assert message(running).startswith("claude-mem: memory is on.")


def today() -> str:
    now = datetime.now()
    return f"{now.day} {now:%b}"


def test_later_ones_are_told_what_the_agent_was_given(running: Home) -> None:
    live(running, "one", "Light the lamp")
    assert message(running) == (
        f"claude-mem: the agent got the last session ({today()}); hints are on"
    )


def test_sessions_before_the_last_are_counted_that_the_context_shows(story: Story) -> None:
    for name in ("one", "two", "three"):
        remember(story, f"Light the lamp of pier {name}", session=name)
    (project,) = story.column("SELECT id FROM projects")
    context = (
        "\n## Last session\n- Paint it\n\n## Earlier sessions\n- 2026-03-09 Lamp one\n"
        "- 2026-03-09 Lamp two\n\n## Areas worked in\n- pier/ (lamp.py): Paint the mast"
    )
    text = greeting(story.store, project, "now", context, has_hints=False)
    assert text.endswith("), 2 earlier")


def test_without_hints_none_are_announced(home: Home) -> None:
    assert home.command("settings", "CLAUDE_MEM_HINTS", "no").returncode == 0
    home.start_worker()
    live(home, "one", "Light the lamp")
    assert message(home) == f"claude-mem: the agent got the last session ({today()})"


def test_hints_of_the_last_session_are_counted(story: Story) -> None:
    remember(story, "Light the lamp", session="one")
    (turn,) = story.column("SELECT id FROM user_prompts")
    (project,) = story.column("SELECT id FROM projects")
    line = GivenLine(turn, "1", "#1 The lamp", ("lamp",), 1.0)
    story.store.save_hint("one", project, [line, line]).result()
    text = greeting(story.store, project, "two", "a context", has_hints=True)
    assert text.endswith("; hints are on (1 last time)")


def test_rules_are_counted_that_the_context_shows(running: Home) -> None:
    live(running, "one", "From now on always run the harbour tests before you commit.")
    assert f"({today()}), 1 rule" in message(running)


@pytest.mark.parametrize("source", ["resume", "compact", "fork"])
def test_a_session_that_goes_on_is_told_nothing(running: Home, source: str) -> None:
    live(running, "one", "Light the lamp")
    assert message(running, source) == ""


def test_trouble_is_told_once_and_not_at_every_prompt(running: Home) -> None:
    running.hook("{}".encode("utf-16"), "PostToolUse")
    assert b"systemMessage" not in running.hook(prompt()).stdout
    assert b"systemMessage" not in running.hook(tool()).stdout
    assert "the payload is not UTF-8" in message(running)
    assert "the payload is not UTF-8" not in message(running)


def test_an_unrelated_project_is_not_told_of_others(running: Home) -> None:
    live(running, "one", "Light the lamp")
    other = session_start(session_id="x", cwd="/home/dev/other")
    done = running.hook(other, CLAUDE_PROJECT_DIR="/home/dev/other")
    assert b"systemMessage" not in done.stdout


@pytest.mark.parametrize(
    "unattended",
    [{"CLAUDE_CODE_SESSION_ATTENDED": "0"}, {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}],
    ids=" ".join,
)
def test_a_session_without_a_user_uses_up_no_message(
    home: Home, unattended: dict[str, str]
) -> None:
    def shown(**environment: str) -> str:
        answer = json.loads(home.hook(session_start(), **environment).stdout)
        return str(answer.get("systemMessage", ""))

    home.start_worker()
    assert shown(**unattended) == ""
    attended = {"CLAUDE_CODE_SESSION_ATTENDED": "1", "CLAUDE_CODE_ENTRYPOINT": "cli"}
    assert shown(**attended) == NOTHING_YET
    root = os.fsencode(home.layout.root)
    trouble.report(root, "it rained")
    assert shown(**unattended) == ""
    home.command("worker", "stop")
    with home.without_worker():
        assert shown(**unattended) == ""
        assert "it rained" in shown(**attended)

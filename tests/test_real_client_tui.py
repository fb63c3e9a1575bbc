"""The real client as a person uses it: in a terminal, with Esc, /compact and /clear."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from claude_mem.worker.session_start import NOTHING_YET
from tests.conftest import Home, wait_until
from tests.fake_api import FakeApi, Reply, tool_call
from tests.observed import by_topic, use
from tests.real_client import Client, needs_client
from tests.terminal import Terminal
from tests.test_observer_processes import observers

pytestmark = [needs_client, pytest.mark.extra]


@pytest.fixture
def client(home: Home, api: FakeApi) -> Client:
    client = Client.in_new_project(home, api, "lighthouse")
    assert client.claude_mem("install", "--scope", "user", "--yes").returncode == 0
    config = home.path / ".claude.json"
    config_data = json.loads(config.read_text()) if config.exists() else {}
    onboarding = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["test-key"], "rejected": []},
        "projects": {str(client.project): {"hasTrustDialogAccepted": True}},
    }
    config.write_text(json.dumps({**config_data, **onboarding}))
    return client


@pytest.fixture
def terminal(client: Client) -> Iterator[Terminal]:
    opened = Terminal([str(client.path)], client.project, client.env())
    wait_until(lambda: "SessionStart" in names(client.home), "the start of the session")
    wait_until(lambda: opened.shows("❯"), "the prompt")
    yield opened
    opened.close()


def stored(home: Home) -> list[dict[str, Any]]:
    import sqlite3

    try:
        return home.rows("SELECT event, detail, text FROM tool_events ORDER BY id")
    except sqlite3.OperationalError:
        return []


def names(home: Home) -> list[str]:
    return [row["event"] for row in stored(home)]


def sources(home: Home) -> list[str]:
    return [
        json.loads(row["detail"])["source"]
        for row in stored(home)
        if row["event"] == "SessionStart"
    ]


def enter(terminal: Terminal, line: str, happened: Callable[[], Any]) -> None:
    """Types a line and presses Return until it has an effect: the client drops keys while busy."""
    terminal.press(line)
    wait_until(lambda: terminal.shows(line), f"the echo of {line!r}")
    for _ in range(40):
        terminal.press("\r")
        if _soon(happened):
            return
    wait_until(happened, f"the effect of {line!r}")


def _soon(happened: Callable[[], Any]) -> bool:
    try:
        return bool(_wait_briefly(happened))
    except AssertionError:
        return False


def _wait_briefly(happened: Callable[[], Any]) -> Any:
    import time

    deadline = time.monotonic() + 1.0
    while not (answer := happened()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return answer


def test_a_sitting_with_compact_and_clear_is_remembered(client: Client, terminal: Terminal) -> None:
    home, api = client.home, client.api
    api.say(tool_call("Bash", command="echo the lamp is lit"), Reply("The harbour is lit"))
    enter(terminal, "Light the harbour", lambda: "Stop" in names(home))
    wait_until(lambda: terminal.shows("memory is on"), "the first session's line")
    for line in NOTHING_YET.splitlines():
        assert terminal.shows(line)
    assert "claude-mem: memory" not in api.sent() and "<claude-mem-context>" not in api.sent()
    enter(terminal, "/compact", lambda: "PostCompact" in names(home))
    enter(terminal, "/clear", lambda: "clear" in sources(home))
    home.wait_settled()
    assert {"PreCompact", "SubagentStop", "SessionEnd"} <= set(names(home))
    assert sources(home) == ["startup", "compact", "clear"]
    sessions = home.rows("SELECT status FROM sdk_sessions ORDER BY id")
    assert [row["status"] for row in sessions] == ["completed", "active"]
    wait_until(lambda: terminal.shows("the agent got the last session"), "the next session's line")
    api.forget()
    api.say(Reply("I remember."))
    enter(terminal, "What do you know?", lambda: "What do you know?" in api.sent())
    assert "The harbour is lit" in api.sent() and "claude-mem: gave" not in api.sent()


def test_escape_ends_a_turn_without_a_word_and_the_next_prompt_closes_it(
    client: Client, terminal: Terminal
) -> None:
    home, api = client.home, client.api
    released = threading.Event()
    api.say(tool_call("Bash", command="echo begun"), Reply("never said", hold=released))
    enter(terminal, "Row to the island", lambda: "PostToolUse" in names(home))
    wait_until(lambda: not api.replies, "the request that is to be interrupted")
    terminal.press("\x1b")
    wait_until(lambda: terminal.shows("Interrupted"), "the interruption")
    released.set()
    assert "Stop" not in names(home)
    api.say(Reply("Back on the shore"))
    enter(terminal, "Row back", lambda: "Stop" in names(home))
    home.wait_settled()
    summaries = home.rows("SELECT request, completed FROM session_summaries ORDER BY id")
    assert summaries == [
        {"request": "Row to the island", "completed": None},
        {"request": "Row back", "completed": "Back on the shore"},
    ]


def test_the_resume_list_shows_the_persons_sessions_and_none_of_the_observer(
    client: Client,
) -> None:
    home, api = client.home, client.api
    use(home, api, "claude")
    client.environment |= home.environment
    client.claude_mem("worker", "restart")  # with this environment
    api.otherwise = by_topic
    api.say(Reply("The harbour light is repaired"))
    sitting = Terminal([str(client.path)], client.project, client.env())
    wait_until(lambda: "SessionStart" in names(home), "the start of the session")
    wait_until(lambda: sitting.shows("❯"), "the prompt")
    enter(sitting, "Repair topic-light", lambda: "Stop" in names(home))
    wait_until(lambda: observers(home) == ["claude"], "the revision")
    sitting.close()
    # What the observer said is there, so that a list could show it.
    assert list((home.path / ".claude" / "projects").glob("*-observer/*.jsonl"))
    listed = Terminal([str(client.path), "--resume"], client.project, client.env())
    wait_until(lambda: listed.shows("Repair topic-light"), "the list")
    listed.shown = b""
    listed.press("\x01")
    wait_until(lambda: listed.shows("only show current repo"), "the list of all projects")
    wait_until(lambda: listed.shows("Repair topic-light"), "the session in it")
    assert not listed.shows("of a session that you have not seen")
    assert not listed.shows(".claude-mem/observer")
    listed.close()

"""The v4 specification: its commands take its payloads. Each test names the section it is about.

Where later documents differ, they count: commands answer as hooks do, the context is JSON, and
`streaming_sessions` is `sdk_sessions`.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import wait_until
from tests.seed_worker import CONTINUE, SeedWorker, running_worker

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeedWorker]:
    with running_worker(tmp_path_factory.mktemp("seed-001")) as running:
        yield running


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("work") / "lantern"
    path.mkdir()
    return str(path)


def payload(event: str, session: str | None, directory: str, **fields: Any) -> dict[str, Any]:
    common = {"hook_event_name": event, "cwd": directory, **fields}
    return common if session is None else {**common, "session_id": session}


def context_of(answer: dict[str, Any]) -> str:
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


# Testing Strategy, Integration Tests: full lifecycle


def test_integration_tests_a_whole_session_by_commands(worker: SeedWorker, directory: str) -> None:
    start = payload("SessionStart", "whole", directory, source="startup",
                    transcript_path=f"{directory}/none.jsonl")  # fmt: skip
    worker.run("context", start)
    prompt = "Make the lantern blink"
    at = "2025-10-15T19:30:00Z"
    worker.run("new", payload("UserPromptSubmit", "whole", directory, prompt=prompt, timestamp=at))
    flag = wait_until(lambda: _flag(worker, active=True), "the flag")  # "Set activity flag"
    assert (flag["project"], flag["timestamp"]) == ("lantern", 1_760_556_600_000)
    change = {"file_path": f"{directory}/lantern.py", "old_string": "on()", "new_string": "blink()"}
    worker.run(
        "save",
        payload("PostToolUse", "whole", directory, tool_name="Edit", tool_input=change,
                tool_response={"content": "ok"}, timestamp="2025-10-15T19:30:05Z"),
    )  # fmt: skip
    worker.run(
        "summary",
        payload("Stop", "whole", directory, last_assistant_message="The lantern blinks now."),
    )
    wait_until(lambda: _flag(worker, active=False), "the flag")  # "Clear activity flag"
    summary = wait_until(
        lambda: worker.rows(
            "SELECT m.request, m.files_edited FROM session_summaries m JOIN sdk_sessions s"
            " ON s.memory_session_id = m.memory_session_id WHERE s.content_session_id = 'whole'"
        ),
        "the summary",
    )[0]
    assert summary["request"] == prompt
    assert "lantern.py" in summary["files_edited"]
    worker.run("cleanup", payload("SessionEnd", "whole", directory, reason="exit"))
    completed = "SELECT 1 FROM sdk_sessions WHERE content_session_id = ? AND status = 'completed'"
    wait_until(lambda: worker.rows(completed, "whole"), "the end")
    row = worker.session("whole")
    assert row["completed_at"] and row["completed_at_epoch"]


def _flag(worker: SeedWorker, *, active: bool) -> dict[str, Any] | None:
    try:
        flag: dict[str, Any] = json.loads(worker.layout.activity_flag.read_text())
    except FileNotFoundError:
        return None
    return flag if flag["active"] is active else None


def test_the_four_commands_context_gives_the_next_session_what_the_last_one_did(
    worker: SeedWorker, directory: str
) -> None:
    start = payload("SessionStart", "next", directory, source="startup")
    context = context_of(worker.run("context", start))
    assert "lantern" in context and "blink" in context


def test_the_four_commands_context_gives_nothing_to_a_resumed_session_that_had_none(
    worker: SeedWorker, directory: str
) -> None:
    start = payload("SessionStart", "whole", directory, source="resume")
    assert context_of(worker.run("context", start)) == ""


# Database Schema


def test_database_schema_the_columns_of_a_session(worker: SeedWorker) -> None:
    row = worker.session("whole")
    assert row["started_at"].startswith("20") and row["started_at_epoch"] > 10**12
    assert row["updated_at"] and row["updated_at_epoch"] >= row["started_at_epoch"]
    assert row["title"] and row["user_prompt"] == "Make the lantern blink"
    names = {"content_session_id", "memory_session_id", "subtitle", "status"}
    assert names <= row.keys()


def test_database_schema_pragmas(worker: SeedWorker) -> None:
    assert worker.rows("PRAGMA journal_mode") == [{"journal_mode": "wal"}]
    assert worker.rows("PRAGMA foreign_key_check") == []


# Testing Strategy, Unit Tests: each command independently


def test_unit_tests_context_without_a_session_id(worker: SeedWorker, directory: str) -> None:
    answer = worker.run("context", payload("SessionStart", None, directory, source="startup"))
    assert "lantern" in context_of(answer)
    assert answer["continue"] is True


@pytest.mark.parametrize("session", ["unit", None])
@pytest.mark.parametrize(
    ("command", "event", "fields"),
    [
        ("new", "UserPromptSubmit", {"prompt": "hi", "timestamp": "2025-10-15T19:30:00+00:00"}),
        ("save", "PostToolUse", {"tool_name": "Read", "tool_input": {},
                                 "tool_response": {"content": "a lamp"}}),
        ("save", "PostToolUse", {"tool_name": "Glob", "tool_input": {}, "tool_output": "a lamp"}),
        ("summary", "Stop", {}),
        ("cleanup", "SessionEnd", {"reason": "exit"}),
    ],
)  # fmt: skip
def test_unit_tests_each_command_takes_its_payload_with_and_without_a_session_id(
    worker: SeedWorker, directory: str, command: str, event: str, session: str | None,
    fields: dict[str, Any],
) -> None:  # fmt: skip
    count = "SELECT count(*) AS n FROM tool_events WHERE event = ?"
    before = worker.rows(count, event)[0]["n"]
    assert worker.run(command, payload(event, session, directory, **fields)) == CONTINUE
    wait_until(lambda: worker.rows(count, event)[0]["n"] > before, "the event")
    row = worker.rows(
        "SELECT s.content_session_id AS id, e.tool_name, e.tool_response FROM tool_events e"
        " JOIN sdk_sessions s ON s.id = e.session_id ORDER BY e.id DESC LIMIT 1"
    )[0]
    assert row["id"] == session if session else row["id"].startswith("command-")
    if command == "save":
        assert "a lamp" in row["tool_response"]
    assert worker.troubles() == ""
    assert list(worker.layout.rejected.iterdir()) == []


def test_unit_tests_a_made_up_session_id_is_used_once(worker: SeedWorker, directory: str) -> None:
    made_up = "SELECT 1 FROM sdk_sessions WHERE content_session_id GLOB 'command-*'"
    before = len(worker.rows(made_up))
    for _ in range(2):
        worker.run("new", payload("UserPromptSubmit", None, directory, prompt="alone"))
    wait_until(lambda: len(worker.rows(made_up)) == before + 2, "two sessions")


def test_unit_tests_a_payload_with_names_of_the_http_api_is_taken(
    worker: SeedWorker, directory: str
) -> None:
    worker.run("new", {"claudeSessionId": "renamed", "userPrompt": "dim it", "cwd": directory})
    assert worker.session("renamed")["user_prompt"] == "dim it"


# Database Schema: names that later documents changed


def test_database_schema_every_name_that_was_changed_is_documented_and_exists(
    worker: SeedWorker,
) -> None:
    documentation = (ROOT / "docs" / "import.md").read_text()
    table = documentation.partition("## Names of the earlier claude-mem")[2]
    names = dict(re.findall(r"^\| `([\w.-]+)` \| `([\w.-]+)` \|$", table, re.MULTILINE))
    assert {"claude-mem.db", "streaming_sessions", "observation_queue"} <= names.keys()
    for name in names.values():
        table_name, _, column = name.partition(".")
        columns = {str(row["name"]) for row in worker.rows(f"PRAGMA table_info({table_name})")}
        is_file = (worker.layout.root / name).is_file()
        assert is_file or (columns and (not column or column in columns)), name

"""The refactor plan: what is stored of a session. Each test names the section it is about.

Its queue and its worker per session were replaced by the worker that the later documents describe.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from claude_mem.observer.models.replies import parse_reply
from claude_mem.observer.models.revision import merge
from claude_mem.types import Distillate, Summary
from tests.api import Api, open_api
from tests.conftest import wait_until
from tests.seed_worker import CONTINUE, SeedWorker, running_worker
from tests.session_requests import INIT, OBSERVE, SUMMARIZE

HOUR = 3_600_000
SUMMARY = """```xml
<summary>
  <request>Build a tide gauge</request>
  <investigated>The pier and the old gauge</investigated>
  <learned>The old gauge is off by a foot; nobody reads it</learned>
  <completed>Built a gauge with two floats</completed>
  <next_steps>Paint the scale; write its manual</next_steps>
  <files_read><file>src/pier.ts</file><file>src/gauge.ts</file></files_read>
  <files_edited><file>src/gauge.ts</file></files_edited>
  <notes>The floats are made of cork</notes>
</summary>
```"""


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeedWorker]:
    with running_worker(tmp_path_factory.mktemp("seed-002")) as running:
        yield running


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with open_api(tmp_path / "data") as opened:
        yield opened


def parsed(reply: str) -> Distillate:
    return merge(Distillate(Summary()), parse_reply(reply))


# What Claude Code Hooks Actually Do


def test_stop_hook_a_summary_answers_the_eight_questions(worker: SeedWorker) -> None:
    about = {"contentSessionId": "eight", "project_dir": "/home/dev/gauge"}
    worker.post(INIT, {**about, "prompt": "Build a tide gauge"})
    for tool, path in (("Read", "pier.ts"), ("Read", "gauge.ts"), ("Edit", "gauge.ts")):
        change = {"file_path": f"/home/dev/gauge/{path}", "old_string": "a", "new_string": "b"}
        worker.post(OBSERVE, {**about, "tool_name": tool, "tool_input": change})
    worker.post(SUMMARIZE, {**about, "last_assistant_message": "The gauge has two floats now."})
    (summary,) = wait_until(
        lambda: worker.get("/api/summaries", project="gauge").json()["items"], "the summary"
    )
    questions = {"request", "investigated", "learned", "completed", "next_steps", "files_read",
                 "files_edited", "notes"}  # fmt: skip
    assert questions <= summary.keys()
    assert summary["request"] == "Build a tide gauge"
    assert summary["files_edited"] == ["gauge.ts"]
    assert summary["files_read"] == ["pier.ts", "gauge.ts"]  # it was read before it was edited


# Session Management Strategy


def test_status_of_sessions_are_those_of_the_plan(worker: SeedWorker) -> None:
    for status in ("active", "completed", "interrupted", "failed"):
        assert worker.get("/api/search", query="x", status=status).status_code == 200
    assert worker.get("/api/search", query="x", status="resting").status_code == 400


def test_if_the_user_interrupts_a_session_is_interrupted_after_24_hours_and_goes_on(
    api: Api,
) -> None:
    row = api.add_turn("s", "Build a tide gauge", "Begun.")
    api.clock.ms += 23 * HOUR
    api.worker.housekeeping.tick(api.clock.ms)
    assert api.get_json(f"/sessions/{row}/status")["status"] == "active"
    api.clock.ms += 2 * HOUR
    api.worker.housekeeping.tick(api.clock.ms)
    assert api.get_json(f"/sessions/{row}/status")["status"] == "interrupted"
    api.post_json(f"/sessions/{row}/init", prompt="Go on")
    assert api.get_json(f"/sessions/{row}/status")["status"] == "active"


# SDK Agent Prompts: the replies that they ask for


def test_initialization_prompt_an_observation_of_type_and_text() -> None:
    reply = "Noted.\n```xml\n<observation>\n  <type>discovery</type>\n  <text>The tide turns at"
    reply += " noon</text>\n</observation>\n```"
    (observation,) = parsed(reply).observations
    assert observation.type == "discovery"
    texts = json.dumps([observation.title, observation.narrative, observation.facts])
    assert "The tide turns at noon" in texts


def test_finalization_prompt_a_summary_of_eight_elements() -> None:
    summary = parsed(SUMMARY).summary
    assert summary.request == "Build a tide gauge"
    assert summary.investigated == "The pier and the old gauge"
    assert summary.learned == "The old gauge is off by a foot; nobody reads it"
    assert summary.completed == "Built a gauge with two floats"
    assert summary.next_steps == "Paint the scale; write its manual"
    assert summary.files_read == ("src/pier.ts", "src/gauge.ts")
    assert summary.files_edited == ("src/gauge.ts",)
    assert summary.notes == "The floats are made of cork"


def test_finalization_prompt_empty_lists_of_files() -> None:
    reply = "<summary><request>Look</request><files_read></files_read><files_edited/></summary>"
    summary = parsed(reply).summary
    assert (summary.request, summary.files_read, summary.files_edited) == ("Look", (), ())


# How hooks run in parallel


def test_how_hooks_run_in_parallel_each_event_is_stored_once(worker: SeedWorker) -> None:
    about = {"session_id": "parallel", "cwd": "/home/dev/gauge"}
    prompt = {**about, "hook_event_name": "UserPromptSubmit", "prompt": "Measure"}
    assert worker.run("new", prompt) == CONTINUE

    def save(number: int) -> dict[str, Any]:
        fields = {"tool_name": "Read", "tool_use_id": f"toolu_{number}", "tool_input": number}
        return worker.run("save", {**about, "hook_event_name": "PostToolUse", **fields})

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(save, (1, 2, 3, 2, 1))) == [CONTINUE] * 5
    query = (
        "SELECT e.tool_input FROM tool_events e JOIN sdk_sessions s ON s.id = e.session_id"
        " WHERE s.content_session_id = 'parallel' AND e.event = 'PostToolUse' ORDER BY 1"
    )
    wait_until(lambda: worker.column(query) == ["1", "2", "3"], "three events")


# Error Handling


def test_database_corruption_wal_and_backups(api: Api) -> None:
    api.add_turn("s", "Build a tide gauge", "Built.")
    api.worker.housekeeping.back_up_if_due(api.clock.ms)
    assert api.column("PRAGMA journal_mode") == ["wal"]
    assert list(api.layout.backups.glob("memory-*.db.gz"))

"""The hook lifecycle, for other platforms. Each test names the section it is about."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from claude_mem.config import CaptureSettings
from claude_mem.install.hooks import EVENTS
from tests.conftest import wait_until
from tests.seed_worker import CONTINUE, SeedWorker, running_worker
from tests.transcripts import Chat

SECRET = "under the third plank"
PATCH = """\
*** Begin Patch
*** Update File: /home/dev/a.ts
@@
-1
+2
*** End Patch"""


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeedWorker]:
    with running_worker(tmp_path_factory.mktemp("seed-000")) as running:
        yield running


def hook(worker: SeedWorker, event: str, payload: dict[str, Any]) -> dict[str, Any]:
    """The payload as the document shows it: without the name of the event."""
    done = worker.hook(json.dumps(payload).encode(), event, CLAUDE_PROJECT_DIR="")
    assert done.returncode == 0
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def summary_of(worker: SeedWorker, session: str) -> dict[str, Any]:
    query = (
        "SELECT m.* FROM session_summaries m JOIN sdk_sessions s"
        " ON s.memory_session_id = m.memory_session_id WHERE s.content_session_id = ?"
    )
    return dict(wait_until(lambda: worker.rows(query, session), "the summary")[0])


# VS Code Extension API Integration Points


def test_implementation_examples_a_whole_session_of_an_extension(worker: SeedWorker) -> None:
    context = worker.get("/api/context/inject", project="buoy")
    assert (context.status_code, context.text) == (200, "")  # nothing is known yet
    init = worker.post(
        "/sessions/init", {"sessionId": "vs-1", "project": "buoy", "userPrompt": "Ring the bell"}
    )
    assert (init["status"], init["promptNumber"]) == ("initialized", 1)
    saved = worker.post(
        "/api/sessions/observations",
        {
            "claudeSessionId": "vs-1",
            "tool_name": "FileSave",
            "tool_input": {"path": "/home/dev/buoy/bell.ts"},
            "tool_response": "File saved successfully",
        },
    )
    assert (saved["status"], saved["sessionDbId"]) == ("queued", init["sessionDbId"])
    worker.post("/sessions/summarize", {"claudeSessionId": "vs-1",
                                        "last_assistant_message": "The bell rings."})  # fmt: skip
    worker.post("/sessions/complete", {"claudeSessionId": "vs-1", "reason": "exit"})
    assert "Ring the bell" in worker.get("/api/context/inject", project="buoy").text
    assert json.loads(summary_of(worker, "vs-1")["files_edited"]) == ["/home/dev/buoy/bell.ts"]


@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("write_file", {"path": "/home/dev/a.ts", "content": "1"}, "files_edited"),
        ("edit", {"filePath": "/home/dev/a.ts", "oldString": "1"}, "files_edited"),
        ("read_file", {"path": "/home/dev/a.ts"}, "files_read"),
        (
            "apply_patch",
            {"input": PATCH},
            "files_edited",
        ),
    ],
)
def test_implementation_examples_tools_under_the_names_of_an_editor(
    worker: SeedWorker, tool: str, arguments: dict[str, Any], field: str
) -> None:
    about = {"claudeSessionId": f"tool-{tool}", "project": "tools"}
    worker.post("/api/sessions/init", {**about, "userPrompt": f"Try {tool}"})
    use = {"tool_name": tool, "tool_input": arguments, "tool_response": "ok"}
    worker.post("/api/sessions/observations", {**about, **use})
    worker.post("/api/sessions/summarize", {**about, "last_assistant_message": "It works."})
    assert json.loads(summary_of(worker, f"tool-{tool}")[field]) == ["/home/dev/a.ts"]


def test_worker_http_endpoints_each_of_the_diagram_is_served(worker: SeedWorker) -> None:
    for path, fields in (
        ("/sessions/init", {"userPrompt": "Count the gulls"}),
        ("/sessions/observations", {"tool_name": "Read", "tool_response": "seven gulls"}),
        ("/sessions/summarize", {"last_assistant_message": "There are seven."}),
        ("/sessions/complete", {"reason": "other"}),
    ):
        answer = worker.post(path, {"claudeSessionId": "vs-2", "project": "gulls", **fields})
        assert answer["contentSessionId"] == "vs-2"
    assert worker.session("vs-2")["status"] == "completed"


# Async Processing Pipeline


@pytest.mark.parametrize("tool", CaptureSettings().skip_tools)
def test_skip_list_low_value_tools_are_discarded(worker: SeedWorker, tool: str) -> None:
    answer = worker.post(
        "/api/sessions/observations", {"claudeSessionId": "skipped", "tool_name": tool}
    )
    assert answer["status"] == "skipped"
    expected = {"ListMcpResourcesTool", "SlashCommand", "Skill", "TodoWrite", "AskUserQuestion"}
    assert set(CaptureSettings().skip_tools) == expected


# Hook Configuration


def test_the_5_lifecycle_stages_each_has_its_hook() -> None:
    stages = {"SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"}
    assert stages <= {event.name for event in EVENTS}


# Stages 1 to 5


def test_stages_a_session_by_hooks(worker: SeedWorker, tmp_path: Any) -> None:
    cwd = str(tmp_path / "lighthouse")
    about = {"session_id": "claude-session-7", "cwd": cwd}
    hook(worker, "SessionStart", {**about, "source": "startup"})
    assert hook(worker, "UserPromptSubmit", {**about, "prompt": "Oil the lamp"}) == CONTINUE
    tool = {"tool_name": "Read", "tool_input": {"file_path": "/src/lamp.ts"},
            "tool_response": "oil(); light();"}  # fmt: skip
    assert hook(worker, "PostToolUse", {**about, **tool}) == CONTINUE
    transcript = {"transcript_path": f"{cwd}/none.jsonl"}
    assert hook(worker, "Stop", {**about, **transcript}) == CONTINUE
    assert hook(worker, "SessionEnd", {**about, **transcript, "reason": "exit"}) == CONTINUE
    summary = summary_of(worker, "claude-session-7")
    assert summary["request"] == "Oil the lamp"
    fields = {"request", "investigated", "learned", "completed", "next_steps", "created_at"}
    assert fields <= summary.keys()
    next_start = hook(worker, "SessionStart", {**about, "session_id": "s-8", "source": "startup"})
    output = next_start["hookSpecificOutput"]
    assert output["hookEventName"] == "SessionStart"
    assert "Oil the lamp" in output["additionalContext"]


def test_stage_2_the_same_session_id_is_the_same_row_and_prompts_are_counted(
    worker: SeedWorker,
) -> None:
    about = {"claudeSessionId": "counted", "project": "counting"}
    first = worker.post("/api/sessions/init", {**about, "userPrompt": "one"})
    row = first["sessionDbId"]
    body = {"project": "counting", "userPrompt": "two", "promptNumber": 2}
    for duplicate in (False, True):
        again = worker.post(f"/sessions/{row}/init", body)
        assert (again["sessionDbId"], again["promptNumber"]) == (row, 2)
        assert again["duplicate"] is duplicate
    assert worker.session("counted")["prompt_counter"] == 2
    assert worker.session("counted")["user_prompt"] == "one"


@pytest.mark.parametrize("fields", [{}, {"userPrompt": None}, {"promptNumber": 1}])
def test_stage_2_an_init_without_a_prompt_begins_the_session_and_loses_nothing(
    worker: SeedWorker, fields: dict[str, Any]
) -> None:
    session = f"no-prompt-{len(fields)}-{'userPrompt' in fields}"
    about = {"claudeSessionId": session, "project": "silent"}
    init = worker.post("/api/sessions/init", {**about, **fields})
    assert (init["status"], init["promptNumber"]) == ("initialized", None)
    tool = {"tool_name": "FileSave", "tool_input": {"path": "/home/dev/mast.ts"}}
    assert worker.post("/api/sessions/observations", {**about, **tool})["status"] == "queued"
    last = {"last_user_message": "Raise the mast", "last_assistant_message": "It is up."}
    assert worker.post("/api/sessions/summarize", {**about, **last})["status"] == "queued"
    summary = summary_of(worker, session)
    assert summary["request"] == "Raise the mast"
    assert json.loads(summary["files_edited"]) == ["/home/dev/mast.ts"]


def test_stage_2_a_prompt_that_is_private_as_a_whole_is_not_saved(worker: SeedWorker) -> None:
    about = {"claudeSessionId": "hushed", "project": "hush"}
    prompt = {"userPrompt": f"<private>It is {SECRET}</private>"}
    assert worker.post("/api/sessions/init", {**about, **prompt})["status"] == "skipped"
    tool = {"tool_name": "Read", "tool_response": "a plank"}  # stage 3: skipped with its prompt
    assert worker.post("/api/sessions/observations", {**about, **tool})["status"] == "skipped"
    assert not any(SECRET.encode() in content for content in worker.files().values())


@pytest.mark.parametrize("tag", ["private", "claude-mem-context"])
def test_stage_3_tags_are_stripped_from_input_and_response(worker: SeedWorker, tag: str) -> None:
    hidden = f"<{tag}>{SECRET}</{tag}>"
    worker.post(
        "/api/sessions/observations",
        {
            "claudeSessionId": f"stripped-{tag}",
            "tool_name": "Bash",
            "tool_input": {"command": f"dig {hidden}"},
            "tool_response": f"found {hidden} it",
        },
    )
    row = worker.rows("SELECT tool_input, tool_response FROM tool_events ORDER BY id DESC LIMIT 1")
    assert SECRET not in str(row) and "dig" in str(row)


def test_stage_4_summarize_with_the_last_messages_and_the_spinner_stops(
    worker: SeedWorker,
) -> None:
    worker.post("/api/processing", {"isProcessing": True})
    answer = worker.post(
        "/api/sessions/summarize",
        {
            "claudeSessionId": "only-summarized",
            "last_user_message": "Paint the pier green",
            "last_assistant_message": "The pier is green now.",
        },
    )
    assert answer["status"] == "queued"
    assert worker.post("/api/processing", {"isProcessing": False})["isProcessing"] is False
    assert summary_of(worker, "only-summarized")["request"] == "Paint the pier green"


@pytest.mark.parametrize("has_ids", [True, False])
def test_stage_4_the_last_messages_are_read_from_the_transcript_if_nothing_else_has_them(
    worker: SeedWorker, tmp_path: Path, has_ids: bool
) -> None:
    chat = Chat(f"read-{has_ids}", prompt_ids=has_ids)
    chat.prompt("Mend the net").agent("The net is whole again.")
    transcript = tmp_path / "transcript.jsonl"
    transcript.write_bytes(chat.data())
    stop = {"session_id": f"read-{has_ids}", "cwd": str(tmp_path / "pier"),
            "transcript_path": str(transcript)}  # fmt: skip
    if has_ids:
        stop["prompt_id"] = f"prompt-read-{has_ids}-0001"
    assert hook(worker, "Stop", stop) == CONTINUE
    summary = summary_of(worker, f"read-{has_ids}")
    assert summary["request"] == "Mend the net"
    assert "whole again" in str(summary["completed"])


def test_stage_4_a_private_prompt_in_the_transcript_makes_the_turn_private(
    worker: SeedWorker, tmp_path: Path
) -> None:
    chat = Chat("read-private", prompt_ids=False)
    chat.prompt(f"<private>It is {SECRET}</private>").agent(f"I see: {SECRET}")
    transcript = tmp_path / "transcript.jsonl"
    transcript.write_bytes(chat.data())
    stop = {"session_id": "read-private", "cwd": str(tmp_path), "transcript_path": str(transcript)}
    assert hook(worker, "Stop", stop) == CONTINUE
    worker.session("read-private")
    worker.wait_settled()
    assert not any(SECRET.encode() in content for content in worker.files().values())


@pytest.mark.parametrize("reason", ["exit", "clear", "logout", "prompt_input_exit", "other"])
def test_stage_5_complete_takes_every_reason(worker: SeedWorker, reason: str) -> None:
    about = {"claudeSessionId": f"ended-{reason}", "project": "endings"}
    worker.post("/api/sessions/init", {**about, "userPrompt": "x"})
    answer = worker.post("/api/sessions/complete", {**about, "reason": reason})
    assert answer["status"] == "completed"
    row = worker.session(f"ended-{reason}")
    assert row["status"] == "completed" and row["completed_at"]


def test_stage_5_the_end_is_broadcast_with_the_right_project(worker: SeedWorker) -> None:
    worker.post("/api/sessions/init", {"claudeSessionId": "b", "project": "bay", "userPrompt": "x"})
    with worker.http.stream("GET", "/stream") as response:
        lines = response.iter_lines()
        next(lines)
        body = {"claudeSessionId": "b", "reason": "exit"}
        sender = threading.Thread(target=_post, args=(worker, body))
        sender.start()
        news = (json.loads(line[6:]) for line in lines if line.startswith("data: "))
        ended = next(event for event in news if event["type"] == "session")
        sender.join()
    assert (ended["status"], ended["project"]) == ("completed", "bay")
    assert ended["content_session_id"] == "b"


def _post(worker: SeedWorker, body: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {worker.token}"}
    address = f"http://127.0.0.1:{worker.port}/api/sessions/complete"
    httpx.post(address, json=body, headers=headers, timeout=30)


# Session State Machine


def test_session_state_machine_a_completed_session_goes_on_with_a_prompt(
    worker: SeedWorker,
) -> None:
    about = {"claudeSessionId": "again", "project": "returning"}
    row = worker.post("/api/sessions/init", {**about, "userPrompt": "go"})["sessionDbId"]
    worker.post("/api/sessions/complete", {**about, "reason": "exit"})
    answer = worker.post(f"/sessions/{row}/init", {"userPrompt": "on", "promptNumber": 2})
    assert answer["sessionDbId"] == row
    assert worker.get(f"/sessions/{row}/status").json()["status"] == "active"


# Database Schema


@pytest.mark.parametrize("table", ["user_prompts", "observations", "session_summaries"])
def test_foreign_key_cascade_memories_go_with_their_session(worker: SeedWorker, table: str) -> None:
    keys = worker.rows(f"PRAGMA foreign_key_list({table})")
    assert "CASCADE" in {key["on_delete"] for key in keys if key["table"] == "sdk_sessions"}


# Privacy & Tag Stripping


def test_max_tag_count_the_rest_of_a_text_with_too_many_tags_is_dropped(
    worker: SeedWorker,
) -> None:
    prompt = "begin " + "<private>x</private>" * 101 + SECRET
    worker.post("/api/sessions/init", {"claudeSessionId": "tags", "userPrompt": prompt})
    assert SECRET not in str(worker.session("tags")["user_prompt"])


# The batch endpoint and the parameters of timelines


def save(worker: SeedWorker, text: str) -> int:
    """A memory of a project that a session has begun."""
    session = {"sessionId": "raft-1", "project": "raft", "userPrompt": "Tie the knot"}
    worker.post("/sessions/init", session)
    return int(worker.post("/api/memories", {"text": text, "project": "raft"})["id"])


def test_batch_fetching_several_observations_in_one_request(worker: SeedWorker) -> None:
    ids = [save(worker, f"Fact {n}") for n in (1, 2)]
    response = worker.http.post("/api/observations/batch", json={"ids": ids[::-1]})
    assert [item["id"] for item in response.json()] == ids[::-1]


def test_timeline_parameters_by_their_names(worker: SeedWorker) -> None:
    saved = save(worker, "The anchor holds")
    parameters = {"anchor": saved, "depth_before": 2, "depth_after": 2, "type": "discovery"}
    timeline = worker.get("/api/timeline", **parameters).json()
    assert timeline["anchor"] == str(saved)
    assert {row["type"] for row in timeline["results"]} == {"discovery"}

"""Sessions over HTTP: what is answered with 200 is on disk, once, and without what is private."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.routing import Route

from claude_mem.intake.dialects import OWN_TOOLS
from claude_mem.observer import LocalObserver
from claude_mem.server.app import public_routes
from claude_mem.server.requests import LARGEST_BODY
from claude_mem.store.database import connect
from claude_mem.types import Distillate, Turn
from claude_mem.worker.jobs import JobRunner
from tests.api import Api, open_api
from tests.payloads import PROJECT_DIR, SESSION

INIT, OBSERVE = "/api/sessions/init", "/api/sessions/observations"
SUMMARIZE, COMPLETE = "/api/sessions/summarize", "/api/sessions/complete"
BY_CONTENT_ID = ("/sessions/init", INIT, OBSERVE, SUMMARIZE, COMPLETE)
FILLED: dict[str, dict[str, Any]] = {
    "init": {"prompt": "Make the light blink"},
    "observations": {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_response": "ok"},
    "summarize": {"last_assistant_message": "It blinks."},
    "complete": {"reason": "other"},
}
# /mcp speaks a protocol of its own: tests/test_mcp.py
POSTS = [r.path for r in public_routes if "POST" in (r.methods or ()) and r.path != "/mcp"]
SECRET = "sk-ant-api03-" + "Zx9Qw7Lk2Vb5Nm8Rt4Yp"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with open_api(tmp_path / "data") as opened:
        yield opened


def filled(path: str) -> dict[str, Any]:
    """A good body for this path."""
    fields = FILLED.get(path.rsplit("/", 1)[-1], {})
    return {"contentSessionId": SESSION, "project_dir": PROJECT_DIR, **fields}


def begin(api: Api, prompt: str = "Make the light blink", session: str = SESSION) -> int:
    about = {"contentSessionId": session, "project_dir": PROJECT_DIR}
    return int(api.said(INIT, prompt=prompt, **about)["sessionDbId"])


# 200 means on disk


@pytest.mark.parametrize("path", BY_CONTENT_ID)
def test_what_was_answered_with_200_is_seen_from_another_connection(api: Api, path: str) -> None:
    answer = api.said(path, **filled(path))
    sessions = api.rows("SELECT id, content_session_id FROM sdk_sessions")
    assert sessions == [{"id": answer["sessionDbId"], "content_session_id": SESSION}]
    assert api.count("tool_events") == 1


@pytest.mark.parametrize("action", ["init", "observations", "summarize"])
def test_what_was_sent_by_the_row_id_is_seen_from_another_connection(api: Api, action: str) -> None:
    row = begin(api)
    api.clock.ms += 5000
    answer = api.said(f"/sessions/{row}/{action}", **FILLED[action])
    assert (answer["sessionDbId"], answer["contentSessionId"]) == (row, SESSION)
    assert api.count("tool_events") == 2
    assert api.count("sdk_sessions") == 1


@pytest.mark.parametrize("path", BY_CONTENT_ID)
def test_a_write_that_fails_is_not_answered_with_200(api: Api, path: str) -> None:
    with closing(connect(api.layout.database)) as other:
        other.execute("DROP TABLE tool_events")
    answer = api.post(path, **filled(path))
    assert answer.status_code == 500
    assert "log" in answer.json()["error"]
    assert api.count("sdk_sessions") == 0


@pytest.mark.parametrize(
    ("path", "status"),
    [(INIT, "initialized"), (OBSERVE, "queued"), (SUMMARIZE, "queued"), (COMPLETE, "completed")],
)
def test_the_answer_names_the_session_and_says_what_was_done(
    api: Api, path: str, status: str
) -> None:
    begin(api)
    api.clock.ms += 5000
    answer = api.said(path, **filled(path))
    assert answer["status"] == status
    assert (answer["sessionDbId"], answer["contentSessionId"]) == (1, SESSION)
    assert answer["duplicate"] is False


# Which session, which project


@pytest.mark.parametrize("path", BY_CONTENT_ID)
def test_a_session_that_nobody_announced_is_created(api: Api, path: str) -> None:
    answer = api.said(path, **{**filled(path), "contentSessionId": "never seen"})
    session = api.rows("SELECT * FROM sdk_sessions WHERE id = ?", answer["sessionDbId"])[0]
    assert session["content_session_id"] == "never seen"
    assert session["project_dir"] == PROJECT_DIR


@pytest.mark.parametrize("name", ["contentSessionId", "claudeSessionId", "session_id"])
@pytest.mark.parametrize("path", BY_CONTENT_ID)
def test_every_name_of_the_session_id_means_the_same(api: Api, path: str, name: str) -> None:
    api.said(path, **filled(path))
    renamed = filled(path)
    renamed[name] = renamed.pop("contentSessionId")
    assert api.said(path, **renamed)["duplicate"] is True
    assert api.count("sdk_sessions") == 1


@pytest.mark.parametrize("name", ["tool_response", "tool_output"])
def test_tool_output_is_another_name_of_tool_response(api: Api, name: str) -> None:
    api.said(OBSERVE, contentSessionId=SESSION, tool_name="Bash", **{name: {"stdout": "built"}})
    assert api.rows("SELECT tool_response FROM tool_events") == [
        {"tool_response": '{"stdout": "built"}'}
    ]


def test_the_same_tool_use_under_both_names_is_one_event(api: Api) -> None:
    for name in ("tool_response", "tool_output"):
        api.said(OBSERVE, contentSessionId=SESSION, tool_name="Bash", **{name: "built"})
    assert api.count("tool_events") == 1


@pytest.mark.parametrize(
    ("column", "empty", "other"),
    [("tool_response", "tool_response", "tool_output"), ("tool_input", "tool_input", "toolInput")],
)
def test_a_name_that_is_null_does_not_hide_the_other_name(
    api: Api, column: str, empty: str, other: str
) -> None:
    api.said(OBSERVE, contentSessionId=SESSION, tool_name="Bash", **{empty: None, other: "built"})
    assert api.rows(f"SELECT {column} AS found FROM tool_events") == [{"found": '"built"'}]


@pytest.mark.parametrize("action", ["init", "observations", "summarize"])
def test_the_address_says_which_session_whatever_the_body_says(api: Api, action: str) -> None:
    row, other = begin(api), begin(api, session="another")
    fields = {"contentSessionId": "another", "session_id": "another", "project": "elsewhere"}
    answer = api.said(f"/sessions/{row}/{action}", **FILLED[action], **fields)
    assert answer["contentSessionId"] == SESSION
    assert api.count("projects") == 1
    assert api.read(f"/sessions/{other}/status")["promptCounter"] == 1


def test_a_prompt_by_row_id_is_shown_as_of_its_sessions_project(api: Api) -> None:
    row = begin(api)
    api.said(f"/sessions/{row}/init", prompt="Elsewhere", cwd="/home/dev/elsewhere")
    assert json.loads(api.layout.activity_flag.read_text())["project"] == "harbor"


def test_a_session_belongs_to_the_project_of_its_directory(api: Api, tmp_path: Path) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "deep").mkdir()
    api.said(INIT, contentSessionId="a", prompt="x", cwd=str(tmp_path / "repo" / "deep"))
    api.said(INIT, contentSessionId="b", prompt="x", projectDir=str(tmp_path / "repo"))
    assert [p["name"] for p in api.read("/api/projects")["projects"]] == ["repo"]


def test_a_session_without_a_directory_belongs_to_the_project_it_names(api: Api) -> None:
    api.said(INIT, contentSessionId="a", prompt="x", project="harbor")
    assert api.rows("SELECT key, name FROM projects") == [{"key": "harbor", "name": "harbor"}]


def test_hostile_names_are_kept_as_they_are(api: Api) -> None:
    name = "'; DROP TABLE sdk_sessions; --"
    api.said(INIT, contentSessionId=name, prompt=name, project=name)
    found = api.rows("SELECT content_session_id AS id, user_prompt AS said FROM sdk_sessions")
    assert found == [{"id": name, "said": name}]
    assert len(api.read("/api/prompts", project=name)["items"]) == 1


# Once, and in its turn


@pytest.mark.parametrize("path", BY_CONTENT_ID)
@pytest.mark.parametrize("extra", [{}, {"tool_use_id": "toolu_1"}, {"prompt_id": "p-1"}])
def test_the_same_event_twice_is_one(api: Api, path: str, extra: dict[str, str]) -> None:
    first = api.said(path, **filled(path), **extra)
    second = api.said(path, **filled(path), **extra)
    assert (first["duplicate"], second["duplicate"]) == (False, True)
    assert api.count("tool_events") == 1
    assert first["promptNumber"] == second["promptNumber"]


def test_the_same_words_in_the_next_turn_are_another_event(api: Api) -> None:
    for prompt in ("first", "second"):
        begin(api, prompt)
        assert api.said(OBSERVE, **filled(OBSERVE))["duplicate"] is False
    assert api.rows("SELECT turn_id FROM tool_events WHERE event = 'PostToolUse'") == [
        {"turn_id": 1},
        {"turn_id": 2},
    ]


def test_prompts_are_numbered_in_order_and_events_get_the_number_of_their_prompt(api: Api) -> None:
    for number, prompt in enumerate(("first", "second", "third"), 1):
        assert api.said(INIT, contentSessionId=SESSION, prompt=prompt)["promptNumber"] == number
        assert api.said(OBSERVE, **filled(OBSERVE))["promptNumber"] == number


@pytest.mark.parametrize("name", ["prompt_number", "promptNumber"])
def test_an_event_may_say_which_prompt_it_belongs_to(api: Api, name: str) -> None:
    begin(api, "first")
    begin(api, "second")
    assert api.said(OBSERVE, **filled(OBSERVE), **{name: 1})["promptNumber"] == 1


def test_a_second_init_with_the_number_of_the_first_is_the_same_prompt(api: Api) -> None:
    row = begin(api)
    answer = api.said(f"/sessions/{row}/init", userPrompt="Make the light blink", promptNumber=1)
    assert answer["promptNumber"] == 1
    assert api.count("user_prompts") == 1


@pytest.mark.parametrize("number", [2, 0, -1, 2**62, 2**64, -(2**64)])
def test_a_prompt_number_that_the_session_does_not_have_is_refused(api: Api, number: int) -> None:
    begin(api)
    answer = api.post(OBSERVE, **filled(OBSERVE), prompt_number=number)
    assert answer.status_code in (400, 404)
    assert "prompt" in answer.json()["error"]
    assert api.count("tool_events") == 1


# What becomes of it


def test_a_summarized_turn_becomes_a_summary(api: Api) -> None:
    begin(api)
    assert api.said(SUMMARIZE, **filled(SUMMARIZE))["queueLength"] == 1
    api.catch_up()
    summary = api.read("/api/summaries")["items"][0]
    assert (summary["request"], summary["completed"]) == ("Make the light blink", "It blinks.")
    assert summary["content_session_id"] == SESSION


def test_an_event_after_the_end_of_its_turn_revises_what_was_made_of_it(api: Api) -> None:
    api.have_turn(SESSION, "Change the lamp", "Done.")
    change = {"file_path": f"{PROJECT_DIR}/lamp.py", "old_string": "a", "new_string": "b"}
    answer = api.said(OBSERVE, contentSessionId=SESSION, tool_name="Edit", tool_input=change)
    assert answer["queueLength"] == 1
    api.catch_up()
    assert [s["files_edited"] for s in api.read("/api/summaries")["items"]] == [["lamp.py"]]


def test_the_next_prompt_ends_the_turn_before(api: Api) -> None:
    begin(api, "first")
    begin(api, "second")
    api.catch_up()
    assert [s["request"] for s in api.read("/api/summaries")["items"]] == ["first"]


def test_a_completed_session_is_completed_and_a_new_prompt_makes_it_active_again(api: Api) -> None:
    row = begin(api)
    assert api.said(COMPLETE, **filled(COMPLETE))["status"] == "completed"
    assert api.read(f"/sessions/{row}/status")["status"] == "completed"
    api.clock.ms += 1000
    begin(api, "One thing more")
    assert api.read(f"/sessions/{row}/status")["status"] == "active"


def test_completing_a_session_ends_its_open_turn(api: Api) -> None:
    begin(api)
    api.said(COMPLETE, **filled(COMPLETE))
    api.catch_up()
    assert [s["request"] for s in api.read("/api/summaries")["items"]] == ["Make the light blink"]


def test_the_status_says_who_the_session_is_and_what_waits(api: Api) -> None:
    row = begin(api)
    api.said(SUMMARIZE, **filled(SUMMARIZE))
    assert api.read(f"/sessions/{row}/status") == {
        "sessionDbId": row,
        "contentSessionId": SESSION,
        "memorySessionId": None,
        "project": "harbor",
        "status": "active",
        "promptCounter": 1,
        "pendingMessages": 1,
        "deadMessages": 0,
    }
    api.catch_up()
    status = api.read(f"/sessions/{row}/status")
    assert status["pendingMessages"] == 0
    assert status["memorySessionId"] not in (None, SESSION)


# Stopping a session


class Endless:
    """An observer that never answers, and says when it was asked and when it was stopped."""

    name = "endless"

    def __init__(self) -> None:
        self.asked, self.stopped = asyncio.Event(), asyncio.Event()
        self.turns: list[int] = []

    async def distil(self, turn: Turn) -> Distillate:
        self.turns.append(turn.prompt_number)
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()
        raise AssertionError("never comes here")


def delete_while_at_work(api: Api, row: int, observer: Endless) -> dict[str, Any]:
    """The answer to DELETE, sent while the observer has a turn in hand."""

    async def scene() -> dict[str, Any]:
        jobs = JobRunner(api.layout, api.worker.store, observer, LocalObserver())
        api.worker.jobs = jobs
        work = asyncio.create_task(jobs.run_due())
        await asyncio.wait_for(observer.asked.wait(), 10)
        answer = await api.client.delete(f"/sessions/{row}")
        assert observer.stopped.is_set()
        await asyncio.wait_for(work, 10)  # nothing else of it is due
        found: dict[str, Any] = answer.json()
        return found

    return api.runner.run(scene())


def test_deleting_a_session_stops_its_work_and_keeps_what_was_queued(api: Api) -> None:
    row = begin(api)
    api.said(SUMMARIZE, **filled(SUMMARIZE))
    answer = delete_while_at_work(api, row, Endless())
    assert answer == {"status": "failed", "sessionDbId": row, "keptMessages": 1}
    status = api.read(f"/sessions/{row}/status")
    assert (status["status"], status["pendingMessages"]) == ("failed", 1)
    assert api.count("tool_events") == 2


def test_deleting_a_session_starts_none_of_its_other_turns(api: Api) -> None:
    row = begin(api, "first")
    begin(api, "second")
    api.said(SUMMARIZE, **filled(SUMMARIZE))
    observer = Endless()
    assert delete_while_at_work(api, row, observer)["keptMessages"] == 2
    assert observer.turns == [1]


def test_what_a_deleted_session_left_is_remembered_when_it_goes_on(api: Api) -> None:
    row = begin(api, "first")
    api.said(SUMMARIZE, **filled(SUMMARIZE))
    api.request("DELETE", f"/sessions/{row}")
    api.catch_up()
    assert api.count("session_summaries") == 0
    api.clock.ms += 1000
    begin(api, "second")
    api.catch_up()
    assert [s["request"] for s in api.read("/api/summaries")["items"]] == ["first"]


# What is not for the record


@pytest.mark.parametrize(
    "tool",
    ["ListMcpResourcesTool", "SlashCommand", "Skill", "TodoWrite", "AskUserQuestion",
     *(f"{prefix}search" for prefix in OWN_TOOLS)],
)  # fmt: skip
def test_tools_on_the_skip_list_and_our_own_leave_no_trace(api: Api, tool: str) -> None:
    row = begin(api)
    for path in (OBSERVE, f"/sessions/{row}/observations"):
        answer = api.said(path, contentSessionId=SESSION, tool_name=tool, tool_input="x")
        assert answer["status"] == "skipped"
    assert api.count("tool_events") == 1


def test_the_skip_list_is_a_setting(tmp_path: Path) -> None:
    with open_api(tmp_path, CLAUDE_MEM_SKIP_TOOLS="Lamp, Horn") as api:
        skipped = {
            name: api.said(OBSERVE, contentSessionId=SESSION, tool_name=name)["status"]
            for name in ("Lamp", "Horn", "Skill")
        }
    assert skipped == {"Lamp": "skipped", "Horn": "skipped", "Skill": "queued"}


def test_of_a_private_prompt_nothing_is_kept_nor_of_what_followed_from_it(api: Api) -> None:
    answer = api.said(INIT, contentSessionId=SESSION, prompt="<private>plan hushhush</private>")
    assert answer["status"] == "skipped"
    for path in (OBSERVE, SUMMARIZE):
        about = {"contentSessionId": SESSION, "tool_name": "Bash", "tool_input": "hushhush"}
        said = api.said(path, **about, tool_response="hushhush", last_assistant_message="hushhush")
        assert said["status"] == "skipped"
    api.catch_up()
    assert api.count("tool_events") == api.count("session_summaries") == 0
    assert b"hushhush" not in api.bytes_on_disk()


def test_the_prompt_after_a_private_one_is_remembered(api: Api) -> None:
    api.said(INIT, contentSessionId=SESSION, prompt="<private>plan</private>")
    answer = api.said(INIT, contentSessionId=SESSION, prompt="Now the lamp")
    assert (answer["status"], answer["promptNumber"]) == ("initialized", 2)
    assert [p["prompt_text"] for p in api.read("/api/prompts")["items"]] == ["Now the lamp"]


@pytest.mark.parametrize("of_prompt", [{}, {"prompt_id": "p-2"}])
def test_a_session_whose_last_prompt_was_private_can_be_completed(
    api: Api, of_prompt: dict[str, str]
) -> None:
    row = begin(api, "Open")
    api.said(INIT, contentSessionId=SESSION, prompt="<private>plan</private>", **of_prompt)
    assert api.said(COMPLETE, **filled(COMPLETE), **of_prompt)["status"] == "completed"
    assert api.read(f"/sessions/{row}/status")["status"] == "completed"


@pytest.mark.parametrize(
    "hidden",
    ["<private>hushhush</private>", "<PRIVATE>hushhush</Private>", "<private>hushhush",
     "<private>a<private>b</private>hushhush</private>", '<private why="x">hushhush</private>',
     "<system-reminder>hushhush</system-reminder>",
     "<claude-mem-context>hushhush</claude-mem-context>"],
)  # fmt: skip
def test_private_parts_of_a_body_reach_no_file(api: Api, hidden: str) -> None:
    text = f"before {hidden}"
    api.said(INIT, contentSessionId=SESSION, prompt=text, cwd=f"/x/{hidden}", project=hidden)
    api.said(OBSERVE, contentSessionId=SESSION, tool_name="Bash", tool_use_id=hidden,
             tool_input={"command": text, text: [text]}, tool_response=[{"stdout": text}],
             agent_id=text, transcript_path=text)  # fmt: skip
    api.said(SUMMARIZE, contentSessionId=SESSION, last_assistant_message=text)
    api.said(COMPLETE, contentSessionId=SESSION, reason=text)
    api.catch_up()
    assert [p["prompt_text"] for p in api.read("/api/prompts")["items"]] == ["before "]
    assert b"hushhush" not in api.bytes_on_disk()


def test_a_private_part_written_in_escapes_reaches_no_file(api: Api) -> None:
    prompt = rb"before \u003cprivate\u003ehushhush\u003c\/private\u003e"
    body = b'{"contentSessionId": "s", "prompt": "%s"}' % prompt
    assert api.send(INIT, body).status_code == 200
    assert api.count("user_prompts") == 1
    assert b"hushhush" not in api.bytes_on_disk()


def test_a_body_that_is_refused_reaches_no_file(api: Api) -> None:
    for body in (b'{"prompt": "<private>hushhush', b'{"prompt": "hushhush"}', b'"hushhush"'):
        assert api.send(INIT, body).status_code == 400
    assert b"hushhush" not in api.bytes_on_disk()


def test_secrets_are_taken_out_of_every_text(api: Api) -> None:
    text = f"use {SECRET} here"
    api.said(INIT, contentSessionId=SESSION, prompt=text, project="harbor")
    used = {"tool_input": {"command": text}, "tool_response": [{"env": {"API_KEY": SECRET}}]}
    api.said(OBSERVE, contentSessionId=SESSION, tool_name="Bash", **used)
    api.said(SUMMARIZE, contentSessionId=SESSION, last_assistant_message=text)
    api.said(COMPLETE, contentSessionId=SESSION, reason=text)
    api.catch_up()
    assert "[redacted:anthropic-key]" in api.read("/api/prompts")["items"][0]["prompt_text"]
    assert SECRET.encode() not in api.bytes_on_disk()


# What makes no sense is said, in JSON, with the field


@pytest.mark.parametrize("path", BY_CONTENT_ID)
@pytest.mark.parametrize("value", [None, "", 1, True, ["x"], {"x": 1}, "x" * 201])
def test_a_body_without_a_usable_session_id_is_refused(api: Api, path: str, value: Any) -> None:
    answer = api.post(path, **{**filled(path), "contentSessionId": value})
    assert answer.status_code == 400
    assert answer.json()["field"] in ("contentSessionId", "session_id")
    assert answer.json()["field"] in answer.json()["error"]
    assert api.count("sdk_sessions") == 0


@pytest.mark.parametrize("value", [1, True, ["x"], {"x": 1}])
@pytest.mark.parametrize(
    ("path", "field"),
    [
        (INIT, "prompt"),
        (INIT, "userPrompt"),
        (INIT, "project"),
        (INIT, "project_dir"),
        (INIT, "cwd"),
        (INIT, "prompt_id"),
        (OBSERVE, "tool_name"),
        (OBSERVE, "toolName"),
        (OBSERVE, "tool_use_id"),
        (OBSERVE, "agent_id"),
        (OBSERVE, "prompt_id"),
        (SUMMARIZE, "last_assistant_message"),
        (SUMMARIZE, "lastAssistantMessage"),
        (COMPLETE, "project"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(api: Api, path: str, field: str, value: Any) -> None:
    body = {"contentSessionId": SESSION, field: value}
    if path == OBSERVE and "ame" not in field:
        body["tool_name"] = "Bash"
    answer = api.post(path, **body)
    assert answer.status_code == 400
    assert answer.json()["field"] == field
    assert field in answer.json()["error"]
    assert api.count("sdk_sessions") == 0


@pytest.mark.parametrize("value", ["1", 1.5, True, [1], {"x": 1}])
@pytest.mark.parametrize("name", ["prompt_number", "promptNumber"])
def test_a_prompt_number_that_is_none_is_named(api: Api, name: str, value: Any) -> None:
    answer = api.post(OBSERVE, **filled(OBSERVE), **{name: value})
    assert answer.status_code == 400
    assert answer.json()["field"] == "prompt_number"


@pytest.mark.parametrize("name", [None, "", "x" * 201])
def test_an_observation_needs_the_name_of_a_tool(api: Api, name: str | None) -> None:
    answer = api.post(OBSERVE, contentSessionId=SESSION, tool_name=name)
    assert answer.status_code == 400
    assert answer.json()["field"] == "tool_name"


@pytest.mark.parametrize("value", [0, 1.5, "text", None, True, [], {}, [[{"deep": None}]]])
def test_a_tool_may_take_and_give_any_json(api: Api, value: Any) -> None:
    api.said(
        OBSERVE, contentSessionId=SESSION, tool_name="Bash", tool_input=value, tool_response=value
    )
    row = api.rows("SELECT tool_input, tool_response FROM tool_events")[0]
    assert [json.loads(text or "null") for text in row.values()] == [value, value]


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    "body",
    [b'{"contentSessionId": "s", "prom', b"[]", b'"text"', b"1", b"null", b"{}{}", b"{'a': 1}",
     b"\xff\xfe{}", '{"contentSessionId": "s"}'.encode("utf-16"), b'\xef\xbb\xbf{"ids": [1]}',
     b"contentSessionId=s&prompt=x", b"<xml/>", b'{"ids": [1], "a": "\n"}',
     b'{"contentSessionId": "s", "prompt": ' + b"1" * 5000 + b"}"],
)  # fmt: skip
def test_a_body_that_is_no_json_object_is_refused(api: Api, path: str, body: bytes) -> None:
    begin(api)
    answer = api.send(path.replace("{id}", "1"), body)
    assert answer.status_code == 400
    assert "body" in answer.json()["error"]
    assert api.count("tool_events") == 1


@pytest.mark.parametrize("path", BY_CONTENT_ID)
def test_an_empty_body_is_a_body_without_fields(api: Api, path: str) -> None:
    answer = api.send(path, b"")
    assert (answer.status_code, answer.json()["field"]) == (400, "contentSessionId")


@pytest.mark.parametrize(
    "brackets", [(b"[", b"", b"]"), (b'{"a":', b"1", b"}"), (b"[", rb'"\ud800"', b"]")]
)
@pytest.mark.parametrize("depth", [50, 300, 450, 600, 900, 3000, 200_000])
def test_deep_json_is_taken_or_refused_and_never_breaks_the_handler(
    api: Api, depth: int, brackets: tuple[bytes, bytes, bytes]
) -> None:
    opened, middle, closed = brackets
    value = opened * depth + middle + closed * depth
    body = b'{"contentSessionId": "s", "tool_name": "Bash", "tool_input": %s, "ids": [%s]}'
    for path in (OBSERVE, "/api/observations/batch"):
        answer = api.send(path, body % (value, value))
        assert answer.status_code in (200, 400), (path, answer.text)
        assert "error" in answer.json() or answer.status_code == 200


@pytest.mark.parametrize("path", BY_CONTENT_ID)
def test_half_a_character_in_any_field_is_taken_or_refused(api: Api, path: str) -> None:
    for field in filled(path):
        body = json.dumps({**filled(path), field: "x\udc00y\ud800"})
        answer = api.send(path, body.encode())
        assert answer.status_code in (200, 400), (field, answer.text)


def test_a_prompt_with_half_a_character_is_remembered_without_it(api: Api) -> None:
    body = rb'{"contentSessionId": "s", "prompt": "blink \ud83d twice"}'
    assert api.send(INIT, body).status_code == 200
    assert api.read("/api/prompts")["items"][0]["prompt_text"] == "blink ? twice"


def test_a_body_over_the_limit_is_refused(api: Api) -> None:
    answer = api.send(INIT, b" " * (LARGEST_BODY + 1))
    assert answer.status_code in (400, 413)
    assert str(LARGEST_BODY) in answer.json()["error"]


def test_a_long_field_is_cut_and_stays_json(api: Api) -> None:
    response = {"stdout": "line\n" * 200_000, "rows": ["x" * 500] * 2000}
    api.said(OBSERVE, contentSessionId=SESSION, tool_name="Bash", tool_response=response)
    kept = api.rows("SELECT tool_response AS text FROM tool_events")[0]["text"]
    assert len(kept) <= 8192
    assert "cut" in str(json.loads(kept))


@pytest.mark.parametrize("row", ["0", "-1", "x", "1.5", "²", "1" * 30, "%00", "init"])
@pytest.mark.parametrize(
    ("method", "tail"),
    [("POST", "/init"), ("POST", "/observations"), ("POST", "/summarize"), ("GET", "/status"),
     ("DELETE", "")],
)  # fmt: skip
def test_an_id_that_is_no_number_is_refused(api: Api, method: str, tail: str, row: str) -> None:
    answer = api.request(method, f"/sessions/{row}{tail}")
    assert (answer.status_code, answer.json()["field"]) == (400, "id")


@pytest.mark.parametrize("row", [1, 2**62])
@pytest.mark.parametrize(
    ("method", "tail"),
    [("POST", "/init"), ("POST", "/observations"), ("POST", "/summarize"), ("GET", "/status"),
     ("DELETE", "")],
)  # fmt: skip
def test_a_row_that_is_not_there_is_404(api: Api, method: str, tail: str, row: int) -> None:
    answer = api.request(method, f"/sessions/{row}{tail}")
    assert answer.status_code == 404
    assert answer.json() == {"error": f"there is no session {row}"}
    assert api.count("sdk_sessions") == 0


def test_an_address_that_is_not_there_is_404_in_json(api: Api) -> None:
    for path in ("/nope", "/api", "/sessions", "/api/sessions/nope", "/sessions/1/nope"):
        answer = api.get(path)
        assert (answer.status_code, list(answer.json())) == (404, ["error"])


def methods_of(path: str) -> set[str]:
    """What any route answers at this address, `{id}` taken as any word."""
    found: set[str] = set()
    for route in public_routes:
        assert isinstance(route, Route)
        if route.path_regex.match(path):
            found |= route.methods or set()
    return found


@pytest.mark.parametrize("path", sorted({route.path for route in public_routes}))
def test_a_method_that_an_address_does_not_have_is_405_in_json(api: Api, path: str) -> None:
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - methods_of(path):
        answer = api.request(method, path)
        assert answer.status_code == 405
        assert answer.headers["allow"]
        assert list(answer.json()) == ["error"]


# Whatever comes

ODD = st.sampled_from(["", "\ud800", "\0", "<private>", "x" * 300, "s", 1, 0, 2**63, -(2**70)])
TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
LEAF = ODD | TEXT | st.integers() | st.floats() | st.booleans() | st.none()
ANY_JSON = LEAF | st.lists(LEAF, max_size=3) | st.dictionaries(TEXT, LEAF | st.lists(LEAF))
ANY_VALUE = ODD | st.deferred(lambda: ANY_JSON)  # deferred, or few of the values would be odd
FIELDS = st.sampled_from(
    ["contentSessionId", "claudeSessionId", "sessionId", "session_id", "cwd", "project_dir",
     "projectDir", "project", "prompt", "userPrompt", "prompt_id", "prompt_number", "tool_name",
     "toolName", "tool_input", "tool_response", "tool_output", "tool_use_id", "agent_id",
     "transcript_path", "reason", "last_assistant_message", "ids", "isProcessing"]
)  # fmt: skip


@settings(max_examples=400)
@given(path=st.sampled_from(POSTS), field=FIELDS, value=ANY_VALUE)
def test_any_value_in_any_field_is_taken_or_refused(
    api: Api, path: str, field: str, value: Any
) -> None:
    begin(api)
    body = json.dumps({**filled(path), field: value}).encode()
    answer = api.send(path.replace("{id}", "1"), body)
    assert answer.status_code == 200 or 400 <= answer.status_code < 500, answer.text
    assert isinstance(answer.json(), dict | list)


@settings(max_examples=100)
@given(path=st.sampled_from(POSTS), body=ANY_JSON)
def test_any_json_to_any_address_is_taken_or_refused(api: Api, path: str, body: Any) -> None:
    begin(api)
    answer = api.send(path.replace("{id}", "1"), json.dumps(body).encode())
    assert answer.status_code == 200 or 400 <= answer.status_code < 500, answer.text


@settings(max_examples=100)
@given(path=st.sampled_from(POSTS), body=st.binary(max_size=200))
def test_any_bytes_to_any_address_are_taken_or_refused(api: Api, path: str, body: bytes) -> None:
    begin(api)
    answer = api.send(path.replace("{id}", "1"), body)
    assert answer.status_code == 200 or 400 <= answer.status_code < 500, answer.text

"""Sessions over HTTP: an event answered with 200 is on disk, once, in its session and turn."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from claude_mem.store.database import connect
from claude_mem.types import Distillate, Turn
from claude_mem.worker.distil_jobs import JobRunner
from tests.api import Api, open_api
from tests.payloads import PROJECT_DIR, SESSION
from tests.session_requests import (
    BY_CONTENT_ID,
    COMPLETE,
    EXAMPLES,
    INIT,
    OBSERVE,
    SUMMARIZE,
    begin,
    example_body,
)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with open_api(tmp_path / "data") as opened:
        yield opened


# 200 means on disk


@pytest.mark.parametrize("path", BY_CONTENT_ID)
def test_what_was_answered_with_200_is_seen_from_another_connection(api: Api, path: str) -> None:
    answer = api.post_json(path, **example_body(path))
    sessions = api.rows("SELECT id, content_session_id FROM sdk_sessions")
    assert sessions == [{"id": answer["sessionDbId"], "content_session_id": SESSION}]
    assert api.count("tool_events") == 1


@pytest.mark.parametrize("action", ["init", "observations", "summarize"])
def test_what_was_sent_by_the_row_id_is_seen_from_another_connection(api: Api, action: str) -> None:
    row = begin(api)
    api.clock.ms += 5000
    answer = api.post_json(f"/sessions/{row}/{action}", **EXAMPLES[action])
    assert (answer["sessionDbId"], answer["contentSessionId"]) == (row, SESSION)
    assert api.count("tool_events") == 2
    assert api.count("sdk_sessions") == 1


@pytest.mark.parametrize("path", BY_CONTENT_ID)
def test_a_write_that_fails_is_not_answered_with_200(api: Api, path: str) -> None:
    with closing(connect(api.layout.database)) as other:
        other.execute("DROP TABLE tool_events")
    answer = api.post(path, **example_body(path))
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
    answer = api.post_json(path, **example_body(path))
    assert answer["status"] == status
    assert (answer["sessionDbId"], answer["contentSessionId"]) == (1, SESSION)
    assert answer["duplicate"] is False


# Which session, which project


@pytest.mark.parametrize("path", BY_CONTENT_ID)
def test_a_session_that_nobody_announced_is_created(api: Api, path: str) -> None:
    answer = api.post_json(path, **{**example_body(path), "contentSessionId": "never seen"})
    session = api.rows("SELECT * FROM sdk_sessions WHERE id = ?", answer["sessionDbId"])[0]
    assert session["content_session_id"] == "never seen"
    assert session["project_dir"] == PROJECT_DIR


@pytest.mark.parametrize("name", ["contentSessionId", "claudeSessionId", "session_id"])
@pytest.mark.parametrize("path", BY_CONTENT_ID)
def test_every_name_of_the_session_id_means_the_same(api: Api, path: str, name: str) -> None:
    api.post_json(path, **example_body(path))
    renamed = example_body(path)
    renamed[name] = renamed.pop("contentSessionId")
    assert api.post_json(path, **renamed)["duplicate"] is True
    assert api.count("sdk_sessions") == 1


@pytest.mark.parametrize("name", ["tool_response", "tool_output"])
def test_tool_output_is_another_name_of_tool_response(api: Api, name: str) -> None:
    api.post_json(
        OBSERVE, contentSessionId=SESSION, tool_name="Bash", **{name: {"stdout": "built"}}
    )
    assert api.rows("SELECT tool_response FROM tool_events") == [
        {"tool_response": '{"stdout": "built"}'}
    ]


def test_the_same_tool_use_under_both_names_is_one_event(api: Api) -> None:
    for name in ("tool_response", "tool_output"):
        api.post_json(OBSERVE, contentSessionId=SESSION, tool_name="Bash", **{name: "built"})
    assert api.count("tool_events") == 1


@pytest.mark.parametrize(
    ("column", "empty", "other"),
    [("tool_response", "tool_response", "tool_output"), ("tool_input", "tool_input", "toolInput")],
)
def test_a_name_that_is_null_does_not_hide_the_other_name(
    api: Api, column: str, empty: str, other: str
) -> None:
    api.post_json(
        OBSERVE, contentSessionId=SESSION, tool_name="Bash", **{empty: None, other: "built"}
    )
    assert api.rows(f"SELECT {column} AS value FROM tool_events") == [{"value": '"built"'}]


@pytest.mark.parametrize("action", ["init", "observations", "summarize"])
def test_the_address_says_which_session_whatever_the_body_says(api: Api, action: str) -> None:
    row, other = begin(api), begin(api, session="another")
    fields = {"contentSessionId": "another", "session_id": "another", "project": "elsewhere"}
    answer = api.post_json(f"/sessions/{row}/{action}", **EXAMPLES[action], **fields)
    assert answer["contentSessionId"] == SESSION
    assert api.count("projects") == 1
    assert api.get_json(f"/sessions/{other}/status")["promptCounter"] == 1


def test_a_prompt_by_row_id_is_shown_as_of_its_sessions_project(api: Api) -> None:
    row = begin(api)
    api.post_json(f"/sessions/{row}/init", prompt="Elsewhere", cwd="/home/dev/elsewhere")
    assert json.loads(api.layout.activity_flag.read_text())["project"] == "harbor"


def test_a_session_belongs_to_the_project_of_its_directory(api: Api, tmp_path: Path) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "deep").mkdir()
    api.post_json(INIT, contentSessionId="a", prompt="x", cwd=str(tmp_path / "repo" / "deep"))
    api.post_json(INIT, contentSessionId="b", prompt="x", projectDir=str(tmp_path / "repo"))
    assert [p["name"] for p in api.get_json("/api/projects")["projects"]] == ["repo"]


def test_a_session_without_a_directory_belongs_to_the_project_it_names(api: Api) -> None:
    api.post_json(INIT, contentSessionId="a", prompt="x", project="harbor")
    assert api.rows("SELECT key, name FROM projects") == [{"key": "name:harbor", "name": "harbor"}]


def test_hostile_names_are_kept_as_they_are(api: Api) -> None:
    name = "'; DROP TABLE sdk_sessions; --"
    api.post_json(INIT, contentSessionId=name, prompt=name, project=name)
    rows = api.rows("SELECT content_session_id AS id, user_prompt AS prompt FROM sdk_sessions")
    assert rows == [{"id": name, "prompt": name}]
    assert len(api.get_json("/api/prompts", project=name)["items"]) == 1


# Once, and in its turn


@pytest.mark.parametrize("path", BY_CONTENT_ID)
@pytest.mark.parametrize("extra", [{}, {"tool_use_id": "toolu_1"}, {"prompt_id": "p-1"}])
def test_the_same_event_twice_is_one(api: Api, path: str, extra: dict[str, str]) -> None:
    first = api.post_json(path, **example_body(path), **extra)
    second = api.post_json(path, **example_body(path), **extra)
    assert (first["duplicate"], second["duplicate"]) == (False, True)
    assert api.count("tool_events") == 1
    assert first["promptNumber"] == second["promptNumber"]


def test_the_same_words_in_the_next_turn_are_another_event(api: Api) -> None:
    for prompt in ("first", "second"):
        begin(api, prompt)
        assert api.post_json(OBSERVE, **example_body(OBSERVE))["duplicate"] is False
    assert api.rows("SELECT turn_id FROM tool_events WHERE event = 'PostToolUse'") == [
        {"turn_id": 1},
        {"turn_id": 2},
    ]


def test_prompts_are_numbered_in_order_and_events_get_the_number_of_their_prompt(api: Api) -> None:
    for number, prompt in enumerate(("first", "second", "third"), 1):
        assert (
            api.post_json(INIT, contentSessionId=SESSION, prompt=prompt)["promptNumber"] == number
        )
        assert api.post_json(OBSERVE, **example_body(OBSERVE))["promptNumber"] == number


@pytest.mark.parametrize("name", ["prompt_number", "promptNumber"])
def test_an_event_may_say_which_prompt_it_belongs_to(api: Api, name: str) -> None:
    begin(api, "first")
    begin(api, "second")
    assert api.post_json(OBSERVE, **example_body(OBSERVE), **{name: 1})["promptNumber"] == 1


def test_a_second_init_with_the_number_of_the_first_is_the_same_prompt(api: Api) -> None:
    row = begin(api)
    answer = api.post_json(
        f"/sessions/{row}/init", userPrompt="Make the light blink", promptNumber=1
    )
    assert answer["promptNumber"] == 1
    assert api.count("user_prompts") == 1


# Turns and summaries


def test_a_summarized_turn_becomes_a_summary(api: Api) -> None:
    begin(api)
    assert api.post_json(SUMMARIZE, **example_body(SUMMARIZE))["queueLength"] == 1
    api.catch_up()
    summary = api.get_json("/api/summaries")["items"][0]
    assert (summary["request"], summary["completed"]) == ("Make the light blink", "It blinks.")
    assert summary["content_session_id"] == SESSION


def test_an_event_after_the_end_of_its_turn_revises_what_was_made_of_it(api: Api) -> None:
    api.add_turn(SESSION, "Change the lamp", "Done.")
    change = {"file_path": f"{PROJECT_DIR}/lamp.py", "old_string": "a", "new_string": "b"}
    answer = api.post_json(OBSERVE, contentSessionId=SESSION, tool_name="Edit", tool_input=change)
    assert answer["queueLength"] == 1
    api.catch_up()
    assert [s["files_edited"] for s in api.get_json("/api/summaries")["items"]] == [["lamp.py"]]


def test_the_next_prompt_ends_the_turn_before(api: Api) -> None:
    begin(api, "first")
    begin(api, "second")
    api.catch_up()
    assert [s["request"] for s in api.get_json("/api/summaries")["items"]] == ["first"]


def test_a_completed_session_is_completed_and_a_new_prompt_makes_it_active_again(api: Api) -> None:
    row = begin(api)
    assert api.post_json(COMPLETE, **example_body(COMPLETE))["status"] == "completed"
    assert api.get_json(f"/sessions/{row}/status")["status"] == "completed"
    api.clock.ms += 1000
    begin(api, "One thing more")
    assert api.get_json(f"/sessions/{row}/status")["status"] == "active"


def test_completing_a_session_ends_its_open_turn(api: Api) -> None:
    begin(api)
    api.post_json(COMPLETE, **example_body(COMPLETE))
    api.catch_up()
    assert [s["request"] for s in api.get_json("/api/summaries")["items"]] == [
        "Make the light blink"
    ]


def test_the_status_says_who_the_session_is_and_what_waits(api: Api) -> None:
    row = begin(api)
    api.post_json(SUMMARIZE, **example_body(SUMMARIZE))
    assert api.get_json(f"/sessions/{row}/status") == {
        "sessionDbId": row,
        "contentSessionId": SESSION,
        "memorySessionId": None,
        "claudeSessionId": SESSION,
        "sdkSessionId": None,
        "project": "harbor",
        "status": "active",
        "promptCounter": 1,
        "pendingMessages": 1,
        "deadMessages": 0,
    }
    api.catch_up()
    status = api.get_json(f"/sessions/{row}/status")
    assert status["pendingMessages"] == 0
    assert status["memorySessionId"] not in (None, SESSION)


# Stopping a session


class Endless:
    """An observer that never answers, and signals when it was started and stopped."""

    name = "endless"

    def __init__(self) -> None:
        self.started, self.stopped = asyncio.Event(), asyncio.Event()
        self.turns: list[int] = []

    async def __call__(self, turn: Turn) -> Distillate:
        self.turns.append(turn.prompt_number)
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()
        raise AssertionError("never comes here")


def delete_while_at_work(api: Api, row: int, observer: Endless) -> dict[str, Any]:
    """The answer to DELETE, sent while the observer has a turn in hand."""

    async def scene() -> dict[str, Any]:
        worker = api.worker
        jobs = JobRunner(api.layout, worker.store, worker.announcer, worker.contexts,
                         draft=observer)  # fmt: skip
        worker.jobs = jobs
        work = asyncio.create_task(jobs.run_due())
        await asyncio.wait_for(observer.started.wait(), 10)
        answer = await api.client.delete(f"/sessions/{row}")
        assert observer.stopped.is_set()
        await asyncio.wait_for(work, 10)  # nothing else of it is due
        body: dict[str, Any] = answer.json()
        return body

    return api.runner.run(scene())


def test_deleting_a_session_stops_its_work_and_keeps_what_was_queued(api: Api) -> None:
    row = begin(api)
    api.post_json(SUMMARIZE, **example_body(SUMMARIZE))
    answer = delete_while_at_work(api, row, Endless())
    assert answer == {"status": "failed", "sessionDbId": row, "keptMessages": 1}
    status = api.get_json(f"/sessions/{row}/status")
    assert (status["status"], status["pendingMessages"]) == ("failed", 1)
    assert api.count("tool_events") == 2


def test_deleting_a_session_starts_none_of_its_other_turns(api: Api) -> None:
    row = begin(api, "first")
    begin(api, "second")
    api.post_json(SUMMARIZE, **example_body(SUMMARIZE))
    observer = Endless()
    assert delete_while_at_work(api, row, observer)["keptMessages"] == 2
    assert observer.turns == [1]


def test_what_a_deleted_session_left_is_remembered_when_it_goes_on(api: Api) -> None:
    row = begin(api, "first")
    api.post_json(SUMMARIZE, **example_body(SUMMARIZE))
    api.request("DELETE", f"/sessions/{row}")
    api.catch_up()
    assert api.count("session_summaries") == 0
    api.clock.ms += 1000
    begin(api, "second")
    api.catch_up()
    assert [s["request"] for s in api.get_json("/api/summaries")["items"]] == ["first"]

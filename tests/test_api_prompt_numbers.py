"""Clients that count their prompts, repeat them at the end of a turn, or tell the time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api import Api, open_api
from tests.payloads import PROJECT_DIR, SESSION
from tests.session_requests import COMPLETE, INIT, OBSERVE, SUMMARIZE, begin, example_body


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with open_api(tmp_path / "data") as opened:
        yield opened


def prompts(api: Api) -> list[tuple[int, str | None]]:
    rows = api.rows("SELECT prompt_number, prompt_text FROM user_prompts ORDER BY prompt_number")
    return [(row["prompt_number"], row["prompt_text"]) for row in rows]


def init(api: Api, row: int, number: Any, text: str) -> dict[str, Any]:
    api.clock.ms += 60_000
    return api.post_json(
        f"/sessions/{row}/init", project="harbor", userPrompt=text, promptNumber=number
    )


# The number of a prompt


def test_a_new_number_opens_that_prompt(api: Api) -> None:
    row = begin(api, "first")
    for number in (2, 3, 7):
        answer = init(api, row, number, f"prompt {number}")
        assert (answer["status"], answer["promptNumber"]) == ("initialized", number)
        assert answer["duplicate"] is False and "note" not in answer
    assert [number for number, _ in prompts(api)] == [1, 2, 3, 7]
    assert api.get_json(f"/sessions/{row}/status")["promptCounter"] == 7


def test_the_prompt_after_a_number_that_was_skipped_is_the_next(api: Api) -> None:
    row = begin(api, "first")
    init(api, row, 7, "seventh")
    api.clock.ms += 60_000
    assert api.post_json(INIT, contentSessionId=SESSION, prompt="next")["promptNumber"] == 8


def test_the_same_number_with_the_same_text_is_a_duplicate(api: Api) -> None:
    row = begin(api, "first")
    for _ in range(2):
        answer = init(api, row, 1, "first")
        assert (answer["promptNumber"], answer["duplicate"]) == (1, True)
    assert prompts(api) == [(1, "first")]


def test_the_same_number_with_another_text_is_a_new_prompt(api: Api) -> None:
    row = begin(api, "first")
    for duplicate in (False, True):
        answer = init(api, row, 1, "second")
        assert (answer["promptNumber"], answer["duplicate"]) == (2, duplicate)
        assert answer["note"] == "prompt 1 has another text: stored as prompt 2"
    assert prompts(api) == [(1, "first"), (2, "second")]


def test_a_number_gives_its_text_to_the_turn_whose_tools_came_first(api: Api) -> None:
    answer = api.post_json(OBSERVE, **example_body(OBSERVE), promptNumber=4)
    assert answer["promptNumber"] == 4
    answer = init(api, answer["sessionDbId"], 4, "late")
    assert (answer["promptNumber"], answer["duplicate"]) == (4, False)
    assert prompts(api) == [(4, "late")]


@pytest.mark.parametrize("number", [0, -1, 2**62, 2**64, 1.5, True, "three", [1], {"x": 1}])
def test_a_prompt_without_a_usable_number_gets_the_next(api: Api, number: Any) -> None:
    row = begin(api, "first")
    answer = init(api, row, number, "second")
    assert answer["promptNumber"] == 2
    assert "not a positive integer" in answer["note"]


def test_a_private_prompt_keeps_its_number_and_nothing_else(api: Api) -> None:
    row = begin(api, "first")
    for _ in range(2):
        answer = init(api, row, 2, "<private>hushhush</private>")
        assert (answer["status"], answer["promptNumber"]) == ("skipped", 2)
    assert prompts(api) == [(1, "first"), (2, None)]
    assert init(api, row, 2, "open")["promptNumber"] == 3


@pytest.mark.parametrize("number", ["2", 2])
def test_a_number_may_be_text(api: Api, number: Any) -> None:
    begin(api, "first")
    begin(api, "second")
    begin(api, "third")
    answer = api.post_json(OBSERVE, **example_body(OBSERVE), prompt_number=number)
    assert answer["promptNumber"] == 2 and "note" not in answer


@pytest.mark.parametrize("number", [9, 0, -1, 2**62, 2**64, 1.5, True, "nine", [1], {"x": 1}])
@pytest.mark.parametrize("path", [OBSERVE, SUMMARIZE])
@pytest.mark.parametrize("name", ["prompt_number", "promptNumber"])
def test_an_event_with_an_unknown_number_goes_to_the_latest_prompt_and_the_response_says_so(
    api: Api, path: str, number: Any, name: str
) -> None:
    begin(api, "first")
    begin(api, "second")
    answer = api.post_json(path, **example_body(path), **{name: number})
    assert (answer["status"], answer["promptNumber"]) == ("queued", 2)
    assert answer["note"].endswith("stored with prompt 2")
    assert len(prompts(api)) == 2


# The prompt at the end of its turn


def test_the_last_user_message_is_the_request_where_no_prompt_is_known(api: Api) -> None:
    message = {"last_user_message": "Make the light blink", "last_assistant_message": "It blinks."}
    api.post_json(SUMMARIZE, contentSessionId=SESSION, project_dir=PROJECT_DIR, **message)
    api.catch_up()
    assert prompts(api) == [(1, "Make the light blink")]
    assert api.rows("SELECT request FROM session_summaries") == [
        {"request": "Make the light blink"}
    ]


def test_the_last_user_message_does_not_replace_a_prompt(api: Api) -> None:
    begin(api, "first")
    api.post_json(SUMMARIZE, contentSessionId=SESSION, last_user_message="something else")
    assert prompts(api) == [(1, "first")]


@pytest.mark.parametrize("message", ["", " \n", None])
def test_an_empty_last_user_message_says_nothing(api: Api, message: str | None) -> None:
    api.post_json(OBSERVE, **example_body(OBSERVE))
    api.post_json(SUMMARIZE, contentSessionId=SESSION, last_user_message=message)
    assert api.rows("SELECT prompt_text, private FROM user_prompts") == [
        {"prompt_text": None, "private": 0}
    ]


# The time of an event

YESTERDAY = 1_763_113_600_000


@pytest.mark.parametrize(
    "timestamp",
    ["2025-11-14T09:46:40Z", "2025-11-14T10:46:40+01:00", YESTERDAY, YESTERDAY / 1000],
)
def test_the_time_in_the_payload_counts(api: Api, timestamp: Any) -> None:
    for path in (INIT, OBSERVE, SUMMARIZE, COMPLETE):
        api.post_json(path, **example_body(path), timestamp=timestamp)
    times = api.rows("SELECT DISTINCT created_at_epoch AS at FROM tool_events")
    assert times == [{"at": YESTERDAY}]
    assert api.rows("SELECT started_at_epoch AS at, status FROM sdk_sessions") == [
        {"at": YESTERDAY, "status": "completed"}
    ]
    assert api.rows("SELECT created_at FROM user_prompts")[0]["created_at"].startswith("2025-11-14")


@pytest.mark.parametrize(
    "timestamp", ["soon", "", None, -1, 0, 10**30, True, [], {}, "1950-01-01", "2090-01-01"]
)
def test_a_time_that_cannot_be_is_that_of_the_arrival(api: Api, timestamp: Any) -> None:
    api.post_json(INIT, **example_body(INIT), timestamp=timestamp)
    assert api.rows("SELECT created_at_epoch AS at FROM user_prompts") == [{"at": api.clock.ms}]


def test_a_tool_use_from_before_its_prompt_by_another_clock_stays_in_its_turn(api: Api) -> None:
    begin(api)
    answer = api.post_json(OBSERVE, **example_body(OBSERVE), timestamp=YESTERDAY)
    assert answer["promptNumber"] == 1
    assert len(prompts(api)) == 1

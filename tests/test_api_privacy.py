"""Skipped tools, private text and secrets in HTTP requests are never stored."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from claude_mem.intake.event_reader import OWN_TOOLS
from tests.api import Api, open_api
from tests.payloads import SESSION
from tests.session_requests import (
    COMPLETE,
    INIT,
    OBSERVE,
    SUMMARIZE,
    begin,
    example_body,
)

SECRET = "sk-ant-api03-" + "Zx9Qw7Lk2Vb5Nm8Rt4Yp"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with open_api(tmp_path / "data") as opened:
        yield opened


@pytest.mark.parametrize(
    "tool",
    ["ListMcpResourcesTool", "SlashCommand", "Skill", "TodoWrite", "AskUserQuestion",
     *(f"{prefix}search" for prefix in OWN_TOOLS)],
)  # fmt: skip
def test_tools_on_the_skip_list_and_our_own_leave_no_trace(api: Api, tool: str) -> None:
    row = begin(api)
    for path in (OBSERVE, f"/sessions/{row}/observations"):
        answer = api.post_json(path, contentSessionId=SESSION, tool_name=tool, tool_input="x")
        assert answer["status"] == "skipped"
    assert api.count("tool_events") == 1


def test_the_skip_list_is_a_setting(tmp_path: Path) -> None:
    with open_api(tmp_path, CLAUDE_MEM_SKIP_TOOLS="Lamp, Horn") as api:
        skipped = {
            name: api.post_json(OBSERVE, contentSessionId=SESSION, tool_name=name)["status"]
            for name in ("Lamp", "Horn", "Skill")
        }
    assert skipped == {"Lamp": "skipped", "Horn": "skipped", "Skill": "queued"}


def test_of_a_private_prompt_nothing_is_kept_nor_of_what_followed_from_it(api: Api) -> None:
    answer = api.post_json(
        INIT, contentSessionId=SESSION, prompt="<private>plan hushhush</private>"
    )
    assert answer["status"] == "skipped"
    for path in (OBSERVE, SUMMARIZE):
        about = {"contentSessionId": SESSION, "tool_name": "Bash", "tool_input": "hushhush"}
        answer = api.post_json(
            path, **about, tool_response="hushhush", last_assistant_message="hushhush"
        )
        assert answer["status"] == "skipped"
    api.catch_up()
    assert api.count("tool_events") == api.count("session_summaries") == 0
    assert b"hushhush" not in api.bytes_on_disk()


def test_the_prompt_after_a_private_one_is_remembered(api: Api) -> None:
    api.post_json(INIT, contentSessionId=SESSION, prompt="<private>plan</private>")
    answer = api.post_json(INIT, contentSessionId=SESSION, prompt="Now the lamp")
    assert (answer["status"], answer["promptNumber"]) == ("initialized", 2)
    assert [p["prompt_text"] for p in api.get_json("/api/prompts")["items"]] == ["Now the lamp"]


@pytest.mark.parametrize("of_prompt", [{}, {"prompt_id": "p-2"}])
def test_a_session_whose_last_prompt_was_private_can_be_completed(
    api: Api, of_prompt: dict[str, str]
) -> None:
    row = begin(api, "Open")
    api.post_json(INIT, contentSessionId=SESSION, prompt="<private>plan</private>", **of_prompt)
    assert api.post_json(COMPLETE, **example_body(COMPLETE), **of_prompt)["status"] == "completed"
    assert api.get_json(f"/sessions/{row}/status")["status"] == "completed"


@pytest.mark.parametrize(
    "hidden",
    ["<private>hushhush</private>", "<PRIVATE>hushhush</Private>", "<private>hushhush",
     "<private>a<private>b</private>hushhush</private>", '<private why="x">hushhush</private>',
     "<system-reminder>hushhush</system-reminder>",
     "<claude-mem-context>hushhush</claude-mem-context>"],
)  # fmt: skip
def test_private_parts_of_a_body_reach_no_file(api: Api, hidden: str) -> None:
    text = f"before {hidden}"
    api.post_json(INIT, contentSessionId=SESSION, prompt=text, cwd=f"/x/{hidden}", project=hidden)
    api.post_json(OBSERVE, contentSessionId=SESSION, tool_name="Bash", tool_use_id=hidden,
             tool_input={"command": text, text: [text]}, tool_response=[{"stdout": text}],
             agent_id=text, transcript_path=text)  # fmt: skip
    api.post_json(SUMMARIZE, contentSessionId=SESSION, last_assistant_message=text)
    api.post_json(COMPLETE, contentSessionId=SESSION, reason=text)
    api.catch_up()
    assert [p["prompt_text"] for p in api.get_json("/api/prompts")["items"]] == ["before "]
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
    api.post_json(INIT, contentSessionId=SESSION, prompt=text, project="harbor")
    used = {"tool_input": {"command": text}, "tool_response": [{"env": {"API_KEY": SECRET}}]}
    api.post_json(OBSERVE, contentSessionId=SESSION, tool_name="Bash", **used)
    api.post_json(SUMMARIZE, contentSessionId=SESSION, last_assistant_message=text)
    api.post_json(COMPLETE, contentSessionId=SESSION, reason=text)
    api.catch_up()
    assert "[redacted:anthropic-key]" in api.get_json("/api/prompts")["items"][0]["prompt_text"]
    assert SECRET.encode() not in api.bytes_on_disk()

"""Bad requests get a JSON error that names the field, and never a 500."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.routing import Route

from claude_mem.server.app import public_routes
from claude_mem.server.requests import MAX_BODY, read_object
from claude_mem.types import Json
from tests.api import Api, open_api
from tests.payloads import SESSION
from tests.session_requests import (
    BY_CONTENT_ID,
    COMPLETE,
    INIT,
    OBSERVE,
    SUMMARIZE,
    begin,
    example_body,
)

# /mcp has a protocol of its own: tests/test_mcp.py
POSTS = [r.path for r in public_routes if "POST" in (r.methods or ()) and r.path != "/mcp"]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with open_api(tmp_path / "data") as opened:
        yield opened


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """An API for requests that are refused, whatever was asked before."""
    with open_api(tmp_path_factory.mktemp("refusing") / "data") as opened:
        yield opened


@pytest.mark.parametrize("path", BY_CONTENT_ID)
@pytest.mark.parametrize("value", [None, "", 1, True, ["x"], {"x": 1}, "x" * 201])
def test_a_body_without_a_usable_session_id_is_refused(
    refusing: Api, path: str, value: Any
) -> None:
    answer = refusing.post(path, **{**example_body(path), "contentSessionId": value})
    assert answer.status_code == 400
    assert answer.json()["field"] in ("contentSessionId", "session_id")
    assert answer.json()["field"] in answer.json()["error"]
    assert refusing.count("sdk_sessions") == 0


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


@pytest.mark.parametrize("name", [None, "", "x" * 201])
def test_an_observation_needs_the_name_of_a_tool(api: Api, name: str | None) -> None:
    answer = api.post(OBSERVE, contentSessionId=SESSION, tool_name=name)
    assert answer.status_code == 400
    assert answer.json()["field"] == "tool_name"


@pytest.mark.parametrize("value", [0, 1.5, "text", None, True, [], {}, [[{"deep": None}]]])
def test_a_tool_may_take_and_give_any_json(api: Api, value: Any) -> None:
    api.post_json(
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
def test_a_body_that_is_no_json_object_is_refused(refusing: Api, path: str, body: bytes) -> None:
    begin(refusing)
    answer = refusing.send(path.replace("{id}", "1"), body)
    assert answer.status_code == 400
    assert "body" in answer.json()["error"]
    assert refusing.count("tool_events") == 1


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
    for field in example_body(path):
        body = json.dumps({**example_body(path), field: "x\udc00y\ud800"})
        answer = api.send(path, body.encode())
        assert answer.status_code in (200, 400), (field, answer.text)


def test_a_prompt_with_half_a_character_is_remembered_without_it(api: Api) -> None:
    body = rb'{"contentSessionId": "s", "prompt": "blink \ud83d twice"}'
    assert api.send(INIT, body).status_code == 200
    assert api.get_json("/api/prompts")["items"][0]["prompt_text"] == "blink ? twice"


def test_a_body_over_the_limit_is_refused(api: Api) -> None:
    answer = api.send(INIT, b" " * (MAX_BODY + 1))
    assert answer.status_code in (400, 413)
    assert str(MAX_BODY) in answer.json()["error"]


def test_a_long_field_is_cut_and_stays_json(api: Api) -> None:
    response = {"stdout": "line\n" * 200_000, "rows": ["x" * 500] * 2000}
    api.post_json(OBSERVE, contentSessionId=SESSION, tool_name="Bash", tool_response=response)
    stored = api.rows("SELECT tool_response AS text FROM tool_events")[0]["text"]
    assert len(stored) <= 8192
    assert "cut" in str(json.loads(stored))


@pytest.mark.parametrize("row", ["0", "-1", "x", "1.5", "²", "1" * 30, "%00", "init"])
@pytest.mark.parametrize(
    ("method", "tail"),
    [("POST", "/init"), ("POST", "/observations"), ("POST", "/summarize"), ("GET", "/status"),
     ("DELETE", "")],
)  # fmt: skip
def test_an_id_that_is_no_number_is_refused(
    refusing: Api, method: str, tail: str, row: str
) -> None:
    answer = refusing.request(method, f"/sessions/{row}{tail}")
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
    """The methods of all routes that match this path; `{id}` matches any word."""
    methods: set[str] = set()
    for route in public_routes:
        assert isinstance(route, Route)
        if route.path_regex.match(path):
            methods |= route.methods or set()
    return methods


@pytest.mark.parametrize("path", sorted({route.path for route in public_routes}))
def test_a_method_that_an_address_does_not_have_is_405_in_json(refusing: Api, path: str) -> None:
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - methods_of(path):
        answer = refusing.request(method, path)
        assert answer.status_code == 405
        assert answer.headers["allow"]
        assert list(answer.json()) == ["error"]


# Any value


ODD = st.sampled_from(["", "\ud800", "\0", "<private>", "x" * 300, "s", 1, 0, 2**63, -(2**70)])
TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
LEAF = ODD | TEXT | st.integers() | st.floats() | st.booleans() | st.none()
ANY_JSON = LEAF | st.lists(LEAF, max_size=3) | st.dictionaries(TEXT, LEAF | st.lists(LEAF))
ANY_VALUE = ODD | st.deferred(lambda: ANY_JSON)  # deferred, or few of the values would be odd
FIELDS = st.sampled_from(
    ["contentSessionId", "claudeSessionId", "sessionId", "session_id", "cwd", "project_dir",
     "projectDir", "project", "prompt", "userPrompt", "prompt_id", "prompt_number", "tool_name",
     "toolName", "tool_input", "tool_response", "tool_output", "tool_use_id", "agent_id",
     "transcript_path", "reason", "last_assistant_message", "last_user_message", "timestamp", "ids",
     "isProcessing", "promptNumber"]
)  # fmt: skip


@settings(max_examples=400)
@given(path=st.sampled_from(POSTS), field=FIELDS, value=ANY_VALUE)
def test_any_value_in_any_field_is_taken_or_refused(
    api: Api, path: str, field: str, value: Any
) -> None:
    api.send("/api/resume", b"{}")  # an example before may have paused
    begin(api)
    body = json.dumps({**example_body(path), field: value}).encode()
    answer = api.send(path.replace("{id}", "1"), body)
    assert answer.status_code == 200 or 400 <= answer.status_code < 500, answer.text
    assert isinstance(answer.json(), dict | list)


@settings(max_examples=100)
@given(path=st.sampled_from(POSTS), body=ANY_JSON)
def test_any_json_to_any_address_is_taken_or_refused(api: Api, path: str, body: Any) -> None:
    api.send("/api/resume", b"{}")  # an example before may have paused
    begin(api)
    answer = api.send(path.replace("{id}", "1"), json.dumps(body).encode())
    assert answer.status_code == 200 or 400 <= answer.status_code < 500, answer.text


@settings(max_examples=100)
@given(path=st.sampled_from(POSTS), body=st.binary(max_size=200))
def test_any_bytes_to_any_address_are_taken_or_refused(api: Api, path: str, body: bytes) -> None:
    api.send("/api/resume", b"{}")  # an example before may have paused
    begin(api)
    answer = api.send(path.replace("{id}", "1"), body)
    assert answer.status_code == 200 or 400 <= answer.status_code < 500, answer.text


def test_a_large_body_keeps_no_other_request_waiting() -> None:
    body = json.dumps({"tool_response": "<private>x" * 30_000}).encode()
    turns_of_the_loop = 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def read_while_counting() -> dict[str, Json]:
        nonlocal turns_of_the_loop
        request = Request({"type": "http", "method": "POST", "headers": []}, receive)
        reading = asyncio.create_task(read_object(request))
        while not reading.done():
            turns_of_the_loop += 1
            await asyncio.sleep(0)
        return reading.result()

    assert asyncio.run(read_while_counting()) == {"tool_response": ""}
    assert turns_of_the_loop > 20

"""The messages that are answered without the SDK: as the SDK answers them, and nothing else."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from claude_mem.mcp import endpoint, tools
from claude_mem.types import Json
from tests.conftest import Home

JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


def message(method: str, *, id_: Json = 1, **params: Json) -> dict[str, Json]:
    fields: dict[str, Json] = {"jsonrpc": "2.0", "id": id_, "method": method}
    return {**fields, "params": params} if params else fields


def initialize(**changes: Json) -> dict[str, Json]:
    params: dict[str, Json] = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "a client", "version": "1"},
    }
    return message("initialize", **{**params, **changes})


def ask_sdk(body: bytes, headers: dict[str, str]) -> httpx.Response:
    async def post() -> httpx.Response:
        transport = httpx.ASGITransport(app=tools.serve)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.post("/mcp", content=body, headers=headers)

    return asyncio.run(post())


ANSWERED = [
    *(initialize(protocolVersion=version) for version in endpoint.VERSIONS),
    initialize(capabilities={}),
    message("tools/list"),
    message("tools/list", id_="a string", cursor="x"),
    message("ping", id_=0),
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]
LEFT = [
    initialize(protocolVersion="1999-01-01"),
    initialize(protocolVersion=None),
    initialize(capabilities={"roots": 3}),
    initialize(clientInfo={"name": "a client"}),
    message("tools/list", _meta={"progressToken": 1}),
    message("tools/call", name="search", arguments={}),
    message("server/discover"),
    message("ping", id_=None),
    message("ping", id_=True),
    {"jsonrpc": "1.0", "id": 1, "method": "ping"},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
    [message("ping")],
    3,
]


@pytest.mark.parametrize("sent", ANSWERED, ids=lambda sent: str(sent.get("method")))
@pytest.mark.parametrize("version", [None, "2025-06-18"])
def test_it_answers_as_the_sdk_does(sent: dict[str, Json], version: str | None) -> None:
    headers = {**JSON, **({"mcp-protocol-version": version} if version else {})}
    body = json.dumps(sent).encode()
    reply = endpoint.answer_first_message(headers, body)
    expected = ask_sdk(body, headers)
    assert reply is not None and reply.status == expected.status_code
    assert bool(reply.body) == bool(expected.content)
    if reply.body:
        assert json.loads(reply.body) == expected.json()


@pytest.mark.parametrize("sent", LEFT, ids=str)
def test_everything_else_is_left_to_the_sdk(sent: Any) -> None:
    assert endpoint.answer_first_message(JSON, json.dumps(sent).encode()) is None


@pytest.mark.parametrize(
    "headers",
    [{"content-type": "text/plain"}, {}, {**JSON, "mcp-protocol-version": "1999-01-01"}],
    ids=str,
)
def test_so_are_requests_with_other_headers(headers: dict[str, str]) -> None:
    assert endpoint.answer_first_message(headers, json.dumps(message("ping")).encode()) is None
    assert endpoint.answer_first_message(JSON, b"{") is None


def test_the_sdk_is_loaded_with_the_first_call_of_a_tool(home: Home) -> None:
    home.start_worker()

    def post(sent: dict[str, Json]) -> dict[str, Any]:
        transport = httpx.HTTPTransport(uds=str(home.layout.socket))
        with httpx.Client(transport=transport, base_url="http://claude-mem", timeout=60) as client:
            answered: dict[str, Any] = client.post("/mcp", json=sent, headers=JSON).json()
            stats = client.get("/api/stats").json()
            return {**answered, "loaded": stats["mcp"]["loaded"]}

    assert post(initialize())["loaded"] is False
    listed = post(message("tools/list"))
    assert listed["loaded"] is False and len(listed["result"]["tools"]) >= 5
    called = post(message("tools/call", name="search", arguments={"query": "lamp"}))
    assert called["loaded"] is True and "result" in called

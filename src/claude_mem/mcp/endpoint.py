"""/mcp: Streamable HTTP, on the socket for the shim and on the TCP port for other clients.

The first messages of every session are answered here, as the SDK would. Most sessions never call a
tool, and the SDK takes half a second and tens of megabytes. What is not exactly one of these
messages is left to the SDK.
"""

import asyncio
import importlib
import json
from collections.abc import Mapping
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from claude_mem import __version__
from claude_mem.mcp.tool_definitions import INSTRUCTIONS, TOOLS
from claude_mem.types import Json

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MAX_MESSAGE = 64 * 1024
_NO_META = frozenset({"_meta"})


class Endpoint:
    """POST /mcp"""

    def __init__(self) -> None:
        self._serve: ASGIApp | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether the SDK is."""
        return self._serve is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if _is_small(request):
            body = await request.body()
            reply = answer_first_message(request.headers, body)
            if reply is not None:
                response = Response(reply.body, reply.status, media_type="application/json")
                await response(scope, receive, send)
                return
            receive = _replay_body(body, receive)
        if self._serve is None:
            # In a thread: the import takes a good part of a second, and hooks must not wait.
            server = await asyncio.to_thread(importlib.import_module, "claude_mem.mcp.tools")
            self._serve = server.serve
        await self._serve(scope, receive, send)


def _is_small(request: Request) -> bool:
    length = request.headers.get("content-length", "")
    return length.isascii() and length.isdigit() and int(length) <= MAX_MESSAGE


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """The body once more, for an application that reads it itself."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_replayed() -> Message:
        return messages.pop() if messages else await receive()

    return receive_replayed


class HttpReply(NamedTuple):
    status: int
    body: bytes


def answer_first_message(headers: Mapping[str, str], body: bytes) -> HttpReply | None:
    """None where the SDK has to answer."""
    if headers.get("content-type", "").split(";")[0].strip() != "application/json":
        return None
    if headers.get("mcp-protocol-version", VERSIONS[-1]) not in VERSIONS:
        return None
    try:
        message: Json = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return None
    params = message.get("params", {})
    if not isinstance(params, dict) or _NO_META & params.keys():
        return None
    if "id" not in message:
        is_ready = message.get("method") == "notifications/initialized"
        return HttpReply(202, b"") if is_ready else None
    result = _result(message.get("method"), params)
    if result is None or not _is_id(message["id"]):
        return None
    reply: Json = {"jsonrpc": "2.0", "id": message["id"], "result": result}
    return HttpReply(200, json.dumps(reply, ensure_ascii=False, separators=(",", ":")).encode())


def _is_id(value: Json) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _result(method: Json, params: dict[str, Json]) -> dict[str, Json] | None:
    match method:
        case "initialize" if _is_valid(params):
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": False}},
                "serverInfo": {"name": "claude-mem", "version": __version__},
                "instructions": INSTRUCTIONS,
            }
        case "tools/list":
            return {"tools": [tool.definition() for tool in TOOLS.values()]}
        case "ping":
            return {}
        case _:
            return None


def _is_valid(params: dict[str, Json]) -> bool:
    client, capabilities = params.get("clientInfo"), params.get("capabilities")
    return (
        params.get("protocolVersion") in VERSIONS
        and isinstance(capabilities, dict)
        and all(isinstance(value, dict) for value in capabilities.values())
        and isinstance(client, dict)
        and all(isinstance(client.get(name), str) for name in ("name", "version"))
    )


endpoint = Endpoint()
routes = [Route("/mcp", endpoint, methods=["POST"])]

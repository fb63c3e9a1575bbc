"""/mcp: Streamable HTTP, on the socket for the shim and on the TCP port for other clients."""

import asyncio
import importlib

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from claude_mem.mcp import handshake


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
            reply = handshake.answer(request.headers, body)
            if reply is not None:
                response = Response(reply.body, reply.status, media_type="application/json")
                await response(scope, receive, send)
                return
            receive = _again(body, receive)
        if self._serve is None:
            # In a thread: the import takes a good part of a second, and hooks must not wait.
            protocol = await asyncio.to_thread(importlib.import_module, "claude_mem.mcp.protocol")
            self._serve = protocol.serve
        await self._serve(scope, receive, send)


def _is_small(request: Request) -> bool:
    length = request.headers.get("content-length", "")
    return length.isascii() and length.isdigit() and int(length) <= handshake.MAX_MESSAGE


def _again(body: bytes, receive: Receive) -> Receive:
    """The body once more, for an application that reads it itself."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


endpoint = Endpoint()
routes = [Route("/mcp", endpoint, methods=["POST"])]

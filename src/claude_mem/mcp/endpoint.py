"""/mcp: Streamable HTTP, on the socket for the shim and on the TCP port for other clients."""

import asyncio
import importlib

from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send


class Endpoint:
    """POST /mcp"""

    def __init__(self) -> None:
        self._serve: ASGIApp | None = None

    @property
    def is_loaded(self) -> bool:
        return self._serve is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._serve is None:
            # In a thread: the import takes a good part of a second, and hooks must not wait.
            protocol = await asyncio.to_thread(importlib.import_module, "claude_mem.mcp.protocol")
            self._serve = protocol.serve
        await self._serve(scope, receive, send)


endpoint = Endpoint()
routes = [Route("/mcp", endpoint, methods=["POST"])]

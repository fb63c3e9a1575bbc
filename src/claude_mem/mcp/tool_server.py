"""Our tools served by the official SDK. Importing it is slow: `endpoint` does it at the first call.

Stateless: every HTTP request stands alone, so a restart of the worker loses nothing.
"""

import logging
import os
from typing import Any
from urllib.parse import unquote_to_bytes

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from claude_mem import __version__
from claude_mem.errors import ClaudeMemError
from claude_mem.mcp.tools import INSTRUCTIONS, TOOLS, call_tool, error_text
from claude_mem.worker.worker import Worker

log = logging.getLogger("claude_mem.mcp")
logging.getLogger("mcp").setLevel(logging.WARNING)  # it logs every request

DIRECTORY_HEADER = "claude-mem-directory"  # the shim sends it; other clients may

Context = ServerRequestContext[dict[str, Any], Request]


async def serve(scope: Scope, receive: Receive, send: Send) -> None:
    """A manager for each request: there are no MCP sessions to keep."""
    manager = StreamableHTTPSessionManager(_server, stateless=True, json_response=True)
    async with manager.run():
        await manager.handle_request(scope, receive, send)


async def _list_tools(
    context: Context, params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[types.Tool.model_validate(tool.definition()) for tool in TOOLS.values()]
    )


async def _call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    assert context.request is not None
    worker: Worker = context.request.app.state.worker
    directory = _directory_of(context.request.headers)
    try:
        text = await call_tool(worker, params.name, params.arguments or {}, directory)
    except ClaudeMemError as error:
        return _result(error_text(error), is_error=True)
    except Exception:
        log.exception("tool %s failed", params.name[:80])
        return _result("internal error; the worker's log has the details", is_error=True)
    return _result(text)


def _directory_of(headers: Headers) -> str:
    """The working directory of the session; empty if the header is not an absolute path."""
    directory = os.fsdecode(unquote_to_bytes(headers.get(DIRECTORY_HEADER, "")))
    return directory if directory.startswith("/") and "\0" not in directory else ""


def _result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    content = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[content], is_error=is_error)


async def _discover(context: Context, params: types.RequestParams) -> types.EmptyResult:
    """Clients fall back to `initialize`, which all of them support."""
    raise MCPError(code=types.METHOD_NOT_FOUND, message="Method not found", data="server/discover")


def _create_server() -> Server[dict[str, Any]]:
    server: Server[dict[str, Any]] = Server(
        "claude-mem",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
    )
    server.add_request_handler("server/discover", types.RequestParams, _discover)
    server.middleware.clear()  # the default middleware is telemetry
    return server


_server = _create_server()

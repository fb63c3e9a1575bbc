"""The HTTP application: `public_routes` on the Unix socket and, behind `Guard`, on a TCP port.

Only the socket has the routes of hooks and quick commands, and only the port the pages of the
viewer.
"""

import logging
import sqlite3
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from claude_mem.errors import AmbiguousProject, BadInput, ClaudeMemError, NotFound
from claude_mem.mcp import endpoint as mcp
from claude_mem.server import (
    changing_settings,
    control,
    editing,
    facts,
    forgetting,
    given_hints,
    hooks,
    memories,
    pausing,
    projects,
    quick_command_routes,
    saving,
    search,
    session_events,
    status,
    stored_secrets,
    stream,
    team,
)
from claude_mem.server.openapi import describe_api
from claude_mem.server.requests import reject_parameters
from claude_mem.server.viewer import (
    assets,
    entrance,
    feed_pages,
    health_pages,
    project_pages,
    search_pages,
    turn_pages,
)
from claude_mem.store.database import is_full
from claude_mem.types import Json
from claude_mem.worker.disk_space import describe_full_disk
from claude_mem.worker.worker import Worker

log = logging.getLogger("claude_mem.server")

_NO_SPACE = 507

Describe = Callable[[], dict[str, Json]]


async def openapi(request: Request) -> Response:
    """GET /openapi.json: this description"""
    reject_parameters(request)
    return JSONResponse(describe_api(public_routes))


# Each request is compared with one route after the other: those that are asked most come first.
public_routes = [
    *search.routes,
    Route("/openapi.json", openapi),
    *given_hints.routes,
    *status.routes,
    *control.routes,
    *changing_settings.routes,
    *session_events.routes,
    *memories.routes,
    *projects.routes,
    *saving.routes,
    *editing.routes,
    *facts.routes,
    *forgetting.routes,
    *pausing.routes,
    *stored_secrets.routes,
    *stream.routes,
    *mcp.routes,
]
socket_routes = [
    *hooks.socket_routes,
    *quick_command_routes.routes,
    *team.routes,
    *entrance.socket_routes,
]
page_routes = [
    *entrance.routes,
    *assets.routes,
    *feed_pages.routes,
    *turn_pages.routes,
    *search_pages.routes,
    *project_pages.routes,
    *health_pages.routes,
]


def create_app(worker: Worker, describe: Describe, *, for_socket: bool) -> Starlette:
    app = Starlette(
        routes=[*socket_routes, *public_routes] if for_socket else [*public_routes, *page_routes],
        exception_handlers={
            ClaudeMemError: _claude_mem_error,
            HTTPException: _http_error,
            sqlite3.OperationalError: _database_error,
            Exception: _unexpected,
        },
    )
    app.state.worker, app.state.describe = worker, describe
    return app


async def _claude_mem_error(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, NotFound):
        return JSONResponse({"error": str(error)}, 404)
    if isinstance(error, AmbiguousProject):
        return JSONResponse({"error": str(error), "choices": error.choices}, 400)
    if isinstance(error, BadInput):
        field = {"field": error.field} if error.field else {}
        return JSONResponse({"error": str(error), **field}, 400)
    return JSONResponse({"error": str(error)}, 500)


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    text = "no such route" if error.status_code == 404 else error.detail
    return JSONResponse({"error": text}, error.status_code, headers=error.headers)


async def _database_error(request: Request, error: Exception) -> JSONResponse:
    if not is_full(error):
        return await _unexpected(request, error)
    worker: Worker = request.app.state.worker
    return JSONResponse({"error": describe_full_disk(worker.settings.layout)}, _NO_SPACE)


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return JSONResponse({"error": "internal error; the worker's log has the details"}, 500)

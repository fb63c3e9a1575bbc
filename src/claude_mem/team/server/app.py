"""The HTTP application. It keeps no state but its connections and counters.

Every route under /v1 but the acceptance of an invitation needs a token; each runs one transaction
in the name of its person.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg_pool import PoolTimeout
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from claude_mem import __version__
from claude_mem.errors import BadInput, ClaudeMemError, NotFound
from claude_mem.team.server import access, handlers
from claude_mem.team.server.access import NotAllowed
from claude_mem.team.server.database import Database, Person
from claude_mem.team.server.export_limits import Busy, Exports
from claude_mem.team.server.metrics import Metrics
from claude_mem.team.server.migrations import is_current
from claude_mem.team.server.projects import QuotaExceeded
from claude_mem.team.server.received import TurnReader
from claude_mem.team.wire import MAX_BODY
from claude_mem.types import Json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("claude_mem.team")

Work = Callable[["handlers.Call"], "Json | Response"]
JOIN_BODY = 10_000
# Within which a request must have arrived and its response been taken.
REQUEST_SECONDS, EXPORT_REQUEST_SECONDS = 300.0, 3600.0


@dataclass(frozen=True, slots=True)
class Action:
    """A route that answers a JSON object with a JSON object."""

    path: str
    scope: str
    work: Work


ACTIONS = (
    Action("/v1/me", "read", handlers.me),
    Action("/v1/projects", "write", handlers.share),
    Action("/v1/invitations", "admin", handlers.invite),
    Action("/v1/invitations/accept", "read", handlers.accept_invitation),
    Action("/v1/tokens", "read", handlers.tokens),
    Action("/v1/tokens/create", "read", handlers.create_token),
    Action("/v1/tokens/revoke", "read", handlers.revoke_token),
    Action("/v1/members", "read", handlers.members),
    Action("/v1/members/remove", "read", handlers.remove_member),
    Action("/v1/push", "write", handlers.push),
    Action("/v1/digest", "read", handlers.digest),
    Action("/v1/search", "read", handlers.search),
    Action("/v1/timeline", "read", handlers.timeline),
    Action("/v1/turns", "read", handlers.turns),
    Action("/v1/recent", "read", handlers.recent),
    Action("/v1/facts", "read", handlers.facts),
    Action("/v1/tombstones", "read", handlers.tombstones),
    Action("/v1/export", "read", handlers.export),
)


def create_app(database: Database) -> Starlette:
    metrics = Metrics()
    reader = TurnReader()
    exports = Exports(database.connections)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> "AsyncIterator[None]":
        database.open()
        yield
        await run_in_threadpool(database.close)

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok", "version": __version__})

    async def ready(request: Request) -> Response:
        try:
            current = await run_in_threadpool(_is_ready, database)
        except (psycopg.Error, PoolTimeout):
            return JSONResponse({"status": "no database"}, 503)
        state = "ready" if current else "the database has another schema"
        return JSONResponse({"status": state}, 200 if current else 503)

    async def show_metrics(request: Request) -> Response:
        return PlainTextResponse(metrics.text(database.state()))

    async def accept(request: Request) -> Response:
        body = await _body(request, JOIN_BODY)

        def work() -> Json:
            code, machine = str(body.get("code") or ""), str(body.get("machine") or "")
            with database.transaction() as connection:
                token, person = access.accept(connection, code, machine)
            return {"token": token, "person": person.name, "scopes": list(person.scopes)}

        return JSONResponse(await run_in_threadpool(work))

    def route(action: Action) -> Route:
        async def endpoint(request: Request) -> Response:
            token = _token(request)

            def authenticate() -> Person:
                with database.connection() as connection:
                    return access.authenticate(connection, token)

            person = await run_in_threadpool(authenticate)  # before anything large is read
            access.require(person, action.scope)
            body = await _body(request, MAX_BODY)
            call = handlers.Call(database, person, body, reader, metrics, exports)
            result = await run_in_threadpool(action.work, call)
            return result if isinstance(result, Response) else JSONResponse(result)

        return Route(action.path, endpoint, methods=["POST"])

    return Starlette(
        routes=[
            Route("/health", health),
            Route("/ready", ready),
            Route("/metrics", show_metrics),
            Route("/v1/join", accept, methods=["POST"]),
            *map(route, ACTIONS),
        ],
        middleware=[Middleware(_Observed, metrics=metrics)],
        exception_handlers={
            ClaudeMemError: _claude_mem_error,
            psycopg.Error: _database_error,
            PoolTimeout: _database_error,
            HTTPException: _http_error,
            Exception: _unexpected,
        },
        lifespan=lifespan,
    )


def _is_ready(database: Database) -> bool:
    with database.connection() as connection:
        return is_current(connection)


def _token(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise NotAllowed("send the token as Authorization: Bearer TOKEN", is_known=False)
    return token.strip()


async def _body(request: Request, limit: int) -> dict[str, Json]:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > limit:
            raise HTTPException(413, f"the body is over {limit} bytes")
    try:
        body = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        raise BadInput("the body is not JSON") from None
    if not isinstance(body, dict):
        raise BadInput("the body is not a JSON object")
    return body


async def _claude_mem_error(request: Request, error: Exception) -> Response:
    if isinstance(error, NotAllowed):
        return JSONResponse({"error": str(error)}, 403 if error.is_known else 401)
    if isinstance(error, NotFound):
        return JSONResponse({"error": str(error)}, 404)
    if isinstance(error, Busy):
        return JSONResponse({"error": str(error)}, 429, headers={"Retry-After": "60"})
    if isinstance(error, QuotaExceeded):
        body: dict[str, Json] = {"error": str(error), "quota": error.quota, "limit": error.limit}
        return JSONResponse(body, 413)
    if isinstance(error, BadInput):
        return JSONResponse({"error": str(error), "field": error.field}, 400)
    return JSONResponse({"error": str(error)}, 500)


# Of the request: a NUL in a text, a number out of range, a text too long for an index.
_BAD_VALUES = (psycopg.DataError, psycopg.errors.ProgramLimitExceeded)


async def _database_error(request: Request, error: Exception) -> Response:
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return JSONResponse({"error": "this is not yours to change"}, 403)
    if isinstance(error, _BAD_VALUES):
        return JSONResponse({"error": f"a value cannot be stored: {_first_line(error)}"}, 400)
    log.error("%s: %s", request.url.path, error)
    return JSONResponse(
        {"error": "the database is not available"}, 503, headers={"Retry-After": "2"}
    )


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)


async def _unexpected(request: Request, error: Exception) -> Response:
    log.error("%s failed", request.url.path, exc_info=error)
    return JSONResponse({"error": "internal error; the server's log has the details"}, 500)


class _Observed:
    """Counts every request, and writes one line of JSON for it; never its body or token."""

    def __init__(self, app: "ASGIApp", metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.monotonic(), 500

        async def observe(message: "Message") -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                headers = MutableHeaders(scope=message)
                headers.setdefault("cache-control", "no-store")
                headers.setdefault("x-content-type-options", "nosniff")
            await send(message)

        limit = EXPORT_REQUEST_SECONDS if scope["path"] == "/v1/export" else REQUEST_SECONDS
        try:
            async with asyncio.timeout(limit):
                await self._app(scope, receive, observe)
        finally:
            seconds = time.monotonic() - started
            path = str(scope["path"])
            route = path if path in _PATHS else "other"
            self._metrics.request(route, status, seconds)
            if route not in _QUIET:
                log.info("request", extra={"fields": _fields(scope, route, status, seconds)})


_QUIET = ("/health", "/ready", "/metrics")
_PATHS = frozenset((*_QUIET, "/v1/join", *(action.path for action in ACTIONS)))


def _fields(scope: "Scope", route: str, status: int, seconds: float) -> dict[str, Any]:
    client = scope.get("client")
    return {
        "method": scope["method"], "route": route, "status": status,
        "ms": round(seconds * 1000, 1), "client": client[0] if client else None,
    }  # fmt: skip

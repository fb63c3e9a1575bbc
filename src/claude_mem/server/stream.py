"""/stream: events as they happen, as server-sent events.

Each has an id. A client that connects again with it (Last-Event-ID) misses none and gets none
twice; if that is not possible, the first event is a `reset`.
"""

import asyncio
import json
from collections.abc import AsyncIterator

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from claude_mem import params
from claude_mem.server.port_limits import MAX_LISTENERS
from claude_mem.types import Json
from claude_mem.worker.worker import Worker

PING_SECONDS = 15.0


async def stream(request: Request) -> StreamingResponse:
    """GET /stream"""
    params.check_names(request.query_params, ("after",))
    worker: Worker = request.app.state.worker
    if worker.announcer.live_events.listeners >= MAX_LISTENERS:
        raise HTTPException(503, f"there are {MAX_LISTENERS} listeners already")
    after = request.headers.get("last-event-id") or request.query_params.get("after")
    headers = {"cache-control": "no-cache", "x-accel-buffering": "no"}
    events = _events(worker, after)
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


async def _events(worker: Worker, after: str | None) -> AsyncIterator[bytes]:
    with worker.announcer.live_events.subscribe(after) as subscription:
        # Its id must not be ahead of the events that are replayed after it.
        yield _message(after or subscription.cursor, json_line(worker.announcer.processing()))
        while True:
            try:
                async with asyncio.timeout(PING_SECONDS):
                    announcement = await subscription.next()
            except TimeoutError:
                yield b": ping\n\n"
            else:
                yield _message(announcement.cursor, announcement.data)


def _message(cursor: str, data: bytes) -> bytes:
    one_line = cursor.replace("\n", "").replace("\r", "").encode("utf-8", "replace")
    return b"id: " + one_line + b"\ndata: " + data + b"\n\n"


def json_line(value: dict[str, Json]) -> bytes:
    """Writes JSON in UTF-8; half of a surrogate pair, which UTF-8 does not have, becomes a `?`."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


routes = [Route("/stream", stream)]

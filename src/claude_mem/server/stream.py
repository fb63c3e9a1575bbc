"""/stream: events as they happen, as server-sent events."""

import asyncio
import json
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from claude_mem.types import Json
from claude_mem.worker.worker import Worker

PING_SECONDS = 15.0


async def stream(request: Request) -> StreamingResponse:
    """GET /stream"""
    worker: Worker = request.app.state.worker
    headers = {"cache-control": "no-cache", "x-accel-buffering": "no"}
    return StreamingResponse(_events(worker), media_type="text/event-stream", headers=headers)


async def _events(worker: Worker) -> AsyncIterator[bytes]:
    with worker.announcer.feed.subscribe() as queue:
        yield b"data: " + json_line(worker.announcer.processing()) + b"\n\n"
        while True:
            try:
                event = await asyncio.wait_for(queue.get(), PING_SECONDS)
            except TimeoutError:
                yield b": ping\n\n"
            else:
                yield b"data: " + json_line(event) + b"\n\n"


def json_line(value: dict[str, Json]) -> bytes:
    """JSON in UTF-8; half of a surrogate pair, which UTF-8 does not have, becomes a `?`."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


routes = [Route("/stream", stream)]

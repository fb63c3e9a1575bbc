"""/stream: events as they happen, as server-sent events."""

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from claude_mem.worker.loop import Worker, as_json_line

PING_SECONDS = 15.0


async def stream(request: Request) -> StreamingResponse:
    """GET /stream"""
    worker: Worker = request.app.state.worker
    headers = {"cache-control": "no-cache", "x-accel-buffering": "no"}
    return StreamingResponse(_events(worker), media_type="text/event-stream", headers=headers)


async def _events(worker: Worker) -> AsyncIterator[bytes]:
    with worker.feed.subscribe() as queue:
        yield b"data: " + as_json_line(worker.processing()) + b"\n\n"
        while True:
            try:
                event = await asyncio.wait_for(queue.get(), PING_SECONDS)
            except TimeoutError:
                yield b": ping\n\n"
            else:
                yield b"data: " + as_json_line(event) + b"\n\n"


routes = [Route("/stream", stream)]

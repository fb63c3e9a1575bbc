"""Pausing and resuming the capture of events over HTTP."""

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from claude_mem import params
from claude_mem.config.pausing import current_pause, parse_duration
from claude_mem.config.pausing import pause as pause_capture
from claude_mem.config.pausing import resume as resume_capture
from claude_mem.server.requests import read_object, reject_parameters
from claude_mem.store.clock import iso
from claude_mem.types import Json
from claude_mem.worker.worker import Worker


async def pause(request: Request) -> JSONResponse:
    """POST /api/pause"""
    reject_parameters(request)
    body = await read_object(request)
    params.check_names(body, ("for",))
    duration = params.text(body, "for")
    worker: Worker = request.app.state.worker
    pause_capture(worker.settings.layout, parse_duration(duration) if duration else None)
    return JSONResponse(capture_state(worker))


async def resume(request: Request) -> JSONResponse:
    """POST /api/resume"""
    reject_parameters(request)
    params.check_names(await read_object(request), ())
    worker: Worker = request.app.state.worker
    resume_capture(worker.settings.layout)
    return JSONResponse(capture_state(worker))


def capture_state(worker: Worker) -> dict[str, Json]:
    paused = current_pause(worker.settings.layout)
    until = paused.until_epoch if paused else None
    return {
        "paused": paused is not None,
        "until": iso(until) if until is not None else None,
        "excluded": list(worker.settings.capture.excluded_projects),
    }


routes = [
    Route("/api/pause", pause, methods=["POST"]),
    Route("/api/resume", resume, methods=["POST"]),
]

"""Control of the worker over HTTP: settings, activity, the queue and the observer."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from claude_mem import params
from claude_mem.errors import BadInput
from claude_mem.server.requests import read_object, reject_parameters
from claude_mem.store.refine_requests import RefineSelection
from claude_mem.types import Json
from claude_mem.worker.worker import Worker


async def reload_settings(request: Request) -> JSONResponse:
    """POST /api/settings/reload: read the settings again and apply them"""
    reject_parameters(request)
    worker: Worker = request.app.state.worker
    await read_object(request)
    problems: list[Json] = [*await worker.reload_settings()]
    return JSONResponse({"problems": problems})


async def processing(request: Request) -> JSONResponse:
    """GET and POST /api/processing"""
    reject_parameters(request)
    worker: Worker = request.app.state.worker
    if request.method == "POST":
        is_processing = (await read_object(request)).get("isProcessing")
        if not isinstance(is_processing, bool):
            raise BadInput("isProcessing must be true or false", "isProcessing")
        worker.announcer.set_processing(is_processing, worker.clock())
    state = worker.announcer.processing()
    return JSONResponse({name: state[name] for name in ("isProcessing", "queueDepth")})


async def retry(request: Request) -> JSONResponse:
    """POST /api/queue/retry: queue the turns again whose jobs failed for good"""
    reject_parameters(request)
    worker: Worker = request.app.state.worker
    await read_object(request)
    retried = await asyncio.wrap_future(worker.store.revive_dead_jobs())
    worker.announcer.processing()
    worker.wake()
    return JSONResponse({"retried": retried})


async def observer(request: Request) -> JSONResponse:
    """GET /api/observer: its state and what it spent; POST: reload the settings and restart it"""
    reject_parameters(request)
    worker: Worker = request.app.state.worker
    if request.method == "POST":
        await read_object(request)
        await worker.reload_settings(restart_observer=True)
        # The user may have fixed the cause of its failures, so the next turn tries again.
        await asyncio.wrap_future(worker.store.close_breaker(worker.observer.active))
    return JSONResponse(await asyncio.to_thread(worker.observer_status))


async def refine(request: Request) -> JSONResponse:
    """POST /api/observer/refine: queue earlier turns for the model, or cancel what still waits"""
    reject_parameters(request)
    worker: Worker = request.app.state.worker
    body = await read_object(request)
    params.check_names(body, ("project", "since_ms", "limit", "cancel"))
    if params.flag(body, "cancel"):
        return JSONResponse({
            "cancelled": await asyncio.wrap_future(worker.store.cancel_refinements())
        })  # fmt: skip
    if not worker.observer.has_model:
        await worker.has_settings()  # it may be starting, and not have chosen its observer yet
    if not worker.observer.has_model:
        raise BadInput(f"no model is in use: {worker.observer.reason}")
    project = params.text(body, "project")
    selection = RefineSelection(
        await asyncio.to_thread(worker.store.find_project, project) if project else None,
        params.integer(body, "since_ms", 0, 0, 2**53),
        params.integer(body, "limit", 200, 1, 100_000),
    )
    queued = await asyncio.wrap_future(worker.store.request_refinements(selection))
    worker.wake()
    return JSONResponse({"queued": queued})


routes = [
    Route("/api/settings/reload", reload_settings, methods=["POST"]),
    Route("/api/processing", processing, methods=["GET", "POST"]),
    Route("/api/queue/retry", retry, methods=["POST"]),
    Route("/api/observer", observer, methods=["GET", "POST"]),
    Route("/api/observer/refine", refine, methods=["POST"]),
]

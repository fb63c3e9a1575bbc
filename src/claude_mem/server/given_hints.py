"""The latest hints over HTTP."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from claude_mem import params
from claude_mem.worker.worker import Worker


async def hints(request: Request) -> JSONResponse:
    """GET /api/hints: recent hints, newest first"""
    params.check_names(request.query_params, ("project", "limit"))
    worker: Worker = request.app.state.worker
    limit = params.integer(request.query_params, "limit", 20, 1, params.MAX_LIMIT)
    name = request.query_params.get("project")
    project_id = worker.store.find_project(name) if name else None
    items = await asyncio.to_thread(worker.store.recent_hints, limit, project_id)
    return JSONResponse({"hints": items, "on": worker.settings.context.hints})


routes = [Route("/api/hints", hints)]

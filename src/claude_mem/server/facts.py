"""Facts of projects over HTTP. Edited, pinned and marked as any memory: see `editing`."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from claude_mem import params
from claude_mem.recall.fact_list import list_facts, list_team_facts
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.server.requests import read_object, reject_parameters
from claude_mem.worker import editing
from claude_mem.worker.worker import Worker


async def page(request: Request) -> JSONResponse:
    """GET /api/facts"""
    worker: Worker = request.app.state.worker
    query = params.facts_query(worker.store, dict(request.query_params))
    facts, has_more = await asyncio.to_thread(list_facts, worker.store, query)
    of_team = await asyncio.to_thread(list_team_facts, worker.store, query)
    return JSONResponse({"facts": facts, "hasMore": has_more, "team": of_team})


async def confirm(request: Request) -> JSONResponse:
    """POST /api/facts/{id}/confirm"""
    worker: Worker = request.app.state.worker
    fact_id = await _fact_id(request)
    return JSONResponse({"fact": await editing.confirm_fact(worker, fact_id.number, "person")})


async def reject(request: Request) -> JSONResponse:
    """POST /api/facts/{id}/reject"""
    worker: Worker = request.app.state.worker
    fact_id = await _fact_id(request)
    return JSONResponse({"fact": await editing.mark_wrong(worker, fact_id, "person")})


async def _fact_id(request: Request) -> MemoryId:
    reject_parameters(request)
    params.check_names(await read_object(request), ())
    return params.fact_id(request.path_params["id"])


routes = [
    Route("/api/facts", page),
    Route("/api/facts/{id}/confirm", confirm, methods=["POST"]),
    Route("/api/facts/{id}/reject", reject, methods=["POST"]),
]

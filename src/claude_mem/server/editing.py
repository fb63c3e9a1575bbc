"""Editing, pinning and marking memories over HTTP, by the user."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from claude_mem import params
from claude_mem.errors import NotFound
from claude_mem.recall.full_memories import get_memory
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.server.requests import read_object, reject_parameters
from claude_mem.worker import editing
from claude_mem.worker.worker import Worker


async def get(request: Request) -> JSONResponse:
    """GET /api/memories/{id}"""
    reject_parameters(request)
    worker: Worker = request.app.state.worker
    memory_id = _id(request)
    memory = await asyncio.to_thread(get_memory, worker.store, memory_id)
    if memory is None:
        raise NotFound(f"there is no memory {memory_id}")
    return JSONResponse({"memory": memory})


async def edit(request: Request) -> JSONResponse:
    """PATCH /api/memories/{id}"""
    reject_parameters(request)
    worker: Worker = request.app.state.worker
    fields = await read_object(request)
    change = params.edit_request(_id(request), fields, worker.reader.redactor)
    return JSONResponse({"memory": await editing.edit_memory(worker, change, "person")})


async def pin(request: Request) -> JSONResponse:
    """POST /api/memories/{id}/pin"""
    worker: Worker = request.app.state.worker
    memory_id, undo = _id(request), await _undo(request)
    return JSONResponse(
        {"memory": await editing.pin_memory(worker, memory_id, "person", undo=undo)}
    )


async def wrong(request: Request) -> JSONResponse:
    """POST /api/memories/{id}/wrong"""
    worker: Worker = request.app.state.worker
    memory_id, undo = _id(request), await _undo(request)
    return JSONResponse(
        {"memory": await editing.mark_wrong(worker, memory_id, "person", undo=undo)}
    )


def _id(request: Request) -> MemoryId:
    return params.any_memory_id(request.path_params["id"])


async def _undo(request: Request) -> bool:
    reject_parameters(request)
    body = await read_object(request)
    params.check_names(body, ("undo",))
    return params.flag(body, "undo")


routes = [
    Route("/api/memories/{id}", get, methods=["GET"]),
    Route("/api/memories/{id}", edit, methods=["PATCH"]),
    Route("/api/memories/{id}/pin", pin, methods=["POST"]),
    Route("/api/memories/{id}/wrong", wrong, methods=["POST"]),
]

"""Forgetting memories over HTTP, and undoing it."""

import asyncio
from datetime import datetime

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from claude_mem import params
from claude_mem.server.requests import read_object, reject_parameters, text_of
from claude_mem.store.clock import iso
from claude_mem.store.forgetting import Preview
from claude_mem.types import Json
from claude_mem.worker import forgetting
from claude_mem.worker.forgetting import Erased, Undoable
from claude_mem.worker.worker import Worker


async def forget(request: Request) -> JSONResponse:
    """POST /api/forget: a preview; with its token as `confirm`, the memories are forgotten"""
    reject_parameters(request)
    worker: Worker = request.app.state.worker
    body = await read_object(request)
    now = datetime.fromtimestamp(worker.clock() / 1000).astimezone()
    result = await forgetting.forget(worker, params.forget_request(body), now)
    if isinstance(result, Preview):
        return JSONResponse({
            "forgotten": False,
            "counts": result.counts,
            "examples": list(result.examples),
            "hard": result.is_hard,
            "confirm": result.token,
        })  # fmt: skip
    if isinstance(result, Erased):
        return JSONResponse({"forgotten": True, **_erased(result)})
    return JSONResponse({"forgotten": True, **_undoable(result)})


async def undo(request: Request) -> JSONResponse:
    """POST /api/forget/undo"""
    reject_parameters(request)
    worker: Worker = request.app.state.worker
    body = await read_object(request)
    params.check_names(body, ("undo",))
    restored = await forgetting.undo(worker, text_of(body, "undo"))
    return JSONResponse({"restored": True, "counts": restored.counts, "undo": restored.token})


async def undoable(request: Request) -> JSONResponse:
    """GET /api/forgotten: what can still be undone, newest first"""
    reject_parameters(request)
    worker: Worker = request.app.state.worker
    entries = await asyncio.to_thread(forgetting.undoable, worker)
    return JSONResponse({"forgotten": [_undoable(entry) for entry in entries]})


def _undoable(entry: Undoable) -> dict[str, Json]:
    forgotten = entry.forgotten
    return {
        "undo": forgotten.token,
        "counts": dict(forgotten.counts),
        "projects": [project.name for project in forgotten.projects],
        "at": iso(forgotten.at_epoch),
        "until": iso(entry.until_epoch),
    }


def _erased(result: Erased) -> dict[str, Json]:
    forgotten = result.forgotten
    return {
        "hard": True,
        "counts": dict(forgotten.counts),
        "at": iso(forgotten.at_epoch),
        "scrubbed": result.is_scrubbed,
    }


routes = [
    Route("/api/forget", forget, methods=["POST"]),
    Route("/api/forget/undo", undo, methods=["POST"]),
    Route("/api/forgotten", undoable),
]

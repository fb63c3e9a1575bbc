"""Remembering and forgetting by hand, over HTTP."""

import asyncio
from datetime import datetime

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from claude_mem import params
from claude_mem.server.requests import known_parameters, read_object, text_of
from claude_mem.store.clock import iso
from claude_mem.store.forgetting import Preview
from claude_mem.types import Json
from claude_mem.worker import forgetting, manual
from claude_mem.worker.forgetting import Undoable
from claude_mem.worker.loop import Worker


async def save(request: Request) -> JSONResponse:
    """POST /api/memories"""
    known_parameters(request, ())
    worker: Worker = request.app.state.worker
    body = await read_object(request)
    directory = text_of(body, "project_dir", "projectDir", "cwd") or ""
    given = {n: v for n, v in body.items() if n not in ("project_dir", "projectDir", "cwd")}
    memory = params.new_memory(given, worker.reader.redactor)
    saved = await manual.save_memory(worker, memory, directory, "person")
    return JSONResponse({"id": saved.id, "new": saved.is_new})


async def forget(request: Request) -> JSONResponse:
    """POST /api/forget: a preview; with its token as `confirm`, it is done"""
    known_parameters(request, ())
    worker: Worker = request.app.state.worker
    body = await read_object(request)
    now = datetime.fromtimestamp(worker.clock() / 1000).astimezone()
    answer = await forgetting.forget(worker, params.forget_request(body), now)
    if isinstance(answer, Preview):
        return JSONResponse({
            "forgotten": False,
            "counts": answer.counts,
            "examples": list(answer.examples),
            "confirm": answer.token,
        })  # fmt: skip
    return JSONResponse({"forgotten": True, **_undoable(answer)})


async def undo(request: Request) -> JSONResponse:
    """POST /api/forget/undo"""
    known_parameters(request, ())
    worker: Worker = request.app.state.worker
    body = await read_object(request)
    params.check_names(body, ("undo",))
    restored = await forgetting.undo(worker, text_of(body, "undo"))
    return JSONResponse({"restored": True, "counts": restored.counts, "undo": restored.token})


async def undoable(request: Request) -> JSONResponse:
    """GET /api/forgotten: what can still be undone, the last first"""
    known_parameters(request, ())
    worker: Worker = request.app.state.worker
    found = await asyncio.to_thread(forgetting.undoable, worker)
    return JSONResponse({"forgotten": [_undoable(one) for one in found]})


def _undoable(one: Undoable) -> dict[str, Json]:
    forgotten = one.forgotten
    return {
        "undo": forgotten.token,
        "counts": dict(forgotten.counts),
        "projects": [project.name for project in forgotten.projects],
        "at": iso(forgotten.at_epoch),
        "until": iso(one.until_epoch),
    }


routes = [
    Route("/api/memories", save, methods=["POST"]),
    Route("/api/forget", forget, methods=["POST"]),
    Route("/api/forget/undo", undo, methods=["POST"]),
    Route("/api/forgotten", undoable),
]

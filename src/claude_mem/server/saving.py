"""Saving memories over HTTP."""

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from claude_mem import params
from claude_mem.server.requests import read_object, reject_parameters, text_of
from claude_mem.worker import saving
from claude_mem.worker.worker import Worker

_DIRECTORY = ("project_dir", "projectDir", "cwd")


async def save(request: Request) -> JSONResponse:
    """POST /api/memories"""
    reject_parameters(request)
    worker: Worker = request.app.state.worker
    body = await read_object(request)
    directory = text_of(body, *_DIRECTORY) or ""
    fields = {name: value for name, value in body.items() if name not in _DIRECTORY}
    memory = params.new_memory(fields, worker.reader.redactor)
    saved = await saving.save_memory(worker, memory, directory, "person")
    return JSONResponse({"id": saved.id, "new": saved.is_new})


routes = [Route("/api/memories", save, methods=["POST"])]

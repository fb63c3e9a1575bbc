"""Saving memories over HTTP."""

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from claude_mem import params
from claude_mem.errors import BadInput
from claude_mem.recall.handover.what_holds import SAVED_BY
from claude_mem.server.requests import read_object, reject_parameters, text_of
from claude_mem.worker import saving
from claude_mem.worker.worker import Worker

_DIRECTORY = ("project_dir", "projectDir", "cwd")
_BY = "by"


async def save(request: Request) -> JSONResponse:
    """POST /api/memories"""
    reject_parameters(request)
    worker: Worker = request.app.state.worker
    body = await read_object(request)
    directory = text_of(body, *_DIRECTORY) or ""
    by = text_of(body, _BY) or "person"
    if by not in SAVED_BY:
        raise BadInput(f"{_BY} must be one of {', '.join(SAVED_BY)}", _BY)
    fields = {name: v for name, v in body.items() if name not in (*_DIRECTORY, _BY)}
    memory = params.new_memory(fields, worker.reader.redactor)
    saved = await saving.save_memory(worker, memory, directory, by)
    return JSONResponse({"id": saved.id, "new": saved.is_new})


routes = [Route("/api/memories", save, methods=["POST"])]

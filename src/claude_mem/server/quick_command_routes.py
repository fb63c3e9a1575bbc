"""Commands that the worker answers for another process (`quick_commands.py`), as they print it."""

import asyncio
import os
from datetime import datetime

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from claude_mem import __version__, params
from claude_mem.config import load_usable_settings
from claude_mem.errors import BadInput
from claude_mem.server.quick_command_replies import (
    context_reply,
    json_text,
    result_reply,
    status_report,
    status_text,
)
from claude_mem.server.requests import read_body
from claude_mem.types import Json
from claude_mem.worker.worker import Worker

_CONFLICT = 409


async def run_command(request: Request) -> Response:
    """POST /command/{name}: the body has names and values, separated by NUL"""
    worker: Worker = request.app.state.worker
    fields = _fields(await read_body(request))
    if fields.pop("version", None) != __version__:
        raise HTTPException(_CONFLICT, "another version is running")
    settings, problems = await asyncio.to_thread(load_usable_settings, worker.environ)
    if problems or settings != worker.settings:
        raise HTTPException(_CONFLICT, "the settings are not those of the worker")
    directory, for_terminal = fields.pop("directory", ""), bool(fields.pop("terminal", ""))
    as_json, verbose = bool(fields.pop("json", "")), bool(fields.pop("verbose", ""))
    match request.path_params["name"]:
        case "search":
            now = datetime.fromtimestamp(worker.clock() / 1000).astimezone()
            values = dict[str, Json](fields)
            result = await worker.recall.search(
                lambda store: params.search_query(store, values, now), now
            )
            text = await asyncio.to_thread(
                result_reply, result, values, now, as_json, for_terminal, verbose
            )
        case "context":
            text = context_reply(await _context(worker, directory, fields), settings, as_json)
        case "status":
            described = request.app.state.describe()
            text = await asyncio.to_thread(_status, worker, described, as_json, for_terminal)
        case name:
            raise BadInput(f"there is no command {name}", "name")
    return PlainTextResponse(text)


def _fields(body: bytes) -> dict[str, str]:
    parts = body.split(b"\0")
    names, values = parts[::2], parts[1::2]
    if len(names) != len(values):
        raise BadInput("the body must have a value for each name")
    return {os.fsdecode(n): os.fsdecode(v) for n, v in zip(names, values, strict=True)}


async def _context(worker: Worker, directory: str, fields: dict[str, str]) -> str:
    project = fields.get("project")
    if project:
        return await worker.contexts.for_directory(worker.store.find_project(project), "")
    project_id = worker.store.project_by_key(worker.projects.of(directory).key)
    if project_id is None:
        return ""
    return await worker.contexts.for_directory(project_id, directory)


def _status(worker: Worker, described: Json, as_json: bool, for_terminal: bool) -> str:
    report = status_report(
        worker.settings,
        worker.store,
        described,
        worker.observer_status(),
        worker.semantic_index,
        worker.obstacle,
    )
    return json_text(report, for_terminal) if as_json else status_text(report, for_terminal)


routes = [Route("/command/{name}", run_command, methods=["POST"])]

"""Stored memories over HTTP: pages, single observations, and the context of a session."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from claude_mem import params
from claude_mem.errors import BadInput, NotFound
from claude_mem.server.requests import page_of
from claude_mem.store.turn_records import record_data
from claude_mem.worker.worker import Worker

_PAGE = ("limit", "offset", "before", "project")


async def page(request: Request) -> JSONResponse:
    """GET /api/observations | summaries | prompts | sessions"""
    params.check_names(request.query_params, _PAGE)
    worker: Worker = request.app.state.worker
    noun = request.url.path.rsplit("/", 1)[-1]
    name = request.query_params.get("project")
    project_id = worker.store.find_project(name) if name else None
    page = page_of(request)
    items, has_more = await asyncio.to_thread(worker.store.page, noun, page, project_id)
    return JSONResponse(
        {"items": items, "hasMore": has_more, "limit": page.limit, "offset": page.offset}
    )


async def observation(request: Request) -> JSONResponse:
    """GET /api/observation/{id}: with the events that it was made from"""
    params.check_names(request.query_params, ("record",))
    with_record = params.flag(request.query_params, "record")
    worker: Worker = request.app.state.worker
    text = request.path_params["id"]
    identity = int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0
    records = worker.store.get_many("observations", [identity])
    if not records:
        raise NotFound(f"there is no observation {text}")
    observation = {**records[0], "sources": worker.store.sources("observation", identity)}
    if with_record:
        parts = worker.store.records_of("observations", [identity])
        observation["record"] = record_data(parts.get(identity, ()))
    return JSONResponse(observation)


async def context(request: Request) -> Response:
    """GET /api/context/inject: the context that a new session of this project would get, as text"""
    params.check_names(request.query_params, ("project", "project_dir"))
    worker: Worker = request.app.state.worker
    name = request.query_params.get("project")
    directory = request.query_params.get("project_dir")
    if bool(name) == bool(directory):
        raise BadInput("set either project (name or key) or project_dir (a path)", "project")
    await worker.catch_up()
    project_id = _project_to_inject(worker, name, directory or "")
    if project_id is not None:
        await worker.jobs.wait_for_project(worker.store.project(project_id))
    if project_id is None:
        return PlainTextResponse("")
    return PlainTextResponse(await worker.contexts.for_directory(project_id, directory or ""))


def _project_to_inject(worker: Worker, name: str | None, directory: str) -> int | None:
    """None where nothing is known: an editor inserts the response as it is."""
    if not name:
        return worker.store.project_by_key(worker.projects.of(directory).key)
    try:
        return worker.store.find_project(name)
    except NotFound:
        return None


routes = [
    Route("/api/observations", page),
    Route("/api/summaries", page),
    Route("/api/prompts", page),
    Route("/api/sessions", page),
    Route("/api/observation/{id}", observation),
    Route("/api/context/inject", context),
]

"""Projects over HTTP: the list, and which directories belong to which project."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from claude_mem import params
from claude_mem.errors import BadInput
from claude_mem.server.requests import read_object, reject_parameters, required_text
from claude_mem.store.project_assignments import Moved
from claude_mem.types import Json
from claude_mem.worker import project_changes
from claude_mem.worker.worker import Worker


async def projects(request: Request) -> JSONResponse:
    """GET /api/projects"""
    reject_parameters(request)
    worker: Worker = request.app.state.worker
    return JSONResponse(await asyncio.to_thread(list_projects, worker))


def list_projects(worker: Worker) -> dict[str, Json]:
    access = worker.store.project_access()
    rows: list[Json] = []
    for row in worker.store.projects():
        key = str(row["key"])
        directories = sorted(d for d, project in access.directories.items() if project.key == key)
        row = {**row, "directories": [*directories]}
        if key in access.claims:
            row["claims"] = access.claims[key]
        rows.append(row)
    return {"projects": rows}


async def join(request: Request) -> JSONResponse:
    """POST /api/projects/join: give a directory the memory of the project that it claims, or merge
    a project into another"""
    reject_parameters(request)
    worker: Worker = request.app.state.worker
    body = await read_object(request)
    params.check_names(body, ("directory", "project", "into"))
    if body.get("directory"):
        if body.get("project") or body.get("into"):
            raise BadInput("set either directory, or project and into", "directory")
        directory = required_text(body, "directory")
        return _reply(await project_changes.join_directory(worker, directory))
    return _reply(await _merge(worker, body))


async def merge(request: Request) -> JSONResponse:
    """POST /api/projects/merge: move everything of a project to another"""
    reject_parameters(request)
    body = await read_object(request)
    params.check_names(body, ("project", "into"))
    return _reply(await _merge(request.app.state.worker, body))


async def _merge(worker: Worker, body: dict[str, Json]) -> Moved:
    source, target = (
        worker.store.project(worker.store.find_project(required_text(body, name)))
        for name in ("project", "into")
    )
    return await project_changes.merge_projects(worker, source, target)


async def split(request: Request) -> JSONResponse:
    """POST /api/projects/split: make a directory a project of its own"""
    reject_parameters(request)
    body = await read_object(request)
    params.check_names(body, ("directory",))
    directory = required_text(body, "directory")
    return _reply(await project_changes.split_directory(request.app.state.worker, directory))


async def move(request: Request) -> JSONResponse:
    """POST /api/projects/move: give a directory and its sessions to a project"""
    reject_parameters(request)
    worker: Worker = request.app.state.worker
    body = await read_object(request)
    params.check_names(body, ("directory", "project"))
    directory, project = (required_text(body, name) for name in ("directory", "project"))
    return _reply(await project_changes.move_directory(worker, directory, project))


def _reply(moved: Moved) -> JSONResponse:
    return JSONResponse({
        "joined": True, "project": moved.project.name, "key": moved.project.key,
        "sessions": moved.sessions,
    })  # fmt: skip


routes = [
    Route("/api/projects", projects),
    Route("/api/projects/join", join, methods=["POST"]),
    Route("/api/projects/merge", merge, methods=["POST"]),
    Route("/api/projects/split", split, methods=["POST"]),
    Route("/api/projects/move", move, methods=["POST"]),
]

"""The team that this machine joined, for commands: its state, and pushing and fetching now."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from claude_mem.errors import NotFound
from claude_mem.recall.team_interface import JoinedTeam
from claude_mem.server.requests import read_object
from claude_mem.worker.worker import Worker


async def status(request: Request) -> JSONResponse:
    """GET /team"""
    return JSONResponse(await asyncio.to_thread((await _team(request)).status))


async def sync(request: Request) -> JSONResponse:
    """POST /team/sync: push and fetch now, and render the contexts"""
    await read_object(request)
    worker: Worker = request.app.state.worker
    result = await (await _team(request)).sync()
    await worker.contexts.render_stale()
    return JSONResponse(result)


async def _team(request: Request) -> JoinedTeam:
    worker: Worker = request.app.state.worker
    team = await worker.joined_team()
    if team is None:
        raise NotFound("this machine joined no team: claude-mem team join URL")
    return team


routes = [Route("/team", status), Route("/team/sync", sync, methods=["POST"])]

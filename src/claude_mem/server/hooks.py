"""The routes that hooks ask, each answered with what the hook prints for its agent."""

import json
from collections.abc import Awaitable

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from claude_mem.agents import find_agent
from claude_mem.agents.agent import NO_CONTEXT
from claude_mem.errors import BadInput
from claude_mem.intake.spool import BadSpoolFileError
from claude_mem.server.requests import read_body
from claude_mem.types import HookAnswer
from claude_mem.worker.hints import answer_prompt, answer_tool
from claude_mem.worker.session_start import after_session_start, answer_session_start
from claude_mem.worker.worker import Worker


async def session_start(request: Request) -> Response:
    """POST /hook/session-start: the SessionStart hook; the body is a spool record. With
    `?unattended=1` there is no user to show a message to, and what comes once is not used up"""
    worker: Worker = request.app.state.worker
    record = await read_body(request)
    after = BackgroundTask(after_session_start, worker, record)
    has_user = "unattended" not in request.query_params
    return await _respond(answer_session_start(worker, record, has_user=has_user), after)


async def prompt(request: Request) -> Response:
    """POST /hook/prompt: the UserPromptSubmit hook; the body is a spool record"""
    return await _respond(answer_prompt(request.app.state.worker, await read_body(request)))


async def tool(request: Request) -> Response:
    """POST /hook/tool: the PreToolUse hook; the body is a spool record"""
    return await _respond(answer_tool(request.app.state.worker, await read_body(request)))


async def _respond(
    answering: Awaitable[HookAnswer], after: BackgroundTask | None = None
) -> Response:
    try:
        answer = await answering
    except BadSpoolFileError as error:
        raise BadInput(str(error)) from None
    agent = find_agent(answer.dialect)
    output = agent.output if agent is not None else NO_CONTEXT
    line = output.line(answer.event.encode(), _literal(answer.context), _literal(answer.message))
    return Response(line, media_type="application/json", background=after)


def _literal(text: str) -> bytes:
    """Encodes a text as UTF-8: escapes would count against the limit of an agent."""
    return _encoded(json.dumps(text, ensure_ascii=False)) if text else b""


def _encoded(text: str) -> bytes:
    """Encodes a text; half of a surrogate pair, which UTF-8 does not have, becomes a `?`."""
    return text.encode("utf-8", "replace")


socket_routes = [
    Route("/hook/session-start", session_start, methods=["POST"]),
    Route("/hook/prompt", prompt, methods=["POST"]),
    Route("/hook/tool", tool, methods=["POST"]),
]

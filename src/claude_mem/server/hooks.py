"""The routes that hooks ask, each answered with what the hook prints for its agent."""

import json
from collections.abc import Awaitable

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from claude_mem.errors import BadInput
from claude_mem.hook import other_agents
from claude_mem.intake.spool import BadSpoolFileError
from claude_mem.server.requests import read_body
from claude_mem.server.stream import json_line
from claude_mem.types import HookAnswer, Json
from claude_mem.worker.hints import answer_prompt, answer_tool
from claude_mem.worker.session_start import after_session_start, answer_session_start
from claude_mem.worker.worker import Worker

CLAUDE = other_agents.CLAUDE.decode()


async def session_start(request: Request) -> Response:
    """POST /hook/session-start: the SessionStart hook; the body is a spool record"""
    worker: Worker = request.app.state.worker
    record = await read_body(request)
    after = BackgroundTask(after_session_start, worker, record)
    return await _respond(answer_session_start(worker, record), after)


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
        output = hook_output(await answering)
    except BadSpoolFileError as error:
        raise BadInput(str(error)) from None
    return Response(json_line(output), media_type="application/json", background=after)


def hook_output(answer: HookAnswer) -> dict[str, Json]:
    """No two agents take quite the same JSON."""
    if answer.dialect in (CLAUDE, "http"):
        return _claude_output(answer)
    line = other_agents.line(
        answer.dialect.encode("utf-8", "replace"),
        answer.event.encode(),
        _literal(answer.context),
        _literal(answer.message),
    )
    output: dict[str, Json] = json.loads(line)
    return output


def _literal(text: str) -> bytes:
    """As UTF-8: escapes would count against the limit of an agent."""
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "replace") if text else b""


def _claude_output(answer: HookAnswer) -> dict[str, Json]:
    output: dict[str, Json] = {"continue": True, "suppressOutput": True}
    if answer.context:
        output["hookSpecificOutput"] = {
            "hookEventName": answer.event,
            "additionalContext": answer.context,
        }
    if answer.message:
        output["systemMessage"] = answer.message
    return output


socket_routes = [
    Route("/hook/session-start", session_start, methods=["POST"]),
    Route("/hook/prompt", prompt, methods=["POST"]),
    Route("/hook/tool", tool, methods=["POST"]),
]

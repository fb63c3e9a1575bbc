"""The answer to SessionStart: context for the agent, one line for the person."""

import asyncio
import json
import os

from claude_mem.errors import BadInput
from claude_mem.hook import trouble
from claude_mem.types import Json
from claude_mem.worker import spool
from claude_mem.worker.worker import Worker

CARRY_THEIR_CONTEXT = ("resume", "fork")


async def answer_session_start(worker: Worker, record_bytes: bytes) -> dict[str, Json]:
    record = spool.parse(record_bytes)
    try:
        payload: Json = json.loads(record.payload)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        raise BadInput("the payload is not an object")
    event = worker.reader.event(record.arrival, payload)
    project_id = worker.store.project_by_key(event.project.key)
    await worker.catch_up(project_id)
    await worker.jobs.settle(event.project)
    project_id = worker.store.project_by_key(event.project.key)
    context = "" if project_id is None else await _context(worker, project_id, event.session_id,
                                                            str(payload.get("source")))  # fmt: skip
    return _line(context, _message(worker, context))


async def _context(worker: Worker, project_id: int, session_id: str, source: str) -> str:
    """A resumed session gets the bytes it got before, and never its own memories."""
    if source in CARRY_THEIR_CONTEXT:
        given = worker.store.start_context(session_id)
        if given is not None:
            return given
    context = await worker.context_for(project_id, without_session=session_id)
    await asyncio.wrap_future(worker.store.remember_start_context(session_id, context))
    return context


def _message(worker: Worker, context: str) -> str:
    told = trouble.take(os.fsencode(worker.settings.layout.root)).decode("ascii", "replace")
    if told:
        return f"claude-mem: {told}"
    if context:
        return "claude-mem: this session was given the memory of earlier ones"
    return ""


def _line(context: str, message: str) -> dict[str, Json]:
    line: dict[str, Json] = {"continue": True, "suppressOutput": True}
    if context:
        line["hookSpecificOutput"] = {
            "hookEventName": "SessionStart",
            "additionalContext": context,
        }
    if message:
        line["systemMessage"] = message
    return line

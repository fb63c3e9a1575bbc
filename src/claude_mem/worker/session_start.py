"""The answer to SessionStart: context for the agent, one line for the person."""

import asyncio
import os

from claude_mem.hook import trouble
from claude_mem.intake import spool
from claude_mem.intake.dialects import parse_payload
from claude_mem.types import Event, Json, Project
from claude_mem.worker.loop import Worker

ANNOUNCED = ("startup", "clear")
SESSIONS_NAMED = 8
CATCH_UP_SECONDS = 2.0  # under what the hook waits


async def answer_session_start(worker: Worker, record_bytes: bytes) -> dict[str, Json]:
    record = spool.parse(record_bytes)
    payload = parse_payload(record.payload)
    event = worker.reader.read(record.header, payload)
    await _catch_up(worker, event.project)
    source = str(payload.get("source"))
    project_id = worker.store.project_by_key(event.project.key)
    if project_id is None:
        return _line("", _trouble(worker))
    context = await _context(worker, project_id, event.session_id, source)
    message = _trouble(worker)
    if not message and source in ANNOUNCED:
        message = _greeting(worker, project_id, event, context)
    return _line(context, message)


async def _catch_up(worker: Worker, project: Project) -> None:
    """What is behind is worked off first, but nobody waits long for an old backlog."""
    work = asyncio.ensure_future(_work_off(worker, project))
    await asyncio.wait([work], timeout=CATCH_UP_SECONDS)
    if work.done():
        work.result()


async def _work_off(worker: Worker, project: Project) -> None:
    await worker.catch_up(worker.store.project_by_key(project.key))
    await worker.jobs.settle(project)


async def _context(worker: Worker, project_id: int, session_id: str, source: str) -> str:
    """A resumed session gets the bytes it got before, and never its own memories."""
    if source == "fork":
        return ""  # it carries what the session that it was forked from was given
    if source == "resume" and (given := worker.store.start_context(session_id)) is not None:
        return given
    context = await worker.context_for(project_id, without_session=session_id)
    # Mostly it is the rendered one, which came to disk with the event itself. Where it is not, it
    # is on disk before anyone has it: a resume must find what was given, whoever dies meanwhile.
    if worker.store.start_context(session_id) != context:
        await asyncio.wrap_future(worker.store.remember_start_context(session_id, context))
    return context


def _trouble(worker: Worker) -> str:
    """What went wrong since it was last said; once."""
    told = trouble.take(os.fsencode(worker.settings.layout.root)).decode("ascii", "replace")
    return f"claude-mem: {told} (claude-mem doctor says more)" if told else ""


def _greeting(worker: Worker, project_id: int, event: Event, context: str) -> str:
    earlier = worker.store.recent_sessions(project_id, SESSIONS_NAMED, event.session_id)
    titled = [session for session in earlier if session["title"]]
    if context and titled:
        count = f"the last {SESSIONS_NAMED}" if len(titled) == SESSIONS_NAMED else str(len(titled))
        sessions = "session" if len(titled) == 1 else "sessions"
        return (
            f"claude-mem: remembers {count} {sessions} in {event.project.name}, "
            f"most recently: {titled[0]['title']}"
        )
    if worker.store.is_first_session(event.session_id):
        return (
            "claude-mem: memory is on. The next session will know what this one did; "
            "claude-mem status shows more."
        )
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

"""Sessions over HTTP: events from editors without hooks. 200 means that the event is on disk."""

import asyncio
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from claude_mem import params
from claude_mem.agents.reading.editors import tool_payloads
from claude_mem.config.pausing import current_pause
from claude_mem.hook.private_text import MARK
from claude_mem.intake.event_reader import EventHeader, with_prompt_number
from claude_mem.intake.transcripts.transcript import is_within
from claude_mem.server.requests import MAX_ID, read_payload, required_text, text_of
from claude_mem.store.memory_rows import JsonRow
from claude_mem.store.turns import Recorded
from claude_mem.types import SESSION_START, Event, Json, Project
from claude_mem.worker.worker import Worker

MAX_PROMPT_NUMBER = 1_000_000
SMALL_CHARACTERS = 8_000  # of a payload: read in less time than it takes to give it to a thread
_SESSION = ("contentSessionId", "claudeSessionId", "sessionId", "session_id")
# The kind of event of each action, and the status in its response.
_ACTIONS = {
    "init": ("UserPromptSubmit", "initialized"),
    "observations": ("PostToolUse", "queued"),
    "summarize": ("Stop", "queued"),
    "complete": ("SessionEnd", "completed"),
}


async def by_database_id(request: Request) -> JSONResponse:
    """POST /sessions/{id}/init | observations | summarize"""
    worker: Worker = request.app.state.worker
    session = worker.store.session(_database_id(request))
    body = await read_payload(request)
    body["session_id"] = session["content_session_id"]
    body.setdefault("cwd", session["project_dir"])
    return await _accept(worker, _action(request), body, _project_of(session))


async def by_content_id(request: Request) -> JSONResponse:
    """POST /api/sessions/init | observations | summarize | complete, also without /api"""
    worker: Worker = request.app.state.worker
    body = await read_payload(request)
    session_id = required_text(body, *_SESSION)
    body["session_id"] = session_id
    project = worker.store.named_session_project(session_id)
    return await _accept(worker, _action(request), body, project)


def _project_of(session: JsonRow) -> Project:
    return Project(str(session["project_key"]), str(session["project"]))


def _action(request: Request) -> str:
    return str(request.scope["path"]).rsplit("/", 1)[-1]


async def _accept(
    worker: Worker, action: str, body: dict[str, Json], project: Project | None
) -> JSONResponse:
    payload = _payload(action, body)
    if not is_within(payload.get("transcript_path"), worker.transcripts_dir):
        payload.pop("transcript_path", None)  # the worker would read any file that it names
    payloads = tool_payloads(payload) if action == "observations" else [payload]
    if worker.reader.skips(_ACTIONS[action][0], payloads[0]):
        words = worker.reader.read_skipped(_header(worker, action, body, payload), payloads[0])
        if words is not None and current_pause(worker.settings.layout) is None:
            await worker.intake.accept([words])
        return JSONResponse({"status": "skipped", "reason": "this tool is on the skip list"})
    events = [await _read_event(worker, action, body, payload) for payload in payloads]
    name = text_of(body, "project")
    choices: list[str] = []
    if project is None and name and not events[0].project_dir:
        project, choices = worker.store.project_named(name)
    if project is not None:
        events = [replace(event, project=project) for event in events]
    if current_pause(worker.settings.layout) is not None:
        return JSONResponse({"status": "skipped", "reason": "recording is paused"})
    if worker.reader.exclusions.cover(events[0].project, events[0].project_dir):
        return JSONResponse({"status": "skipped", "reason": "this project is excluded"})
    recorded = (await worker.intake.accept(events))[-1]
    reply = _reply(worker, action, events[-1], recorded)
    # A tool use of an open turn gives the worker nothing to do yet.
    if action != "observations" or reply["queueLength"]:
        worker.wake()
    if note := _number_note(action, body, recorded):
        reply["note"] = note
    if choices:
        reply["projectChoices"] = list(choices)
    return JSONResponse(reply)


async def _read_event(
    worker: Worker, action: str, body: dict[str, Json], payload: dict[str, Json]
) -> Event:
    header = _header(worker, action, body, payload)
    if _is_small(payload):
        event = worker.reader.read(header, payload)
    else:  # looking for secrets must not keep other requests waiting
        event = await asyncio.to_thread(worker.reader.read, header, payload)
    number = _prompt_number(body)
    return event if number is None else with_prompt_number(event, number)


def _header(
    worker: Worker, action: str, body: dict[str, Json], payload: dict[str, Json]
) -> EventHeader:
    directory = text_of(body, "project_dir", "projectDir", "cwd") or ""
    kind = _ACTIONS[action][0] if "prompt" in payload or action != "init" else SESSION_START
    return EventHeader(kind, worker.clock(), directory, dialect="http")


def _is_small(payload: dict[str, Json]) -> bool:
    remaining = SMALL_CHARACTERS
    values: list[Json] = [payload]
    while values and remaining > 0:
        value = values.pop()
        remaining -= len(value) if isinstance(value, str) else 8
        if isinstance(value, dict):
            remaining -= sum(map(len, value))
            values += value.values()
        elif isinstance(value, list):
            values += value
    return remaining > 0


def _payload(action: str, body: dict[str, Json]) -> dict[str, Json]:
    """The body with the field names of Claude Code's hooks."""
    names = (
        "session_id", "cwd", "transcript_path", "tool_use_id", "agent_id", "reason", "timestamp",
        MARK,
    )  # fmt: skip
    payload = {name: body[name] for name in names if name in body}
    payload["prompt_id"] = text_of(body, "prompt_id", "promptId")
    if action == "init":
        prompt = text_of(body, "prompt", "userPrompt", "user_prompt")
        # Without one, only the session begins.
        payload |= {"source": "startup"} if prompt is None else {"prompt": prompt}
    elif action == "observations":
        payload["tool_name"] = required_text(body, "tool_name", "toolName")
        payload["tool_input"] = _first(body, "tool_input", "toolInput")
        payload["tool_response"] = _first(
            body, "tool_response", "tool_output", "toolResponse", "toolOutput"
        )
    elif action == "summarize":
        payload["last_assistant_message"] = text_of(
            body, "last_assistant_message", "lastAssistantMessage"
        )
        payload["last_user_message"] = text_of(body, "last_user_message", "lastUserMessage")
    return payload


def _first(body: dict[str, Json], *names: str) -> Json:
    """The first of these fields that has a value; the names are aliases."""
    return next((body[name] for name in names if body.get(name) is not None), None)


def _prompt_number(body: dict[str, Json]) -> int | None:
    """Reads the number of a prompt as the client counts them; None if it is no such number."""
    value = _first(body, "prompt_number", "promptNumber")
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 < value <= MAX_PROMPT_NUMBER else None


def _number_note(action: str, body: dict[str, Json], recorded: Recorded) -> str | None:
    """Tells where the event went, if not to the prompt that the client named."""
    requested, number = _first(body, "prompt_number", "promptNumber"), recorded.prompt_number
    if requested is None or number in (None, _prompt_number(body)):
        return None
    if _prompt_number(body) is None:
        return f"prompt_number is not a positive integer: stored with prompt {number}"
    if action == "init":
        return f"prompt {requested} has another text: stored as prompt {number}"
    return f"this session has no prompt {requested}: stored with prompt {number}"


def _reply(worker: Worker, action: str, event: Event, recorded: Recorded) -> dict[str, Json]:
    waiting = worker.store.queue_state(recorded.session_db_id)
    status = "skipped" if recorded.outcome in ("private", "forgotten") else _ACTIONS[action][1]
    return {
        "status": status,
        "sessionDbId": recorded.session_db_id,
        "contentSessionId": event.session_id,
        "promptNumber": recorded.prompt_number,
        "duplicate": recorded.outcome == "duplicate",
        "queueLength": waiting["pending"] + waiting["processing"],
    }


async def status(request: Request) -> JSONResponse:
    """GET /sessions/{id}/status"""
    worker: Worker = request.app.state.worker
    session = worker.store.session(_database_id(request))
    waiting = worker.store.queue_state(_database_id(request))
    return JSONResponse({
        "sessionDbId": session["id"],
        "contentSessionId": session["content_session_id"],
        "memorySessionId": session["memory_session_id"],
        "claudeSessionId": session["content_session_id"],
        "sdkSessionId": session["memory_session_id"],
        "project": session["project"],
        "status": session["status"],
        "promptCounter": session["prompt_counter"],
        "pendingMessages": waiting["pending"] + waiting["processing"] + waiting["held"],
        "deadMessages": waiting["dead"],
    })  # fmt: skip


async def stop(request: Request) -> JSONResponse:
    """DELETE /sessions/{id}: cancels its jobs and marks it failed; queued events are kept"""
    worker: Worker = request.app.state.worker
    session_db_id = _database_id(request)
    worker.store.session(session_db_id)
    seconds = worker.settings.sessions.delete_timeout / 1000
    # Queued turns are held first, so that none starts while the running one is being cancelled.
    held = await asyncio.wrap_future(worker.store.stop_session(session_db_id))
    await asyncio.gather(
        worker.jobs.cancel_session(session_db_id, seconds),
        worker.refiner.cancel_session(session_db_id, seconds),
    )
    worker.announcer.session_changed(session_db_id)
    worker.announcer.processing()
    return JSONResponse({"status": "failed", "sessionDbId": session_db_id, "keptMessages": held})


def _database_id(request: Request) -> int:
    return params.integer(request.path_params, "id", 0, 1, MAX_ID)


routes = [
    Route("/sessions/init", by_content_id, methods=["POST"]),
    Route("/sessions/observations", by_content_id, methods=["POST"]),
    Route("/sessions/summarize", by_content_id, methods=["POST"]),
    Route("/sessions/complete", by_content_id, methods=["POST"]),
    Route("/sessions/{id}/init", by_database_id, methods=["POST"]),
    Route("/sessions/{id}/observations", by_database_id, methods=["POST"]),
    Route("/sessions/{id}/summarize", by_database_id, methods=["POST"]),
    Route("/sessions/{id}/status", status, methods=["GET"]),
    Route("/sessions/{id}", stop, methods=["DELETE"]),
    Route("/api/sessions/init", by_content_id, methods=["POST"]),
    Route("/api/sessions/observations", by_content_id, methods=["POST"]),
    Route("/api/sessions/summarize", by_content_id, methods=["POST"]),
    Route("/api/sessions/complete", by_content_id, methods=["POST"]),
]

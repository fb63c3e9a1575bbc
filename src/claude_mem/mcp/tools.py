"""What the tools do, served with the official SDK. Importing it is slow: `endpoint` does that at
the first call.

Stateless: every HTTP request stands alone, so a restart of the worker loses nothing. Results are
records of past sessions: fenced as data, and escaped so that nothing in them can close the fence.
"""

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from claude_mem import __version__, params
from claude_mem.errors import BadInput, ClaudeMemError
from claude_mem.hook.private_text import strip_private
from claude_mem.intake.project_access import Decision
from claude_mem.json_objects import parse_object
from claude_mem.mcp.tool_definitions import INSTRUCTIONS, TOOLS
from claude_mem.parameter_table import ALL_PROJECTS, names_of
from claude_mem.recall import fence
from claude_mem.recall.fact_list import facts_text, list_facts, list_team_facts
from claude_mem.recall.fence import escape_fences
from claude_mem.recall.formatting import (
    answers_text,
    counts_text,
    memories_text,
    next_offset,
    search_text,
    timeline_text,
)
from claude_mem.recall.memory_ids import parse_any_id
from claude_mem.recall.search import Query, outside_words_of
from claude_mem.recall.timeline import TimelineQuery
from claude_mem.store import StoreReader
from claude_mem.store.clock import iso
from claude_mem.store.database import is_full
from claude_mem.store.forgetting import Preview
from claude_mem.types import Json
from claude_mem.worker import editing
from claude_mem.worker.disk_space import describe_full_disk
from claude_mem.worker.forgetting import Erased, forget
from claude_mem.worker.saving import save_memory
from claude_mem.worker.worker import Worker

log = logging.getLogger("claude_mem.mcp")
logging.getLogger("mcp").setLevel(logging.WARNING)  # it logs every request

DIRECTORY_HEADER = "claude-mem-directory"  # the shim sends it; other clients may
Context = ServerRequestContext[dict[str, Any], Request]
T = TypeVar("T")
Arguments = dict[str, Json]

_ONLY_THIS_PROJECT = f'(this project only; project "{ALL_PROJECTS}" searches all)'
_NEW_PROJECT = f"There are no memories of this project yet. {_ONLY_THIS_PROJECT}"

NO_LOCAL_PROJECT = -1  # no id of a project here
_REFUSED = (
    "this directory gets only its own memories until the user runs `claude-mem project join` in it"
)
_OWN_ONLY = (
    "a session changes only memories of its own project; the user can change others with the"
    " command claude-mem or in the viewer"
)


@dataclass(frozen=True, slots=True)
class Call:
    worker: Worker
    directory: str  # where the session works; empty if unknown
    arguments: Arguments

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self.worker.clock() / 1000).astimezone()

    async def read(self, work: Callable[[StoreReader], T]) -> T:
        return await asyncio.to_thread(work, self.worker.store)


Run = Callable[[Call], Awaitable[str]]


async def call_tool(worker: Worker, name: str, arguments: Arguments, directory: str) -> str:
    """The text for the model; raises ClaudeMemError if the call is not valid."""
    tool = TOOLS.get(name)
    if tool is None:
        raise BadInput(f"unknown tool {name[:80]!r}, expected {', '.join(TOOLS)}", "name")
    arguments = await asyncio.to_thread(_without_private, arguments)
    # First: for a project without memories, no query is made that would check them.
    params.check_names(arguments, names_of(name))
    await asyncio.to_thread(check_scope, worker, directory, arguments, changes=tool.changes)
    return await IMPLEMENTATIONS[name](Call(worker, directory, arguments))


def _without_private(arguments: Arguments) -> Arguments:
    try:
        return parse_object(strip_private(json.dumps(arguments).encode()))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the arguments are not valid JSON: {error}") from None


def check_scope(
    worker: Worker, directory: str, arguments: dict[str, Json], *, changes: bool = False
) -> None:
    """Raises BadInput if the arguments name what another project has.

    The tools of a session change the memories of their own project only: an agent may follow orders
    of the repository that it works on. They read other projects too, unless the directory claims a
    project whose memory it does not get. It may be a copy that somebody else prepared: until the
    user joins it, its sessions read the memories of this directory only.
    """
    decision = worker.projects.decision(directory) if directory else None
    if decision is None or (decision.claimed is None and not changes):
        return
    refused = _OWN_ONLY if decision.claimed is None else _REFUSED
    store = worker.store
    own = store.project_by_key(decision.project.key)
    name, session = params.text(arguments, "project"), params.text(arguments, "session")
    if name and name != decision.project.key and not _names_own(store, name, own, decision):
        raise BadInput(refused, "project")
    for argument in ("id", "anchor", "ids"):
        values = arguments.get(argument)
        for value in values if isinstance(values, list) else [values]:
            if value is not None and _project_of(store, str(value)) not in (None, own):
                raise BadInput(refused, argument)
    if session and store.project_of_session(store.find_session(session)) != own:
        raise BadInput(refused, "session")


def _names_own(store: StoreReader, name: str, own: int | None, decision: Decision) -> bool:
    """A directory may have the name of any project."""
    if decision.claimed is not None or name != decision.project.name or own is None:
        return False
    return store.find_project(name) == own


def _project_of(store: StoreReader, text: str) -> int | None:
    memory_id = parse_any_id(text)
    if memory_id is not None and memory_id.kind == "team":
        return NO_LOCAL_PROJECT
    return store.project_of_memory(memory_id.kind, memory_id.number) if memory_id else None


def fenced(*lines: str) -> str:
    return fence.fenced(fence.NOTE, *lines)


# Search, timeline, full memories


async def _search(call: Call) -> str:
    arguments = _with_project(call)
    if arguments is None:
        return fenced(_NEW_PROJECT)

    def build_query(store: StoreReader) -> Query:
        return params.search_query(store, arguments, call.now, skip_open_turns=True)

    result = await call.worker.recall.search(build_query, call.now)
    note = [] if result.rows or "project" not in arguments else [_ONLY_THIS_PROJECT]
    more = f"set offset to {next_offset(arguments, result)}"
    text = await asyncio.to_thread(search_text, result, call.now.tzinfo, more=more)
    return fenced(text, *note)


async def _timeline(call: Call) -> str:
    has_anchor = bool(call.arguments.get("anchor"))
    if has_anchor and call.arguments.get("project") == ALL_PROJECTS:
        raise BadInput("the timeline of an anchor is limited to its project", "project")
    # An anchor determines the project.
    arguments = call.arguments if has_anchor else _with_project(call)
    if arguments is None:
        return fenced(_NEW_PROJECT)

    def build_query(store: StoreReader) -> TimelineQuery:
        return params.timeline_query(store, arguments, call.now, skip_open_turns=True)

    result = await call.worker.recall.timeline(await call.read(build_query), call.now)
    note = [] if result or "project" not in arguments else [_ONLY_THIS_PROJECT]
    text = await asyncio.to_thread(timeline_text, result, call.now.tzinfo)
    return fenced(text, *note)


async def _get_observations(call: Call) -> str:
    ids, words, with_record = params.batch(call.arguments)
    outside = await call.read(lambda store: store.read(lambda c: outside_words_of(c, ids)))
    if words:
        answers = await call.worker.recall.answers(ids, words, call.now)
        return fenced(await asyncio.to_thread(answers_text, answers, outside))
    memories = await call.worker.recall.memories(ids, with_record)
    return fenced(await asyncio.to_thread(memories_text, memories, outside))


async def _facts(call: Call) -> str:
    arguments = _with_project(call)
    if arguments is None:
        return fenced(_NEW_PROJECT)
    query = await call.read(lambda store: params.facts_query(store, arguments))
    facts, has_more = await call.read(lambda store: list_facts(store, query))
    of_team = await call.read(lambda store: list_team_facts(store, query))
    more = f"set offset to {query.offset + len(facts)}"
    text = await asyncio.to_thread(facts_text, facts, has_more=has_more, of_team=of_team, more=more)
    return fenced(text)


# Saving and forgetting


async def _save_memory(call: Call) -> str:
    memory = params.new_memory(call.arguments, call.worker.reader.redactor)
    saved = await save_memory(call.worker, memory, call.directory, "agent")
    return f"Remembered as #{saved.id}." if saved.is_new else f"Already remembered as #{saved.id}."


async def _edit_memory(call: Call) -> str:
    """Edits a memory for the agent, which cannot change what the user said or changed."""
    memory_id = params.any_memory_id(call.arguments.get("id"))
    fields = {name: v for name, v in call.arguments.items() if name not in _ACTIONS}
    done: list[str] = []
    if fields:
        redactor = call.worker.reader.redactor
        request = params.edit_request(memory_id, fields, redactor)
        await editing.edit_memory(call.worker, request, "agent")
        done.append("edited")
    if "pinned" in call.arguments:
        pinned = params.flag(call.arguments, "pinned")
        await editing.pin_memory(call.worker, memory_id, "agent", undo=not pinned)
        done.append("pinned" if pinned else "unpinned")
    if "wrong" in call.arguments:
        wrong = params.flag(call.arguments, "wrong")
        await editing.mark_wrong(call.worker, memory_id, "agent", undo=not wrong)
        done.append("marked as wrong" if wrong else "no longer marked as wrong")
    if not done:
        raise BadInput("set a field, pinned or wrong", "id")
    return f"{memory_id}: {', '.join(done)}."


async def _forget(call: Call) -> str:
    by_match = any(call.arguments.get(name) for name in ("file", "query"))
    arguments = _with_project(call) if by_match else call.arguments
    if arguments is None:
        return fenced(_NEW_PROJECT)
    result = await forget(call.worker, params.forget_request(arguments), call.now)
    if isinstance(result, Preview):
        for_good = " for good; nobody can undo it" if result.is_hard else ""
        return fenced(
            f"This would be forgotten{for_good}: {counts_text(result.counts)}.",
            *(escape_fences(line) for line in result.examples),
            f'Nothing is forgotten yet. Repeat the call with confirm "{result.token}" to do it.',
        )
    if isinstance(result, Erased):
        rest = "" if result.is_scrubbed else " The worker is still removing it from its files."
        return f"Forgotten for good: {counts_text(result.forgotten.counts)}.{rest}"
    until = iso(result.until_epoch)[:16]
    return (
        f"Forgotten: {counts_text(result.forgotten.counts)}. Until {until} UTC"
        f" the user can undo it: claude-mem forget --undo {result.forgotten.token}"
    )


def _with_project(call: Call) -> Arguments | None:
    """The arguments, by default with the session's project; None if that has no memories yet."""
    arguments = call.arguments
    project = params.text(arguments, "project")
    if project == ALL_PROJECTS:
        return {name: value for name, value in arguments.items() if name != "project"}
    if project or not call.directory or arguments.get("session"):
        return arguments
    key = call.worker.projects.of(call.directory).key
    return None if call.worker.store.project_by_key(key) is None else {**arguments, "project": key}


_ACTIONS = ("id", "pinned", "wrong")

IMPLEMENTATIONS: dict[str, Run] = {
    "search": _search,
    "timeline": _timeline,
    "get_observations": _get_observations,
    "facts": _facts,
    "save_memory": _save_memory,
    "edit_memory": _edit_memory,
    "forget": _forget,
}


def error_text(error: Exception) -> str:
    return escape_fences(str(error))


# Served with the SDK


async def serve(scope: Scope, receive: Receive, send: Send) -> None:
    """A manager for each request: there are no MCP sessions to keep."""
    manager = StreamableHTTPSessionManager(_server, stateless=True, json_response=True)
    async with manager.run():
        await manager.handle_request(scope, receive, send)


async def _list_tools(
    context: Context, params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[types.Tool.model_validate(tool.definition()) for tool in TOOLS.values()]
    )


async def _call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    assert context.request is not None
    worker: Worker = context.request.app.state.worker
    directory = _directory_of(context.request.headers)
    try:
        text = await call_tool(worker, params.name, params.arguments or {}, directory)
    except ClaudeMemError as error:
        return _result(error_text(error), is_error=True)
    except Exception as error:
        log.exception("tool %s failed", params.name[:80])
        if is_full(error):
            return _result(describe_full_disk(worker.settings.layout), is_error=True)
        return _result("internal error; the worker's log has the details", is_error=True)
    return _result(text)


def _directory_of(headers: Headers) -> str:
    """The working directory of the session; empty if the header is not an absolute path."""
    directory = os.fsdecode(unquote_to_bytes(headers.get(DIRECTORY_HEADER, "")))
    return directory if directory.startswith("/") and "\0" not in directory else ""


def _result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    content = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[content], is_error=is_error)


async def _discover(context: Context, params: types.RequestParams) -> types.EmptyResult:
    """Clients fall back to `initialize`, which all of them support."""
    raise MCPError(code=types.METHOD_NOT_FOUND, message="Method not found", data="server/discover")


def _create_server() -> Server[dict[str, Any]]:
    server: Server[dict[str, Any]] = Server(
        "claude-mem",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
    )
    server.add_request_handler("server/discover", types.RequestParams, _discover)
    server.middleware.clear()  # the default middleware is telemetry
    return server


_server = _create_server()

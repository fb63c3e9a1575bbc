"""Cursor: a conversation is a session, a generation a turn.

A hook of the user runs in Cursor's own directory, so the directory is the first workspace. A line
of a transcript, `projects/<folder>/agent-transcripts/<session>/<session>.jsonl`, is a message:
`{"role": …, "message": {"content": […]}}`, with texts and calls of tools. There are no ids, no
times and no results of tools. The directory of the session is only in the name of the folder, in
which every character but letters and digits became a dash.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from claude_mem.agents.agent import (
    Agent,
    AgentEvent,
    ConfigFile,
    Entry,
    Events,
    Lines,
    Normalised,
    Ours,
    Transcripts,
)
from claude_mem.agents.attaching import events, hook_entries, mcp_server
from claude_mem.agents.reading.conversation import Conversation
from claude_mem.agents.reading.fields import Fields, compact
from claude_mem.agents.reading.tools import ToolCall, event, tool_events
from claude_mem.errors import BadInput
from claude_mem.hook.other_agents import Output
from claude_mem.types import (
    PROMPT,
    SESSION_START,
    STATEMENT,
    TOOL,
    TOOL_FAILURE,
    Json,
    counted_prompt_id,
)

_OTHER_CHARACTERS = re.compile(r"[^a-zA-Z0-9]+")
_PATH_FIELDS = ("path", "file_path", "target_file", "working_directory", "cwd", "target_directory")
_MOST_DIRECTORIES = 2000  # that are listed to resolve a name


def normalise(kind: str, payload: Fields) -> list[Normalised]:
    roots = payload.get("workspace_roots")
    root = roots[0] if isinstance(roots, list) and roots else None
    common = compact(
        session_id=payload.first("conversation_id", "session_id"),
        prompt_id=payload.get("generation_id"),
        cwd=root if isinstance(root, str) else payload.get("cwd"),
        transcript_path=payload.get("transcript_path"),
        reason=payload.get("reason"),
    )
    if kind == SESSION_START:
        return event(kind, common, source="startup")
    if kind == PROMPT:
        return event(kind, common, prompt=payload.text("prompt"))
    if kind == STATEMENT:
        statement = payload.text("text", "response")
        return event(kind, common, statement=statement) if statement else []
    if kind not in (TOOL, TOOL_FAILURE):
        last = payload.text("last_assistant_message", "summary")
        return event(kind, common, **compact(last_assistant_message=last))
    error = payload.plain("error_message", "error")
    call = ToolCall(
        payload.text("tool_name"),
        payload.get("tool_input"),
        payload.plain("tool_output", "tool_response"),
        payload.text("tool_use_id"),
        error=error or ("failed" if kind == TOOL_FAILURE else ""),
    )
    return tool_events(common, call)


def _is_message(line: Fields) -> bool:
    is_role = line.get("role") in ("user", "assistant")
    return is_role and "sessionId" not in line and "content" in line.inner("message")


def read_transcript(lines: Lines, path: Path) -> Events:
    messages = [(line, _parts(line)) for line in lines if _is_message(line)]
    directory = _directory(path, [part for _, parts in messages for part in parts])
    chat = Conversation(path.stem, directory, path, path.stat().st_mtime_ns // 1_000_000)
    prompts = 0
    for number, (line, parts) in enumerate(messages):
        texts = [part.text("text") for part in parts if part.get("type") == "text"]
        if line.get("role") == "assistant":
            chat.say("\n".join(texts), None, f"{chat.session_id}:{number}")
            _tools(chat, parts, number)
        elif parts:
            prompts += 1
            prompt_id = counted_prompt_id(chat.session_id, prompts)
            chat.prompt(prompt_id, "\n".join(texts), None, line)
    return chat.end()


def _tools(chat: Conversation, parts: list[Fields], number: int) -> None:
    calls = (part for part in parts if part.get("type") == "tool_use")
    for nth, call in enumerate(calls):
        call_id = call.text("id") or f"{chat.session_id}:{number}:{nth}"
        tool = ToolCall(call.text("name"), call.get("input"), "", call_id, reports_outcome=False)
        chat.tool(tool, None)


def _parts(line: Fields) -> list[Fields]:
    message = line.inner("message")
    if isinstance(message.get("content"), list):
        return message.parts("content")
    return [Fields(type="text", text=message.plain("content"))]


def _directory(path: Path, parts: list[Fields]) -> str:
    folder = path.parent.parent.parent.name
    named = {d for part in parts for d in _parents(part.inner("input")) if folder_name(d) == folder}
    candidates = named or set(directories_called(folder))
    if len(candidates) != 1:
        raise BadInput(f"the directory of this session is not known: {folder}")
    return candidates.pop()


def _parents(arguments: Fields) -> Iterator[str]:
    """The directories above a path that a tool got, and the path."""
    value = arguments.first(*_PATH_FIELDS)
    if isinstance(value, str) and value.startswith("/"):
        yield value
        yield from map(str, PurePosixPath(value).parents)


def folder_name(directory: str) -> str:
    return _OTHER_CHARACTERS.sub("-", directory).strip("-")


def directories_called(folder: str, root: str = "/") -> Iterator[str]:
    """The existing directories with this folder name; the name alone does not say which."""
    below, listed = [root], 0
    while below and listed < _MOST_DIRECTORIES:
        directory = below.pop()
        listed += 1
        for child in _subdirectories(directory):
            name = folder_name(child)
            if name == folder:
                yield child
            elif name == folder_name(directory) or folder.startswith(f"{name}-"):
                below.append(child)


def _subdirectories(directory: str) -> Iterable[str]:
    try:
        with os.scandir(directory) as entries:
            return sorted(e.path for e in entries if e.is_dir(follow_symlinks=False))
    except OSError:
        return ()


def _hooks(agent: Agent, launcher: Path) -> Ours:
    def value(event: AgentEvent, line: str) -> Json:
        return {"command": line, "timeout": event.timeout}

    version = Entry(("version",), 1, is_element=False, is_default=True)
    return (version, *hook_entries(agent, launcher, value))


AGENT = Agent(
    name="cursor",
    title="Cursor",
    programs=("cursor", "cursor-agent"),
    home=".cursor",
    events=events(
        "sessionStart=SessionStart beforeSubmitPrompt=UserPromptSubmit postToolUse=PostToolUse"
        " postToolUseFailure=PostToolUseFailure afterAgentResponse=Statement stop=Stop"
        " sessionEnd=SessionEnd"
    ),
    context=("SessionStart",),
    normalise=normalise,
    output=Output((b'"additional_context":', b"")),
    hooks=ConfigFile("hooks.json", ".cursor/hooks.json"),
    hooks_of=_hooks,
    mcp=ConfigFile("mcp.json", ".cursor/mcp.json"),
    server_of=mcp_server,
    transcripts=Transcripts("projects/*/agent-transcripts/*/*.jsonl", _is_message, read_transcript),
    tested="sample payloads",
    shell=("CURSOR_AGENT",),
    notes=(
        "Hints are not possible: its prompt hook cannot add context.",
        "Its transcripts have no ids, timestamps or tool results: a session that hooks"
        " recorded is not imported, turns get the time of the file, and it is not known which"
        " commands failed. Chats that are only in its database are not imported.",
    ),
)

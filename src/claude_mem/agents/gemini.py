"""Gemini CLI: events of its own names, which the installed hooks pass as ours.

Its prompt contains the context that hooks gave, and its tool calls have no id. A transcript is a
log: rows are repeated with more in them, and the last one counts.
"""

import re
from pathlib import Path

from claude_mem.agents.agent import (
    Agent,
    ConfigFile,
    Events,
    Lines,
    Normalised,
    Payload,
    Transcripts,
)
from claude_mem.agents.attaching import command_hooks, events, mcp_server
from claude_mem.agents.reading.conversation import Conversation
from claude_mem.agents.reading.payloads import (
    compact,
    event,
    line_time,
    made_up_id,
    mapping,
    parts_of,
    plain_text,
    text,
    time_of,
)
from claude_mem.agents.reading.tools import ToolCall, tool_events
from claude_mem.hook.other_agents import NESTED, Output
from claude_mem.hook.private_text import MARK
from claude_mem.timestamps import milliseconds
from claude_mem.types import PROMPT, TOOL, Json

_HOOK_CONTEXT = re.compile(r"<hook_context>.*?(?:</hook_context>|\Z)\s*", re.DOTALL)
_UNTRUSTED = re.compile(r"</?untrusted_context>\n?")
_OUTPUT = re.compile(r"(?:^|\n)Output: (.*?)(?=\n(?:Error|Exit Code|Signal|Process Group PGID"
                     r"|Background PIDs): |\Z)", re.DOTALL)  # fmt: skip
_WORKSPACE = re.compile(r"\*\*Workspace Directories:\*\*\n\s*- (.+)")
_PROJECT_ROOT = ".project_root"


def normalise(kind: str, payload: Payload) -> list[Normalised]:
    common = compact(
        session_id=payload.get("session_id"),
        transcript_path=payload.get("transcript_path"),
        cwd=payload.get("cwd"),
        timestamp=time_of(payload),
        source=payload.get("source"),
        reason=payload.get("reason"),
    )
    if kind == PROMPT:
        return event(kind, common, prompt=text(payload, "prompt"))
    if kind == "Stop":
        return event(kind, common, last_assistant_message=text(payload, "prompt_response"))
    if kind != TOOL:
        return event(kind, common)
    name, arguments = text(payload, "tool_name"), payload.get("tool_input")
    response = mapping(payload.get("tool_response"))
    call_id = text(payload, "tool_use_id") or made_up_id(
        payload.get("session_id"), name, arguments, time_of(payload)
    )
    call = ToolCall(name, arguments, output_of(response), call_id, error=failure_of(response))
    return tool_events(common, call)


def output_of(response: Payload) -> str:
    """What the tool printed, with the exit code if the command failed."""
    whole = _UNTRUSTED.sub("", plain_text(response.get("llmContent")))
    output = _OUTPUT.search(whole)
    if output is None:
        return whole or plain_text(response.get("returnDisplay"))
    code = re.search(r"\nExit Code: ([1-9]\d{0,2})\b", whole)
    printed = "" if output[1].strip() in ("(empty)", "(none)") else output[1].rstrip()
    error = re.search(r"\nError: (.*?)(?=\n(?:Exit Code|Signal): |\Z)", whole, re.DOTALL)
    if error and error[1].strip() not in ("(none)", ""):
        printed = f"{printed}\n{error[1].rstrip()}".strip()
    return f"{printed}\nExit Code: {code[1]}" if code else printed


def failure_of(response: Payload) -> str:
    error = response.get("error")
    if not error:
        return ""
    message = mapping(error).get("message") if isinstance(error, dict) else error
    return plain_text(message) or "failed"


def _is_transcript(line: Payload) -> bool:
    return "projectHash" in line and isinstance(line.get("sessionId"), str)


def read_transcript(lines: Lines, path: Path) -> Events:
    """Earlier versions wrote one object, with all messages."""
    messages: dict[str, Payload] = {}
    for line in lines:
        updated = mapping(line.get("$set", line)).get("messages")
        for row in parts_of(updated) if isinstance(updated, list) else [line]:
            if isinstance(row.get("id"), str):
                identity = str(row["id"])
                had_private = MARK in line or MARK in messages.get(identity, {})
                messages[identity] = row | {MARK: True} if had_private else row
    chat = Conversation(
        text(lines[0], "sessionId"),
        _directory(messages, path),
        path,
        milliseconds(lines[0].get("startTime")),
    )
    for identity, row in messages.items():
        at_ms = line_time(row)
        if row.get("type") == "user":
            typed = _prompt(row.get("content"))
            if typed is not None:
                chat.prompt(identity, typed, at_ms, row)
        elif row.get("type") == "gemini":
            chat.say(plain_text(row.get("content")), at_ms, identity)
            for call in parts_of(row.get("toolCalls")):
                chat.tool(_call(call), line_time(call) or at_ms)
    return chat.end()


def _directory(messages: dict[str, Payload], path: Path) -> str:
    """The transcript has it only in the message that sets up the chat; a file next to it, too."""
    try:
        return (path.parent.parent / _PROJECT_ROOT).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        pass
    for row in messages.values():
        if workspace := _WORKSPACE.search(plain_text(row.get("content"))):
            return workspace[1].strip()
    return ""


def _prompt(content: Json) -> str | None:
    """What the user typed; None for results of tools and for the client's own message."""
    parts = content if isinstance(content, list) else [{"text": content}]
    objects = [part for part in parts if isinstance(part, dict)]
    if not objects or any("functionResponse" in part for part in objects):
        return None
    whole = "\n".join(text(part, "text") for part in objects if "text" in part)
    if whole.startswith("<session_context>"):
        return None
    return whole


def _call(call: Payload) -> ToolCall:
    result = call.get("result")
    parts = result if isinstance(result, list) else [result]
    responses = [mapping(mapping(p).get("functionResponse")).get("response") for p in parts]
    response = mapping(responses[0]) if responses else {}
    printed = _HOOK_CONTEXT.sub("", text(response, "output")).strip()
    return ToolCall(
        text(call, "name"),
        call.get("args"),
        output_of({"llmContent": printed}),
        text(call, "id"),
        error=plain_text(response.get("error")),
    )


AGENT = Agent(
    name="gemini",
    title="Gemini CLI",
    programs=("gemini",),
    home=".gemini",
    events=events(
        "SessionStart BeforeAgent=UserPromptSubmit AfterTool=PostToolUse AfterAgent=Stop SessionEnd"
    ),
    context=("SessionStart", "UserPromptSubmit"),
    normalise=normalise,
    output=Output(NESTED, prompt_event=b"BeforeAgent", shows_messages=True, escapes_brackets=True),
    hooks=ConfigFile("settings.json", ".gemini/settings.json"),
    hooks_of=command_hooks(ticks_per_second=1000),
    mcp=ConfigFile("settings.json", ".gemini/settings.json"),
    server_of=mcp_server,
    transcripts=Transcripts("tmp/*/chats/session-*.jsonl", _is_transcript, read_transcript),
    tested="real client",
    shell=("GEMINI_CLI",),
    notes=("It escapes angle brackets in contexts, so they are replaced by ‹ and ›.",),
)

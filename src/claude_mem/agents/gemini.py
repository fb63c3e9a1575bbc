"""Gemini CLI: events of its own names, which the installed hooks pass as ours.

Its prompt contains the context that hooks gave, and its tool calls have no id. A transcript is a
log: rows are repeated with more in them, and the last one counts.
"""

import re
from pathlib import Path

from claude_mem.agents.agent import Agent, ConfigFile, Events, Lines, Normalised, Transcripts
from claude_mem.agents.attaching import command_hooks, events, mcp_server
from claude_mem.agents.reading.conversation import Conversation
from claude_mem.agents.reading.fields import Fields, compact, fields_of, made_up_id, plain_text
from claude_mem.agents.reading.tools import ToolCall, event, tool_events
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


def normalise(kind: str, payload: Fields) -> list[Normalised]:
    common = compact(
        session_id=payload.get("session_id"),
        transcript_path=payload.get("transcript_path"),
        cwd=payload.get("cwd"),
        timestamp=payload.time,
        source=payload.get("source"),
        reason=payload.get("reason"),
    )
    if kind == PROMPT:
        return event(kind, common, prompt=payload.text("prompt"))
    if kind == "Stop":
        return event(kind, common, last_assistant_message=payload.text("prompt_response"))
    if kind != TOOL:
        return event(kind, common)
    name, arguments = payload.text("tool_name"), payload.get("tool_input")
    response = payload.inner("tool_response")
    call_id = payload.text("tool_use_id") or made_up_id(
        payload.get("session_id"), name, arguments, payload.time
    )
    output = output_of_response(response)
    return tool_events(
        common, ToolCall(name, arguments, output, call_id, error=failure_of(response))
    )


def output_of_response(response: Fields) -> str:
    return output_of(response.plain("llmContent"), response.plain("returnDisplay"))


def output_of(content: str, otherwise: str = "") -> str:
    """What the tool printed, with the exit code if the command failed."""
    whole = _UNTRUSTED.sub("", content)
    output = _OUTPUT.search(whole)
    if output is None:
        return whole or otherwise
    code = re.search(r"\nExit Code: ([1-9]\d{0,2})\b", whole)
    printed = "" if output[1].strip() in ("(empty)", "(none)") else output[1].rstrip()
    error = re.search(r"\nError: (.*?)(?=\n(?:Exit Code|Signal): |\Z)", whole, re.DOTALL)
    if error and error[1].strip() not in ("(none)", ""):
        printed = f"{printed}\n{error[1].rstrip()}".strip()
    return f"{printed}\nExit Code: {code[1]}" if code else printed


def failure_of(response: Fields) -> str:
    error = response.get("error")
    if not error:
        return ""
    is_object = isinstance(error, dict)
    return (fields_of(error).plain("message") if is_object else plain_text(error)) or "failed"


def _is_transcript(line: Fields) -> bool:
    return "projectHash" in line and isinstance(line.get("sessionId"), str)


def read_transcript(lines: Lines, path: Path) -> Events:
    """Reads a transcript; earlier versions wrote one object, with all messages."""
    messages: dict[str, Fields] = {}
    for line in lines:
        for row in (line.inner("$set") or line).parts("messages") or [line]:
            if isinstance(row.get("id"), str):
                identity = str(row["id"])
                had_private = MARK in line or MARK in messages.get(identity, {})
                messages[identity] = Fields(row | {MARK: True}) if had_private else row
    chat = Conversation(
        lines[0].text("sessionId"),
        _directory(messages, path),
        path,
        milliseconds(lines[0].get("startTime")),
    )
    for identity, row in messages.items():
        at_ms = row.at_ms
        if row.get("type") == "user":
            typed = _prompt(row.get("content"))
            if typed is not None:
                chat.prompt(identity, typed, at_ms, row)
        elif row.get("type") == "gemini":
            chat.say(row.plain("content"), at_ms, identity)
            for call in row.parts("toolCalls"):
                chat.tool(_call(call), call.at_ms or at_ms)
    return chat.end()


def _directory(messages: dict[str, Fields], path: Path) -> str:
    """The transcript has it only in the message that sets up the chat; a file next to it, too."""
    try:
        return (path.parent.parent / _PROJECT_ROOT).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        pass
    for row in messages.values():
        if workspace := _WORKSPACE.search(row.plain("content")):
            return workspace[1].strip()
    return ""


def _prompt(content: Json) -> str | None:
    """What the user typed; None for results of tools and for the client's own message."""
    parts = content if isinstance(content, list) else [{"text": content}]
    objects = [Fields(part) for part in parts if isinstance(part, dict)]
    if not objects or any("functionResponse" in part for part in objects):
        return None
    whole = "\n".join(part.text("text") for part in objects if "text" in part)
    if whole.startswith("<session_context>"):
        return None
    return whole


def _call(call: Fields) -> ToolCall:
    result = call.get("result")
    parts = result if isinstance(result, list) else [result]
    response = fields_of(parts[0] if parts else None).inner("functionResponse").inner("response")
    printed = _HOOK_CONTEXT.sub("", response.text("output")).strip()
    return ToolCall(
        call.text("name"),
        call.get("args"),
        output_of(printed),
        call.text("id"),
        error=response.plain("error"),
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

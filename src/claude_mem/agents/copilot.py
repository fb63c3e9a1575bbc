"""Copilot CLI: camelCase fields, or snake_case where it runs a hook of Claude Code's settings.

Both spellings of an event give the same payload, so that it is stored once. There are no ids of
tool calls and no last message, which is read from the transcript.
"""

import json
from pathlib import Path

from claude_mem.agents.agent import Agent, ConfigFile, Events, Lines, Normalised, Ours, Transcripts
from claude_mem.agents.attaching import SERVER, command_line, events, member
from claude_mem.agents.reading.conversation import Conversation
from claude_mem.agents.reading.fields import Fields, compact, made_up_id
from claude_mem.agents.reading.tools import ToolCall, event, exit_code, tool_events, tool_name
from claude_mem.hook.other_agents import FLAT, Output
from claude_mem.types import PROMPT, TOOL, TOOL_FAILURE

_SOURCES = {"new": "startup"}


def normalise(kind: str, payload: Fields) -> list[Normalised]:
    session_id, source = payload.first("sessionId", "session_id"), payload.text("source")
    common = compact(
        session_id=session_id,
        cwd=payload.get("cwd"),
        timestamp=payload.time,
        transcript_path=payload.first("transcriptPath", "transcript_path"),
        source=_SOURCES.get(source, source),
        reason=payload.get("reason"),
    )
    if kind == PROMPT:
        return event(kind, common, prompt=payload.text("prompt"))
    if kind not in (TOOL, TOOL_FAILURE):
        return event(kind, common)
    name = tool_name(payload.text("toolName", "tool_name"))
    arguments = payload.first("toolArgs", "tool_input", "toolInput")
    result = payload.inner("toolResult", "tool_result")
    output = result.text("textResultForLlm", "text_result_for_llm")
    has_failed = result.text("resultType", "result_type") in ("failure", "error")
    error = payload.plain("error") or (output if has_failed else "")
    if kind == TOOL_FAILURE:
        error = error or output or "failed"
    call = ToolCall(
        name,
        arguments,
        _without_mark(output),
        made_up_id(session_id, name, arguments, payload.time),
        error=error,
        code=exit_code(output) if name == "Bash" else 0,
    )
    return tool_events(common, call)


def _without_mark(output: str) -> str:
    """The output of a command without the line that the client adds."""
    return "\n".join(line for line in output.splitlines() if not line.startswith("<shellId: "))


def _is_transcript(line: Fields) -> bool:
    return line.get("type") == "session.start" and isinstance(line.get("data"), dict)


def read_transcript(lines: Lines, path: Path) -> Events:
    data = lines[0].inner("data")
    cwd = data.inner("context").text("cwd")
    chat = Conversation(data.text("sessionId"), cwd, path, lines[0].at_ms)
    calls: dict[str, Fields] = {}
    for line in lines:
        data, at_ms, kind = line.inner("data"), line.at_ms, line.get("type")
        if kind == "user.message":
            chat.prompt(data.text("messageId"), data.text("content"), at_ms, line)
        elif kind == "assistant.message":
            chat.say(data.text("content"), at_ms, data.text("messageId"))
        elif kind == "tool.execution_start":
            calls[data.text("toolCallId")] = data
        elif kind == "tool.execution_complete":
            begun = calls.pop(data.text("toolCallId"), None)
            if begun and data.inner("error").get("code") != "denied":  # else it never ran
                chat.tool(_call(begun, data), at_ms)
    return chat.end()


def _call(begun: Fields, done: Fields) -> ToolCall:
    output = done.inner("result").text("detailedContent", "content")
    return ToolCall(
        begun.text("toolName"),
        begun.get("arguments"),
        _without_mark(output),
        done.text("toolCallId"),
        error=done.inner("error").text("message"),
        code=done.inner("shellExecution").number("exitCode") or 0,
    )


def _hooks(agent: Agent, launcher: Path) -> Ours:
    hooks = {
        event.name: [
            {"type": "command", "bash": command_line(agent, event, launcher),
             "timeoutSec": event.timeout}
        ]
        for event in agent.events
    }  # fmt: skip
    return json.dumps({"version": 1, "hooks": hooks}, indent=2) + "\n"


def _server(launcher: Path) -> Ours:
    return member(
        ("mcpServers", SERVER),
        {"type": "local", "command": str(launcher), "args": [], "tools": ["*"]},
    )


AGENT = Agent(
    name="copilot",
    title="Copilot CLI",
    programs=("copilot",),
    home=".copilot",
    # Not preToolUse: any exit code but 0 would deny the tool.
    events=events(
        "sessionStart=SessionStart userPromptSubmitted=UserPromptSubmit postToolUse=PostToolUse"
        " postToolUseFailure=PostToolUseFailure agentStop=Stop sessionEnd=SessionEnd"
    ),
    context=("SessionStart", "UserPromptSubmit"),
    normalise=normalise,
    output=Output(FLAT),
    hooks=ConfigFile("hooks/claude-mem.json", ".github/hooks/claude-mem.json"),
    hooks_of=_hooks,
    mcp=ConfigFile("mcp-config.json"),
    server_of=_server,
    transcripts=Transcripts("session-state/*/events.jsonl", _is_transcript, read_transcript),
    tested="real client",
    shell=("COPILOT_CLI",),
    notes=("Hooks of a project run only in a folder that you trust.",),
)

"""Qwen Code: Claude Code's event names, Gemini's tools and results.

Without a terminal it sends an empty prompt after each tool result, which no user typed.
"""

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
from claude_mem.agents.gemini import failure_of, output_of
from claude_mem.agents.reading.conversation import Conversation
from claude_mem.agents.reading.payloads import (
    event,
    first,
    line_time,
    mapping,
    parts_of,
    plain_text,
    text,
    time_of,
)
from claude_mem.agents.reading.tools import ToolCall, exit_code, tool_events
from claude_mem.hook.other_agents import NESTED, Output
from claude_mem.types import PROMPT, TOOL, TOOL_FAILURE

_KEPT = (
    "session_id", "transcript_path", "cwd", "prompt_id", "source", "reason", "agent_id", "trigger",
    "last_assistant_message", "stop_hook_active", "compact_summary",
)  # fmt: skip


def normalise(kind: str, payload: Payload) -> list[Normalised]:
    common: Payload = {name: payload[name] for name in _KEPT if payload.get(name) is not None}
    common["timestamp"] = time_of(payload)
    if kind == PROMPT:
        if not text(payload, "prompt") and "submitted_prompt" not in payload:
            return []
        return event(kind, common, prompt=text(payload, "submitted_prompt", "prompt"))
    if kind not in (TOOL, TOOL_FAILURE):
        return event(kind, common)
    response = mapping(payload.get("tool_response"))
    error = text(payload, "error") or failure_of(response)
    output = output_of({"llmContent": error} if error else response)
    call = ToolCall(
        text(payload, "tool_name"),
        payload.get("tool_input"),
        output,
        text(payload, "tool_call_id", "tool_use_id"),
        # A command that failed has its output there, with the exit code.
        error="" if exit_code(output) else error,
    )
    return tool_events(common, call)


def _is_transcript(line: Payload) -> bool:
    return isinstance(mapping(line.get("message")).get("parts"), list) or "systemPayload" in line


def read_transcript(lines: Lines, path: Path) -> Events:
    head = lines[0]
    chat = Conversation(text(head, "sessionId"), text(head, "cwd"), path, line_time(head))
    calls: dict[str, Payload] = {}
    for number, line in enumerate(lines):
        at_ms, kind, uuid = line_time(line), line.get("type"), text(line, "uuid")
        parts = parts_of(mapping(line.get("message")).get("parts"))
        if kind == "user" and line.get("provenance", "real_user") == "real_user":
            typed = text(mapping(line.get("systemPayload")), "displayText")
            prompt = typed or _text(parts[:1])
            chat.prompt(_prompt_id(lines[number:]) or uuid, prompt, at_ms, line)
        elif kind == "assistant":
            chat.say(_text(parts), at_ms, uuid)
            for part in parts:
                begun = mapping(part.get("functionCall"))
                calls[text(begun, "id")] = begun
        elif kind == "tool_result":
            for part in parts:
                result = mapping(part.get("functionResponse"))
                if begun := calls.pop(text(result, "id"), {}):
                    chat.tool(_call(begun, line, result), at_ms)
    return chat.end()


def _text(parts: list[Payload]) -> str:
    """Without the model's thoughts."""
    texts = [first(part, "text") for part in parts if not part.get("thought")]
    return "\n".join(part for part in texts if isinstance(part, str))


def _prompt_id(lines: Lines) -> str:
    """Hooks get it; the transcript has it in the next line about a request."""
    for line in lines[1:]:
        if line.get("type") == "user":
            return ""
        event = mapping(mapping(line.get("systemPayload")).get("uiEvent"))
        if prompt_id := text(event, "prompt_id"):
            return prompt_id
    return ""


def _call(begun: Payload, line: Payload, result: Payload) -> ToolCall:
    response, done = mapping(result.get("response")), mapping(line.get("toolCallResult"))
    display = mapping(done.get("resultDisplay"))
    output = text(display, "output") or output_of({"llmContent": text(response, "output")})
    code = display.get("exitCode")
    return ToolCall(
        text(begun, "name"),
        begun.get("args"),
        output,
        text(begun, "id"),
        error="" if isinstance(code, int) and code else plain_text(response.get("error")),
        code=code if isinstance(code, int) else None,
    )


AGENT = Agent(
    name="qwen",
    title="Qwen Code",
    programs=("qwen",),
    home=".qwen",
    events=events(
        "SessionStart UserPromptSubmit PostToolUse PostToolUseFailure SubagentStop PreCompact Stop"
        " SessionEnd"
    ),
    context=("SessionStart", "UserPromptSubmit"),
    normalise=normalise,
    output=Output(NESTED, shows_messages=True),
    hooks=ConfigFile("settings.json", ".qwen/settings.json"),
    hooks_of=command_hooks(ticks_per_second=1000),
    mcp=ConfigFile("settings.json", ".qwen/settings.json"),
    server_of=mcp_server,
    transcripts=Transcripts("projects/*/chats/*.jsonl", _is_transcript, read_transcript),
    tested="real client",
    shell=("QWEN_CODE",),
    notes=(
        "Without a terminal it does not report the end of a session: the session counts as"
        " interrupted after 24 hours without an event.",
    ),
)

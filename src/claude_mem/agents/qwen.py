"""Qwen Code: Claude Code's event names, Gemini's tools and results.

Without a terminal it sends an empty prompt after each tool result, which no user typed.
"""

from pathlib import Path

from claude_mem.agents.agent import Agent, ConfigFile, Events, Lines, Normalised, Transcripts
from claude_mem.agents.attaching import command_hooks, events, mcp_server
from claude_mem.agents.gemini import failure_of, output_of, output_of_response
from claude_mem.agents.reading.conversation import Conversation
from claude_mem.agents.reading.fields import Fields
from claude_mem.agents.reading.tools import ToolCall, event, exit_code, tool_events
from claude_mem.hook.other_agents import NESTED, Output
from claude_mem.types import PROMPT, TOOL, TOOL_FAILURE

_KEPT = (
    "session_id", "transcript_path", "cwd", "prompt_id", "source", "reason", "agent_id", "trigger",
    "last_assistant_message", "stop_hook_active", "compact_summary",
)  # fmt: skip


def normalise(kind: str, payload: Fields) -> list[Normalised]:
    kept = {name: payload[name] for name in _KEPT if payload.get(name) is not None}
    common = Fields(kept, timestamp=payload.time)
    if kind == PROMPT:
        if not payload.text("prompt") and "submitted_prompt" not in payload:
            return []
        return event(kind, common, prompt=payload.text("submitted_prompt", "prompt"))
    if kind not in (TOOL, TOOL_FAILURE):
        return event(kind, common)
    response = payload.inner("tool_response")
    error = payload.text("error") or failure_of(response)
    output = output_of(error) if error else output_of_response(response)
    call = ToolCall(
        payload.text("tool_name"),
        payload.get("tool_input"),
        output,
        payload.text("tool_call_id", "tool_use_id"),
        # A command that failed has its output there, with the exit code.
        error="" if exit_code(output) else error,
    )
    return tool_events(common, call)


def _is_transcript(line: Fields) -> bool:
    return isinstance(line.inner("message").get("parts"), list) or "systemPayload" in line


def read_transcript(lines: Lines, path: Path) -> Events:
    head = lines[0]
    chat = Conversation(head.text("sessionId"), head.text("cwd"), path, head.at_ms)
    calls: dict[str, Fields] = {}
    for number, line in enumerate(lines):
        at_ms, kind, uuid = line.at_ms, line.get("type"), line.text("uuid")
        parts = line.inner("message").parts("parts")
        if kind == "user" and line.get("provenance", "real_user") == "real_user":
            typed = line.inner("systemPayload").text("displayText")
            prompt = typed or _text(parts[:1])
            chat.prompt(_prompt_id(lines[number:]) or uuid, prompt, at_ms, line)
        elif kind == "assistant":
            chat.say(_text(parts), at_ms, uuid)
            for part in parts:
                begun = part.inner("functionCall")
                calls[begun.text("id")] = begun
        elif kind == "tool_result":
            for part in parts:
                result = part.inner("functionResponse")
                if begun := calls.pop(result.text("id"), Fields()):
                    chat.tool(_call(begun, line, result), at_ms)
    return chat.end()


def _text(parts: list[Fields]) -> str:
    """Joins the texts of the parts, without the model's thoughts."""
    texts = [part.first("text") for part in parts if not part.get("thought")]
    return "\n".join(part for part in texts if isinstance(part, str))


def _prompt_id(lines: Lines) -> str:
    """Hooks get it; the transcript has it in the next line about a request."""
    for line in lines[1:]:
        if line.get("type") == "user":
            return ""
        event = line.inner("systemPayload").inner("uiEvent")
        if prompt_id := event.text("prompt_id"):
            return prompt_id
    return ""


def _call(begun: Fields, line: Fields, result: Fields) -> ToolCall:
    response, done = result.inner("response"), line.inner("toolCallResult")
    display = done.inner("resultDisplay")
    output = display.text("output") or output_of(response.text("output"))
    code = display.number("exitCode")
    return ToolCall(
        begun.text("name"),
        begun.get("args"),
        output,
        begun.text("id"),
        error="" if code else response.plain("error"),
        code=code,
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

"""Qwen Code: Claude Code's event names, Gemini's tools and results.

Without a terminal it sends an empty prompt after each tool result, which no user typed.
"""

from claude_mem.intake.normalisers.gemini import failure_of, output_of
from claude_mem.intake.normalisers.payloads import (
    PROMPT,
    TOOL,
    TOOL_FAILURE,
    Normalised,
    Payload,
    mapping,
    text,
    time_of,
)
from claude_mem.intake.normalisers.tools import exit_code, tool_events

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
        prompt = text(payload, "submitted_prompt", "prompt")
        return [Normalised(kind, {**common, "prompt": prompt})]
    if kind not in (TOOL, TOOL_FAILURE):
        return [Normalised(kind, common)]
    name, response = text(payload, "tool_name"), mapping(payload.get("tool_response"))
    error = text(payload, "error") or failure_of(response)
    output = output_of({"llmContent": error} if error else response)
    return tool_events(
        common,
        name,
        payload.get("tool_input"),
        output,
        # A command that failed has its output there, with the exit code.
        error="" if exit_code(output) else error,
        call_id=text(payload, "tool_call_id", "tool_use_id"),
    )

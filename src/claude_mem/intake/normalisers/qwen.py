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
from claude_mem.intake.normalisers.tools import tool_events

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
    response = mapping(payload.get("tool_response"))
    return tool_events(
        common,
        text(payload, "tool_name"),
        payload.get("tool_input"),
        output_of(response),
        error=text(payload, "error") or failure_of(response),
        call_id=text(payload, "tool_call_id", "tool_use_id"),
    )

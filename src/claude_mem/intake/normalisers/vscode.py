"""The agent of VS Code, which runs the hooks of Copilot CLI or of Claude Code."""

from claude_mem.intake.normalisers.payloads import (
    PROMPT,
    TOOL,
    Normalised,
    Payload,
    compact,
    first,
    plain_text,
    text,
    time_of,
)
from claude_mem.intake.normalisers.tools import tool_events

_SOURCES = {"new": "startup"}


def normalise(kind: str, payload: Payload) -> list[Normalised]:
    source = text(payload, "source")
    common = compact(
        session_id=first(payload, "sessionId", "session_id"),
        cwd=payload.get("cwd"),
        timestamp=time_of(payload),
        source=_SOURCES.get(source, source),
        agent_id=payload.get("agent_id"),
    )
    if kind == PROMPT:
        return [Normalised(kind, {**common, "prompt": text(payload, "prompt")})]
    if kind != TOOL:
        return [Normalised(kind, common)]
    return tool_events(
        common,
        text(payload, "tool_name"),
        payload.get("tool_input"),
        plain_text(payload.get("tool_response")),
        call_id=text(payload, "tool_use_id"),
        reports_outcome=False,
    )

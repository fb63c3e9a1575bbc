"""Cursor: a conversation is a session, a generation a turn.

A hook of the user runs in Cursor's own directory, so the directory is the first workspace.
"""

from claude_mem.intake.normalisers.payloads import (
    PROMPT,
    TOOL,
    TOOL_FAILURE,
    Normalised,
    Payload,
    compact,
    first,
    plain_text,
    text,
)
from claude_mem.intake.normalisers.tools import tool_events

_STATEMENT = "Statement"


def normalise(kind: str, payload: Payload) -> list[Normalised]:
    roots = payload.get("workspace_roots")
    root = roots[0] if isinstance(roots, list) and roots else None
    common = compact(
        session_id=first(payload, "conversation_id", "session_id"),
        prompt_id=payload.get("generation_id"),
        cwd=root if isinstance(root, str) else payload.get("cwd"),
        transcript_path=payload.get("transcript_path"),
        reason=payload.get("reason"),
    )
    if kind == "SessionStart":
        return [Normalised(kind, {**common, "source": "startup"})]
    if kind == PROMPT:
        return [Normalised(kind, {**common, "prompt": text(payload, "prompt")})]
    if kind == _STATEMENT:
        statement = text(payload, "text", "response")
        return [Normalised(kind, {**common, "statement": statement})] if statement else []
    if kind not in (TOOL, TOOL_FAILURE):
        last = text(payload, "last_assistant_message", "summary")
        return [Normalised(kind, {**common, **compact(last_assistant_message=last)})]
    error = plain_text(first(payload, "error_message", "error"))
    return tool_events(
        common,
        text(payload, "tool_name"),
        payload.get("tool_input"),
        plain_text(first(payload, "tool_output", "tool_response")),
        error=error or ("failed" if kind == TOOL_FAILURE else ""),
        call_id=text(payload, "tool_use_id"),
    )

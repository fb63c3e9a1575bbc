"""Codex: Claude Code's event names and fields, with `turn_id` and its own tools.

Its payloads do not say whether a command failed; edits are patches.
"""

from claude_mem.intake.normalisers.payloads import (
    TOOL,
    Normalised,
    Payload,
    mapping,
    plain_text,
    text,
)
from claude_mem.intake.normalisers.tools import tool_events

_TOOL_FIELDS = ("tool_name", "tool_input", "tool_response", "tool_use_id")
_DROPPED = ("turn_id", "model", "permission_mode", *_TOOL_FIELDS)


def normalise(kind: str, payload: Payload) -> list[Normalised]:
    common = {name: value for name, value in payload.items() if name not in _DROPPED}
    if turn_id := text(payload, "turn_id"):
        common["prompt_id"] = turn_id
    if kind != TOOL:
        return [Normalised(kind, common)]
    name = text(payload, "tool_name")
    response = payload.get("tool_response")
    return tool_events(
        common,
        name,
        payload.get("tool_input"),
        plain_text(response),
        error=plain_text(response) if mapping(response).get("isError") else "",
        code=0 if name == "Bash" else None,
        call_id=text(payload, "tool_use_id"),
    )

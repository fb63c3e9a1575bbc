"""OpenCode: our plugin forwards what its hooks get, with the session and the turn."""

from claude_mem.intake.normalisers.payloads import (
    PROMPT,
    TOOL,
    TOOL_FAILURE,
    Normalised,
    Payload,
    compact,
    mapping,
    plain_text,
    text,
    texts_of,
    time_of,
)
from claude_mem.intake.normalisers.tools import tool_events


def normalise(kind: str, payload: Payload) -> list[Normalised]:
    common = compact(
        session_id=payload.get("session_id"),
        prompt_id=payload.get("message_id"),
        cwd=payload.get("directory"),
        timestamp=time_of(payload),
        source=payload.get("source"),
        agent_id=payload.get("agent_id"),
        last_assistant_message=payload.get("last_text"),
        statement=payload.get("statement"),
        uuid=payload.get("part_id"),
    )
    if kind == PROMPT:
        return [Normalised(kind, {**common, "prompt": texts_of(payload.get("parts"))})]
    if kind not in (TOOL, TOOL_FAILURE):
        return [Normalised(kind, common)]
    state = mapping(payload.get("state"))
    code = mapping(state.get("metadata")).get("exit")
    return tool_events(
        common,
        text(payload, "tool"),
        state.get("input"),
        plain_text(state.get("output")),
        error=plain_text(state.get("error")),
        code=code if isinstance(code, int) else 0,
        call_id=text(payload, "call_id"),
    )

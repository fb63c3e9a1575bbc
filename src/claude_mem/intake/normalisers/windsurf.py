"""Windsurf: actions with a `tool_info`; a trajectory is a session, an execution a turn."""

from claude_mem.intake.normalisers.payloads import (
    PROMPT,
    STOP,
    TOOL,
    Normalised,
    Payload,
    compact,
    first,
    made_up_id,
    mapping,
    plain_text,
    text,
    time_of,
)
from claude_mem.intake.normalisers.tools import tool_events
from claude_mem.types import Json


def normalise(kind: str, payload: Payload) -> list[Normalised]:
    info = mapping(payload.get("tool_info"))
    session_id = payload.get("trajectory_id")
    common = compact(
        session_id=session_id,
        prompt_id=payload.get("execution_id"),
        cwd=first(info, "cwd"),
        timestamp=time_of(payload),
    )
    if kind == PROMPT:
        return [Normalised(kind, {**common, "prompt": text(info, "user_prompt")})]
    if kind == STOP:
        return [Normalised(kind, {**common, "last_assistant_message": text(info, "response")})]
    if kind != TOOL:
        return [Normalised(kind, common)]
    name, arguments = _call(text(payload, "agent_action_name"), info)
    return tool_events(
        common,
        name,
        arguments,
        plain_text(first(info, "mcp_result", "output")),
        call_id=made_up_id(session_id, name, arguments, time_of(payload)),
        reports_outcome=False,
    )


def _call(action: str, info: Payload) -> tuple[str, Json]:
    if action == "post_run_command":
        return "Bash", {"command": info.get("command_line")}
    if action == "post_write_code":
        edits = info.get("edits")
        first_edit = mapping(edits[0]) if isinstance(edits, list) and edits else {}
        return "Edit", {"file_path": info.get("file_path"), **first_edit}
    if action == "post_read_code":
        return "Read", {"file_path": info.get("file_path")}
    name = f"mcp__{text(info, 'mcp_server_name')}__{text(info, 'mcp_tool_name')}"
    return name, info.get("mcp_tool_arguments")

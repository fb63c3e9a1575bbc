"""Windsurf: actions with a `tool_info`; a trajectory is a session, an execution a turn."""

from pathlib import Path

from claude_mem.agents.agent import Agent, AgentEvent, ConfigFile, Normalised, Ours
from claude_mem.agents.attaching import events, hook_entries, mcp_server
from claude_mem.agents.reading.fields import Fields, compact, made_up_id
from claude_mem.agents.reading.tools import ToolCall, event, tool_events
from claude_mem.types import PROMPT, TOOL, Json

_RULES = """\
---
trigger: always_on
---
Earlier sessions of this project are in the memory server claude-mem. At the start of a task, call
its tool `search` with the words of the task.
"""


def normalise(kind: str, payload: Fields) -> list[Normalised]:
    info = payload.inner("tool_info")
    session_id = payload.get("trajectory_id")
    common = compact(
        session_id=session_id,
        prompt_id=payload.get("execution_id"),
        cwd=info.first("cwd"),
        timestamp=payload.time,
    )
    if kind == PROMPT:
        return event(kind, common, prompt=info.text("user_prompt"))
    if kind == "Stop":
        return event(kind, common, last_assistant_message=info.text("response"))
    if kind != TOOL:
        return event(kind, common)
    name, arguments = _call(payload.text("agent_action_name"), info)
    call = ToolCall(
        name,
        arguments,
        info.plain("mcp_result", "output"),
        made_up_id(session_id, name, arguments, payload.time),
        reports_outcome=False,
    )
    return tool_events(common, call)


def _call(action: str, info: Fields) -> tuple[str, Json]:
    if action == "post_run_command":
        return "Bash", {"command": info.get("command_line")}
    if action == "post_write_code":
        edits = info.parts("edits")
        return "Edit", {"file_path": info.get("file_path"), **(edits[0] if edits else {})}
    if action == "post_read_code":
        return "Read", {"file_path": info.get("file_path")}
    name = f"mcp__{info.text('mcp_server_name')}__{info.text('mcp_tool_name')}"
    return name, info.get("mcp_tool_arguments")


def _hooks(agent: Agent, launcher: Path) -> Ours:
    def value(_: AgentEvent, line: str) -> Json:
        return {"command": line, "show_output": False}

    return hook_entries(agent, launcher, value)


AGENT = Agent(
    name="windsurf",
    title="Windsurf",
    programs=("windsurf",),
    home=".codeium/windsurf",
    events=events(
        "pre_user_prompt=UserPromptSubmit post_read_code=PostToolUse post_write_code=PostToolUse"
        " post_run_command=PostToolUse post_mcp_tool_use=PostToolUse post_cascade_response=Stop"
    ),
    context=(),
    normalise=normalise,
    hooks=ConfigFile("hooks.json", ".windsurf/hooks.json"),
    hooks_of=_hooks,
    mcp=ConfigFile("mcp_config.json"),
    server_of=mcp_server,
    rules=".windsurf/rules/claude-mem.md",
    rules_text=_RULES,
    tested="sample payloads",
    notes=(
        "No hook can give it context; the agent searches memory through the MCP server. With"
        " --rules, a rules file of the project tells it to.",
    ),
)

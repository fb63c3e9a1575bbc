"""The agent of VS Code, which runs the hooks of Copilot CLI or of Claude Code."""

from claude_mem.agents.agent import Agent, Normalised
from claude_mem.agents.attaching import events
from claude_mem.agents.reading.fields import Fields, compact
from claude_mem.agents.reading.tools import ToolCall, event, tool_events
from claude_mem.hook.other_agents import NESTED, Output
from claude_mem.types import PROMPT, TOOL

_SOURCES = {"new": "startup"}


def normalise(kind: str, payload: Fields) -> list[Normalised]:
    source = payload.text("source")
    common = compact(
        session_id=payload.first("sessionId", "session_id"),
        cwd=payload.get("cwd"),
        timestamp=payload.time,
        source=_SOURCES.get(source, source),
        agent_id=payload.get("agent_id"),
    )
    if kind == PROMPT:
        return event(kind, common, prompt=payload.text("prompt"))
    if kind != TOOL:
        return event(kind, common)
    call = ToolCall(
        payload.text("tool_name"),
        payload.get("tool_input"),
        payload.plain("tool_response"),
        payload.text("tool_use_id"),
        reports_outcome=False,
    )
    return tool_events(common, call)


AGENT = Agent(
    name="vscode",
    title="VS Code agent",
    programs=(),
    home="",
    events=events("SessionStart UserPromptSubmit PostToolUse SubagentStop PreCompact Stop"),
    context=("SessionStart",),
    normalise=normalise,
    output=Output(NESTED, shows_messages=True),
    tested="sample payloads",
    notes=("It runs the hooks of Copilot CLI (--agent copilot) or of Claude Code's settings.",),
)

"""Claude Code. Its events, tools and transcripts are the ones that all code after `intake/` knows:
what other agents send is rewritten as these, and `intake/transcripts/transcript.py` reads them.

All hooks are synchronous: the client kills asynchronous ones when a `-p` session ends, and their
events are lost. Each has a timeout, because the default for SessionEnd is 1.5 s.
"""

from pathlib import Path

from claude_mem.agents.agent import Agent, AgentEvent, ConfigFile, Entry, Transcripts
from claude_mem.hook.other_agents import NESTED, Output
from claude_mem.types import Json

NAME = "claude"
EVENTS = tuple(
    AgentEvent(name, name, matcher="*" if name.startswith("PostTool") else None)
    for name in (
        "SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "SubagentStop",
        "PreCompact", "PostCompact", "Stop", "StopFailure", "SessionEnd",
    )
)  # fmt: skip
# Only with the setting CLAUDE_MEM_FILE_HINTS: a hook before each of these tools takes its time.
FILE_HINTS = AgentEvent(
    "PreToolUse", "PreToolUse", timeout=5, matcher="Read|Edit|MultiEdit|Write|NotebookEdit"
)


def hook_entry(event: AgentEvent, *command_line: str) -> dict[str, Json]:
    """An element of `hooks.<Event>`, in the exec form that needs no shell."""
    program, *arguments = command_line
    command: dict[str, Json] = {
        "type": "command",
        "command": program,
        "args": [*arguments, NAME, event.name],
        "timeout": event.timeout,
    }
    matcher: dict[str, Json] = {"matcher": event.matcher} if event.matcher else {}
    return {**matcher, "hooks": [command]}


def hooks_of(agent: Agent, launcher: Path) -> tuple[Entry, ...]:
    return tuple(
        Entry(("hooks", event.name), hook_entry(event, str(launcher))) for event in agent.events
    )


AGENT = Agent(
    name=NAME,
    title="Claude Code",
    programs=("claude",),
    home=".claude",
    home_variable="CLAUDE_CONFIG_DIR",
    events=EVENTS,
    context=("SessionStart", "UserPromptSubmit"),
    output=Output(NESTED, opening=b'{"continue":true,"suppressOutput":true', shows_messages=True),
    hooks=ConfigFile("settings.json", ".claude/settings.json"),
    hooks_of=hooks_of,
    mcp=ConfigFile("../.claude.json"),  # written by its own command
    transcripts=Transcripts("projects/*/*.jsonl"),
    tested="real client",
    shell=("CLAUDECODE",),
    notes=(
        "Installed as a plugin, or with --scope into its settings.",
        "With CLAUDE_MEM_FILE_HINTS there is one more event, PreToolUse.",
    ),
)

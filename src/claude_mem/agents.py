"""The agents that claude-mem works with: one table, from which installation, import and
`docs/agents.md` follow.

Events are named as the client names them, next to our kind of them. The installed hook passes our
kind, so that the hook itself knows no names of other clients.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Shape = Literal["claude", "copilot", "cursor", "windsurf", "plugin", "none"]
McpShape = Literal["mcpServers", "mcp", "toml", "copilot", "none"]
Tested = Literal["real client", "sample payloads"]


@dataclass(frozen=True, slots=True)
class AgentEvent:
    name: str
    kind: str
    timeout: int = 30  # seconds


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """Paths relative to the agent's directory, and to that of a project; "": there is none."""

    user: str
    project: str = ""


@dataclass(frozen=True, slots=True)
class Agent:
    name: str  # on the command line, and the dialect of its events
    title: str
    programs: tuple[str, ...]  # whose presence on the PATH means that it is installed
    home: str  # its directory, relative to the user's
    hooks: ConfigFile
    hooks_shape: Shape
    events: tuple[AgentEvent, ...]
    context: tuple[str, ...]  # the kinds of events that give the agent text
    mcp: ConfigFile
    mcp_shape: McpShape
    transcripts: str  # a pattern relative to `home`, or to `data_home`; "": they are not read
    tested: Tested
    shell: tuple[str, ...] = ()  # variables of the commands that it runs
    rules: str = ""  # a rules file of a project, for clients whose hooks cannot give context
    home_variable: str = ""  # that names its directory instead
    data_home: str = ""  # of transcripts, where that is not `home`
    ticks_per_second: int = 1  # in which timeouts are given
    max_context_bytes: int | None = None
    notes: tuple[str, ...] = ()


def _events(names: str, *more: AgentEvent) -> tuple[AgentEvent, ...]:
    """`theirs=ours` or a name that both have."""
    pairs = (pair.partition("=") for pair in names.split())
    return (*(AgentEvent(theirs, ours or theirs) for theirs, _, ours in pairs), *more)


CLAUDE = Agent(
    name="claude",
    title="Claude Code",
    programs=("claude",),
    home=".claude",
    home_variable="CLAUDE_CONFIG_DIR",
    hooks=ConfigFile("settings.json", ".claude/settings.json"),
    hooks_shape="claude",
    events=_events(
        "SessionStart UserPromptSubmit PostToolUse PostToolUseFailure SubagentStop PreCompact"
        " PostCompact Stop StopFailure SessionEnd"
    ),
    context=("SessionStart", "UserPromptSubmit"),
    mcp=ConfigFile("../.claude.json"),
    mcp_shape="mcpServers",
    transcripts="projects/*/*.jsonl",
    tested="real client",
    shell=("CLAUDECODE",),
    notes=(
        "Installed as a plugin, or with --scope into its settings.",
        "With CLAUDE_MEM_FILE_HINTS there is one more event, PreToolUse.",
    ),
)
CODEX = Agent(
    name="codex",
    title="Codex",
    programs=("codex",),
    home=".codex",
    home_variable="CODEX_HOME",
    hooks=ConfigFile("hooks.json", ".codex/hooks.json"),
    hooks_shape="claude",
    events=_events(
        "SessionStart UserPromptSubmit PostToolUse SubagentStop PreCompact PostCompact Stop",
        AgentEvent("SessionEnd", "SessionEnd", 3),  # Codex allows no more
    ),
    context=("SessionStart", "UserPromptSubmit"),
    mcp=ConfigFile("config.toml", ".codex/config.toml"),
    mcp_shape="toml",
    transcripts="sessions/*/*/*/rollout-*.jsonl",
    tested="real client",
    shell=("CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED"),
    max_context_bytes=10_000,
    notes=(
        "Codex runs new or changed hooks only after you have reviewed them: start codex and"
        " accept them there. Until then it skips them without a message.",
        "Its hooks do not report whether a command failed: the worker reads that from the"
        " transcript at the end of the turn.",
    ),
)
GEMINI = Agent(
    name="gemini",
    title="Gemini CLI",
    programs=("gemini",),
    home=".gemini",
    hooks=ConfigFile("settings.json", ".gemini/settings.json"),
    hooks_shape="claude",
    events=_events(
        "SessionStart BeforeAgent=UserPromptSubmit AfterTool=PostToolUse AfterAgent=Stop SessionEnd"
    ),
    context=("SessionStart", "UserPromptSubmit"),
    mcp=ConfigFile("settings.json", ".gemini/settings.json"),
    mcp_shape="mcpServers",
    transcripts="tmp/*/chats/session-*.jsonl",
    tested="real client",
    shell=("GEMINI_CLI",),
    ticks_per_second=1000,
    notes=("It escapes angle brackets in contexts, so they are replaced by ‹ and ›.",),
)
QWEN = Agent(
    name="qwen",
    title="Qwen Code",
    programs=("qwen",),
    home=".qwen",
    hooks=ConfigFile("settings.json", ".qwen/settings.json"),
    hooks_shape="claude",
    events=_events(
        "SessionStart UserPromptSubmit PostToolUse PostToolUseFailure SubagentStop PreCompact Stop"
        " SessionEnd"
    ),
    context=("SessionStart", "UserPromptSubmit"),
    mcp=ConfigFile("settings.json", ".qwen/settings.json"),
    mcp_shape="mcpServers",
    transcripts="projects/*/chats/*.jsonl",
    tested="real client",
    shell=("QWEN_CODE",),
    ticks_per_second=1000,
    notes=(
        "Without a terminal it does not report the end of a session: the session counts as"
        " interrupted after 24 hours without an event.",
    ),
)
COPILOT = Agent(
    name="copilot",
    title="Copilot CLI",
    programs=("copilot",),
    home=".copilot",
    hooks=ConfigFile("hooks/claude-mem.json", ".github/hooks/claude-mem.json"),
    hooks_shape="copilot",
    # Not preToolUse: any exit code but 0 would deny the tool.
    events=_events(
        "sessionStart=SessionStart userPromptSubmitted=UserPromptSubmit postToolUse=PostToolUse"
        " postToolUseFailure=PostToolUseFailure agentStop=Stop sessionEnd=SessionEnd"
    ),
    context=("SessionStart", "UserPromptSubmit"),
    mcp=ConfigFile("mcp-config.json"),
    mcp_shape="copilot",
    transcripts="session-state/*/events.jsonl",
    tested="real client",
    shell=("COPILOT_CLI",),
    notes=("Hooks of a project run only in a folder that you trust.",),
)
OPENCODE = Agent(
    name="opencode",
    title="OpenCode",
    programs=("opencode",),
    home=".config/opencode",
    hooks=ConfigFile("plugins/claude-mem.js", ".opencode/plugins/claude-mem.js"),
    hooks_shape="plugin",
    events=_events(
        "chat.message=UserPromptSubmit tool.execute.after=PostToolUse"
        " message.part.updated=PostToolUseFailure experimental.text.complete=Statement"
        " session.idle=Stop dispose=SessionEnd"
    ),
    context=("SessionStart", "UserPromptSubmit"),
    mcp=ConfigFile("opencode.json", "opencode.json"),
    mcp_shape="mcp",
    data_home=".local/share/opencode",
    transcripts="opencode.db",
    tested="real client",
    shell=("OPENCODE",),
    notes=("A plugin forwards its events; a failure in it never reaches OpenCode.",),
)
CURSOR = Agent(
    name="cursor",
    title="Cursor",
    programs=("cursor", "cursor-agent"),
    home=".cursor",
    hooks=ConfigFile("hooks.json", ".cursor/hooks.json"),
    hooks_shape="cursor",
    events=_events(
        "sessionStart=SessionStart beforeSubmitPrompt=UserPromptSubmit postToolUse=PostToolUse"
        " postToolUseFailure=PostToolUseFailure afterAgentResponse=Statement stop=Stop"
        " sessionEnd=SessionEnd"
    ),
    context=("SessionStart",),
    mcp=ConfigFile("mcp.json", ".cursor/mcp.json"),
    mcp_shape="mcpServers",
    transcripts="projects/*/agent-transcripts/*/*.jsonl",
    tested="sample payloads",
    shell=("CURSOR_AGENT",),
    notes=(
        "Hints are not possible: its prompt hook cannot add context.",
        "Its transcripts have no ids, timestamps or tool results: a session that hooks"
        " recorded is not imported, turns get the time of the file, and it is not known which"
        " commands failed. Chats that are only in its database are not imported.",
    ),
)
VSCODE = Agent(
    name="vscode",
    title="VS Code agent",
    programs=(),
    home="",
    hooks=ConfigFile(""),
    hooks_shape="none",
    events=_events("SessionStart UserPromptSubmit PostToolUse SubagentStop PreCompact Stop"),
    context=("SessionStart",),
    mcp=ConfigFile(""),
    mcp_shape="none",
    transcripts="",
    tested="sample payloads",
    notes=("It runs the hooks of Copilot CLI (--agent copilot) or of Claude Code's settings.",),
)
WINDSURF = Agent(
    name="windsurf",
    title="Windsurf",
    programs=("windsurf",),
    home=".codeium/windsurf",
    hooks=ConfigFile("hooks.json", ".windsurf/hooks.json"),
    hooks_shape="windsurf",
    events=_events(
        "pre_user_prompt=UserPromptSubmit post_read_code=PostToolUse post_write_code=PostToolUse"
        " post_run_command=PostToolUse post_mcp_tool_use=PostToolUse post_cascade_response=Stop"
    ),
    context=(),
    mcp=ConfigFile("mcp_config.json"),
    mcp_shape="mcpServers",
    rules=".windsurf/rules/claude-mem.md",
    transcripts="",
    tested="sample payloads",
    notes=(
        "No hook can give it context; the agent searches memory through the MCP server. With"
        " --rules, a rules file of the project tells it to.",
    ),
)

AGENTS: tuple[Agent, ...] = (
    CLAUDE, CODEX, OPENCODE, COPILOT, GEMINI, QWEN, CURSOR, VSCODE, WINDSURF,
)  # fmt: skip
BY_NAME = {agent.name: agent for agent in AGENTS}
# Those that `install --agent` attaches; Claude Code has ways of its own.
INSTALLABLE = tuple(a for a in AGENTS if a.hooks_shape != "none" and a is not CLAUDE)

SHELL_VARIABLES = tuple(variable for agent in AGENTS for variable in agent.shell)


def is_agent(environ: Mapping[str, str]) -> bool:
    """Whether it is a shell of an agent, with the variables of a session."""
    return any(environ.get(variable) for variable in SHELL_VARIABLES)


_HEAD = ("agent", "`--agent`", "hooks", "context at", "MCP server", "import from", "tested with")


def table() -> str:
    """The table in docs/agents.md; `python -m claude_mem.agents` prints it."""
    rows = [_HEAD, ("---",) * len(_HEAD), *map(_row, AGENTS)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(agent: Agent) -> tuple[str, ...]:
    context = ", ".join(
        {"SessionStart": "start", "UserPromptSubmit": "prompt"}[k] for k in agent.context
    )
    if context and agent.max_context_bytes:
        context += f" (at most {agent.max_context_bytes:,} bytes)"
    place = agent.data_home or agent.home
    return (
        agent.title,
        f"`{agent.name}`" if agent in (CLAUDE, *INSTALLABLE) else "",
        f"{len(agent.events)} events, {_config(agent, agent.hooks)}".removesuffix(", "),
        context or "none",
        _config(agent, agent.mcp) or "none",
        _path(place, agent.transcripts) or "none",
        agent.tested,
    )


def _config(agent: Agent, file: ConfigFile) -> str:
    path = _path(agent.home, file.user)
    return f"plugin (with `--scope`: {path})" if agent is CLAUDE else path


def _path(home: str, name: str) -> str:
    if not name:
        return ""
    return f"`~/{name[3:]}`" if name.startswith("../") else f"`~/{home}/{name}`"


if __name__ == "__main__":
    print(table())

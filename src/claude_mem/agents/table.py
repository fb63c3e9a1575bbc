"""The table of agents in docs/agents.md; `python -m claude_mem.agents.table` prints it."""

from claude_mem.agents import CLAUDE, all_agents, installable_agents
from claude_mem.agents.agent import Agent, ConfigFile

_HEAD = ("agent", "`--agent`", "hooks", "context at", "MCP server", "import from", "tested with")


def table() -> str:
    rows = [_HEAD, ("---",) * len(_HEAD), *map(_row, all_agents())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(agent: Agent) -> tuple[str, ...]:
    context = ", ".join(
        {"SessionStart": "start", "UserPromptSubmit": "prompt"}[k] for k in agent.context
    )
    if context and agent.output.max_bytes:
        context += f" (at most {agent.output.max_bytes:,} bytes)"
    place = agent.data_home or agent.home
    is_named = agent.name == CLAUDE or agent in installable_agents()
    return (
        agent.title,
        f"`{agent.name}`" if is_named else "",
        f"{len(agent.events)} events, {_config(agent, agent.hooks)}".removesuffix(", "),
        context or "none",
        _config(agent, agent.mcp) or "none",
        _path(place, agent.transcripts.pattern) if agent.transcripts else "none",
        agent.tested,
    )


def _config(agent: Agent, file: ConfigFile) -> str:
    path = _path(agent.home, file.user)
    return f"plugin (with `--scope`: {path})" if agent.name == CLAUDE else path


def _path(home: str, name: str) -> str:
    if not name:
        return ""
    return f"`~/{name[3:]}`" if name.startswith("../") else f"`~/{home}/{name}`"


if __name__ == "__main__":
    print(table())

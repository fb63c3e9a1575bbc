"""What we write into the files of agents, in the forms that several of them share."""

import shlex
from collections.abc import Callable
from pathlib import Path

from claude_mem.agents.agent import Agent, AgentEvent, Entry, Ours
from claude_mem.types import Json

SERVER = "claude-mem"


def events(names: str, *more: AgentEvent) -> tuple[AgentEvent, ...]:
    """`theirs=ours` or a name that both have."""
    pairs = (pair.partition("=") for pair in names.split())
    return (*(AgentEvent(theirs, ours or theirs) for theirs, _, ours in pairs), *more)


def command_line(agent: Agent, event: AgentEvent, launcher: Path) -> str:
    return f"{shlex.quote(str(launcher))} {agent.name} {event.kind}"


def hook_entries(
    agent: Agent, launcher: Path, value: Callable[[AgentEvent, str], Json]
) -> tuple[Entry, ...]:
    """An element of `hooks.<Event>` for each event, made of it and its command line."""
    return tuple(
        Entry(("hooks", event.name), value(event, command_line(agent, event, launcher)))
        for event in agent.events
    )


def command_hooks(ticks_per_second: int = 1) -> Callable[[Agent, Path], Ours]:
    """The form of Claude Code's settings, with command lines; of timeouts in these ticks."""

    def value(event: AgentEvent, line: str) -> Json:
        timeout = event.timeout * ticks_per_second
        return {"hooks": [{"type": "command", "command": line, "timeout": timeout}]}

    return lambda agent, launcher: hook_entries(agent, launcher, value)


def mcp_server(launcher: Path) -> Ours:
    return member(("mcpServers", SERVER), {"command": str(launcher), "args": []})


def member(place: tuple[str, ...], value: Json) -> tuple[Entry, ...]:
    return (Entry(place, value, is_element=False),)

"""What doctor says about agents other than Claude Code."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from claude_mem.agents import installable_agents
from claude_mem.agents.agent import Agent
from claude_mem.config import Layout
from claude_mem.errors import SettingsError
from claude_mem.install.other_agents import Attachment, attachments, is_present, program_path


@dataclass(frozen=True, slots=True)
class AgentCheck:
    agent: Agent
    is_attached: bool
    is_complete: bool
    detail: str
    remedy: str = ""


def check_agents(layout: Layout, environ: Mapping[str, str]) -> Iterator[AgentCheck]:
    """Checks each agent that is attached, or present on this machine."""
    for agent in installable_agents():
        places = attachments(agent, layout, environ)
        if places:
            yield _check_attached(agent, places, environ)
        elif is_present(agent, environ):
            remedy = f"claude-mem install --agent {agent.name}"
            yield AgentCheck(agent, False, True, "present, but claude-mem is not installed", remedy)


def _check_attached(
    agent: Agent, places: list[Attachment], environ: Mapping[str, str]
) -> AgentCheck:
    scopes = " ".join(f"--scope {place.scope}" for place in places[:1])
    repair = f"claude-mem install --agent {agent.name} {scopes}"
    try:
        missing = [name for place in places for name in place.missing()]
        is_outdated = any(place.changes() for place in places)
    except SettingsError as error:
        return AgentCheck(agent, True, False, str(error), repair)
    if missing:
        return AgentCheck(agent, True, False, f"missing: {', '.join(missing)}", repair)
    if is_outdated:
        return AgentCheck(agent, True, False, "installed by another version", repair)
    paths = ", ".join(str(file.path) for place in places for file in place.files)
    program = program_path(agent, environ) or "its program is not on the PATH"
    detail = " ".join(filter(None, (f"{paths}; {program}.", agent.advice)))
    return AgentCheck(agent, True, True, detail)

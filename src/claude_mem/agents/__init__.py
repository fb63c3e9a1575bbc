"""The agents that claude-mem works with: each is a module of this folder that declares an `AGENT`.

Installation, capture, import, what hooks print and the table in `docs/agents.md` follow from it.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from claude_mem.agents.agent import Agent

CLAUDE = "claude"


@cache
def _modules() -> frozenset[str]:
    return frozenset(module.name for module in iter_modules(__path__))


@cache
def find_agent(name: str) -> Agent | None:
    """Imports the module of this agent only."""
    if name not in _modules():
        return None
    agent: Agent | None = getattr(import_module(f"{__name__}.{name}"), "AGENT", None)
    return agent


@cache
def all_agents() -> tuple[Agent, ...]:
    """Returns all agents; Claude Code is the first."""
    return tuple(agent for name in sorted(_modules()) if (agent := find_agent(name)) is not None)


def installable_agents() -> tuple[Agent, ...]:
    """Returns the agents that `install --agent` attaches; Claude Code has ways of its own."""
    return tuple(a for a in all_agents() if a.hooks_of is not None and a.name != CLAUDE)


def is_agent(environ: Mapping[str, str]) -> bool:
    """Whether it is a shell of an agent, with the variables of a session."""
    return any(environ.get(variable) for agent in all_agents() for variable in agent.shell)

"""Commands that only the user may run: an agent may follow what a repository says to it.

An agent announces itself with a variable (`agents/`) or, where that is not known, has no
terminal. This stops agents that follow instructions; a program that runs as the user can change
the files.
"""

import os
import sys

import click

from claude_mem import agents
from claude_mem.config import SCRIPTS, Settings
from claude_mem.errors import ClaudeMemError


def is_agent() -> bool:
    """Whether the user did not type this command, as far as can be seen."""
    return agents.is_agent(os.environ) or not (sys.stdin.isatty() or _are_scripts_allowed())


def refuse_agents(*, needs_terminal: bool = True) -> None:
    if agents.is_agent(os.environ):
        raise ClaudeMemError("an agent cannot confirm this: run it in a terminal of your own")
    if needs_terminal and is_agent():
        raise ClaudeMemError(
            "only you can do this, and an agent might run it: run it in a terminal of your own. For"
            " scripts, run this once there: claude-mem settings SCRIPTS yes"
        )


def _are_scripts_allowed() -> bool:
    """Whether settings.json allows scripts: the environment may be that of an agent."""
    settings = click.get_current_context().find_object(Settings)
    return settings is not None and (
        settings.commands.scripts and settings.source_of(SCRIPTS) == "settings.json"
    )

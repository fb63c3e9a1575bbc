"""Commands that only the user may run: an agent may follow what a repository says to it.

This stops agents that announce themselves; a program that runs as the user can change the files.
"""

import os

from claude_mem import config
from claude_mem.errors import ClaudeMemError


def is_agent() -> bool:
    return config.is_agent(os.environ)


def refuse_agents() -> None:
    if is_agent():
        raise ClaudeMemError("an agent cannot confirm this: run it in a terminal of your own")

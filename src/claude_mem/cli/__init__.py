"""The command `claude-mem`: what people and old hooks type. What it does is done elsewhere."""

import os
import sqlite3
import sys

import click

from claude_mem import __version__
from claude_mem.cli import (
    by_hand,
    demo,
    export,
    history,
    hooks,
    install,
    mcp,
    observer,
    people,
    retry,
    search,
    settings,
    worker,
)
from claude_mem.config import load_settings, load_usable_settings
from claude_mem.errors import ClaudeMemError

_HELP = """A memory for coding agents that outlives the session.

It watches through the agent's hooks and needs no commands to work. These show what it does:

\b
  claude-mem install           attach to Claude Code
  claude-mem import            remember the sessions of the past, too
  claude-mem doctor            what is wrong, and what mends it
  claude-mem status            is it running, is anything stuck
  claude-mem observer          who distils the sessions, and what that costs
  claude-mem retry             try again what could not be distilled
  claude-mem context           what the next session here will be given
  claude-mem sessions          what was worked on
  claude-mem search QUESTION   find a memory by what it says
  claude-mem timeline 12       what happened around it
  claude-mem show 12 S3 P4     an observation, a summary, a prompt
  claude-mem remember TEXT     remember something by hand
  claude-mem forget 12 S3      forget memories; --undo brings them back
  claude-mem export FILE       everything that is remembered, as a file
  claude-mem demo              see it work, in a temporary home
"""


@click.group(help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="claude-mem")
@click.pass_context
def commands(context: click.Context) -> None:
    if context.invoked_subcommand in install.NEVER_REFUSED:
        context.obj, _ = load_usable_settings(os.environ)
    elif context.invoked_subcommand not in hooks.NAMES:
        context.obj = load_settings(os.environ)


for group in (
    people,
    search,
    by_hand,
    history,
    export,
    install,
    observer,
    worker,
    retry,
    settings,
    mcp,
    demo,
    hooks,
):
    for command in group.commands:
        commands.add_command(command)


def main() -> None:
    """Bad input ends with one clear line and exit code 1; a closed pipe is no error."""
    try:
        commands()
    except ClaudeMemError as error:
        click.echo(f"claude-mem: {error}", err=True)
        sys.exit(1)
    except sqlite3.DatabaseError as error:
        click.echo(f"claude-mem: the database: {error}. See claude-mem doctor.", err=True)
        sys.exit(1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

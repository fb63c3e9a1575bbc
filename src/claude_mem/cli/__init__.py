"""The command `claude-mem`: what people and old hooks type. What it does is done elsewhere."""

import os
import sqlite3
import sys

import click

from claude_mem import __version__
from claude_mem.cli import (
    demo,
    export,
    hooks,
    imports,
    install,
    manual,
    mcp,
    observer,
    retry,
    search,
    settings,
    status,
    worker,
)
from claude_mem.config import load_settings, load_usable_settings
from claude_mem.errors import ClaudeMemError

_HELP = """A memory for coding agents that outlives the session.

It watches through the agent's hooks and needs no commands to work. Begin with `claude-mem install`;
the others show what it does. Each has --help.
"""
_SECTIONS = {
    "Set up": {
        "install": "attach to Claude Code",
        "import": "remember the sessions of the past, too",
        "observer": "who distils the sessions, and what that costs",
        "settings": "all settings; NAME VALUE changes one",
        "demo": "see it work, in a temporary home",
        "uninstall": "detach from Claude Code; the memory stays",
    },
    "Look": {
        "status": "is it running, is anything stuck",
        "doctor": "what is wrong, and what mends it",
        "context": "what the next session here will be given",
        "sessions": "what was worked on",
        "search": "find a memory by what it says",
        "timeline": "what happened around one: 12, S3 or P4",
        "show": "memories in full: an observation 12, a summary S3, a prompt P4",
        "related": "what means something like a memory",
        "stats": "how much is remembered, by project",
    },
    "Change what is remembered": {
        "remember": "remember something by hand",
        "forget": "forget memories; --undo brings them back",
        "export": "everything that is remembered, as a file",
        "retry": "try again what could not be distilled",
        "reindex": "make the search index anew",
    },
    "Behind it": {
        "worker": "the background process: start, stop, status, logs",
        "mcp": "the MCP server that an agent starts",
    },
}


class _Commands(click.Group):
    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """By what they are for; the old names of hooks are for programs alone."""
        for title, rows in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(rows.items()), col_max=12)


@click.group(cls=_Commands, help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="claude-mem")
@click.pass_context
def commands(context: click.Context) -> None:
    if context.invoked_subcommand in install.NEVER_REFUSED:
        context.obj, _ = load_usable_settings(os.environ)
    elif context.invoked_subcommand not in hooks.NAMES:
        context.obj = load_settings(os.environ)


for group in (
    status,
    search,
    manual,
    imports,
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
    except UnicodeEncodeError as error:
        if error.encoding == "utf-8":  # bytes of the command line that are no text
            click.echo("claude-mem: what was typed is not UTF-8", err=True)
        else:
            click.echo(
                f"claude-mem: this terminal's encoding ({error.encoding}) cannot show it: "
                "set PYTHONUTF8=1",
                err=True,
            )
        sys.exit(1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

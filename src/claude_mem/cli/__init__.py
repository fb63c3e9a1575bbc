"""The command `claude-mem`: parses arguments, calls the other packages and prints results."""

import os
import sys
from importlib import import_module

import click

from claude_mem import __version__
from claude_mem.cli.groups import Group
from claude_mem.errors import ClaudeMemError, SettingsError

_HELP = """Persistent memory for coding agents.

claude-mem records sessions through the agent's hooks and gives each new session a summary of the
earlier ones. Start with `claude-mem install`. Every command has --help.
"""
_SECTIONS = {
    "Set up": {
        "install": "Add claude-mem to Claude Code and other agents.",
        "import": "Import past sessions, an export or another database.",
        "observer": "Show or change the observer that summarises sessions.",
        "embedder": "Show or change the model for semantic search.",
        "settings": "Show or change settings.",
        "pause": "Pause recording.",
        "resume": "Resume recording.",
        "demo": "Run a sample session in a temporary directory.",
        "uninstall": "Remove claude-mem from all agents; memories are kept.",
    },
    "Inspect": {
        "open": "Open the viewer in a browser.",
        "status": "Show the state of the worker and the queue.",
        "doctor": "Check the installation and show how to fix problems.",
        "context": "Show the context of the next session in this directory.",
        "hints": "Show recent hints and why they were given.",
        "sessions": "List sessions, latest first.",
        "search": "Search memories.",
        "timeline": "Show the memories before and after a memory.",
        "show": "Show memories by id: 12, S3, P4, or a session.",
        "related": "List memories with a similar meaning.",
        "facts": "List, confirm or reject the facts of a project.",
        "stats": "Count memories by project.",
    },
    "Edit": {
        "remember": "Save a memory.",
        "edit": "Change the text of a memory.",
        "pin": "Show a memory in the contexts of its project.",
        "wrong": "Mark a memory as wrong.",
        "forget": "Forget memories; --undo restores them.",
        "redact": "Find and remove secrets in stored data.",
        "project": "List or merge projects, change their directories.",
        "export": "Write all memories to a file.",
        "refine": "Have a model revise earlier memories.",
        "retry": "Retry turns that could not be summarised.",
        "reindex": "Rebuild the search index.",
    },
    "Run": {
        "worker": "Manage the background process.",
        "mcp": "Run the MCP server (started by agents).",
        "team": "Share memories with a team, or run its server.",
    },
}


_MODULES = {  # no command pays for the modules of another
    "context": ("context",),
    "demo": ("demo",),
    "doctor": ("doctor",),
    "edit": ("edit", "pin", "wrong"),
    "embedder": ("embedder",),
    "export": ("export",),
    "facts": ("facts",),
    "forget": ("forget",),
    "hints": ("hints",),
    "legacy_hook_commands": ("new", "save", "summary", "cleanup"),
    "imports": ("import",),
    "install": ("install", "uninstall"),
    "mcp": ("mcp",),
    "observer": ("observer",),
    "pause": ("pause", "resume"),
    "project": ("project",),
    "redact": ("redact",),
    "remember": ("remember",),
    "refine": ("refine",),
    "retry": ("retry",),
    "search": ("search", "timeline", "related", "reindex"),
    "sessions": ("sessions", "stats"),
    "settings": ("settings",),
    "show": ("show",),
    "status": ("status",),
    "team": ("team",),
    "viewer": ("open",),
    "worker": ("worker",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
_TOLERANT = ("doctor", "settings", "uninstall")  # must work with invalid settings
_OF_HOOKS = (
    "context",
    "legacy_hook_commands",
)  # modules that load settings only where they need them


class _Commands(Group):
    def list_commands(self, context: click.Context) -> list[str]:
        return sorted(_MODULE_OF)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        module = _MODULE_OF.get(name)
        if module is None:
            return None
        commands: list[click.Command] = import_module(f"claude_mem.cli.{module}").commands
        return next(command for command in commands if command.name == name)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands in sections; those that hooks call are hidden."""
        for title, rows in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(rows.items()), col_max=12)


@click.group(cls=_Commands, help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="claude-mem")
@click.pass_context
def commands(context: click.Context) -> None:
    name = context.invoked_subcommand or ""
    if _MODULE_OF.get(name) in _OF_HOOKS:
        return
    from claude_mem.config import load_settings, load_usable_settings

    if name in _TOLERANT:
        context.obj, _ = load_usable_settings(os.environ)
    else:
        context.obj = load_settings(os.environ)


def main() -> None:
    """Errors are printed as one line with exit code 1; a closed pipe is not an error."""
    try:
        commands(prog_name="claude-mem")
    except ClaudeMemError as error:
        remedy = error.remedy if isinstance(error, SettingsError) else ""
        click.echo(f"claude-mem: {error}" + (f". To fix it: {remedy}" if remedy else ""), err=True)
        sys.exit(1)
    except UnicodeEncodeError as error:
        if error.encoding == "utf-8":  # arguments that are not valid text
            click.echo("claude-mem: the arguments are not valid UTF-8", err=True)
        else:
            click.echo(
                f"claude-mem: the terminal encoding {error.encoding} cannot display the output: "
                "set PYTHONUTF8=1",
                err=True,
            )
        sys.exit(1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    except Exception as error:
        if not _is_database_error(error):
            raise
        click.echo(f"claude-mem: database error: {error}. Run claude-mem doctor.", err=True)
        sys.exit(1)


def _is_database_error(error: Exception) -> bool:
    sqlite3 = sys.modules.get("sqlite3")  # not loaded: then nothing has raised its errors
    return sqlite3 is not None and isinstance(error, sqlite3.DatabaseError)

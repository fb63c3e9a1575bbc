"""claude-mem context: the context of the next session, or the response to a SessionStart hook."""

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from claude_mem.cli.legacy_hook_commands import run_hook_on
from claude_mem.config import Settings, load_settings

if TYPE_CHECKING:
    from claude_mem.store import StoreReader


@click.command(short_help="Show the context of the next session in this directory.")
@click.option("--project", help="Project name or key (default: the project of this directory).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def context(project: str | None, as_json: bool) -> None:
    """Show the context that the next session in this directory gets.

    With a SessionStart hook payload on stdin, print the hook's response instead.
    """
    if project is None and not as_json and _has_payload():
        payload = sys.stdin.buffer.read()
        if payload.strip():
            run_hook_on("SessionStart", payload)
            return
    _show(load_settings(os.environ), project, as_json)


def _has_payload() -> bool:
    """Whether stdin is a pipe, file or socket; not a terminal, /dev/null or closed."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _show(settings: Settings, project: str | None, as_json: bool) -> None:
    # A hook waits for none of these modules.
    from claude_mem.cli.open_store import open_reader
    from claude_mem.server.quick_command_replies import context_reply

    with open_reader(settings) as store:
        text = _build(store, settings.context.tokens, project) if store is not None else ""
    click.echo(context_reply(text, settings, as_json))


def _build(store: "StoreReader", budget: int, project: str | None) -> str:
    from claude_mem.intake.projects import open_projects
    from claude_mem.intake.working_directory import current_branch, read_rule_files
    from claude_mem.recall.context import build_context

    if project:
        return build_context(store, store.find_project(project), budget)
    directory = os.environ.get("CLAUDE_PROJECT_DIR") or str(Path.cwd())
    project_id = store.project_by_key(open_projects(store, os.environ).of(directory).key)
    if project_id is None:
        return ""
    rules = read_rule_files(directory, os.environ.get("HOME", ""))
    return build_context(
        store, project_id, budget, rule_files=rules, branch=current_branch(directory)
    )


commands = [context]

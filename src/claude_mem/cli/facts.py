"""claude-mem facts: the facts of a project, and the user's decisions about them."""

import os
from pathlib import Path
from typing import Any

import click

from claude_mem import params
from claude_mem.cli.arguments import OneLineErrors, several_of
from claude_mem.cli.edit import (
    change_memory,
    edit_memory,
    field_options,
    print_changed,
    undo_option,
)
from claude_mem.cli.groups import Group
from claude_mem.cli.open_store import open_reader
from claude_mem.cli.output import json_option, print_json
from claude_mem.cli.user_only import refuse_agents
from claude_mem.config import Settings
from claude_mem.intake.projects import open_projects
from claude_mem.recall.fact_list import FactsQuery, facts_text, list_facts, list_team_facts
from claude_mem.server.client import request
from claude_mem.store import StoreReader
from claude_mem.text import NO_MEMORIES, without_controls
from claude_mem.types import FACT_KINDS, FACT_STATUSES, Json

ALL_PROJECTS = "*"


class _Facts(OneLineErrors, Group):
    """Lists facts itself, with options."""


@click.group(cls=_Facts, invoke_without_command=True)
@click.option(
    "--project",
    help='Project name or key (default: the project of this directory); "*": all projects.',
)
@click.option(
    "--kind",
    callback=several_of(FACT_KINDS),
    help=f"{', '.join(FACT_KINDS)}; separate several with commas.",
)
@click.option(
    "--status",
    callback=several_of(FACT_STATUSES),
    help=f"{', '.join(FACT_STATUSES)}; separate several with commas.",
)
@click.option(
    "--limit", type=click.IntRange(1, params.MAX_FACTS), help="Maximum rows (default 50)."
)
@click.option("--offset", type=click.IntRange(0, params.MAX_OFFSET), help="Rows to skip.")
@json_option
@click.pass_context
def facts(context: click.Context, /, as_json: bool, **options: Any) -> None:
    """List the facts of a project: rules, decisions, commands, faults, open steps, places
    and artifacts.

    \b
    claude-mem facts --kind rule --status candidate
    claude-mem facts confirm 5     the fact holds from now on
    claude-mem facts reject 5      mark the fact as wrong, even if it is stated again

    Facts that hold come first, then candidates, then facts that were replaced or are wrong.
    """
    if context.invoked_subcommand is not None:
        return
    settings: Settings = context.obj
    values: dict[str, Json] = {name: v for name, v in options.items() if v is not None}
    with open_reader(settings) as store:
        query = _query(store, values) if store else None
        rows, has_more = list_facts(store, query) if store and query else ([], False)
        of_team = list_team_facts(store, query) if store and query else []
    if as_json:
        print_json({"facts": list(rows), "hasMore": has_more, "team": list(of_team)})
    elif store is None:
        click.echo(NO_MEMORIES)
    else:
        more = f"--offset {(query.offset if query else 0) + len(rows)}"
        text = facts_text(rows, has_more=has_more, of_team=of_team, more=more)
        click.echo(without_controls(text))


def _query(store: StoreReader, values: dict[str, Json]) -> FactsQuery | None:
    """None if the project of this directory has no memories."""
    project = values.get("project")
    if project == ALL_PROJECTS:
        del values["project"]
    elif project is None:
        directory = os.environ.get("CLAUDE_PROJECT_DIR") or str(Path.cwd())
        key = open_projects(store, os.environ).of(directory).key
        if store.project_by_key(key) is None:
            return None
        values["project"] = key
    return params.facts_query(store, values)


@facts.command()
@click.argument("id_", metavar="ID")
@json_option
@click.pass_obj
def confirm(settings: Settings, /, id_: str, as_json: bool) -> None:
    """Confirm a candidate: it holds from now on."""
    refuse_agents()
    _decide(settings, id_, "confirm", "Confirmed", as_json)


@facts.command()
@click.argument("id_", metavar="ID")
@json_option
@click.pass_obj
def reject(settings: Settings, /, id_: str, as_json: bool) -> None:
    """Reject a candidate: it is marked as wrong.

    It stays wrong if it is stated again. To undo: `claude-mem facts wrong ID --undo`.
    """
    refuse_agents()
    _decide(settings, id_, "reject", "Rejected", as_json)


@facts.command()
@click.argument("id_", metavar="ID")
@field_options("fact")
@json_option
@click.pass_obj
def edit(settings: Settings, /, id_: str, as_json: bool, **fields: Any) -> None:
    """Change the text of a fact."""
    refuse_agents()
    print_changed(edit_memory(settings, _name(id_), fields), "Edited", as_json)


@facts.command()
@click.argument("id_", metavar="ID")
@undo_option("Unpin it.")
@json_option
@click.pass_obj
def pin(settings: Settings, /, id_: str, undo: bool, as_json: bool) -> None:
    """Show a fact first; no later statement replaces it."""
    refuse_agents()
    memory = change_memory(settings, _name(id_), "pin", undo)
    print_changed(memory, "Unpinned" if undo else "Pinned", as_json)


@facts.command()
@click.argument("id_", metavar="ID")
@undo_option("Remove the mark.")
@json_option
@click.pass_obj
def wrong(settings: Settings, /, id_: str, undo: bool, as_json: bool) -> None:
    """Mark a fact as wrong: contexts leave it out."""
    refuse_agents()
    memory = change_memory(settings, _name(id_), "wrong", undo)
    print_changed(memory, "No longer marked as wrong" if undo else "Marked as wrong", as_json)


def _decide(settings: Settings, id_: str, action: str, done: str, as_json: bool) -> None:
    path = f"/api/facts/{params.fact_id(id_).number}/{action}"
    result = request(settings.layout, os.environ, path, {})
    print_changed({"memory": result["fact"]}, done, as_json)


def _name(id_: str) -> str:
    return str(params.fact_id(id_))


commands = [facts]

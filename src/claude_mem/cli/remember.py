"""claude-mem remember, carried out by the worker, which also updates contexts."""

import os
from pathlib import Path
from typing import Any

import click

from claude_mem.cli.output import json_option, print_json
from claude_mem.cli.user_only import is_agent
from claude_mem.config import Settings
from claude_mem.server.client import request
from claude_mem.types import OBSERVATION_TYPES


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--title", help="Title (default: the beginning of the text).")
@click.option("--type", "type_", help=f"{', '.join(OBSERVATION_TYPES)} (default discovery).")
@click.option(
    "--concept", "concepts", multiple=True, help="Concept, such as gotcha; can be repeated."
)
@click.option(
    "--file", "files", multiple=True, help="File that the memory is about; can be repeated."
)
@click.option("--project", help="Project name or key (default: the project of this directory).")
@json_option
@click.pass_obj
def remember(
    settings: Settings, /, text: tuple[str, ...], type_: str | None, as_json: bool, **options: Any
) -> None:
    """Save a memory: a decision, a preference, or something that took time to find out.

    \b
    claude-mem remember "Deploys go through the staging branch" --type decision
    """
    params = {"text": " ".join(text), "type": type_, **options}
    body = {name: list(v) if isinstance(v, tuple) else v for name, v in params.items() if v}
    body["project_dir"] = os.environ.get("CLAUDE_PROJECT_DIR") or str(Path.cwd())
    if is_agent():
        body["by"] = "agent"
    saved = request(settings.layout, os.environ, "/api/memories", body)
    if as_json:
        print_json(saved)
    elif saved["new"]:
        click.echo(f"Saved as #{saved['id']}. To see it: claude-mem show {saved['id']}")
    else:
        click.echo(f"Already saved as #{saved['id']}.")


commands = [remember]

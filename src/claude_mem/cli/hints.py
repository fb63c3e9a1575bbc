"""claude-mem hints: recent hints and why they were given."""

from datetime import datetime

import click

from claude_mem import params
from claude_mem.cli.open_store import open_reader
from claude_mem.cli.output import json_option, print_json
from claude_mem.config import Settings
from claude_mem.text import NO_MEMORIES, one_line, without_controls
from claude_mem.types import Json

OFF = "Hints are off. To turn them on: claude-mem settings CLAUDE_MEM_HINTS yes"


@click.command()
@click.option("--project", help="Only this project (name or key).")
@click.option(
    "--limit",
    type=click.IntRange(1, params.MAX_LIMIT),
    default=20,
    help="Maximum rows (default 20).",
)
@json_option
@click.pass_obj
def hints(settings: Settings, project: str | None, limit: int, as_json: bool) -> None:
    """Show recent hints, newest first.

    A hint is text from earlier sessions that the agent gets together with a prompt. Below each
    line: its score and the words that it shares with the prompt.
    """
    with open_reader(settings) as store:
        rows: list[dict[str, Json]] = []
        if store:
            project_id = store.find_project(project) if project else None
            rows = store.recent_hints(limit, project_id)
    if as_json:
        print_json({"hints": list(rows), "on": settings.context.hints})
        return
    if not settings.context.hints:
        click.echo(OFF)
    elif not rows:
        click.echo("No hints yet." if store else NO_MEMORIES)
    for row in rows:
        moment = datetime.fromtimestamp(int(str(row["created_at_epoch"])) / 1000)
        words = row["words"]
        why = ", ".join(map(str, words)) if isinstance(words, list) and words else "similar meaning"
        project_name, text = (one_line(without_controls(str(row[n]))) for n in ("project", "text"))
        click.echo(f"{moment:%Y-%m-%d %H:%M} {project_name}: {text}")
        click.echo(f"  score {row['score']}: {one_line(without_controls(why))}")


commands = [hints]

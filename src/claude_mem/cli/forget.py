"""claude-mem forget, carried out by the worker, which also updates contexts."""

import os
import shlex
import sys
from typing import Any

import click

from claude_mem.cli.output import json_option, print_json
from claude_mem.config import Settings
from claude_mem.errors import BadInput
from claude_mem.recall.formatting import counts_text
from claude_mem.server.client import request
from claude_mem.text import without_controls
from claude_mem.types import Json

HARD_WARNING = """\
This cannot be undone. The text is also removed from the journal, the index and the backups of the
database (a fresh backup replaces them). Files that cannot be searched for it reliably are deleted:
logs, hook payloads that could not be read, and copies of damaged databases."""


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--session", help="All memories of a session (id from `claude-mem sessions`).")
@click.option("--file", help="All memories that name this file or folder.")
@click.option("--query", help="Turns that match these words, at most 200.")
@click.option(
    "--project",
    help="All memories of a project; with --file or --query, only matches in that project.",
)
@click.option(
    "--hard", is_flag=True, help="Forget for good: remove the text from every file, without undo."
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--confirm", help="Token from the preview; forgets without asking.")
@click.option(
    "--undo",
    is_flag=True,
    help="Restore the last forgotten memories, or those of the token given as argument.",
)
@click.option("--list", "list_", is_flag=True, help="List what can be restored.")
@json_option
@click.pass_obj
def forget(
    settings: Settings,
    /,
    ids: tuple[str, ...],
    hard: bool,
    yes: bool,
    confirm: str | None,
    undo: bool,
    list_: bool,
    as_json: bool,
    **selection: str | None,
) -> None:
    """Forget memories by id, session, file, query or project.

    \b
    claude-mem forget 12 S3 P4
    claude-mem forget --file src/secret.py
    claude-mem forget --undo

    Shows a preview first. Forgotten memories disappear at once from search, exports and contexts,
    and can be restored for a day (CLAUDE_MEM_UNDO_HOURS). A forgotten session is not recorded
    again. With --hard, forgotten memories cannot be restored: their text is removed from every
    file in the data directory, backups included.
    """
    params: dict[str, Json] = {
        name: value for name, value in selection.items() if value is not None
    }
    if list_ or undo:
        if params or hard or (list_ and ids) or len(ids) > 1:
            raise BadInput("--undo takes only a token, --list takes no arguments")
        if list_:
            _list(settings, as_json)
        else:
            _undo(settings, ids[0] if ids else None, as_json)
        return
    if ids:
        params["ids"] = list(ids)
    if hard:
        params["hard"] = True
    result = _forget(settings, params, yes, confirm, as_json)
    if as_json:
        print_json(result)
    elif result["forgotten"] and hard:
        click.echo(f"Forgotten for good: {counts_text(result['counts'])}.")
        if not result["scrubbed"]:
            click.echo("The worker is still removing it from its files: see claude-mem doctor.")
    elif result["forgotten"]:
        until = result["until"][:16].replace("T", " ")
        click.echo(f"Forgotten: {counts_text(result['counts'])}.")
        click.echo(f"To restore, until {until} UTC: claude-mem forget --undo {result['undo']}")


def _forget(
    settings: Settings, params: dict[str, Json], yes: bool, confirm: str | None, as_json: bool
) -> dict[str, Any]:
    hard = bool(params.get("hard"))
    if confirm is None:
        preview = request(settings.layout, os.environ, "/api/forget", params)
        if not as_json:
            _print_preview(preview)
        if not yes and (as_json or not sys.stdin.isatty()):
            if not as_json:
                command = shlex.join([*sys.argv[1:], "--confirm", preview["confirm"]])
                click.echo(f"Nothing was forgotten yet. To confirm: claude-mem {command}")
            return preview
        if not yes:
            click.confirm("Forget these for good?" if hard else "Forget these?", abort=True)
        confirm = preview["confirm"]
    return request(settings.layout, os.environ, "/api/forget", {**params, "confirm": confirm})


def _print_preview(preview: dict[str, Any]) -> None:
    counts, examples = preview["counts"], preview["examples"]
    click.echo(f"Would forget {counts_text(counts)}:")
    for line in examples:
        click.echo(f"  {without_controls(line)}")
    nouns = ("sessions", "observations") if counts["sessions"] else tuple(counts)
    if (more := sum(counts[noun] for noun in nouns) - len(examples)) > 0:
        click.echo(f"  and {more} more")
    if preview["hard"]:
        click.echo(HARD_WARNING)


def _undo(settings: Settings, token: str | None, as_json: bool) -> None:
    body: dict[str, Json] = {"undo": token} if token else {}
    result = request(settings.layout, os.environ, "/api/forget/undo", body)
    if as_json:
        print_json(result)
    else:
        click.echo(f"Restored: {counts_text(result['counts'])}.")


def _list(settings: Settings, as_json: bool) -> None:
    result = request(settings.layout, os.environ, "/api/forgotten")
    if as_json:
        print_json(result)
        return
    for row in result["forgotten"]:
        projects = ", ".join(row["projects"])
        click.echo(f"{row['undo']}  {row['at'][:16]}  {projects}  {counts_text(row['counts'])}")
    if not result["forgotten"]:
        click.echo("Nothing can be restored.")


commands = [forget]

"""claude-mem remember and forget: memory by hand. The worker does it, and renders contexts anew."""

import os
import shlex
import sys
from pathlib import Path
from typing import Any, cast

import click

from claude_mem.cli.output import as_json_option, print_json
from claude_mem.config import Settings
from claude_mem.errors import BadInput
from claude_mem.recall.formatting import counts_text
from claude_mem.server import client
from claude_mem.text import without_controls
from claude_mem.types import OBSERVATION_TYPES, Json


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--title", help="One line; the beginning of the text unless told.")
@click.option("--type", "type_", help=f"{', '.join(OBSERVATION_TYPES)}; discovery unless told.")
@click.option("--concept", "concepts", multiple=True, help="Such as gotcha; may be repeated.")
@click.option("--file", "files", multiple=True, help="A file that it is about; may be repeated.")
@click.option("--project", help="By name or key; that of this directory unless told.")
@as_json_option
@click.pass_obj
def remember(
    settings: Settings, /, text: tuple[str, ...], type_: str | None, as_json: bool, **options: Any
) -> None:
    """Remember something: a decision, a preference, what cost time to find out.

    \b
    claude-mem remember "Deploys go through the staging branch" --type decision
    """
    given = {"text": " ".join(text), "type": type_, **options}
    body = {name: list(v) if isinstance(v, tuple) else v for name, v in given.items() if v}
    body["project_dir"] = os.environ.get("CLAUDE_PROJECT_DIR") or str(Path.cwd())
    saved = _asked(settings, "/api/memories", body)
    if as_json:
        print_json(saved)
    elif saved["new"]:
        click.echo(f"Remembered as #{saved['id']}: claude-mem show {saved['id']}")
    else:
        click.echo(f"That is remembered already, as #{saved['id']}.")


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--session", help="A whole session, by the id that `claude-mem sessions` shows.")
@click.option("--file", help="All that names this file or folder.")
@click.option("--query", help="What `claude-mem search` finds for this.")
@click.option("--project", help="A whole project; with --file or --query, only there.")
@click.option("--yes", is_flag=True, help="Ask nothing.")
@click.option("--confirm", help="The token of what was shown before.")
@click.option("--undo", is_flag=True, help="Bring back the last; with a token, that one.")
@click.option("--list", "list_", is_flag=True, help="What can still be brought back.")
@as_json_option
@click.pass_obj
def forget(
    settings: Settings,
    /,
    ids: tuple[str, ...],
    yes: bool,
    confirm: str | None,
    undo: bool,
    list_: bool,
    as_json: bool,
    **chosen: str | None,
) -> None:
    """Forget memories, by id, session, file, query or project.

    \b
    claude-mem forget 12 S3 P4
    claude-mem forget --file src/secret.py
    claude-mem forget --undo

    Shows first what would go. It is gone from search, pages, exports and contexts at once, and can
    be brought back for a day (CLAUDE_MEM_UNDO_HOURS). A forgotten session is not recorded again.
    """
    given: dict[str, Json] = {name: value for name, value in chosen.items() if value is not None}
    if list_ or undo:
        if given or (list_ and ids) or len(ids) > 1:
            raise BadInput("--undo takes a token and --list nothing")
        if list_:
            _list(settings, as_json)
        else:
            _undo(settings, ids[0] if ids else None, as_json)
        return
    if ids:
        given["ids"] = list(ids)
    done = _forget(settings, given, yes, confirm, as_json)
    if as_json:
        print_json(done)
    elif done["forgotten"]:
        click.echo(f"Forgotten: {counts_text(done['counts'])}.")
        until = done["until"][:16].replace("T", " ")
        click.echo(f"To bring it back, until {until} UTC: claude-mem forget --undo {done['undo']}")


def _forget(
    settings: Settings, given: dict[str, Json], yes: bool, confirm: str | None, as_json: bool
) -> dict[str, Any]:
    if confirm is None:
        seen = _asked(settings, "/api/forget", given)
        if not as_json:
            _show(seen)
        if not yes and (as_json or not sys.stdin.isatty()):
            if not as_json:
                command = shlex.join([*sys.argv[1:], "--confirm", seen["confirm"]])
                click.echo(f"Nothing is forgotten yet. To do it: claude-mem {command}")
            return seen
        if not yes:
            click.confirm("Forget this?", abort=True)
        confirm = seen["confirm"]
    return _asked(settings, "/api/forget", {**given, "confirm": confirm})


def _show(seen: dict[str, Any]) -> None:
    click.echo(f"This would be forgotten: {counts_text(seen['counts'])}.")
    for line in seen["examples"]:
        click.echo(f"  {without_controls(line)}")
    counts = seen["counts"]
    shown = ("sessions", "observations") if counts["sessions"] else tuple(counts)
    if (more := sum(counts[noun] for noun in shown) - len(seen["examples"])) > 0:
        click.echo(f"  and {more} more")


def _undo(settings: Settings, token: str | None, as_json: bool) -> None:
    done = _asked(settings, "/api/forget/undo", {"undo": token} if token else {})
    if as_json:
        print_json(done)
    else:
        click.echo(f"Remembered again: {counts_text(done['counts'])}.")


def _list(settings: Settings, as_json: bool) -> None:
    found = _asked(settings, "/api/forgotten")
    if as_json:
        print_json(found)
        return
    for one in found["forgotten"]:
        where = ", ".join(one["projects"])
        click.echo(f"{one['undo']}  {one['at'][:16]}  {where}  {counts_text(one['counts'])}")
    if not found["forgotten"]:
        click.echo("Nothing was forgotten of late.")


def _asked(settings: Settings, path: str, body: Json = None) -> dict[str, Any]:
    client.start(settings.layout, os.environ)
    return cast("dict[str, Any]", client.ask_worker(settings.layout, path, body, timeout=120))


commands = [remember, forget]

"""claude-mem project: which directories belong to which project."""

import os
from pathlib import Path
from typing import Any

import click

from claude_mem.cli.groups import Group
from claude_mem.cli.output import json_option, print_json, print_table
from claude_mem.cli.user_only import refuse_agents
from claude_mem.config import Settings
from claude_mem.server.client import request
from claude_mem.text import NO_MEMORIES, one_line, pluralize, without_controls
from claude_mem.types import Json

_DIRECTORY = click.argument("directory", default=".", type=click.Path(file_okay=False))


@click.group(cls=Group)
def project() -> None:
    """List projects, and change which directories belong to them."""


@project.command("list")
@json_option
@click.pass_obj
def list_(settings: Settings, as_json: bool) -> None:
    """List projects with their directories."""
    reply: Any = request(settings.layout, os.environ, "/api/projects")
    rows: list[dict[str, Any]] = reply["projects"]
    if as_json:
        print_json(list(rows))
    elif not rows:
        click.echo(NO_MEMORIES)
    else:
        print_table(
            ("project", "sessions", "key", "directories", "not joined to"),
            [(row["name"], row["sessions"], row["key"], ", ".join(row["directories"]),
              row.get("claims")) for row in rows],
        )  # fmt: skip


@project.command()
@_DIRECTORY
@json_option
@click.pass_obj
def join(settings: Settings, directory: str, as_json: bool) -> None:
    """Give DIRECTORY the memory of the project that its git origin names.

    What was recorded there is moved to that project. A new clone of a known project gets its
    memory without this command if you accepted the trust dialog of Claude Code in it; otherwise
    run this command there once. Work trees of a known repository never need it.
    """
    refuse_agents()
    _change(settings, "join", {"directory": _absolute(directory)}, as_json)


@project.command()
@_DIRECTORY
@json_option
@click.pass_obj
def split(settings: Settings, directory: str, as_json: bool) -> None:
    """Make DIRECTORY, and everything below it, a project of its own.

    The sessions that ran there move to it. Use it for a part of a monorepo, or a clone
    that must not share its memory.
    """
    _change(settings, "split", {"directory": _absolute(directory)}, as_json)


@project.command()
@click.argument("name", metavar="FROM")
@click.argument("into")
@json_option
@click.pass_obj
def merge(settings: Settings, name: str, into: str, as_json: bool) -> None:
    """Move everything of the project FROM to INTO (names or keys).

    Directories that claim FROM then belong to INTO. Use it for a renamed repository that was not
    recognised: one whose origin you change in place keeps its memory without this.
    """
    refuse_agents()
    _change(settings, "merge", {"project": name, "into": into}, as_json)


@project.command()
@click.argument("directory", type=click.Path(file_okay=False))
@click.argument("name", metavar="PROJECT")
@json_option
@click.pass_obj
def move(settings: Settings, directory: str, name: str, as_json: bool) -> None:
    """Move DIRECTORY and its sessions to PROJECT (name or key).

    Everything below DIRECTORY moves with it.
    """
    refuse_agents()
    _change(settings, "move", {"directory": _absolute(directory), "project": name}, as_json)


def _absolute(directory: str) -> str:
    return str(Path(directory).absolute())


def _change(settings: Settings, action: str, body: dict[str, Json], as_json: bool) -> None:
    reply: Any = request(settings.layout, os.environ, f"/api/projects/{action}", body)
    if as_json:
        print_json(reply)
        return
    key = one_line(without_controls(str(reply["key"])))
    click.echo(f"{pluralize(reply['sessions'], 'session')} moved to {key}")


commands = [project]

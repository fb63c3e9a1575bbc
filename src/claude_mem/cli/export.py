"""claude-mem export: all memories as a file."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from claude_mem.cli.open_store import open_reader
from claude_mem.config import Settings
from claude_mem.errors import BadInput, NotFound
from claude_mem.text import NO_MEMORIES, pluralize


@click.command()
@click.argument("file", default="-", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--project", help="Only this project (name or key).")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option("--team", is_flag=True, help="Export what the team server has.")
@click.option("--own", is_flag=True, help="With --team: only what you recorded.")
@click.pass_obj
def export(
    settings: Settings, file: Path, project: str | None, force: bool, team: bool, own: bool
) -> None:
    """Write memories to FILE (default: standard output).

    The output has one JSON object per line; only you can read FILE. Exporting the same memories
    twice gives identical files. `claude-mem import --own FILE` restores the memories, here or on
    another machine.
    """
    to_file = str(file) != "-"
    if to_file:
        _check_target(file, force)
    target = _write_atomically(file, force) if to_file else _standard_output()
    if team:
        count = _export_from_team(settings, target, project, own)
    else:
        with open_reader(settings) as store:
            if store is None:
                raise NotFound(NO_MEMORIES)
            project_id = store.find_project(project) if project else None
            with target as out:
                count = store.export(out.write, project_id)
    if to_file:
        click.echo(f"Wrote {pluralize(count, 'record')} to {file}.")


def _export_from_team(
    settings: Settings,
    target: AbstractContextManager[BinaryIO],
    project: str | None,
    own: bool,
) -> int:
    from claude_mem.team.client.full_transfer import export_from_server
    from claude_mem.team.client.membership import read_membership

    membership = read_membership(settings.layout)
    if membership is None:
        raise NotFound("this machine joined no team: claude-mem team join URL")
    with target as out:
        return export_from_server(membership, out.write, project_key=project, own=own)


def _check_target(file: Path, force: bool) -> None:
    if file.is_dir():
        raise BadInput(f"{file} is a directory")
    if file.exists() and not force:
        raise BadInput(f"{file} exists; use --force to replace it")
    if not file.absolute().parent.is_dir():
        raise BadInput(f"directory {file.parent} does not exist")


@contextmanager
def _write_atomically(file: Path, force: bool) -> Iterator[BinaryIO]:
    """The file appears only when it is complete and on disk; only its owner can read it."""
    try:
        descriptor, name = tempfile.mkstemp(dir=file.absolute().parent, prefix=f".{file.name}.")
    except OSError as error:
        raise BadInput(f"{file} cannot be written: {error.strerror}") from None
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        _check_target(file, force)  # it may have been created meanwhile
        temporary.replace(file)
    except OSError as error:
        raise BadInput(f"{file} cannot be written: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    out = sys.stdout.buffer
    yield out
    out.flush()


commands = [export]

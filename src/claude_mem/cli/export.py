"""claude-mem export: everything that is remembered, as a file."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from claude_mem.cli.output import counted
from claude_mem.cli.status import NOTHING_YET, reading
from claude_mem.config import Settings
from claude_mem.errors import BadInput, NotFound


@click.command()
@click.argument("file", default="-", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--project", help="Only this project, by name or key.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.pass_obj
def export(settings: Settings, file: Path, project: str | None, force: bool) -> None:
    """Write everything that is remembered to FILE, or to standard output.

    \b
    One JSON object a line; the same memory gives the same bytes. FILE is readable by you alone.
    claude-mem import FILE brings it back, here or on another machine.
    """
    to_file = str(file) != "-"
    if to_file:
        _check_target(file, force)
    with reading(settings) as store:
        if store is None:
            raise NotFound(NOTHING_YET)
        project_id = store.find_project(project) if project else None
        with _written_whole(file, force) if to_file else _standard_output() as out:
            count = store.export(out.write, project_id)
    if to_file:
        click.echo(f"{counted(count, 'record')} written to {file}")


def _check_target(file: Path, force: bool) -> None:
    if file.is_dir():
        raise BadInput(f"{file} is a directory: name a file in it")
    if file.exists() and not force:
        raise BadInput(f"{file} exists: --force replaces it")
    if not file.absolute().parent.is_dir():
        raise BadInput(f"there is no directory {file.parent}")


@contextmanager
def _written_whole(file: Path, force: bool) -> Iterator[BinaryIO]:
    """A file that appears when it is complete and on disk, for its owner alone."""
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
        _check_target(file, force)  # it may have come into being meanwhile
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

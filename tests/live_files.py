"""The files of a directory that another process changes at the same time."""

import os
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path


def paths_below(directory: Path, pattern: str = "*") -> Iterator[Path]:
    """Files and directories by name. `Path.rglob` fails if a directory is deleted meanwhile."""
    for parent, directories, files in os.walk(directory):
        yield from (Path(parent, name) for name in directories + files if fnmatch(name, pattern))


def contents_below(directory: Path) -> dict[Path, bytes]:
    """Every byte of the regular files that are there long enough to be read."""
    contents = {}
    for path in paths_below(directory):
        if path.is_file() and not path.is_symlink():
            try:
                contents[path] = path.read_bytes()
            except FileNotFoundError:
                continue  # such as a spool file that the worker has just deleted
    return contents

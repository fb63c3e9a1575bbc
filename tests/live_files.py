"""The files of a directory that another process changes at the same time; compressed files."""

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path


def paths_below(directory: Path, pattern: str = "*") -> Iterator[Path]:
    """Files and directories by name. `Path.rglob` fails if a directory is deleted meanwhile."""
    for parent, directories, files in os.walk(directory):
        yield from (Path(parent, name) for name in directories + files if fnmatch(name, pattern))


def plain_bytes(path: Path) -> bytes:
    """Returns the bytes of a file; those of a compressed one are followed by what it contains, if
    it can be read."""
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        with suppress(zlib.error):
            return data + zlib.decompressobj(wbits=31).decompress(data)
    return data


def contents_below(directory: Path) -> dict[Path, bytes]:
    """Every byte of the regular files that are there long enough to be read; compressed files
    also as what they contain."""
    contents = {}
    for path in paths_below(directory):
        if path.is_file() and not path.is_symlink():
            try:
                contents[path] = plain_bytes(path)
            except FileNotFoundError:
                continue  # such as a spool file that the worker has just deleted
    return contents


def unpacked(backup: Path) -> Path:
    """What a person gets from `gunzip`, next to the directory of the backup."""
    target = backup.parent.with_name(f"unpacked-{backup.stem}")
    target.write_bytes(gzip.decompress(backup.read_bytes()))
    return target

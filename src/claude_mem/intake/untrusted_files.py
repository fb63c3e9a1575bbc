"""Files that may be anything, such as those of a repository: only regular files are read, and only
up to a size."""

import os
import stat
from pathlib import Path

LARGEST_FILE = 64 * 1024
LONGEST_PATH = 4_096  # in a file of git


class UntrustedFileError(ValueError):
    """The file is refused; the reason is for the log."""


def read_whole(path: Path, limit: int) -> bytes:
    """A regular file of at most this size; without waiting for any other."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UntrustedFileError("it is not a regular file")
        if status.st_size > limit:
            raise UntrustedFileError(f"it has {status.st_size} bytes; the limit is {limit}")
        data = os.read(descriptor, status.st_size)
        while len(data) < status.st_size and (more := os.read(descriptor, status.st_size)):
            data += more
        return data
    finally:
        os.close(descriptor)


def read_start(path: Path) -> str:
    """The beginning of a regular file; OSError for what could block or never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a regular file")
        return os.read(descriptor, LARGEST_FILE).decode("utf-8", "replace")
    finally:
        os.close(descriptor)

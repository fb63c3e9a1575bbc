"""Files of a repository, which may be anything: only the beginning of regular files is read."""

import os
import stat
from pathlib import Path

LARGEST_FILE = 64 * 1024
LONGEST_PATH = 4_096  # in a file of git


def read_start(path: Path) -> str:
    """The beginning of a regular file; OSError for what could block or never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a regular file")
        return os.read(descriptor, LARGEST_FILE).decode("utf-8", "replace")
    finally:
        os.close(descriptor)

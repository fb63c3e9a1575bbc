"""What identifies a git repository on this machine, whatever its origin says: its directory, and
the commits in it. Only files are read: git runs programs that a repository names.
"""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from claude_mem.intake.project_access import Claim

# A clone makes these, and git never changes them, so no later clone at the same path has the same.
_LASTING = ("description", "objects")
_MOST_FILES = 1_000  # of a directory
# An index of a pack: its head, 256 counts of four bytes, then the sorted hashes.
_PACK_INDEX, _COUNTS, _HASH = b"\xfftOc\0\0\0\x02", 256, 20
_NAMES_START = len(_PACK_INDEX) + 4 * _COUNTS


@dataclass(frozen=True, slots=True)
class Checkout:
    main: str  # the root of the main work tree
    identity: str  # of its git directory


def checkout_of(claim: Claim) -> Checkout | None:
    """The one that a directory is in; None where a link only claims it, or where files that tell it
    from a later clone are missing."""
    if not (claim.is_proven and claim.git_dir):
        return None
    directory = Path(claim.git_dir)
    try:
        parts = [directory.lstat(), *((directory / name).lstat() for name in _LASTING)]
    except OSError:
        return None
    git_dir, description, objects = parts
    if not (stat.S_ISDIR(git_dir.st_mode) and stat.S_ISREG(description.st_mode)):
        return None
    numbers = (git_dir.st_dev, git_dir.st_ino, objects.st_ino, description.st_ino,
               description.st_mtime_ns)  # fmt: skip
    return Checkout(claim.main, ":".join(map(str, numbers)))


def has_object(git_dir: Path, prefix: str) -> bool:
    """Whether the repository has an object whose hash begins with these hexadecimal digits."""
    objects = git_dir / "objects"
    if _has_loose(objects / prefix[:2], prefix[2:]):
        return True
    with suppress(OSError), os.scandir(objects / "pack") as entries:
        for entry in islice(entries, _MOST_FILES):
            if entry.name.endswith(".idx") and _has_packed(Path(entry.path), prefix):
                return True
    return False


def _has_loose(directory: Path, rest: str) -> bool:
    with suppress(OSError), os.scandir(directory) as entries:
        return any(entry.name.startswith(rest) for entry in islice(entries, _MOST_FILES))
    return False


def _has_packed(path: Path, prefix: str) -> bool:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return False
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return False
        if os.pread(file, len(_PACK_INDEX), 0) != _PACK_INDEX:
            return False
        first = int(prefix[:2], 16)
        low, high = _count(file, first - 1), _count(file, first)
        while low < high:
            middle = (low + high) // 2
            name = os.pread(file, _HASH, _NAMES_START + middle * _HASH).hex()
            if name.startswith(prefix):
                return True
            low, high = (middle + 1, high) if name < prefix else (low, middle)
    except OSError:
        return False
    finally:
        os.close(file)
    return False


def _count(file: int, byte: int) -> int:
    """How many hashes begin with this byte or a smaller one."""
    if byte < 0:
        return 0
    return int.from_bytes(os.pread(file, 4, len(_PACK_INDEX) + 4 * byte))

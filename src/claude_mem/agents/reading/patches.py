"""Patches of the tool `apply_patch`: the files that they add, change, move and delete."""

import posixpath
from dataclasses import dataclass, field

_ADD, _UPDATE, _DELETE, _MOVE = (
    f"*** {what}: " for what in ("Add File", "Update File", "Delete File", "Move to")
)


@dataclass(slots=True)
class FilePatch:
    path: str
    is_new: bool = False
    removed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)

    @property
    def old(self) -> str:
        return "\n".join(self.removed)

    @property
    def new(self) -> str:
        return "\n".join(self.added)


def parse_patch(patch: str, directory: str = "") -> list[FilePatch]:
    """Reads the files of a patch, with absolute paths; lines of context are left out."""
    files: list[FilePatch] = []
    for line in patch.splitlines():
        if line.startswith((_ADD, _UPDATE, _DELETE)):
            path = line.partition(": ")[2].strip()
            files.append(FilePatch(posixpath.join(directory, path), line.startswith(_ADD)))
        elif files and line.startswith(_MOVE):
            files[-1].path = posixpath.join(directory, line[len(_MOVE) :].strip())
        elif files and line.startswith("+"):
            files[-1].added.append(line[1:])
        elif files and line.startswith("-"):
            files[-1].removed.append(line[1:])
    return files

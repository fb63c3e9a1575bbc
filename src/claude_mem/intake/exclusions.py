"""Projects of which nothing is recorded: globs over their directory, key and name."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePath

from claude_mem.types import Project


@dataclass(frozen=True, slots=True)
class Exclusions:
    globs: tuple[str, ...] = ()
    home: str = ""

    def cover(self, project: Project, directory: str) -> bool:
        """A glob that matches a directory also covers what is below it."""
        if not self.globs:
            return False
        path = PurePath(directory)
        names = [project.key, project.name, *map(str, (path, *path.parents))]
        return any(fnmatchcase(name, glob) for glob in self._expanded() for name in names)

    def _expanded(self) -> list[str]:
        """Without a trailing slash, and with the home directory for a tilde."""
        globs = [glob.rstrip("/") or glob for glob in self.globs]
        return [self.home + glob[1:] if glob.startswith("~/") else glob for glob in globs]

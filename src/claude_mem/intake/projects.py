"""Which project a directory belongs to, read from the files git keeps; git itself is not run.

Where the repository came from tells best; failing that, where its main work tree lies; failing
that, the directory itself. So worktrees, subdirectories and clones are one project, a submodule
is its own, and a repository at $HOME (dotfiles) does not swallow everything below it.
"""

import re
from pathlib import Path

from claude_mem.types import Project

_SECTION = re.compile(r'^\s*\[\s*remote\s+"origin"\s*\]', re.IGNORECASE)
_SCP_LIKE = re.compile(r"^(?:[^@/\s]+@)?([^:/\s]+):(?!//)(.+)$")
_URL = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*://(?:[^/\s]*@)?([^/\s]+?)(?::\d+)?/(.+)$")
LARGEST_CONFIG = 1024 * 1024


class Projects:
    """Remembers what it found: a session asks for every event."""

    def __init__(self, home: Path | None) -> None:
        self._home = home.resolve() if home else None
        self._known: dict[str, Project] = {}

    def of(self, directory: str) -> Project:
        if directory not in self._known:
            if len(self._known) > 10_000:
                self._known.clear()
            self._known[directory] = identify(directory, self._home)
        return self._known[directory]

    def forget(self, directory: str) -> None:
        """A session starts here: its origin may have changed since."""
        self._known.pop(directory, None)


def identify(directory: str, home: Path | None) -> Project:
    if not directory:
        return Project("unknown", "unknown")
    if not Path(directory).is_absolute():  # of another machine, or of nobody's knowledge
        return Project(directory, _last_part(directory))
    try:
        path = Path(directory).resolve()
        root, git_dir = _repository(path, home)
    except (OSError, ValueError, RuntimeError):
        return Project(directory, _last_part(directory))
    if root is None or git_dir is None:
        return Project(str(path), path.name or str(path))
    origin = _origin(git_dir)
    if origin:
        return Project(origin, origin.rsplit("/", 1)[-1])
    return Project(str(root), root.name or str(root))


def _last_part(directory: str) -> str:
    return directory.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1] or directory


def _repository(path: Path, home: Path | None) -> tuple[Path | None, Path | None]:
    """The main work tree's root and the directory that holds its config."""
    for candidate in (path, *path.parents):
        if candidate == home:
            return None, None
        mark = candidate / ".git"
        if mark.is_dir():
            return candidate, mark
        if mark.is_file():
            return _linked(candidate, mark)
    return None, None


def _linked(root: Path, mark: Path) -> tuple[Path | None, Path | None]:
    """A worktree belongs to its main repository; a submodule has a git directory of its own."""
    text = mark.read_text("utf-8", "replace")[:4096]
    if not text.startswith("gitdir:"):
        return root, None
    git_dir = (root / text.removeprefix("gitdir:").strip()).resolve()
    common = git_dir / "commondir"
    if not common.is_file():
        return root, git_dir
    main = (git_dir / common.read_text("utf-8", "replace").strip()).resolve()
    return (main.parent if main.name == ".git" else main), main


def _origin(git_dir: Path) -> str | None:
    try:
        with (git_dir / "config").open(encoding="utf-8", errors="replace") as file:
            lines = file.read(LARGEST_CONFIG).splitlines()
    except OSError:
        return None
    inside = False
    for line in lines:
        if line.lstrip().startswith("["):
            inside = bool(_SECTION.match(line))
        elif inside:
            name, separator, value = line.partition("=")
            if separator and name.strip().lower() == "url":
                return normalise(value.strip().strip('"'))
    return None


def normalise(url: str) -> str | None:
    """host/path without user, port, scheme, `.git` and case of the host."""
    match = _URL.match(url) or _SCP_LIKE.match(url)
    if match is None or len(match[1]) == 1:
        return None  # a local path, perhaps with a drive: it names a place, not a project
    host, path = match[1].lower(), match[2]
    path = path.strip("/").removesuffix(".git").strip("/")
    return f"{host}/{path}" if path else None

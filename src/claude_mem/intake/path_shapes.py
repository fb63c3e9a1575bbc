"""The repository that a directory belongs to, by the shape of its path alone.

For directories that do not exist (any more, or on this machine): tools put work trees of a
repository into folders of their own, and remove them with the branch.
"""

import re
from dataclasses import dataclass, replace

# Folders inside a repository whose entries are its work trees.
_INSIDE = (
    ".claude/worktrees", ".worktrees", ".worktree", ".conductor", ".trees", ".git/worktrees",
    ".cursor/worktrees", ".codex/worktrees", ".gemini/worktrees", ".vibe-kanban/worktrees",
)  # fmt: skip
# Folders of a tool, outside of any repository: "{}" is the repository, "*" anything.
_OUTSIDE = (
    "conductor/workspaces/{}/*", "conductor/repos/{}", "conductor/{}/*", ".cursor/worktrees/{}/*",
    ".codex/worktrees/*/{}", ".claude-worktrees/{}/*", ".superset/worktrees/{}/*",
    ".gemini/worktrees/{}/*", "vibe-kanban/worktrees/*/{}", ".crystal/worktrees/{}/*",
    ".agor/worktrees/*/{}/*", ".agor/worktrees/{}/*",
)  # fmt: skip
# Folders in which people keep repositories: "~/src/worktrees/lamp/fix" is of the repository lamp.
_HOMES = frozenset((
    "code", "dev", "develop", "developer", "development", "git", "github", "projects", "repos",
    "repositories", "source", "sources", "src", "work", "workspace", "workspaces", "wks", "home",
    "documents", "tmp",
))  # fmt: skip
_USERS = re.compile(r"(?:[a-z]:)?/(?:users|home)/[^/]+$|/root$|~$", re.IGNORECASE)
_SIBLING = re.compile(r"(?P<repository>.*/[^/]+?)[-._](?:worktrees?|wt|trees)/[^/]+", re.IGNORECASE)
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


@dataclass(frozen=True, slots=True)
class Repository:
    """`directory` is its main work tree, or the folder of a tool that has its work trees."""

    directory: str
    name: str
    is_tool_folder: bool = False


def is_windows_path(directory: str) -> bool:
    return _WINDOWS.match(directory) is not None


def repository_of(directory: str) -> Repository | None:
    """None: the path has no shape of a work tree."""
    path = directory.replace("\\", "/").rstrip("/")
    match = _outside(path) or _inside(path) or _beside(path) or _plain_worktrees(path)
    if match is None or not match.name:
        return None
    if is_windows_path(directory):
        return replace(match, directory=match.directory.replace("/", "\\"))
    return match


def _inside(path: str) -> Repository | None:
    for folder in _INSIDE:
        repository, marker, entry = f"{path}/".partition(f"/{folder}/")
        if marker and entry and not _USERS.match(repository):
            return _repository(repository)
    return None


def _outside(path: str) -> Repository | None:
    parts = path.split("/")
    for shape in _OUTSIDE:
        wanted = shape.split("/")
        for start in range(len(parts) - len(wanted) + 1):
            window = parts[start : start + len(wanted)]
            if _fits(wanted, window) and _is_outside(parts[:start]):
                name = window[wanted.index("{}")]
                folder = wanted[: next(i for i, part in enumerate(wanted) if part in ("{}", "*"))]
                root = "/".join((*parts[:start], *folder))
                return Repository(f"{root}/{name}", name, is_tool_folder=True)
    return None


def _fits(wanted: list[str], window: list[str]) -> bool:
    return all(
        pattern in ("*", "{}") or pattern == part.lower()
        for pattern, part in zip(wanted, window, strict=True)
    )


def _is_outside(parents: list[str]) -> bool:
    """A tool's folder is in a home directory or a temporary one; else a repository has it."""
    above = "/".join(parents)
    last = parents[-1].lower() if parents else ""
    return not above or bool(_USERS.match(above)) or last in (*_HOMES, "t", "temp", "")


def _beside(path: str) -> Repository | None:
    """ "lamp-worktrees/fix" is beside the repository "lamp"."""
    match = _SIBLING.match(f"{path}/")
    return _repository(match["repository"]) if match else None


def _plain_worktrees(path: str) -> Repository | None:
    """ "…/worktrees/lamp/fix" where people keep repositories, else "lamp/worktrees/fix"."""
    above, marker, below = path.partition("/worktrees/")
    if not marker:
        return None
    parts = below.split("/")
    is_shared = bool(_USERS.match(above)) or above.rsplit("/", 1)[-1].lower() in _HOMES
    if is_shared or not above:
        if len(parts) < 2:
            return None
        return Repository(f"{above}/worktrees/{parts[0]}", parts[0], is_tool_folder=True)
    return _repository(above)


def _repository(directory: str) -> Repository:
    return Repository(directory, directory.rsplit("/", 1)[-1])

"""Which project a directory belongs to, read from git's own files without running git.

The origin URL decides, else the root of the main work tree, else the directory itself. So
worktrees, subdirectories and clones are one project, a submodule is its own, and a repository at
$HOME (dotfiles) does not include everything below it. A directory that does not exist belongs to
the repository that is known for it, or that the shape of its path names.

A repository is untrusted (`intake/untrusted_files.py`). What its files say is a claim;
`intake/project_access.py` decides whether the directory gets the project that it claims, or one of
its own.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from claude_mem.intake.project_access import Access, Claim, Decision, TrustDialog, decide
from claude_mem.intake.untrusted_files import LONGEST_PATH, read_start
from claude_mem.store import StoreReader
from claude_mem.types import Project

LONGEST_URL = 2_000
_ORIGIN_SECTION = re.compile(r'\s*\[\s*remote\s+"origin"\s*\]', re.IGNORECASE)
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_PORT = re.compile(r":\d+$")


# The repository that a directory belongs to, by the shape of its path alone.
#
# For directories that do not exist (any more, or on this machine): tools put work trees of a
# repository into folders of their own, and remove them with the branch.

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
    match = _outside(path) or _inside(path) or _sibling(path) or _plain_worktrees(path)
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


def _sibling(path: str) -> Repository | None:
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


# The projects of directories


class Projects:
    """Caches the project of each directory: it is looked up for every event."""

    def __init__(
        self,
        home: Path | None,
        known: Mapping[str, Project] | None = None,
        access: Callable[[], Access] | None = None,
    ) -> None:
        """`known`: projects of directories, for those that do not exist any more. Without `access`
        every claim of a directory is accepted."""
        self._home = home.resolve() if home else None
        self._known = dict(known or {})
        self._access = access
        self._by_directory: dict[str, Decision] = {}

    @property
    def home(self) -> str:
        return str(self._home) if self._home else ""

    def of(self, directory: str) -> Project:
        return self.decision(directory).project

    def decision(self, directory: str) -> Decision:
        if directory not in self._by_directory:
            if len(self._by_directory) > 10_000:
                self._by_directory.clear()
            self._by_directory[directory] = self._decide(directory)
        return self._by_directory[directory]

    def _decide(self, directory: str) -> Decision:
        if self._access is None:
            return Decision(self._identify(directory))
        access = self._access()
        if is_missing(directory):
            return Decision(self._of_missing(directory, access))
        claim = claim_of(directory, self._home)
        return decide(directory, claim, access, lambda d: claim_of(d, self._home))

    def _of_missing(self, directory: str, access: Access) -> Project:
        override = access.override(directory)
        if override is not None:
            return override
        if directory in access.claims:
            return Project(directory, _last_part(directory))
        return access.current(self._identify(directory))

    def _identify(self, directory: str) -> Project:
        if not self._known or not is_missing(directory):
            return identify(directory, self._home)
        repository = repository_of(directory)
        for place in (directory, repository.directory if repository else directory):
            if place in self._known:
                return self._known[place]
        if repository is not None and repository.is_tool_folder:
            return self._named(repository) or identify(directory, self._home)
        return identify(directory, self._home)

    def _named(self, repository: Repository) -> Project | None:
        """The only known project of this name: the folder of a tool says no more."""
        matches = {p.key: p for p in self._known.values() if p.name == repository.name}
        return next(iter(matches.values())) if len(matches) == 1 else None

    def claim(self, directory: str) -> Claim:
        return claim_of(directory, self._home)

    def drop_cached(self, directory: str) -> None:
        """Forgets a directory when a session starts there: its origin may have changed."""
        self._by_directory.pop(directory, None)

    def drop_all(self) -> None:
        """Forgets all directories when the user changed which project one belongs to."""
        self._by_directory.clear()


def open_projects(store: StoreReader, environ: Mapping[str, str]) -> Projects:
    """Follows the store: what the user decides counts from the next session on."""
    home = environ.get("HOME")
    trust = TrustDialog.of(environ)
    known = dict(store.project_directories())
    return Projects(Path(home) if home else None, known, lambda: access_of(store, trust))


def access_of(store: StoreReader, trust: TrustDialog, *, is_import: bool = False) -> Access:
    stored = store.project_access()
    return Access(
        directories=stored.directories,
        keys=stored.keys,
        overrides=stored.overrides,
        aliases=stored.aliases,
        claims=frozenset(stored.claims),
        trust=trust,
        is_import=is_import,
    )


def identify(directory: str, home: Path | None) -> Project:
    """What the directory claims, as far as it is proven."""
    claim = claim_of(directory, home)
    return claim.project if claim.is_proven else claim.own


def claim_of(directory: str, home: Path | None) -> Claim:
    if not directory:
        return Claim(Project("unknown", "unknown"), "")
    if not Path(directory).is_absolute():  # a path of another machine
        return Claim(_by_shape(directory), directory)
    try:
        path = Path(directory).resolve()
        repository = _find_repository(path, home)
    except (OSError, ValueError, RuntimeError):
        return Claim(Project(directory, _last_part(directory)), directory)
    if repository is None:
        return Claim(_without_repository(path, home), str(path))
    main = repository.main
    origin = _origin(repository.git_dir) if repository.git_dir else None
    project = (
        Project(origin, origin.rsplit("/", 1)[-1])
        if origin
        else Project(str(main), main.name or str(main))
    )
    git_dir = str(repository.git_dir or "")
    return Claim(project, str(repository.root), str(main), repository.is_proven, git_dir)


def is_missing(directory: str) -> bool:
    try:
        return is_windows_path(directory) or not Path(directory).exists()
    except (OSError, ValueError):
        return True


def _without_repository(path: Path, home: Path | None) -> Project:
    """Returns the project of a path without a repository; if it does not exist, its shape may tell
    of one."""
    repository = repository_of(str(path)) if not path.exists() else None
    if repository is None:
        return Project(str(path), path.name or str(path))
    main = Path(repository.directory)
    if main.exists() and main != path:
        return identify(str(main), home)
    return Project(repository.directory, repository.name)


def _by_shape(directory: str) -> Project:
    repository = repository_of(directory)
    if repository is not None:
        return Project(repository.directory, repository.name)
    return Project(directory, _last_part(directory))


def _last_part(directory: str) -> str:
    return directory.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1] or directory


@dataclass(frozen=True, slots=True)
class _GitRepository:
    root: Path  # of the work tree
    main: Path  # the root of the main work tree
    git_dir: Path | None  # the directory with its config
    is_proven: bool = True  # False: a link to another repository, which does not link back


def _find_repository(path: Path, home: Path | None) -> _GitRepository | None:
    for candidate in (path, *path.parents):
        if candidate == home:
            return None
        marker = candidate / ".git"
        if marker.is_dir():
            return _GitRepository(candidate, candidate, marker)
        if marker.is_file():
            return _linked(candidate, marker)
    return None


def _linked(root: Path, marker: Path) -> _GitRepository:
    """A worktree belongs to its main repository; a submodule has a git directory of its own."""
    text = read_start(marker)[:LONGEST_PATH]
    if not text.startswith("gitdir:"):
        return _GitRepository(root, root, None)
    git_dir = (root / text.removeprefix("gitdir:").strip()).resolve()
    try:
        common = read_start(git_dir / "commondir")[:LONGEST_PATH].strip()
    except OSError:
        return _GitRepository(root, root, git_dir)
    main = (git_dir / common).resolve()
    main_root = main.parent if main.name == ".git" else main
    return _GitRepository(root, main_root, main, is_proven=_links_back(main, git_dir, marker))


def _links_back(main: Path, git_dir: Path, marker: Path) -> bool:
    """Whether the main repository lists this work tree: a copied directory can name any other."""
    if git_dir.parent != main / "worktrees":
        return False
    try:
        listed = read_start(git_dir / "gitdir")[:LONGEST_PATH].strip()
        return bool(listed) and (git_dir / listed).resolve() == marker.resolve()
    except (OSError, ValueError, RuntimeError):
        return False


def _origin(git_dir: Path) -> str | None:
    try:
        lines = read_start(git_dir / "config").splitlines()
    except OSError:
        return None
    in_origin = False
    for line in lines:
        if line.lstrip().startswith("["):
            in_origin = bool(_ORIGIN_SECTION.match(line))
        elif in_origin:
            name, separator, value = line.partition("=")
            if separator and name.strip().lower() == "url":
                return normalise(value.strip().strip('"'))
    return None


def normalise(url: str) -> str | None:
    """Normalises an address to host/path without user, port, scheme, query, `.git` and case of the
    host.

    None for a local path: it names a place, not a project. The user part and the query are where
    tokens are put, so neither may become part of a project's key.
    """
    if len(url) > LONGEST_URL:
        return None
    if scheme := _SCHEME.match(url):
        authority, _, path = url[scheme.end() :].partition("/")
        host = _PORT.sub("", authority.rpartition("@")[2])
    else:
        authority, colon, path = url.partition(":")
        host = authority.rpartition("@")[2]
        if not colon or "/" in authority or path.startswith("//"):
            return None
    path = path.partition("?")[0].partition("#")[0].strip("/").removesuffix(".git").strip("/")
    # One letter is the drive of a Windows path.
    if len(host) < 2 or not path or any(character.isspace() for character in authority):
        return None
    return f"{host.lower()}/{path}"


# Projects of which nothing is recorded: globs over their directory, key and name.


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
        """The globs without a trailing slash, and with the home directory for a tilde."""
        globs = [glob.rstrip("/") or glob for glob in self.globs]
        return [self.home + glob[1:] if glob.startswith("~/") else glob for glob in globs]

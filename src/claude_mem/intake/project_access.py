"""Whether a directory gets the memory of the project that its repository claims to be.

A copied directory can claim any origin. It gets that project if the project is new, if the
directory is known to be part of it, if a known repository lists it as its work tree, if the user
accepted the client's trust dialog there, or after `claude-mem project join`. Any other directory is
recorded as a project of its own.
"""

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from claude_mem.types import Project

LARGEST_STATE = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Claim:
    project: Project
    root: str  # of the work tree, or the directory itself
    main: str = ""  # the root of the main work tree
    is_proven: bool = True  # False: it names a repository that does not list it as a work tree
    git_dir: str = ""  # of the main work tree; empty without a repository

    @property
    def own(self) -> Project:
        return Project(self.root, Path(self.root).name or self.root) if self.root else self.project

    @property
    def anchor(self) -> str:
        """What all work trees of a repository have in common."""
        return self.main if self.main and self.is_proven else self.root


@dataclass(frozen=True, slots=True)
class Decision:
    project: Project
    claimed: Project | None = None  # the project whose memory the directory does not get
    own: Project | None = None  # what the directory would be without its claim
    is_accepted: bool = False  # whether it gets what it claims


@dataclass(frozen=True, slots=True)
class TrustDialog:
    """Directories in which the user accepted the client's trust dialog."""

    state_file: str = ""
    home: str = ""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "TrustDialog":
        return cls(str(client_state_file(environ)), environ.get("HOME", ""))

    def is_accepted(self, directory: str, root: str) -> bool:
        """Whether the user accepted the dialog there or in a directory above it, as the client
        does; not in the home directory."""
        if not self.state_file or _is_inside(self.state_file, root):
            return False
        accepted = set(self._accepted())
        paths = (Path(directory), Path(directory).resolve())
        return any(str(place) in accepted for path in paths for place in self._up_to_home(path))

    def _up_to_home(self, path: Path) -> Iterator[Path]:
        for place in (path, *path.parents):
            if str(place) in (self.home, os.path.realpath(self.home or "/"), "/"):
                return
            yield place

    def _accepted(self) -> Iterator[str]:
        try:
            file = Path(self.state_file)
            status = file.stat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_STATE:
                return
            projects = json.loads(file.read_bytes())["projects"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return
        for directory, project in projects.items() if isinstance(projects, dict) else ():
            if isinstance(project, dict) and project.get("hasTrustDialogAccepted") is True:
                yield directory


@dataclass(frozen=True, slots=True)
class Access:
    """What is known of projects and their directories at one moment."""

    directories: Mapping[str, Project] = field(default_factory=dict)
    keys: frozenset[str] = frozenset()
    overrides: Mapping[str, Project] = field(default_factory=dict)  # by directory, of the user
    aliases: Mapping[str, Project] = field(default_factory=dict)  # by key, of merged projects
    claims: frozenset[str] = frozenset()  # directories that did not get what they claim
    trust: TrustDialog = field(default_factory=TrustDialog)
    # Sessions from before claude-mem: directories that are not known yet keep their claim.
    is_import: bool = False

    def current(self, project: Project) -> Project:
        """The project that this one was merged into, or itself."""
        return self.aliases.get(project.key, project)

    def override(self, directory: str, root: str = "/") -> Project | None:
        """Returns the override of the nearest directory, up to the root of the work tree."""
        if not self.overrides:
            return None
        path = Path(os.path.realpath(directory))
        for place in (path, *path.parents):
            if str(place) in self.overrides:
                return self.overrides[str(place)]
            if str(place) == root:
                return None
        return None


def client_state_file(environ: Mapping[str, str]) -> Path:
    """The file in which Claude Code stores its state."""
    configured = environ.get("CLAUDE_CONFIG_DIR")
    return Path(configured or environ.get("HOME", "/")) / ".claude.json"


def decide(
    directory: str, claim: Claim, access: Access, claim_of: Callable[[str], Claim]
) -> Decision:
    own, claimed = claim.own, access.current(claim.project)
    override = access.override(directory, claim.root)
    if override is not None:
        return Decision(override, own=own)
    if own.key in access.aliases:
        return Decision(access.aliases[own.key], own=own)
    if claimed.key == own.key:
        return Decision(own, own=own)
    if _has_access(directory, claim, claimed, access, claim_of):
        return Decision(claimed, own=own, is_accepted=True)
    return Decision(own, claimed, own)


def _has_access(
    directory: str,
    claim: Claim,
    claimed: Project,
    access: Access,
    claim_of: Callable[[str], Claim],
) -> bool:
    for place in (directory, claim.root):
        project = access.directories.get(place)
        if project is not None and access.current(project).key == claimed.key:
            return True
    if not claim.is_proven:
        return False
    if access.is_import and directory not in access.directories:
        return True
    if claimed.key not in access.keys:
        return True
    if access.trust.is_accepted(directory, claim.root):
        return True
    known = (d for d, project in access.directories.items() if project.key == claimed.key)
    return any(claim_of(place).anchor == claim.anchor for place in known if Path(place).is_dir())


def _is_inside(path: str, root: str) -> bool:
    real, real_root = os.path.realpath(path), os.path.realpath(root)
    return real.startswith(real_root.rstrip("/") + "/")

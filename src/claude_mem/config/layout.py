"""The data directory: its location and the paths in it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from claude_mem import paths
from claude_mem.errors import SettingsError

_OWN_NAMES = frozenset(
    os.fsdecode(name)
    for name in (
        paths.SPOOL, paths.CONTEXTS, paths.LOGS, paths.TROUBLE, paths.WAKE, paths.LOCK,
        paths.SOCKET, paths.WORKER_STATE, paths.LAST_WORKER_STATE, paths.LAUNCHER,
        paths.MCP_LAUNCHER, paths.DATABASE, paths.BACKUPS, paths.TOKEN, paths.SETTINGS,
        paths.ENVIRONMENT,
        paths.ACTIVITY_FLAG, paths.OBSERVER, paths.AGREED, paths.INTAKE_MARK,
        paths.LOST, paths.PAUSED,
        paths.INTAKE_SUSPECTS, paths.UNDELETABLE, paths.HINTS, paths.FILE_HINTS, paths.TEAM,
        b"plugin", b"installed.json", b".trouble.told", b".launcher-told", paths.REMOVER,
    )
)  # fmt: skip
_OWN_PREFIXES = (
    *(f"{os.fsdecode(paths.DATABASE)}{suffix}" for suffix in ("-", ".damaged-", ".replaced-")),
    f"{os.fsdecode(paths.SETTINGS)}.invalid",
)


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths in the data directory."""

    root: Path

    def at(self, name: bytes) -> Path:
        return self.root / os.fsdecode(name)

    @property
    def spool(self) -> Path:
        return self.at(paths.SPOOL)

    @property
    def rejected(self) -> Path:
        return self.at(paths.REJECTED)

    @property
    def set_aside(self) -> Path:
        return self.at(paths.SET_ASIDE)

    @property
    def intake_mark(self) -> Path:
        return self.at(paths.INTAKE_MARK)

    @property
    def intake_suspects(self) -> Path:
        return self.at(paths.INTAKE_SUSPECTS)

    @property
    def undeletable(self) -> Path:
        return self.at(paths.UNDELETABLE)

    @property
    def paused(self) -> Path:
        return self.at(paths.PAUSED)

    @property
    def lost(self) -> Path:
        return self.at(paths.LOST)

    @property
    def contexts(self) -> Path:
        return self.at(paths.CONTEXTS)

    @property
    def worker_log(self) -> Path:
        return self.at(paths.WORKER_LOG)

    @property
    def hook_log(self) -> Path:
        return self.at(paths.HOOK_LOG)

    @property
    def wake(self) -> Path:
        return self.at(paths.WAKE)

    @property
    def lock(self) -> Path:
        return self.at(paths.LOCK)

    @property
    def socket(self) -> Path:
        return self.at(paths.SOCKET)

    @property
    def worker_state(self) -> Path:
        return self.at(paths.WORKER_STATE)

    @property
    def last_worker_state(self) -> Path:
        return self.at(paths.LAST_WORKER_STATE)

    @property
    def launcher(self) -> Path:
        return self.at(paths.LAUNCHER)

    @property
    def mcp_launcher(self) -> Path:
        return self.at(paths.MCP_LAUNCHER)

    @property
    def remover(self) -> Path:
        return self.at(paths.REMOVER)

    @property
    def database(self) -> Path:
        return self.at(paths.DATABASE)

    @property
    def backups(self) -> Path:
        return self.at(paths.BACKUPS)

    @property
    def token(self) -> Path:
        return self.at(paths.TOKEN)

    @property
    def settings(self) -> Path:
        return self.at(paths.SETTINGS)

    @property
    def environment(self) -> Path:
        return self.at(paths.ENVIRONMENT)

    @property
    def activity_flag(self) -> Path:
        return self.at(paths.ACTIVITY_FLAG)

    @property
    def observer(self) -> Path:
        return self.at(paths.OBSERVER)

    @property
    def hints_flag(self) -> Path:
        return self.at(paths.HINTS)

    @property
    def file_hints_flag(self) -> Path:
        return self.at(paths.FILE_HINTS)

    @property
    def agreed(self) -> Path:
        return self.at(paths.AGREED)

    @property
    def team(self) -> Path:
        return self.at(paths.TEAM)

    def is_ours(self, name: str) -> bool:
        """Whether claude-mem creates a file of this name; another program may use the name too."""
        return name in _OWN_NAMES or name.startswith(_OWN_PREFIXES)

    def mark_hints(self, is_on: bool, *, of_files: bool = False) -> None:
        """Tells the hook, which cannot read the settings, whether to ask for hints."""
        for flag, is_set in ((self.hints_flag, is_on), (self.file_hints_flag, of_files)):
            if is_set:
                flag.touch(mode=0o600)
            else:
                flag.unlink(missing_ok=True)

    def create(self) -> None:
        """Create the directories, readable by their owner only."""
        for directory in (self.root, self.spool, self.rejected, self.set_aside, self.contexts,
                          self.backups, self.worker_log.parent):  # fmt: skip
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if directory.stat().st_mode & 0o077:
                directory.chmod(0o700)
        if not self.lost.exists():
            # Before the disk is full: then its first block still takes a count.
            self.lost.touch(mode=0o600)
            self.lost.write_bytes(b"\n")


def repository_of(layout: Layout, environ: Mapping[str, str]) -> Path | None:
    """The git work tree that the data directory is in, if it is not the home directory.

    Its launcher, settings and consent may then come from the repository: no worker uses them.
    """
    root = layout.root.resolve()
    homes = {
        Path(home).resolve() for name in ("HOME", "USERPROFILE") if (home := environ.get(name))
    }
    for directory in (root, *root.parents):
        if directory in homes:
            return None
        if (directory / ".git").exists():
            return directory
    return None


def refusal_message(repository: Path) -> str:
    return (
        f"the data directory is inside the repository {repository}, whose files are not trusted: "
        "set CLAUDE_MEM_DATA_DIR to a directory outside of it and run claude-mem install"
    )


def find_layout(environ: Mapping[str, str]) -> Layout:
    encoded = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
    root = paths.data_dir(encoded)
    if not root:
        raise SettingsError("neither CLAUDE_MEM_DATA_DIR nor HOME is set: set one of them")
    path = Path(os.fsdecode(root))
    if not path.is_absolute():
        # The hook runs in the project's directory, the worker does not.
        raise SettingsError(f"CLAUDE_MEM_DATA_DIR={path} must be an absolute path")
    return Layout(path)

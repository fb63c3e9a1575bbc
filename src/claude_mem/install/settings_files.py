"""Files of agents that contain something of ours, and how they change."""

import os
from dataclasses import dataclass
from pathlib import Path

from claude_mem.agents.agent import Entry, Ours, TomlEntry
from claude_mem.errors import SettingsError
from claude_mem.install.json_entries import Editor, Place, containers
from claude_mem.install.toml_table import TomlTable


@dataclass(frozen=True, slots=True)
class Change:
    """A file before and after; None means no file."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def is_empty(self) -> bool:
        return self.before == self.after


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A file, and what of it is ours: entries, a table, or the content as a whole."""

    path: Path
    entries: tuple[Entry, ...] = ()
    table: TomlTable | None = None
    content: str | None = None
    launchers: tuple[Path, ...] = ()

    @classmethod
    def of(cls, path: Path, ours: Ours, launchers: tuple[Path, ...]) -> "SettingsFile":
        if isinstance(ours, str):
            return cls(path, content=ours)
        if isinstance(ours, TomlEntry):
            return cls(path, table=TomlTable(path, ours.parent, ours.name, ours.command))
        return cls(path, ours, launchers=launchers)

    def with_ours(self) -> Change:
        before = read(self.path)
        return Change(self.path, before, self._with_ours(self._decoded(before)).encode())

    def _with_ours(self, text: str) -> str:
        if self.content is not None:
            return self.content
        if self.table is not None:
            return self.table.with_table(text)
        return self._editor.with_entries(text, self.entries)

    def without_ours(self, original: bytes | None = None) -> Change:
        """`original`: the content before install, whose objects and lists stay."""
        before = read(self.path)
        if before is None or self.content is not None:
            return Change(self.path, before, None)
        text = self._decoded(before)
        if self.table is not None:
            after = self.table.without_table(text)
        else:
            existed = containers(self._decoded(original), self.entries)
            after = self._editor.without_entries(text, self.entries, existed)
        return Change(self.path, before, after.encode())

    def places(self) -> list[Place]:
        """Where it has something of ours."""
        before = read(self.path)
        if self.content is not None:
            return [] if before is None else [(self.path.name,)]
        text = self._decoded(before)
        if self.table is not None:
            return [(self.table.name,)] if self.table.has_table(text) else []
        return self._editor.places(text, self.entries)

    def has_any(self) -> bool:
        """Whether some of it is installed; False if the file cannot be read."""
        try:
            return bool(self.places())
        except SettingsError:
            return False

    def missing(self) -> list[str]:
        """What is not installed, by name."""
        if self.content is not None:
            wanted: list[Place] = [(self.path.name,)]
        elif self.table is not None:
            wanted = [(self.table.name,)]
        else:
            wanted = [entry.place for entry in self.entries if not entry.is_default]
        present = self.places()
        return [place[-1] for place in wanted if place not in present]

    def names_launcher(self) -> bool:
        data = read(self.path) or b""
        paths = (self.table.command,) if self.table is not None else self.launchers
        return any(os.fsencode(path) in data for path in paths)

    @property
    def _editor(self) -> Editor:
        return Editor(self.path, self.launchers)

    def _decoded(self, data: bytes | None) -> str:
        try:
            return (data or b"").decode("utf-8")
        except UnicodeDecodeError:
            raise SettingsError(f"{self.path} is not UTF-8; the file was not changed") from None


def apply(change: Change) -> None:
    """Write the file atomically, following links and keeping its mode."""
    if change.is_empty:
        return
    check_writable(change.path)
    target = change.path.resolve()
    try:
        if change.after is None:
            target.unlink()
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
        temporary = target.with_name(f".{target.name}.claude-mem")
        temporary.write_bytes(change.after)
        temporary.chmod(mode)
        temporary.replace(target)
    except OSError as error:
        raise SettingsError(f"{change.path} cannot be written: {error.strerror}") from None


def check_writable(path: Path) -> None:
    """Check the file and the directory in which it is replaced or created."""
    target = path.resolve()
    directory = next(parent for parent in target.parents if parent.exists())
    for required in (target, directory) if target.exists() else (directory,):
        if not os.access(required, os.W_OK):
            raise SettingsError(f"{path} cannot be written: {required} is read-only")


def read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from None

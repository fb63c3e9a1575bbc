"""The notes that clients keep themselves, in their memory files: read, never written.

Claude Code has a directory for each project, Codex one for all. Only regular files of a limited
size that hold text are read, without following links and without blocking.
"""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LARGEST_FILE = 64 * 1024
MAX_FILES, MAX_BYTES = 100, 1024 * 1024  # of one directory
MAX_ENTRIES = 1_000
_SUFFIXES = (".md", ".txt")
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9]")
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


@dataclass(frozen=True, slots=True)
class NoteFile:
    path: str
    text: str
    modified_ms: int


def claude_directory(config_dir: Path, project_dir: str) -> Path:
    """Where Claude Code keeps its memory of a project."""
    return config_dir / "projects" / _NOT_IN_NAME.sub("-", project_dir) / "memory"


def codex_directory(home: Path) -> Path:
    return home / ".codex" / "memories"


def read_client_memory(directory: Path) -> list[NoteFile]:
    """Reads the notes by name; empty if there is no such directory."""
    try:
        descriptor = os.open(directory, _FLAGS | os.O_DIRECTORY)
    except (OSError, ValueError):
        return []
    try:
        return list(_read(directory, descriptor))
    finally:
        os.close(descriptor)


def _read(directory: Path, descriptor: int) -> Iterator[NoteFile]:
    remaining, count = MAX_BYTES, 0
    for name in _names(descriptor):
        file = _read_file(directory, descriptor, name)
        if file is None:
            continue
        remaining, count = remaining - len(file.text), count + 1
        if remaining < 0 or count > MAX_FILES:
            return
        yield file


def _names(descriptor: int) -> list[str]:
    names: list[str] = []
    with os.scandir(descriptor) as entries:
        for number, entry in enumerate(entries):
            if number >= MAX_ENTRIES:
                break
            if entry.name.lower().endswith(_SUFFIXES) and not entry.name.startswith("."):
                names.append(entry.name)
    return sorted(names)


def _read_file(directory: Path, parent: int, name: str) -> NoteFile | None:
    try:
        descriptor = os.open(name, _FLAGS, dir_fd=parent)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_FILE:
            return None
        data = os.read(descriptor, LARGEST_FILE)
        path = str(directory / name).encode("utf-8", "replace").decode()
        text = data.decode("utf-8")
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)
    if "\0" in text or not text.strip():
        return None
    return NoteFile(path, text, status.st_mtime_ns // 1_000_000)

"""Entries of the spool that can be neither read nor deleted, by name: directories, files of another
user, files that nobody may change. They are left out until they are gone."""

import json
from pathlib import Path

from claude_mem.config import Layout, write_private


def names(layout: Layout) -> set[str]:
    try:
        listed = json.loads(layout.undeletable.read_bytes())
    except (OSError, ValueError):
        return set()
    return set(filter(None, listed)) if isinstance(listed, list) else set()


def add(layout: Layout, path: Path) -> None:
    """Forgets those that are gone."""
    kept = [name for name in names(layout) if _exists(layout.spool / name)]
    write_private(layout.undeletable, json.dumps(sorted({*kept, path.name})).encode())


def entries(layout: Layout) -> list[Path]:
    paths = [layout.spool / name for name in sorted(names(layout))]
    return [path for path in paths if _exists(path)]


def _exists(path: Path) -> bool:
    try:
        path.lstat()
    except OSError:
        return False
    return True

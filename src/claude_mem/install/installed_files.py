"""What install changed, written down, so that uninstall can take exactly that back."""

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from claude_mem.config import Layout, write_private
from claude_mem.install.claude_settings import Change, apply, containers, read, without_hooks

_FILE = "installed.json"


@dataclass(frozen=True, slots=True)
class InstalledFile:
    path: Path
    before: bytes | None
    after: bytes

    def undo(self, launcher: Path) -> Change:
        """Byte for byte where nothing else changed since; else only our entries go."""
        if read(self.path) == self.after:
            return Change(self.path, self.after, self.before)
        return without_hooks(self.path, launcher, containers(self.before))


def remember(layout: Layout, change: Change) -> Path | None:
    """Keeps what the file is without us and what we give it; a copy of it as a backup."""
    assert change.after is not None
    known = {file.path: file for file in installed_files(layout)}
    without_us = _without_us(known.get(change.path), change, layout.launcher)
    known[change.path] = InstalledFile(change.path, without_us, change.after)
    _write(layout, list(known.values()))
    if change.before is None:
        return None
    layout.backups.mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    backup = layout.backups / f"claude-settings-{stamp}.json"
    write_private(backup, change.before)
    return backup


def _without_us(known: InstalledFile | None, change: Change, launcher: Path) -> bytes | None:
    """What the person has there, with every change that they made since the last install."""
    if known is None:
        return change.before
    if change.before == known.after:
        return known.before
    return without_hooks(change.path, launcher, containers(known.before)).after


def installed_files(layout: Layout) -> list[InstalledFile]:
    try:
        rows = json.loads((layout.root / _FILE).read_bytes())
        return [
            InstalledFile(
                Path(row["path"]),
                None if row["before"] is None else base64.b64decode(row["before"]),
                base64.b64decode(row["after"]),
            )
            for row in rows
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def forget(layout: Layout, path: Path) -> None:
    _write(layout, [file for file in installed_files(layout) if file.path != path])


def take_back(layout: Layout, file: InstalledFile, launcher: Path) -> Change:
    change = file.undo(launcher)
    apply(change)
    forget(layout, file.path)
    return change


def _write(layout: Layout, files: list[InstalledFile]) -> None:
    rows = [
        {
            "path": str(file.path),
            "before": None if file.before is None else base64.b64encode(file.before).decode(),
            "after": base64.b64encode(file.after).decode(),
        }
        for file in files
    ]
    target = layout.root / _FILE
    if rows:
        write_private(target, json.dumps(rows, indent=2).encode())
    else:
        target.unlink(missing_ok=True)

"""A record of the settings files that install changed, so that uninstall can restore them."""

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from claude_mem.config import Layout, write_private
from claude_mem.install.claude_settings import Change, apply, containers, read, without_hooks
from claude_mem.install.remover import Restorable, write_remover

_FILE = "installed.json"


@dataclass(frozen=True, slots=True)
class ChangedFile(Restorable):
    agent: str = "claude"

    def revert(self, launcher: Path) -> Change:
        """The bytes from before if nothing else changed since; otherwise only our entries go."""
        if read(self.path) == self.after:
            return Change(self.path, self.after, self.before)
        return without_hooks(self.path, launcher, containers(self.before))


def save_record(layout: Layout, change: Change, agent: str = "claude") -> Path | None:
    """Record the change and back up the file; returns the backup, or None if there was no file."""
    assert change.after is not None
    records = {file.path: file for file in read_records(layout)}
    before = _content_without_ours(records.get(change.path), change, layout.launcher, agent)
    records[change.path] = ChangedFile(change.path, before, change.after, agent)
    _write(layout, list(records.values()))
    if change.before is None:
        return None
    layout.backups.mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    backup = layout.backups / f"{agent}-settings-{stamp}{change.path.suffix}"
    write_private(backup, change.before)
    return backup


def _content_without_ours(
    record: ChangedFile | None, change: Change, launcher: Path, agent: str
) -> bytes | None:
    """The user's own content, with every change they made since the last install."""
    if record is None:
        return change.before
    if change.before == record.after or agent != "claude":
        return record.before
    return without_hooks(change.path, launcher, containers(record.before)).after


def read_records(layout: Layout) -> list[ChangedFile]:
    try:
        rows = json.loads((layout.root / _FILE).read_bytes())
        return [
            ChangedFile(
                Path(row["path"]),
                None if row["before"] is None else base64.b64decode(row["before"]),
                base64.b64decode(row["after"]),
                str(row.get("agent", "claude")),
            )
            for row in rows
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def delete_record(layout: Layout, path: Path) -> None:
    _write(layout, [file for file in read_records(layout) if file.path != path])


def revert_file(layout: Layout, file: ChangedFile) -> Change:
    change = file.revert(layout.launcher)
    apply(change)
    delete_record(layout, file.path)
    return change


def _write(layout: Layout, files: list[ChangedFile]) -> None:
    rows = [
        {
            "path": str(file.path),
            "before": None if file.before is None else base64.b64encode(file.before).decode(),
            "after": base64.b64encode(file.after).decode(),
            "agent": file.agent,
        }
        for file in files
    ]
    target = layout.root / _FILE
    if rows:
        write_private(target, json.dumps(rows, indent=2).encode())
    else:
        target.unlink(missing_ok=True)
    renew_remover(layout)


def renew_remover(layout: Layout) -> None:
    """It restores the files in these records."""
    write_remover(layout, read_records(layout))

"""A record of the settings files that install changed, so that uninstall can restore them."""

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from claude_mem.config import Layout, write_private
from claude_mem.errors import SettingsError
from claude_mem.install.remover import Restorable, write_remover
from claude_mem.install.settings_files import Change, SettingsFile, apply

_FILE = "installed.json"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step of install or uninstall did, for the user."""

    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class ChangedFile(Restorable):
    agent: str = "claude"


def write(layout: Layout, file: SettingsFile, change: Change, agent: str) -> str:
    """Record the change, back up the file and write it; returns a note about the backup."""
    assert change.after is not None
    records = {record.path: record for record in read_records(layout)}
    before = _content_without_ours(records.get(file.path), file, change)
    records[file.path] = ChangedFile(file.path, before, change.after, agent)
    _write_records(layout, list(records.values()))
    backup = _back_up(layout, change, agent)
    try:
        apply(change)
    except SettingsError:
        _delete_record(layout, file.path)
        raise
    return f" Backup: {backup}" if backup else ""


def _back_up(layout: Layout, change: Change, agent: str) -> Path | None:
    if change.before is None:
        return None
    layout.backups.mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    backup = layout.backups / f"{agent}-settings-{stamp}{change.path.suffix}"
    write_private(backup, change.before)
    return backup


def _content_without_ours(
    record: ChangedFile | None, file: SettingsFile, change: Change
) -> bytes | None:
    """The user's own content, with every change they made since the last install."""
    if record is None:
        return change.before
    if change.before == record.after or file.content is not None:
        return record.before
    return file.without_ours(record.before).after


def remove_ours(
    layout: Layout, agent: str, files: Iterable[SettingsFile], removed: str
) -> list[Outcome]:
    """What is ours goes; a file in which nothing else has changed since install is as before.
    `removed` begins the line for the user."""
    records = {record.path: record for record in read_records(layout) if record.agent == agent}
    outcomes = []
    for file in files:
        try:
            change = _reverted(file, records.get(file.path))
            apply(change)
            if file.path in records:
                _delete_record(layout, file.path)
            if not change.is_empty:
                outcomes.append(Outcome(f"{removed} {file.path}."))
        except SettingsError as error:
            text = f"Our entries were not removed, please edit the file yourself: {error}."
            outcomes.append(Outcome(text, True))
    return outcomes


def _reverted(file: SettingsFile, record: ChangedFile | None) -> Change:
    if record is not None:
        change = file.without_ours(record.before)
        is_as_installed = change.before == record.after
        return Change(file.path, record.after, record.before) if is_as_installed else change
    try:
        return file.without_ours()
    except SettingsError:
        if file.names_launcher():
            raise
        return Change(file.path, None, None)  # it cannot be read, but has nothing of ours


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


def recorded_paths(layout: Layout, agent: str) -> list[Path]:
    return [record.path for record in read_records(layout) if record.agent == agent]


def _delete_record(layout: Layout, path: Path) -> None:
    _write_records(layout, [file for file in read_records(layout) if file.path != path])


def _write_records(layout: Layout, files: list[ChangedFile]) -> None:
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
    """Renews the remover, which restores the files in these records."""
    write_remover(layout, read_records(layout))

"""Importing an export, or the database of the TypeScript claude-mem."""

import os
from collections.abc import Iterable
from pathlib import Path

from claude_mem.cli.open_store import open_store_for_import
from claude_mem.config import Settings
from claude_mem.redaction import Redactor
from claude_mem.store.transfer.restore import Refusal, RestoreReport, is_export, restore
from claude_mem.store.transfer.typescript.importer import DatabaseReport, import_typescript
from claude_mem.text import pluralize
from claude_mem.worker.contexts import refresh_contexts

__all__ = [
    "import_database",
    "is_export",
    "refresh_contexts",
    "report_of_database",
    "report_of_file",
    "restore_file",
]


def restore_file(settings: Settings, path: Path, *, is_own: bool = True) -> RestoreReport:
    """Merge an export into the database; running it again changes nothing."""
    with open_store_for_import(settings) as store:
        report = restore(store, path, _redactor(settings), is_own=is_own)
        refresh_contexts(settings, store, os.environ)
    return report


def import_database(settings: Settings, path: Path) -> DatabaseReport:
    """Import the other database; nothing is written to it or next to it."""
    with open_store_for_import(settings) as store:
        report = import_typescript(store, path, _redactor(settings))
        refresh_contexts(settings, store, os.environ)
    return report


def _redactor(settings: Settings) -> Redactor:
    return Redactor(settings.capture.redact_allow)


def report_of_file(report: RestoreReport) -> list[str]:
    lines = [
        f"{report.added.total()} records restored, {report.existing.total()} already stored",
        *_refusals(report.refused, report.reasons),
    ]
    if report.candidates:
        rules = pluralize(report.candidates, "rule")
        lines.append(f"{rules} to confirm: claude-mem facts; for an export of your own, use --own")
    if report.private:
        lines.append(f"{report.private} skipped: they belong to private prompts")
    if report.forgotten:
        lines.append(f"{report.forgotten} skipped: they were forgotten here")
    if not report.is_complete:
        lines.append("the file is cut off: the complete records before that were restored")
    return lines


def report_of_database(report: DatabaseReport) -> list[str]:
    sessions, added = report.sessions, report.added
    existing = sessions["skipped"] + sessions["unchanged"]
    return [
        f"{sessions['added']} sessions imported, {sessions['updated']} updated, "
        f"{existing} already stored",
        f"{added['observations']} observations, {added['summaries']} summaries, "
        f"{added['prompts']} prompts",
        *_refusals(report.refused, report.reasons),
    ]


def _refusals(count: int, reasons: Iterable[Refusal]) -> list[str]:
    if not count:
        return []
    lines = [f"  {refusal.place} {refusal.reason}" for refusal in reasons]
    more = [f"  and {count - len(lines)} more"] if count > len(lines) else []
    return [f"{count} records were rejected:", *lines, *more]

"""Memory brought back from a file, or taken over from the TypeScript claude-mem's database."""

import os
from collections.abc import Iterable
from pathlib import Path

from claude_mem.cli.store import open_store_for_import
from claude_mem.config import Settings
from claude_mem.hook.wake import wake
from claude_mem.privacy import Redactor
from claude_mem.store import Store
from claude_mem.store.transfer.restore import Refusal, RestoreReport, is_export, restore
from claude_mem.store.transfer.typescript.importer import DatabaseReport, import_typescript
from claude_mem.worker.contexts import render_contexts

__all__ = ["import_database", "is_export", "report_of_database", "report_of_file", "restore_file"]


def restore_file(settings: Settings, path: Path) -> RestoreReport:
    """Merges an export into the memory; running it again changes nothing."""
    with open_store_for_import(settings) as store:
        restored = restore(store, path, _redactor(settings))
        _make_it_count(settings, store, restored.projects)
    return restored


def import_database(settings: Settings, path: Path) -> DatabaseReport:
    """Imports the memories of that database; nothing is written to it or next to it."""
    with open_store_for_import(settings) as store:
        report = import_typescript(store, path, _redactor(settings))
        _make_it_count(settings, store, report.projects)
    return report


def _redactor(settings: Settings) -> Redactor:
    return Redactor(settings.capture.redact_allow)


def _make_it_count(settings: Settings, store: Store, projects: list[int]) -> None:
    """The next session is given it even without a worker; a worker looks at the queue now."""
    budget = settings.context.tokens
    for project_id in projects:
        render_contexts(settings.layout, store, project_id, budget)
    wake(os.fsencode(settings.layout.root))


def report_of_file(restored: RestoreReport) -> list[str]:
    """Lines for the person."""
    lines = [
        f"{restored.added.total()} records restored, {restored.existing.total()} already known",
        *_refusals(restored.refused, restored.reasons),
    ]
    if restored.private:
        lines.append(f"{restored.private} left out: they belong to private prompts")
    if restored.forgotten:
        lines.append(f"{restored.forgotten} left out: they were forgotten here")
    if not restored.is_complete:
        lines.append("the file ends before its last line: what came before it is restored")
    return lines


def report_of_database(report: DatabaseReport) -> list[str]:
    """Lines for the person."""
    sessions, added = report.sessions, report.added
    existing = sessions["skipped"] + sessions["unchanged"]
    return [
        f"{sessions['added']} sessions imported, {sessions['updated']} updated, "
        f"{existing} already known",
        f"{added['observations']} observations, {added['summaries']} summaries, "
        f"{added['prompts']} prompts",
        *_refusals(report.refused, report.reasons),
    ]


def _refusals(count: int, reasons: Iterable[Refusal]) -> list[str]:
    if not count:
        return []
    told = [f"  {refusal.place} {refusal.reason}" for refusal in reasons]
    more = [f"  and {count - len(told)} more"] if count > len(told) else []
    return [f"{count} could not be used:", *told, *more]

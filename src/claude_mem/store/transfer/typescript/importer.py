"""Imports the memories of a TypeScript claude-mem's database.

A session is stored completely or not at all; running the import again adds what is missing.
"""

import sqlite3
from collections import Counter, deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from claude_mem.hook.kill_points import reach
from claude_mem.redaction import Redactor
from claude_mem.store.store import Store
from claude_mem.store.transfer.restore import REASONS_KEPT, Refusal
from claude_mem.store.transfer.typescript.reader import read_sessions
from claude_mem.store.transfer.typescript.snapshot import open_copy
from claude_mem.store.transfer.typescript.writer import ImportedSession

PENDING_SESSIONS = 16  # that may share a transaction


@dataclass(slots=True)
class DatabaseReport:
    """Sessions by outcome (`writer.Outcome`), rows added by noun, and what could not be used."""

    sessions: Counter[str] = field(default_factory=Counter)
    added: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    reasons: list[Refusal] = field(default_factory=list)  # the first of them
    projects: list[int] = field(default_factory=list)

    def refuse(self, place: str, reason: str) -> None:
        self.refused += 1
        if len(self.reasons) < REASONS_KEPT:
            self.reasons.append(Refusal(place, reason))

    def count(self, imported: ImportedSession) -> None:
        self.sessions[imported.outcome] += 1
        self.added += imported.counts
        if imported.project_id not in self.projects:
            self.projects.append(imported.project_id)


def import_typescript(store: Store, path: Path, redactor: Redactor) -> DatabaseReport:
    report = DatabaseReport()
    pending: deque[tuple[str, Future[ImportedSession]]] = deque()
    with open_copy(path) as connection:
        for session in read_sessions(connection, redactor, report.refuse):
            pending.append((session.content_session_id, store.import_legacy_session(session)))
            if len(pending) >= PENDING_SESSIONS:
                _wait_for(*pending.popleft(), report)
        while pending:
            _wait_for(*pending.popleft(), report)
    return report


def _wait_for(session_id: str, imported: "Future[ImportedSession]", report: DatabaseReport) -> None:
    try:
        report.count(imported.result())
    except sqlite3.IntegrityError as error:
        report.refuse(f"session {session_id}", str(error))
    reach(b"import_database.after_session")

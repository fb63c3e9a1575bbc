"""The memory of the TypeScript claude-mem taken over: its database read, each session adopted.

A session is stored wholly or not at all, and running it again adds what is missing.
"""

import sqlite3
from collections import Counter, deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from claude_mem.hook.faults import reach
from claude_mem.privacy import Redactor
from claude_mem.store.store import Store
from claude_mem.store.transfer.restore import REASONS_KEPT, Refusal
from claude_mem.store.transfer.typescript.adopt import AdoptedSession
from claude_mem.store.transfer.typescript.database import read_sessions
from claude_mem.store.transfer.typescript.snapshot import open_copy

WAITING = 16  # sessions that may share a transaction


@dataclass(slots=True)
class TakeoverReport:
    """What became of a database: sessions by outcome (`Adopted`), what they brought, what not."""

    sessions: Counter[str] = field(default_factory=Counter)
    added: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    reasons: list[Refusal] = field(default_factory=list)  # the first of them
    projects: list[int] = field(default_factory=list)

    def refuse(self, place: str, reason: str) -> None:
        self.refused += 1
        if len(self.reasons) < REASONS_KEPT:
            self.reasons.append(Refusal(place, reason))

    def count(self, adopted: AdoptedSession) -> None:
        self.sessions[adopted.outcome] += 1
        self.added += adopted.counts
        if adopted.project_id not in self.projects:
            self.projects.append(adopted.project_id)


def inherit(store: Store, path: Path, redactor: Redactor) -> TakeoverReport:
    report = TakeoverReport()
    waiting: deque[tuple[str, Future[AdoptedSession]]] = deque()
    with open_copy(path) as connection:
        for session in read_sessions(connection, redactor, report.refuse):
            waiting.append((session.content_session_id, store.adopt_session(session)))
            if len(waiting) >= WAITING:
                _settle(*waiting.popleft(), report)
        while waiting:
            _settle(*waiting.popleft(), report)
    return report


def _settle(session_id: str, adopting: "Future[AdoptedSession]", report: TakeoverReport) -> None:
    try:
        report.count(adopting.result())
    except sqlite3.IntegrityError as error:
        report.refuse(f"session {session_id}", str(error))
    reach(b"inherit.after_session")

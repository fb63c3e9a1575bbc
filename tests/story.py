"""A store with a clock that tests control, and events recorded in it as the client sends them."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from claude_mem.config import Layout
from claude_mem.hook import trouble
from claude_mem.index import indexing
from claude_mem.intake.event_reader import EventHeader, EventReader
from claude_mem.intake.projects import Projects
from claude_mem.redaction import Redactor
from claude_mem.store import Store, sessions
from claude_mem.store.memory_rows import JsonRow
from claude_mem.store.turns import Recorded
from claude_mem.types import Event, Job, Turn
from claude_mem.worker.announcer import Announcer
from claude_mem.worker.contexts import Contexts
from claude_mem.worker.distil_jobs import JobRunner
from tests.empty_database import put_empty_database
from tests.payloads import PROJECT_DIR, SESSION, Payload
from tests.rows import CommittedRows

START = 1_760_000_000_000
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


class Story(CommittedRows):
    def __init__(self, directory: Path) -> None:
        self.now = START
        self._layout = Layout(directory / "data")
        self.layout.create()
        put_empty_database(self.layout.database)
        self.store = Store.open(self.layout.database, self.layout.backups, clock=lambda: self.now)
        self.store.run_before_commit(indexing.refresh)
        self.announcer = Announcer(self.layout, self.store)
        self.contexts = Contexts(self.layout, self.store, home="", budget=1_000)
        self.reader = EventReader(Redactor(), Projects(home=None))

    @property
    def layout(self) -> Layout:
        return self._layout

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.store.close()

    def event(self, payload: Payload, project_dir: str = PROJECT_DIR) -> Event:
        header = EventHeader(payload["hook_event_name"], self.now, project_dir)
        return self.reader.read(header, payload)

    def tell(
        self, *payloads: Payload, after: int = SECOND, project_dir: str = PROJECT_DIR
    ) -> Recorded:
        """Records each payload `after` milliseconds later; the outcome of the last one."""
        for payload in payloads:
            self.now += after
            recorded = self.store.record_events([self.event(payload, project_dir)]).result()[0]
        return recorded

    def distil(self) -> int:
        jobs = JobRunner(self.layout, self.store, self.announcer, self.contexts)
        return asyncio.run(jobs.run_due())

    def claim(self) -> tuple[Job, Turn]:
        claimed = self.store.claim_job().result()
        assert claimed is not None
        job, turn = claimed
        assert turn is not None
        return job, turn

    def session(self, content_session_id: str = SESSION) -> JsonRow:
        record = self.store.session_by_content_id(content_session_id)
        assert record is not None
        return record

    def session_db_id(self, content_session_id: str = SESSION) -> int:
        return int(str(self.session(content_session_id)["id"]))

    def register_memory_session(self, session_db_id: int, captured: str | None = None) -> str:
        return self.store.write(
            lambda c: sessions.register_memory_session(c, session_db_id, captured)
        ).result()

    def delete_session(self, session_db_id: int) -> None:
        self.store.write(
            lambda c: c.execute("DELETE FROM sdk_sessions WHERE id = ?", (session_db_id,))
        ).result()

    def queue(self) -> dict[str, int]:
        """How many jobs there are, by status."""
        return {state: count for state, count in self.store.queue_state().items() if count}

    def trouble(self) -> str:
        """The message that the user would see next."""
        return trouble.take(os.fsencode(self.layout.root)).decode()


@contextmanager
def transactions_of(store: Store) -> Iterator[list[str]]:
    """The transactions that the writer begins: each may wait for the disk."""
    statements: list[str] = []
    connection = store._writer._connection

    def trace(statement: str) -> None:
        if statement.startswith("BEGIN"):
            statements.append(statement)

    connection.set_trace_callback(trace)
    try:
        yield statements
    finally:
        connection.set_trace_callback(None)

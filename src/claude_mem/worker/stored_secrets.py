"""Finds secrets in everything that is stored, and removes them. Only the worker writes."""

import asyncio
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from claude_mem.config import Layout
from claude_mem.errors import StoreError
from claude_mem.intake import rejected_events
from claude_mem.redaction import Redactor
from claude_mem.store import Store, StoreReader, backups, file_scrubbing, recovery
from claude_mem.store.database import connect
from claude_mem.store.sessions import drop_conversation
from claude_mem.store.stored_secrets import (
    TABLES,
    Batch,
    Finding,
    Key,
    find_in_text,
    find_secrets,
    redact_batch,
)
from claude_mem.worker.worker import Worker

log = logging.getLogger("claude_mem.redact")

LARGEST_FILE = 32_000_000  # bytes; logs are rotated long before


def scan(layout: Layout, store: StoreReader, redactor: Redactor) -> list[Finding]:
    findings = store.read(lambda connection: list(find_secrets(connection, redactor)))
    return [*findings, *_in_backups(layout, redactor), *_in_files(layout, redactor)]


@dataclass(frozen=True, slots=True)
class ReplacedFiles:
    """How many files `clean` replaces or deletes as a whole."""

    backups: int
    logs: int
    rejected: int
    damaged: int


def files_to_replace(layout: Layout) -> ReplacedFiles:
    logs = layout.worker_log.parent
    return ReplacedFiles(
        len(backups.newest_first(layout.backups)),
        sum(path.stat().st_size > 0 for path in logs.iterdir()) if logs.is_dir() else 0,
        len(rejected_events.rejected(layout)) + len(rejected_events.records_set_aside(layout)),
        len(recovery.replaced_copies(layout.database)),
    )


async def clean(worker: Worker) -> list[Finding]:
    """What was removed from the rows; other files are replaced or deleted as a whole."""
    await worker.catch_up()
    findings = await asyncio.to_thread(_redact_rows, worker.store, worker.reader.redactor)
    await asyncio.wrap_future(worker.store.write(partial(_drop_copies, ms=worker.clock())))
    await worker.index_waiting()
    await worker.scrub_data_directory()
    await worker.refiner.clean_up_conversations()
    await worker.contexts.render_stale()
    return findings


def _redact_rows(store: Store, redactor: Redactor) -> list[Finding]:
    findings: list[Finding] = []
    for table in TABLES:
        after: Key | None = ()
        while after is not None:
            batch = store.write(_batch_work(redactor, table, after)).result()
            findings += (finding for change in batch.changes for finding in change.findings)
            after = batch.last
    return findings


def _batch_work(redactor: Redactor, table: str, after: Key) -> "partial[Batch]":
    return partial(redact_batch, redactor=redactor, table=table, after=after)


def _drop_copies(connection: sqlite3.Connection, ms: int) -> None:
    """Conversations with a model repeat what it was sent; the files are scrubbed afterwards."""
    for (session,) in connection.execute("SELECT id FROM sdk_sessions").fetchall():
        drop_conversation(connection, session)
    file_scrubbing.request(connection, ms)


def _in_backups(layout: Layout, redactor: Redactor) -> Iterator[Finding]:
    for path in backups.newest_first(layout.backups):
        try:
            with recovery.opened(path) as database, closing(connect(database, readonly=True)) as c:
                for finding in find_secrets(c, redactor):
                    yield Finding(f"{path.name} {finding.place}", finding.kind, finding.hint)
        except (StoreError, sqlite3.DatabaseError) as error:
            log.warning("%s was not searched for secrets: %s", path.name, error)


def _in_files(layout: Layout, redactor: Redactor) -> Iterator[Finding]:
    for directory in (layout.rejected, layout.contexts, layout.worker_log.parent):
        for path in sorted(directory.rglob("*")) if directory.is_dir() else ():
            if path.is_file() and path.stat().st_size <= LARGEST_FILE:
                place = str(path.relative_to(layout.root))
                yield from find_in_text(redactor, place, _text_of(path))


def _text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")

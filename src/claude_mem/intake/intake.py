"""Spool to store: events in order, each once, committed before its spool file is removed.

A batch is one transaction. A record that cannot be read is rejected with the reason and does not
stop the others, nor does one that makes its worker hang or die: after the second time it is set
aside. A batch that the store refuses as a whole stays in the spool and is retried.
"""

import asyncio
import json
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from claude_mem.config import CaptureSettings, Layout, write_private
from claude_mem.errors import BadInput
from claude_mem.hook import trouble
from claude_mem.hook.kill_points import reach
from claude_mem.intake import rejected_events, spool
from claude_mem.intake.event_reader import EventReader
from claude_mem.intake.watchdog import Watchdog
from claude_mem.store import Store
from claude_mem.store.turns import Recorded
from claude_mem.types import Event
from claude_mem.versions import parse_version

log = logging.getLogger("claude_mem.intake")
BATCH = 200

Listener = Callable[[list[tuple[Event, Recorded]]], None]

MAX_WAITING = 64

ContextLookup = Callable[[Event], str | None]  # the context that this event's hook printed


@dataclass(slots=True)
class DrainCounts:
    stored: int = 0
    duplicates: int = 0
    private: int = 0
    forgotten: int = 0
    skipped: int = 0
    rejected: int = 0

    def add(self, recorded: Recorded) -> None:
        self.stored += recorded.outcome == "stored"
        self.duplicates += recorded.outcome == "duplicate"
        self.private += recorded.outcome == "private"
        self.forgotten += recorded.outcome == "forgotten"


class Intake:
    def __init__(
        self,
        layout: Layout,
        store: Store,
        reader: EventReader,
        listener: Listener | None = None,
        printed_context: ContextLookup | None = None,
        watchdog: Watchdog | None = None,
    ) -> None:
        self._layout, self._store, self._reader = layout, store, reader
        self._listener = listener
        self.unsaved_contexts = UnsavedContexts(store, printed_context)
        self._lock = threading.Lock()
        self._stopping = False
        self._watchdog = watchdog or Watchdog()
        self.event_seconds = CaptureSettings().event_seconds
        self._crash_mark = CrashMark(layout)
        self._has_recovered = False
        self._suspects: set[str] = set()  # processed one by one
        self.newest_hook = ""  # the highest version among the hooks that wrote records

    def stop(self) -> None:
        """Ends a drain after its current batch; the rest stays in the spool."""
        self._stopping = True

    def holds_only(self, record_bytes: bytes) -> bool:
        """Whether the spool holds this record and no other."""
        if not self._has_recovered:
            return False
        paths = spool.waiting(self._layout)
        try:
            return len(paths) == 1 and spool.read(paths[0]) == record_bytes
        except (OSError, ValueError):
            return False

    async def save_contexts(self) -> None:
        """Stores the starts of sessions whose contexts are not stored yet."""
        if self.unsaved_contexts.are_waiting():
            await asyncio.to_thread(self.drain)

    def drain(self) -> DrainCounts:
        """Stores everything that is in the spool now; one caller at a time."""
        counts = DrainCounts()
        with self._lock:
            if not self._has_recovered:
                self._recover()
                self._has_recovered = True
            attempted: set[Path] = set()
            while paths := [p for p in spool.waiting(self._layout) if p not in attempted]:
                attempted.update(paths)
                for batch in self._batches(paths):
                    if self._stopping:
                        return counts
                    try:
                        self._drain_batch(batch, counts)
                    finally:
                        self._crash_mark.finish()
        return counts

    def _recover(self) -> None:
        """After a worker that died while it processed records."""
        has_died, name = self._crash_mark.after_crash()
        if name is not None and (path := self._layout.spool / name).exists():
            reason = (
                f"the event {name} made the worker hang or die twice: it was moved to"
                " spool/set-aside, and the other events are processed"
            )
            log.error(reason)
            rejected_events.set_aside(self._layout, path, self._reader.redact_allow)
            trouble.report(os.fsencode(self._layout.root), reason)
        if has_died:
            self._suspects = {path.name for path in spool.waiting(self._layout)}

    def _batches(self, paths: list[Path]) -> Iterator[list[Path]]:
        batch: list[Path] = []
        for path in paths:
            if path.name in self._suspects:
                yield [path]
                continue
            batch.append(path)
            if len(batch) == BATCH:
                yield batch
                batch = []
        if batch:
            yield batch

    async def accept(self, events: list[Event]) -> list[Recorded]:
        """Stores events that did not come through the spool; returns when they are on disk.

        No thread waits for that: all that are waiting share a commit. Nor does the listener get
        one: it takes less than the change of threads.
        """
        recorded = await asyncio.wrap_future(self._store.record_events(events))
        self._notify(list(zip(events, recorded, strict=True)))
        return recorded

    def _drain_batch(self, paths: list[Path], counts: DrainCounts) -> None:
        batch: list[tuple[Path, Event]] = []
        processed: list[Path] = []
        with self._watchdog.limit(self.event_seconds) as step:
            for path in paths:
                step.advance()
                self._crash_mark.note([path])
                reach(b"intake.before_read")
                try:
                    events = self._read(path, counts)
                except (ValueError, RecursionError, BadInput) as error:
                    self._reject(path, error, counts)
                except OSError as error:
                    log.warning("cannot read %s: %s", path.name, error)
                else:
                    processed.append(path)
                    batch += ((path, event) for event in events)
        self._crash_mark.note(paths)
        reach(b"intake.before_commit")
        recorded = self._record(batch, counts)
        reach(b"intake.after_commit")
        for path in processed:
            path.unlink(missing_ok=True)
        reach(b"intake.after_unlink")
        for _, outcome in recorded:
            counts.add(outcome)
        self._notify(recorded)

    def _read(self, path: Path, counts: DrainCounts) -> list[Event]:
        record = spool.parse(spool.read(path))
        if parse_version(record.version) > parse_version(self.newest_hook):
            self.newest_hook = record.version
        events: list[Event] = []
        for header, payload in spool.events_of(record):
            kind = header.kind or str(payload.get("hook_event_name") or "")
            if self._reader.skips(kind, payload):
                continue
            event = self._reader.read(header, payload)
            if not self._reader.exclusions.cover(event.project, event.project_dir):
                events.append(event)
        counts.skipped += not events
        return events

    def _record(
        self, batch: list[tuple[Path, Event]], counts: DrainCounts
    ) -> list[tuple[Event, Recorded]]:
        """In one transaction. If that fails, event by event: those that fail are set aside."""
        events = [event for _, event in batch]
        try:
            return list(zip(events, self._store_with_contexts(events), strict=True))
        except sqlite3.OperationalError:
            raise  # the disk or the file, not the events: they stay in the spool
        except Exception:
            log.exception("a batch of %d events failed; storing them one by one", len(batch))
        recorded: list[tuple[Event, Recorded]] = []
        for path, event in batch:
            try:
                recorded.append((event, self._store_with_contexts([event])[0]))
            except sqlite3.OperationalError:
                raise
            except Exception as error:
                self._reject(path, error, counts)
        return recorded

    def _store_with_contexts(self, events: list[Event]) -> list[Recorded]:
        """A session start and the context it received share a transaction, so that a crash
        cannot separate them."""
        contexts = self.unsaved_contexts.of_starts(events)
        recorded = self._store.record_events(events, contexts).result()
        self.unsaved_contexts.settle(events)
        return recorded

    def _reject(self, path: Path, error: Exception, counts: DrainCounts) -> None:
        counts.rejected += 1
        reason = f"{path.name} was moved to spool/rejected: {error or type(error).__name__}"
        log.warning(reason)
        rejected_events.reject(self._layout, path, self._reader.redactor)
        trouble.report(os.fsencode(self._layout.root), reason)

    def _notify(self, recorded: list[tuple[Event, Recorded]]) -> None:
        if self._listener is not None and recorded:
            self._listener(recorded)


class UnsavedContexts:
    """The contexts that sessions received and that are not stored yet.

    A session that is resumed must receive the same context again, even if a process died in
    between:

    - The context that a hook without a worker prints (`printed`: the rendered file) is stored in
      the transaction that stores the start of the session.
    - The worker usually answers with that same text. It waits here until the start is stored, which
      happens right after the answer, and before the file is rendered again.
    - Any other text is stored before it is sent (`worker/session_start.py`).
    - After forgetting, nothing that waits here is stored.
    """

    def __init__(self, store: Store, printed: ContextLookup | None = None) -> None:
        self._store, self._printed = store, printed
        self._waiting: dict[str, str] = {}  # by session

    def add(self, session_id: str, text: str) -> bool:
        """To be stored with the start of the session; False if that is stored already."""
        while len(self._waiting) >= MAX_WAITING:  # their starts were rejected
            self._waiting.pop(next(iter(self._waiting)), None)
        self._waiting[session_id] = text
        if self._store.has_session(session_id):
            self._waiting.pop(session_id, None)
            return False
        return True

    def waiting(self, session_id: str) -> str | None:
        return self._waiting.get(session_id)

    def received(self, session_id: str) -> str | None:
        """By the session, whether or not it is stored; None if it received none."""
        text = self.waiting(session_id)
        return self._store.start_context(session_id) if text is None else text

    def are_waiting(self) -> bool:
        return bool(self._waiting)

    def withdraw(self) -> None:
        """After forgetting: what they hold must not be stored any more."""
        self._waiting.clear()

    def of_starts(self, events: Sequence[Event]) -> dict[str, str]:
        """By session: what to store together with these events."""
        contexts: dict[str, str] = {}
        for event in events:
            text = self._waiting.get(event.session_id)
            if text is None and self._printed is not None:
                text = self._printed(event)
            if text is not None:
                contexts.setdefault(event.session_id, text)
        return contexts

    def settle(self, events: Sequence[Event]) -> None:
        """These events are stored: a context of theirs that came in the meantime is, too."""
        for session_id in {event.session_id for event in events}.intersection(self._waiting):
            self._settle(session_id)

    def _settle(self, session_id: str) -> None:
        text = self._waiting.get(session_id)
        if text is not None and self._store.start_context(session_id) != text:
            try:
                self._store.remember_start_context(session_id, text).result()
            except sqlite3.OperationalError:
                raise  # the disk or the file: the next drain tries it again
            except Exception:
                log.exception("the context of session %s is not stored", session_id)
        self._waiting.pop(session_id, None)


# The crash mark: the name of the record in work, in a file that outlives the process.
#
# A record that kills its worker, or hangs until the worker ends, would do so again after every
# start. Its name is written before it is read: to the page cache, which survives the process, so
# that no record waits for the disk. A name that is still there when the next worker starts is a
# suspect; a record that was suspect twice is set aside.

DEATHS = 2  # of workers, after which a record is set aside
_WIDTH = 256  # a file name has at most 255 bytes
_BATCH = "*"  # several records were being stored at once


class CrashMark:
    def __init__(self, layout: Layout) -> None:
        self._mark, self._suspects = layout.intake_mark, layout.intake_suspects
        self._file: int | None = None

    def note(self, records: Iterable[Path]) -> None:
        """These records are processed next."""
        names = [path.name for path in records]
        self._write(names[0] if len(names) == 1 else _BATCH)

    def finish(self) -> None:
        self._write("")

    def _write(self, name: str) -> None:
        if self._file is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
            self._file = os.open(self._mark, flags, 0o600)
        os.pwrite(self._file, os.fsencode(name)[:_WIDTH].ljust(_WIDTH), 0)

    def after_crash(self) -> tuple[bool, str | None]:
        """Whether a worker died while it processed records, and the one that is to be set aside."""
        name = self._last()
        if not name:
            return False, None
        self.finish()
        if name == _BATCH:
            return True, None
        deaths = self._deaths().get(name, 0) + 1
        is_too_often = deaths >= DEATHS
        write_private(self._suspects, json.dumps({} if is_too_often else {name: deaths}).encode())
        return True, name if is_too_often else None

    def _last(self) -> str:
        try:
            return os.fsdecode(self._mark.read_bytes()).strip()
        except FileNotFoundError:
            return ""

    def _deaths(self) -> dict[str, int]:
        try:
            deaths = json.loads(self._suspects.read_bytes())
        except (OSError, ValueError):
            return {}
        return deaths if isinstance(deaths, dict) else {}

"""The spool from the worker's side: records become events in the store, in order of arrival, each
once. A record is committed before its file is removed.

A batch is one transaction. A record that cannot be read is rejected with the reason and does not
stop the others, nor does one that makes its worker hang or die: after the second time it is set
aside. A batch that the store refuses as a whole stays in the spool and is retried.
"""

import asyncio
import errno
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from claude_mem.agents import find_agent
from claude_mem.agents.reading.fields import Fields
from claude_mem.config import CaptureSettings, Layout
from claude_mem.errors import BadInput
from claude_mem.hook import trouble
from claude_mem.hook.kill_points import reach
from claude_mem.hook.private_text import MARK, strip_payload
from claude_mem.hook.spooling import FORMAT, MAGIC, MAX_RECORD, SUFFIX
from claude_mem.intake import rejected_events, undeletable
from claude_mem.intake.crash_mark import CrashMark
from claude_mem.intake.event_reader import EventHeader, EventReader
from claude_mem.intake.untrusted_files import read_whole
from claude_mem.intake.watchdog import Watchdog
from claude_mem.json_objects import SHORT_PAYLOAD, parse_object
from claude_mem.store import Store
from claude_mem.store.database import is_full, is_of_file
from claude_mem.store.turns import Recorded
from claude_mem.types import Event, Json
from claude_mem.versions import parse_version

log = logging.getLogger("claude_mem.intake")
BATCH = 200

Listener = Callable[[list[tuple[Event, Recorded]]], None]

# A backlog of this size or age is reported.
WARN_FILES, WARN_HOURS = 5000, 24

_SUFFIX = SUFFIX.decode()
# The disk or this process may recover from it.
_PASSING = (errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.ESTALE)


@dataclass(frozen=True, slots=True)
class SpooledEvent:
    header: EventHeader
    version: str
    payload: bytes


class BadSpoolFileError(ValueError):
    """The file is not a record that this version can read; the reason is for the log."""


def waiting(layout: Layout) -> list[Path]:
    """The records there are, the earliest first."""
    directory = layout.spool
    try:
        with os.scandir(directory) as entries:
            names = {entry.name for entry in entries if entry.name.endswith(_SUFFIX)}
    except FileNotFoundError:
        return []
    if names:
        names -= undeletable.names(layout)
    return [directory / name for name in sorted(names)]


def arrival_ms(path: Path) -> int:
    """When a record came, by its name; by its file where somebody else named it."""
    digits = path.name.split("-", 1)[0]
    if digits.isascii() and digits.isdecimal() and len(digits) == 20:
        return int(digits) // 1_000_000
    return int(path.stat().st_mtime * 1000)


def parse(data: bytes) -> SpooledEvent:
    head, separator, payload = data.partition(b"\n")
    if not separator or not head.startswith(MAGIC + b"\t") or head.count(b"\t") != 6:
        raise BadSpoolFileError("it has no spool header")
    # Texts for the database: bytes that are no UTF-8 (a directory may be named so) are replaced.
    _, spool_format, version, dialect, kind, arrived, directory = (
        field.decode("utf-8", "replace") for field in head.split(b"\t")
    )
    if spool_format != FORMAT.decode():
        raise BadSpoolFileError(f"its spool format is {spool_format}, not {FORMAT.decode()}")
    try:
        arrived_ns = int(arrived)
    except ValueError:
        raise BadSpoolFileError("its arrival time is not a number") from None
    header = EventHeader(
        kind=kind,
        arrived_ms=arrived_ns // 1_000_000,
        project_dir=_unescape(directory),
        dialect=dialect or "claude",
        is_short=len(payload) <= SHORT_PAYLOAD and not _is_rewritten(dialect),
    )
    # The hook has stripped it already; whatever wrote this file, nothing private goes on.
    return SpooledEvent(header, version, strip_payload(payload))


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    result: list[str] = []
    characters = iter(text)
    for character in characters:
        if character == "\\":
            character = next(characters, "")
            character = {"n": "\n", "t": "\t"}.get(character, character)
        result.append(character)
    return "".join(result)


def events_of(record: SpooledEvent) -> list[tuple[EventHeader, dict[str, Json]]]:
    """Returns the one event of Claude Code; of another agent any number, rewritten as such."""
    return normalise(record.header, parse_object(record.payload))


def _is_rewritten(dialect: str) -> bool:
    return (agent := find_agent(dialect)) is not None and agent.normalise is not None


def normalise(
    header: EventHeader, payload: dict[str, Json]
) -> list[tuple[EventHeader, dict[str, Json]]]:
    """The events of a payload, in the format of Claude Code's hooks. A payload may become no event,
    such as Qwen's empty prompts, or several, such as a patch of several files."""
    agent = find_agent(header.dialect)
    if agent is None or agent.normalise is None:
        return [(header, payload)]
    events = []
    for event in agent.normalise(header.kind, Fields(payload)):
        cwd = event.payload.get("cwd")
        # CLAUDE_PROJECT_DIR may be inherited from an agent that started this one.
        directory = cwd if isinstance(cwd, str) and cwd else header.project_dir
        marked = {MARK: payload[MARK]} if MARK in payload else {}
        header_of_event = replace(header, kind=event.kind, project_dir=directory)
        events.append((header_of_event, {**event.payload, **marked}))
    return events


class StartContexts(Protocol):
    """The contexts that sessions received (`UnsavedContexts` in `worker/contexts.py`)."""

    def of_starts(self, events: Sequence[Event]) -> dict[str, str]: ...

    def store_waiting(self, events: Sequence[Event]) -> None: ...


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
        start_contexts: StartContexts | None = None,
        watchdog: Watchdog | None = None,
    ) -> None:
        self._layout, self._store, self._reader = layout, store, reader
        self._listener = listener
        self._start_contexts = start_contexts
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
        paths = waiting(self._layout)
        try:
            return len(paths) == 1 and read_whole(paths[0], MAX_RECORD) == record_bytes
        except (OSError, ValueError):
            return False

    def drain(self) -> DrainCounts:
        """Stores everything that is in the spool now; one caller at a time."""
        counts = DrainCounts()
        with self._lock:
            if not self._has_recovered:
                self._recover()
                self._has_recovered = True
            attempted: set[Path] = set()
            while paths := [p for p in waiting(self._layout) if p not in attempted]:
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
        """Recovers after a worker that died while it processed records."""
        has_died, name = self._crash_mark.after_crash()
        if name is not None and (path := self._layout.spool / name).exists():
            reason = (
                f"the event {name} made the worker hang or die twice: it was moved to"
                " spool/set-aside, and the other events are processed"
            )
            log.error(reason)
            trouble.report(os.fsencode(self._layout.root), reason)
            try:
                rejected_events.set_aside(self._layout, path, self._reader.redact_allow)
                path.unlink(missing_ok=True)
            except OSError as error:
                self._set_aside(path, error)
        if has_died:
            self._suspects = {path.name for path in waiting(self._layout)}

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
                    if error.errno in _PASSING:
                        log.warning("cannot read %s: %s", path.name, error)
                    else:
                        self._set_aside(path, error)
                except Exception as error:
                    if isinstance(error, sqlite3.Error) or is_of_file(error):
                        raise  # it is the database, in which projects are looked up
                    log.exception("cannot read %s", path.name)
                    self._reject(path, error, counts)
                else:
                    processed.append(path)
                    batch += ((path, event) for event in events)
        self._crash_mark.note(paths)
        reach(b"intake.before_commit")
        recorded = self._record(batch, counts)
        reach(b"intake.after_commit")
        for path in processed:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                self._set_aside(path, error)
        reach(b"intake.after_unlink")
        for _, outcome in recorded:
            counts.add(outcome)
        self._notify(recorded)

    def _read(self, path: Path, counts: DrainCounts) -> list[Event]:
        record = parse(read_whole(path, MAX_RECORD))
        if parse_version(record.version) > parse_version(self.newest_hook):
            self.newest_hook = record.version
        events: list[Event] = []
        for header, payload in events_of(record):
            kind = header.kind or str(payload.get("hook_event_name") or "")
            if self._reader.skips(kind, payload):
                event = self._reader.read_skipped(header, payload)
            else:
                event = self._reader.read(header, payload)
            if event is None:
                continue
            if not self._reader.exclusions.cover(event.project, event.project_dir):
                events.append(event)
        counts.skipped += all(event.is_skipped for event in events)
        return events

    def _record(
        self, batch: list[tuple[Path, Event]], counts: DrainCounts
    ) -> list[tuple[Event, Recorded]]:
        """Records a batch in one transaction. If that fails, it records event by event: those that
        fail are set aside."""
        events = [event for _, event in batch]
        try:
            return list(zip(events, self._store_with_contexts(events), strict=True))
        except Exception as error:
            if is_of_file(error):
                raise  # they stay in the spool
            log.exception("a batch of %d events failed; storing them one by one", len(batch))
        recorded: list[tuple[Event, Recorded]] = []
        for path, event in batch:
            try:
                recorded.append((event, self._store_with_contexts([event])[0]))
            except Exception as error:
                if is_of_file(error):
                    raise
                self._reject(path, error, counts)
        return recorded

    def _store_with_contexts(self, events: list[Event]) -> list[Recorded]:
        """A session start and the context it received share a transaction, so that a crash
        cannot separate them."""
        if self._start_contexts is None:
            return self._store.record_events(events).result()
        contexts = self._start_contexts.of_starts(events)
        recorded = self._store.record_events(events, contexts).result()
        self._start_contexts.store_waiting(events)
        return recorded

    def _reject(self, path: Path, error: Exception, counts: DrainCounts) -> None:
        counts.rejected += 1
        reason = f"{path.name} was moved to spool/rejected: {error or type(error).__name__}"
        log.warning(reason)
        try:
            rejected_events.reject(self._layout, path, self._reader.redactor)
            path.unlink(missing_ok=True)
        except OSError as problem:
            if is_full(problem):
                raise
            self._set_aside(path, problem)
        else:
            trouble.report(os.fsencode(self._layout.root), reason)

    def _set_aside(self, path: Path, error: OSError) -> None:
        """What can be neither read nor deleted: by its name, so that no event waits for it."""
        reason = (
            f"{path.name} in the spool cannot be read or deleted ({error.strerror or error}) and is"
            f" left out from now on: delete {path}"
        )
        log.error(reason)
        undeletable.add(self._layout, path)
        trouble.report(os.fsencode(self._layout.root), reason)

    def _notify(self, recorded: list[tuple[Event, Recorded]]) -> None:
        recorded = [(event, outcome) for event, outcome in recorded if not event.is_skipped]
        if self._listener is not None and recorded:
            self._listener(recorded)

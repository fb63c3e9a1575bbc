"""Spool to events: in order, each once, on disk before its file goes.

A batch is one transaction. A record that cannot be read is set aside with its reason and stops
nobody; a batch that the store refuses as a whole stays in the spool and is tried again.
"""

import logging
import os
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from claude_mem.config import Layout
from claude_mem.errors import BadInput
from claude_mem.hook import trouble
from claude_mem.hook.faults import reach
from claude_mem.intake import spool
from claude_mem.intake.dialects import Reader, parse_payload
from claude_mem.privacy import Redactor
from claude_mem.store import Store
from claude_mem.store.turns import Recorded
from claude_mem.types import Event
from claude_mem.versions import version_key

log = logging.getLogger("claude_mem.intake")
BATCH = 200

Listener = Callable[[list[tuple[Event, Recorded]]], None]
Params = Callable[[Event], str | None]  # what the session of this event was given, if it was


@dataclass(slots=True)
class Drained:
    stored: int = 0
    duplicates: int = 0
    private: int = 0
    forgotten: int = 0
    skipped: int = 0
    rejected: int = 0


class Intake:
    def __init__(
        self,
        layout: Layout,
        store: Store,
        reader: Reader,
        listener: Listener | None = None,
        given: Params | None = None,
    ) -> None:
        self._layout, self._store, self._reader = layout, store, reader
        self._listener, self._given = listener, given
        self._lock = threading.Lock()
        self._stopping = False
        self.newest_hook = ""  # the version of the newest hook that was heard

    def stop(self) -> None:
        """Ends a drain after the batch it is in; the rest stays in the spool."""
        self._stopping = True

    @property
    def _redactor(self) -> Redactor:
        return self._reader.redactor

    def drain(self) -> Drained:
        """Everything that is in the spool now; one caller at a time."""
        drained = Drained()
        with self._lock:
            seen: set[Path] = set()
            while paths := [path for path in spool.waiting(self._layout) if path not in seen]:
                seen.update(paths)
                for start in range(0, len(paths), BATCH):
                    if self._stopping:
                        return drained
                    self._take(paths[start : start + BATCH], drained)
        return drained

    def accept(self, events: list[Event]) -> list[Recorded]:
        """Events that came another way than through the spool; returns when they are on disk."""
        recorded = self._store.record(events).result()
        self._tell(list(zip(events, recorded, strict=True)))
        return recorded

    def _take(self, paths: list[Path], drained: Drained) -> None:
        batch: list[tuple[Path, Event]] = []
        passed: list[Path] = []
        for path in paths:
            try:
                event = self._read(path, drained)
            except (ValueError, RecursionError, BadInput) as error:
                self._set_aside(path, error, drained)
            except OSError as error:
                log.warning("%s cannot be read: %s", path.name, error)
            else:
                passed.append(path)
                if event is not None:
                    batch.append((path, event))
        reach(b"intake.before_commit")
        recorded = self._record(batch, drained)
        reach(b"intake.after_commit")
        for path in passed:
            path.unlink(missing_ok=True)
        reach(b"intake.after_unlink")
        for _, one in recorded:
            drained.stored += one.outcome == "stored"
            drained.duplicates += one.outcome == "duplicate"
            drained.private += one.outcome == "private"
            drained.forgotten += one.outcome == "forgotten"
        self._tell(recorded)

    def _read(self, path: Path, drained: Drained) -> Event | None:
        record = spool.parse(path.read_bytes())
        if version_key(record.version) > version_key(self.newest_hook):
            self.newest_hook = record.version
        payload = parse_payload(record.payload)
        if self._reader.skips(payload):
            drained.skipped += 1
            return None
        return self._reader.event(record.arrival, payload)

    def _record(
        self, batch: list[tuple[Path, Event]], drained: Drained
    ) -> list[tuple[Event, Recorded]]:
        """In one transaction; if one event spoils it, one by one, and that one is set aside."""
        events = [event for _, event in batch]
        try:
            return list(zip(events, self._store_with_given(events), strict=True))
        except sqlite3.OperationalError:
            raise  # the disk or the file, not the events: they stay in the spool
        except Exception:
            log.exception("a batch of %d events failed; taking them one by one", len(batch))
        recorded: list[tuple[Event, Recorded]] = []
        for path, event in batch:
            try:
                recorded.append((event, self._store_with_given([event])[0]))
            except sqlite3.OperationalError:
                raise
            except Exception as error:
                self._set_aside(path, error, drained)
        return recorded

    def _store_with_given(self, events: list[Event]) -> list[Recorded]:
        """A start and what it was given, in one transaction: no crash leaves one without the
        other."""
        given: dict[str, str] = {}
        for event in events:
            text = self._given(event) if self._given is not None else None
            if text is not None:
                given.setdefault(event.session_id, text)
        return self._store.record(events, given).result()

    def _set_aside(self, path: Path, error: Exception, drained: Drained) -> None:
        drained.rejected += 1
        reason = f"{path.name} was set aside in spool/rejected: {error or type(error).__name__}"
        log.warning(reason)
        spool.reject(self._layout, path, self._redactor)
        trouble.report(os.fsencode(self._layout.root), reason)

    def _tell(self, recorded: list[tuple[Event, Recorded]]) -> None:
        if self._listener is not None and recorded:
            self._listener(recorded)

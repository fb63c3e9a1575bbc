"""Periodic work: idle turns, stale sessions, old raw events and records, undo data, backups.

The time is an argument, so that a test can let a month pass.
"""

import logging
import os
from collections.abc import Callable

from claude_mem.config import Layout, RecordSettings, RetentionSettings, SessionSettings
from claude_mem.hook import trouble
from claude_mem.index import indexing
from claude_mem.intake import rejected_events, spool
from claude_mem.store import Store, backups, future_times, given_hints
from claude_mem.store.one_time_messages import RECORD_NEARLY_FULL
from claude_mem.text import pluralize
from claude_mem.worker.queue_warning import queue_warning

log = logging.getLogger("claude_mem.housekeeping")

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
ABANDONED_AFTER_MS = HOUR
MEGABYTE = 1024 * 1024
NEARLY_FULL = 0.9  # of the record's size: the user is warned before the oldest turns lose theirs


class Housekeeping:
    def __init__(
        self,
        layout: Layout,
        store: Store,
        sessions: SessionSettings,
        retention: RetentionSettings,
        record: RecordSettings,
    ) -> None:
        self._layout, self._store = layout, store
        self._sessions, self._retention, self._record = sessions, retention, record
        self._warned_at = 0
        self.on_interrupted: Callable[[int], None] = lambda session: None

    def use(
        self, sessions: SessionSettings, retention: RetentionSettings, record: RecordSettings
    ) -> None:
        """Follow these settings from the next tick on."""
        self._sessions, self._retention, self._record = sessions, retention, record

    def tick(self, now: int) -> int:
        """Returns the number of turns that it closed and queued."""
        if count := self._store.write(lambda c: future_times.correct(c, now)).result():
            log.warning("%s had a time in the future: a clock was wrong", pluralize(count, "turn"))
        sessions, retention = self._sessions, self._retention
        closed = self._store.close_idle_turns(now - sessions.idle_minutes * MINUTE)
        stale = self._store.interrupt_stale(now - sessions.interrupt_hours * HOUR)
        retired = self._store.retire_raw_events(
            now - retention.raw_days * DAY, retention.raw_megabytes * MEGABYTE
        )
        for session in stale.result():
            log.info(
                "session %d is interrupted: it had no event for %d hours",
                session,
                sessions.interrupt_hours,
            )
            self.on_interrupted(session)
        if count := retired.result():
            log.info("%d raw events deleted", count)
        self._trim_records(now)
        self._store.trim_hints(now - given_hints.KEEP_MS).result()
        self._expire_forgotten(now - retention.undo_hours * HOUR)
        self._clear_abandoned(now)
        rejected_events.trim(
            self._layout, retention.rejected_days, retention.rejected_megabytes, now / 1000
        )
        self._warn_of_backlog(now)
        return closed.result()

    def _trim_records(self, now: int) -> None:
        limit = self._record.megabytes * MEGABYTE
        if count := self._store.trim_records(self._record.since_ms(now), limit).result():
            log.info("deleted the record of %d turns: too old, or over the size limit", count)
        if self._store.record_bytes() < NEARLY_FULL * limit:
            self._store.withdraw_one_time_message(RECORD_NEARLY_FULL).result()
        elif self._store.claim_one_time_message(RECORD_NEARLY_FULL).result():
            self._warn(
                f"the record has reached {NEARLY_FULL:.0%} of its limit of"
                f" {self._record.megabytes} MB, beyond which the record of the oldest turns is"
                " deleted; to raise the limit: claude-mem settings CLAUDE_MEM_RECORD_MEGABYTES"
                f" {2 * self._record.megabytes}"
            )

    def _warn(self, reason: str) -> None:
        log.warning(reason)
        trouble.report(os.fsencode(self._layout.root), reason)

    def _expire_forgotten(self, before: int) -> None:
        if not any(forgotten.at_epoch < before for forgotten in self._store.forgotten()):
            return
        self._store.expire_forgotten(before).result()
        self._store.write(indexing.tidy).result()
        log.info("forgotten memories can no longer be restored")

    def _clear_abandoned(self, now: int) -> None:
        for path in rejected_events.abandoned(self._layout, (now - ABANDONED_AFTER_MS) / 1000):
            if rejected_events.delete(path):
                log.warning("deleted %s: its hook died while writing it", path.name)
        for path in self._store.delete_unfinished_backups(
            self._layout.backups, now - ABANDONED_AFTER_MS
        ):
            log.warning("deleted %s: the process that was making the backup died", path.name)

    def _warn_of_backlog(self, now: int) -> None:
        if now - self._warned_at < DAY:
            return
        queue, oldest = self._store.queue_state(), self._store.oldest_waiting()
        age = (now - oldest) / 1000 if oldest is not None else None
        if reason := queue_warning(queue["pending"] + queue["processing"], age):
            self._warned_at = now
            self._warn(reason)
            return
        waiting = spool.waiting(self._layout)
        if not waiting:
            return
        hours = (now - spool.arrival_ms(waiting[0])) // HOUR
        if len(waiting) >= spool.WARN_FILES or hours >= spool.WARN_HOURS:
            self._warned_at = now
            events, oldest_for = pluralize(len(waiting), "event"), pluralize(hours, "hour")
            reason = f"{events} waiting in the spool, the oldest for {oldest_for}"
            self._warn(reason)

    def back_up_if_due(self, now: int) -> None:
        """Backs up once a day; takes seconds if there are many memories."""
        existing = backups.newest_first(self._layout.backups)
        newest = max((path.stat().st_mtime * 1000 for path in existing), default=0.0)
        if now - newest >= DAY and self._store.has_memories():
            if indexing.pack(self._store) or self._store.compact_if_sparse():
                log.info("free pages of the database were given back to the disk")
            self._store.back_up(self._layout.backups, self._retention.backups)

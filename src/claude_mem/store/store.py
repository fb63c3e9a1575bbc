"""The store: everything the rest of the program can do with canonical state.

Writes return a future that is done when the result is on disk. Reads use connections of their own
and do not wait for writes.
"""

import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from pathlib import Path
from typing import Self, TypeVar

from claude_mem.errors import DamagedDatabase, DatabaseInUse
from claude_mem.store import (
    backups,
    client_memory_files,
    editing,
    file_scrubbing,
    forgetting,
    given_hints,
    imported_sessions,
    memories,
    one_time_messages,
    outdated_turns,
    project_assignments,
    projects,
    queue,
    record_retention,
    refine_requests,
    refinements,
    saved_memories,
    sessions,
    spending,
    turns,
    undo_forgetting,
)
from claude_mem.store.change_counters import ChangeCounts
from claude_mem.store.client_memory_files import NoteMemory
from claude_mem.store.clock import Clock, awake_ms, now_ms
from claude_mem.store.database import OnDamage, Writer, check_integrity, connect, prepare
from claude_mem.store.reader import StoreReader
from claude_mem.store.recovery import delete_copies, drop_index, recover
from claude_mem.store.transfer import merge
from claude_mem.store.transfer.export_reader import Row
from claude_mem.store.transfer.typescript import writer as typescript
from claude_mem.store.transfer.typescript.sessions import LegacySession
from claude_mem.store.turns import Recorded
from claude_mem.types import (
    Distillate,
    Event,
    Job,
    Observation,
    PastSession,
    Project,
    RecordPart,
    SessionTitle,
    TranscriptToDistil,
    Turn,
)

T = TypeVar("T")


class Store(StoreReader):
    def __init__(self, path: Path, clock: Clock = now_ms, lease_clock: Clock | None = None) -> None:
        super().__init__(path)
        self._clock, self._lease_clock = clock, lease_clock or clock
        self._writer = Writer(path)
        self._backing_up = threading.Lock()
        self._closing = threading.Event()

    @classmethod
    def open(
        cls,
        path: Path,
        backup_dir: Path,
        keep_backups: int = 3,
        clock: Clock = now_ms,
        lease_clock: Clock | None = None,
    ) -> Self:
        """Creates or migrates the file as needed. `lease_clock` stops while the machine sleeps."""
        prepare(path, backup_dir, keep_backups)
        return cls(path, clock, lease_clock)

    def report_damage_to(self, listener: OnDamage) -> None:
        """Sets a listener, called for every damage that a read or write meets, in its thread."""
        self._readers.on_damage = self._writer.on_damage = listener

    def _asleep_ms(self) -> int:
        return self._clock() - self._lease_clock()

    def now(self) -> int:
        return self._clock()

    def close(self) -> None:
        self._closing.set()
        with self._backing_up:  # a backup that is being made is cancelled
            pass
        super().close()  # the last connection to close must be able to write: it checkpoints
        self._writer.close()

    def write(self, work: Callable[[sqlite3.Connection], T]) -> "Future[T]":
        """Others call this for derived tables only."""
        return self._writer.submit(work)

    def run_before_commit(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Runs `work` at the end of every transaction; for the index, `indexing.refresh`."""
        self._writer.run_before_commit(work)

    def watch_memories(self) -> None:
        """Watches memories, as `change_counts` needs. It costs a little for each written row."""
        self._writer.watch_memories().result()

    def change_counts(self, project_id: int) -> "Future[ChangeCounts]":
        """Returns counts that differ after each change to the memories of the project."""
        return self._writer.change_counts(project_id)

    def record_events(
        self, events: list[Event], start_contexts: Mapping[str, str] | None = None
    ) -> "Future[list[Recorded]]":
        """`start_contexts` by content session id, for sessions that have none yet."""

        def work(connection: sqlite3.Connection) -> list[Recorded]:
            recorded = turns.record_events(connection, events)
            for session_id, text in (start_contexts or {}).items():
                sessions.set_first_start_context(connection, session_id, text)
            return recorded

        return self.write(work)

    def close_idle_turns(self, before_ms: int) -> "Future[int]":
        now = self._clock()
        return self.write(
            lambda c: turns.close_open_turns(c, "updated_at_epoch < ?", (before_ms,), now)
        )

    def retire_raw_events(self, before_ms: int, keep_bytes: int) -> "Future[int]":
        def work(connection: sqlite3.Connection) -> int:
            refinements.expire_kept(connection, before_ms, keep_bytes)
            return record_retention.retire_raw_events(connection, before_ms, keep_bytes)

        return self.write(work)

    def trim_records(self, before_ms: int, keep_bytes: int) -> "Future[int]":
        return self.write(lambda c: record_retention.trim_records(c, before_ms, keep_bytes))

    def save_hint(
        self, content_session_id: str, project_id: int, lines: Sequence[given_hints.GivenLine]
    ) -> "Future[None]":
        now = self._clock()
        return self.write(
            lambda c: given_hints.save_hint(c, content_session_id, project_id, lines, now)
        )

    def trim_hints(self, before_ms: int) -> "Future[int]":
        return self.write(lambda c: given_hints.trim_hints(c, before_ms))

    def claim_one_time_message(self, name: str) -> "Future[bool]":
        """Whether the user was not told before; counts as told from now on."""
        return self.write(lambda c: one_time_messages.claim(c, name, self._clock()))

    def withdraw_one_time_message(self, name: str) -> "Future[None]":
        return self.write(lambda c: one_time_messages.withdraw(c, name))

    def claim_job(self, project_id: int | None = None) -> "Future[tuple[Job, Turn | None] | None]":
        return self._claim(queue.JOBS, turns.load_turn, project_id)

    def _claim(
        self,
        jobs: queue.LeasedQueue,
        load_turn: Callable[[sqlite3.Connection, int], Turn | None],
        project_id: int | None = None,
    ) -> "Future[tuple[Job, Turn | None] | None]":
        # Asked at every wake-up, and usually nothing is due: a read does not occupy the writer.
        now, awake = self._clock(), self._lease_clock()
        if not self.read(lambda c: jobs.is_due(c, now, awake, project_id)):
            nothing: Future[tuple[Job, Turn | None] | None] = Future()
            nothing.set_result(None)
            return nothing

        def work(connection: sqlite3.Connection) -> tuple[Job, Turn | None] | None:
            job = jobs.claim(connection, self._clock(), self._lease_clock(), project_id)
            return (job, load_turn(connection, job.turn_id)) if job else None

        return self.write(work)

    def add_from_transcript(self, turn: Turn, statements: list[Event]) -> "Future[Turn | None]":
        return self.write(lambda c: turns.add_from_transcript(c, turn, statements))

    def set_client_title(self, session_db_id: int, title: SessionTitle) -> "Future[bool]":
        return self.write(lambda c: sessions.set_client_title(c, session_db_id, title))

    def import_session(self, session: PastSession) -> "Future[imported_sessions.ImportCounts]":
        return self.write(lambda c: imported_sessions.import_session(c, session))

    def save_again(self, turn: Turn, distillate: Distillate) -> "Future[bool]":
        """Saves new memories of a turn that an older observer distilled; False: it has changed."""
        return self.write(lambda c: imported_sessions.save_again(c, turn.id, distillate))

    def save_session_memories(
        self, session: PastSession
    ) -> "Future[imported_sessions.ImportCounts]":
        """Saves from its transcript the turns of a session that have no memories yet, or whose
        events are gone."""
        return self.write(lambda c: imported_sessions.save_session_memories(c, session))

    def add_missing_transcripts(self) -> "Future[None]":
        return self.write(imported_sessions.add_missing_transcripts)

    def finish_transcript(self, transcript: TranscriptToDistil) -> "Future[list[int]]":
        return self.write(lambda c: imported_sessions.finish_transcript(c, transcript))

    def give_up_distilling(self, turn_id: int) -> "Future[None]":
        return self.write(lambda c: imported_sessions.give_up(c, turn_id))

    def contexts_rendered(self, session_ids: list[int]) -> "Future[None]":
        return self.write(lambda c: imported_sessions.contexts_rendered(c, session_ids))

    def mark_distilled(self, turn_id: int, version: int) -> "Future[None]":
        return self.write(lambda c: outdated_turns.mark(c, turn_id, version))

    def mark_session_distilled(self, session_id: str, version: int) -> "Future[None]":
        return self.write(lambda c: outdated_turns.mark_session(c, session_id, version))

    def mark_rest_distilled(self, version: int) -> "Future[int]":
        return self.write(lambda c: outdated_turns.mark_rest(c, version))

    def merge_project_into(self, key: str, target: Project) -> "Future[bool]":
        """Moves everything of the project with this key to the target."""
        return self.write(lambda c: projects.merge_into(c, key, target))

    def join_directory(
        self, directory: str, own: Project, target: Project
    ) -> "Future[project_assignments.Moved]":
        ms = self._clock()
        return self.write(
            lambda c: project_assignments.join_directory(c, directory, own, target, ms)
        )

    def is_new_claim(self, directory: str, key: str) -> "Future[bool]":
        """Whether it was not reported before; it counts as reported from now on."""
        ms = self._clock()
        return self.write(lambda c: project_assignments.is_new_claim(c, directory, key, ms))

    def merge_projects(
        self, source: Project, target: Project
    ) -> "Future[project_assignments.Moved]":
        ms = self._clock()
        return self.write(lambda c: project_assignments.merge_projects(c, source, target, ms))

    def remember_checkout(self, main: str, identity: str, project_id: int) -> "Future[None]":
        return self.write(
            lambda c: project_assignments.remember_checkout(c, main, identity, project_id)
        )

    def assign_directory(
        self, directory: str, target: Project
    ) -> "Future[project_assignments.Moved]":
        ms = self._clock()
        return self.write(lambda c: project_assignments.assign_directory(c, directory, target, ms))

    def mark_imported(self, path: str, size: int, modified_ns: int) -> "Future[None]":
        return self.write(lambda c: imported_sessions.mark_imported(c, path, size, modified_ns))

    def finish_job(
        self,
        job: Job,
        turn: Turn,
        distillate: Distillate,
        *,
        record: tuple[RecordPart, ...] = (),
        is_draft: bool = False,
    ) -> "Future[bool]":
        """The memories of a turn and its record, in one transaction.

        `is_draft`: a model should revise them; that is queued in the same transaction.
        """
        now = self._clock()
        return self.write(
            lambda c: memories.save_distillate(
                c, job, turn, distillate, now, record=record, is_draft=is_draft
            )
        )

    def request_refinements(self, selection: refine_requests.RefineSelection) -> "Future[int]":
        return self.write(lambda c: refine_requests.enqueue(c, selection, self._clock()))

    def cancel_refinements(self) -> "Future[int]":
        return self.write(refine_requests.cancel)

    def claim_refinement(self) -> "Future[tuple[Job, Turn | None] | None]":
        return self._claim(queue.REFINEMENTS, refinements.load_turn_to_refine)

    def renew_refinement(self, job: Job) -> "Future[bool]":
        return self.write(lambda c: queue.REFINEMENTS.renew(c, job, self._lease_clock()))

    def finish_refinement(
        self, job: Job, turn: Turn, distillate: Distillate, reply: str | None = None
    ) -> "Future[bool]":
        """`reply`: the model's text, where the memories do not hold all of it."""
        return self.write(
            lambda c: refinements.save(c, job, turn, distillate, reply, self._clock())
        )

    def put_back_refinement(
        self, job: Job, error: str, available_ms: int, *, counted: bool = True
    ) -> "Future[None]":
        return self.write(
            lambda c: queue.REFINEMENTS.put_back(c, job, error, available_ms, counted=counted)
        )

    def give_up_refinement(self, job: Job, reason: str, reply: str | None = None) -> "Future[None]":
        return self.write(
            lambda c: refinements.give_up_refinement(c, job, reason, reply, self._clock())
        )

    def give_up_all_refinements(self, reason: str) -> "Future[int]":
        return self.write(lambda c: queue.REFINEMENTS.set_all_aside(c, reason))

    def drop_refinement(self, job: Job) -> "Future[None]":
        return self.write(lambda c: queue.REFINEMENTS.remove(c, job))

    def ask_permission(
        self, observer: str, tokens: int, caps: spending.Caps
    ) -> "Future[spending.Permission]":
        """Asks for permission for a request to a model, which is charged if it may be made."""
        return self.write(
            lambda c: spending.ask_permission(c, observer, tokens, caps, self._clock())
        )

    def settle_charge(
        self, observer: str, charged: int, used: int, requests: int = 1
    ) -> "Future[None]":
        return self.write(
            lambda c: spending.correct_charge(c, observer, charged, used, requests, self._clock())
        )

    def open_breaker(
        self, observer: str, reason: str, until_ms: int, *, lasting: bool
    ) -> "Future[None]":
        return self.write(
            lambda c: spending.open_breaker(c, observer, reason, until_ms, lasting=lasting)
        )

    def note_failure(self, observer: str, reason: str, until_ms: int) -> "Future[None]":
        return self.write(lambda c: spending.note_failure(c, observer, reason, until_ms))

    def close_breaker(self, observer: str) -> "Future[None]":
        return self.write(lambda c: spending.close_breaker(c, observer))

    def release_probe(self, observer: str) -> "Future[None]":
        return self.write(lambda c: spending.release_probe(c, observer))

    def drop_job(self, job: Job) -> "Future[None]":
        return self.write(lambda c: queue.JOBS.acknowledge(c, job, self._clock()))

    def retry_job(self, job: Job, error: str, delay_ms: int) -> "Future[None]":
        return self.write(lambda c: queue.JOBS.put_back(c, job, error, self._clock() + delay_ms))

    def set_job_aside(self, job: Job, error: str) -> "Future[bool]":
        return self.write(lambda c: queue.JOBS.set_aside(c, job, error, self._clock()))

    def revive_dead_jobs(self) -> "Future[int]":
        return self.write(lambda c: queue.JOBS.retry_set_aside(c, self._clock()))

    def free_all_leases(self) -> "Future[None]":
        def work(connection: sqlite3.Connection) -> None:
            for leased in queue.QUEUES:
                leased.free_leases(connection)

        return self.write(work)

    def stop_session(self, session_db_id: int) -> "Future[int]":
        """Marks it failed and holds its jobs; returns how many there are."""

        def work(connection: sqlite3.Connection) -> int:
            sessions.end_session(connection, session_db_id, "failed", self._clock())
            queue.REFINEMENTS.hold_session(connection, session_db_id)
            return queue.JOBS.hold_session(connection, session_db_id)

        return self.write(work)

    def interrupt_stale(self, before_ms: int) -> "Future[list[int]]":
        return self.write(lambda c: sessions.interrupt_stale(c, before_ms))

    def remember_conversation(
        self, session_db_id: int, provider: str, provider_session_id: str
    ) -> "Future[None]":
        return self.write(
            lambda c: sessions.remember_conversation(
                c, session_db_id, provider, provider_session_id
            )
        )

    def drop_conversation(self, session_db_id: int) -> "Future[None]":
        return self.write(lambda c: sessions.drop_conversation(c, session_db_id))

    def drop_all_conversations(self) -> "Future[None]":
        return self.write(sessions.drop_all_conversations)

    def drop_finished_conversations(self) -> "Future[list[int]]":
        return self.write(sessions.drop_finished_conversations)

    def remember_start_context(self, content_session_id: str, text: str) -> "Future[None]":
        return self.write(lambda c: sessions.set_start_context(c, content_session_id, text))

    def save_memory(
        self,
        project: Project,
        directory: str,
        observation: Observation,
        observer: str,
        outside: Sequence[str] = (),
    ) -> "Future[saved_memories.SavedMemory]":
        now = self._clock()
        return self.write(
            lambda c: saved_memories.save(
                c, project, directory, observation, observer, now, outside
            )
        )

    def save_client_memory(
        self,
        project: Project,
        directory: str,
        client: str,
        files: Sequence[NoteMemory],
        outside: Sequence[str] = (),
    ) -> "Future[int]":
        """How many memories changed."""
        now = self._clock()
        return self.write(
            lambda c: client_memory_files.save(c, project, directory, client, files, now, outside)
        )

    def edit_memory(
        self,
        kind: str,
        number: int,
        values: Mapping[str, editing.Value],
        editor: editing.Editor,
        outside: Sequence[str] = (),
    ) -> "Future[int]":
        """The id of its project, as for the following."""
        return self.write(lambda c: editing.edit(c, kind, number, values, editor, outside))

    def pin_memory(
        self, kind: str, number: int, pinned: bool, editor: editing.Editor
    ) -> "Future[int]":
        return self.write(lambda c: editing.set_pinned(c, kind, number, pinned, editor))

    def mark_wrong(
        self, kind: str, number: int, wrong: bool, editor: editing.Editor
    ) -> "Future[int]":
        return self.write(lambda c: editing.set_wrong(c, kind, number, wrong, editor))

    def confirm_fact(self, fact_id: int, editor: editing.Editor) -> "Future[int]":
        return self.write(lambda c: editing.confirm(c, fact_id, editor))

    def forget(
        self, selection: forgetting.Selection, token: str, *, hard: bool = False
    ) -> "Future[forgetting.Forgotten]":
        """`token` is that of the preview. `hard`: for good; to be followed by `scrub`."""
        return self.write(
            lambda c: forgetting.forget(c, selection, token, self._clock(), hard=hard)
        )

    def undo_forgetting(self, token: str | None = None) -> "Future[forgetting.Forgotten]":
        return self.write(lambda c: undo_forgetting.undo(c, token))

    def expire_forgotten(self, before_ms: int) -> "Future[int]":
        return self.write(lambda c: forgetting.expire(c, before_ms))

    def begin_merge(self) -> "Future[None]":
        return self.write(merge.begin)

    def merge_rows(self, rows: list[Row]) -> "Future[list[merge.MergeReport]]":
        """Rows of an export, between begin_merge and end_merge."""
        return self.write(lambda c: merge.merge_rows(c, rows))

    def end_merge(self) -> "Future[list[int]]":
        return self.write(merge.end)

    def import_legacy_session(self, session: LegacySession) -> "Future[typescript.ImportedSession]":
        """A session of the TypeScript claude-mem."""
        return self.write(lambda c: typescript.import_session(c, session))

    def back_up(self, directory: Path, keep: int) -> Path:
        with self._backing_up, closing(connect(self._path, readonly=True)) as connection:
            return backups.back_up(connection, directory, keep, is_cancelled=self._closing.is_set)

    def delete_unfinished_backups(self, directory: Path, before_ms: int) -> list[Path]:
        """Deletes the unfinished backups of processes that were killed."""
        if not self._backing_up.acquire(blocking=False):
            return []
        try:
            paths = backups.unfinished(directory, before_ms / 1000)
            for path in paths:
                path.unlink(missing_ok=True)
        finally:
            self._backing_up.release()
        return paths

    def compact_if_sparse(self) -> bool:
        """Gives free pages of the file back to the disk, if there are many; whether it did."""
        return self.read(file_scrubbing.is_sparse) and self.compact()

    def compact(self) -> bool:
        """Writes the file anew, unless it is too large; whether it did."""
        if not self.read(file_scrubbing.can_be_compacted):
            return False
        with suppress(DatabaseInUse):  # the journal is emptied later
            self._writer.submit_alone(file_scrubbing.compact).result()
        return True

    def scrub(self, backup_dir: Path) -> None:
        """Removes deleted text from the database file, its journal, backups and damaged copies.

        Raises DatabaseInUse if a reader still uses the journal; then the request remains.
        """
        with self._backing_up:  # a copy that began before would keep the text
            last = self.read(file_scrubbing.last_request)
            self._writer.submit_alone(file_scrubbing.compact).result()
            with closing(connect(self._path, readonly=True)) as connection:
                file_scrubbing.replace_backups(connection, backup_dir, self._closing.is_set)
            delete_copies(self._path)
            self.write(lambda c: file_scrubbing.finish(c, last)).result()


def open_or_restore(
    path: Path,
    backup_dir: Path,
    keep_backups: int,
    *,
    suspicious: bool = False,
    damage: Sequence[str] = (),
) -> tuple[Store, str | None]:
    """The store, and a message for the user if the file was damaged.

    `suspicious`: the worker did not shut down properly, so the file is checked first. `damage`:
    what this process met since. After the first, the index is dropped if all pages are
    sound; after the second, all rows are copied into a new file.
    """
    message, is_sound = None, False
    try:
        if (suspicious or damage) and path.exists():
            if reason := check_integrity(path):
                raise DamagedDatabase(f"{path} is damaged: {reason}")
            is_sound = True
        if len(damage) > 1:
            raise DamagedDatabase(f"{path} is damaged: {damage[-1]}")
        if damage:
            drop_index(path)
            message = f"the search index was damaged ({damage[0]}): it is being built again"
        store = Store.open(path, backup_dir, keep_backups, lease_clock=awake_ms)
    except DamagedDatabase as error:
        message = f"{error}. {recover(path, backup_dir, is_sound=is_sound).describe()}"
        store = Store.open(path, backup_dir, keep_backups, lease_clock=awake_ms)
    return store, message

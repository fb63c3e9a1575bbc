"""The reading half of the store, for code that must not write."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

from claude_mem.errors import NotFound, StoreError
from claude_mem.store import (
    client_memory_files,
    fact_listing,
    facts,
    file_gotchas,
    file_scrubbing,
    forgetting,
    given_hints,
    imported_sessions,
    listing,
    memory_rows,
    obstacles,
    one_time_messages,
    outdated_turns,
    outside_words,
    project_assignments,
    projects,
    queue,
    refine_requests,
    refinements,
    sessions,
    spending,
    team_tables,
    turn_records,
    turns,
)
from claude_mem.store.database import Readers, check_integrity, connect, is_current
from claude_mem.store.facts import Artifact
from claude_mem.store.listing import Page
from claude_mem.store.memory_rows import JsonRow
from claude_mem.store.transfer.export import Write, export
from claude_mem.store.transfer.export_reader import damaged_json
from claude_mem.store.transfer.tables import Schema, read_schema
from claude_mem.store.viewer_pages import ViewerReader
from claude_mem.types import (
    Fact,
    FactKind,
    FactStatus,
    Job,
    Json,
    PastSession,
    Project,
    RecordPart,
    TranscriptToDistil,
    Turn,
)

T = TypeVar("T")


class StoreReader(ViewerReader):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._readers = Readers(path)

    @classmethod
    def open_existing(cls, path: Path) -> "StoreReader":
        """Opens a file that exists; neither creates nor migrates it."""
        if not is_current(path):
            raise StoreError(
                "the database has an older schema: `claude-mem worker restart` migrates it"
            )
        return cls(path)

    def close(self) -> None:
        self._readers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Others call this for derived tables only, which have queries of their own."""
        with self._readers.connection() as connection:
            return work(connection)

    def read_snapshot(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Reads as `read` does, but everything as it is at one moment. It is faster for many
        statements, which otherwise lock the file one by one."""
        with self._readers.connection() as connection:
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")

    def next_due(self) -> int | None:
        return self.read(lambda c: queue.JOBS.next_due_ms(c, self._asleep_ms()))

    def _asleep_ms(self) -> int:
        """The time by which leases run behind the clock; they are only the writer's."""
        return 0

    def has_open_turn(self, project_id: int | None = None) -> bool:
        """Whether a turn is open in a project, or in any."""
        query = (
            "SELECT 1 FROM user_prompts WHERE closed = 0 AND project_id = coalesce(?, project_id)"
        )
        return self.read(lambda c: c.execute(query, (project_id,)).fetchone()) is not None

    def queue_state(self, session_db_id: int | None = None) -> dict[str, int]:
        return self.read(lambda c: queue.JOBS.counts(c, session_db_id))

    def count_active_sessions(self) -> int:
        query = "SELECT count(*) FROM sdk_sessions WHERE status = 'active' AND dialect <> ?"
        return int(self.read(lambda c: c.execute(query, (sessions.MANUAL,)).fetchone()[0]))

    def oldest_waiting(self) -> int | None:
        return self.read(queue.JOBS.oldest_ms)

    def dead_letters(self) -> list[JsonRow]:
        return self.read(listing.dead_letters)

    def conversation_to_resume(self, session_db_id: int, provider: str) -> str | None:
        return self.read(lambda c: sessions.conversation_to_resume(c, session_db_id, provider))

    def next_refinement(self) -> int | None:
        return self.read(lambda c: queue.REFINEMENTS.next_due_ms(c, self._asleep_ms()))

    def refinable_turns(self, selection: refine_requests.RefineSelection) -> list[int]:
        return self.read(lambda c: refine_requests.find_turns(c, selection))

    def turns_and_days(self) -> tuple[int, int]:
        return self.read(refine_requests.count_turns_and_days)

    def drafted_turn(self, turn_id: int) -> Turn | None:
        """Loads a turn as a model would get it to revise."""
        return self.read(lambda c: refinements.load_drafted_turn(c, turn_id))

    def requested_refinements(self) -> int:
        """How many turns wait for a model because the user asked for it."""
        return self.read(refine_requests.count_waiting)

    def is_requested_refinement(self, job: Job) -> bool:
        return self.read(lambda c: refine_requests.is_requested_job(c, job))

    def refinement_state(self) -> dict[str, int]:
        return self.read(refinements.counts)

    def last_kept_reason(self) -> str | None:
        return self.read(refinements.last_reason)

    def kept_replies(self) -> list[dict[str, Json]]:
        return self.read(refinements.kept_replies)

    def has_finished_conversation(self) -> bool:
        return self.read(sessions.has_finished_conversation)

    def resumable_conversations(self, provider: str) -> set[str]:
        return self.read(lambda c: sessions.resumable_conversations(c, provider))

    def spent_today(self, now: int) -> dict[str, int]:
        return self.read(lambda c: spending.spent_today(c, now))

    def breaker_state(self, observer: str, now: int) -> dict[str, Json]:
        return self.read(lambda c: spending.breaker_state(c, observer, now))

    def breaker_failures(self, observer: str) -> int:
        return self.read(lambda c: spending.failures(c, observer))

    def start_context(self, content_session_id: str) -> str | None:
        row = self.read(
            lambda c: c.execute(
                "SELECT start_context FROM sdk_sessions WHERE content_session_id = ?",
                (content_session_id,),
            ).fetchone()
        )
        return row[0] if row else None

    def has_session(self, content_session_id: str) -> bool:
        row = self.read(
            lambda c: c.execute(
                "SELECT 1 FROM sdk_sessions WHERE content_session_id = ?", (content_session_id,)
            ).fetchone()
        )
        return row is not None

    def has_prompts(self, content_session_id: str) -> bool:
        row = self.read(
            lambda c: c.execute(
                "SELECT 1 FROM sdk_sessions s JOIN user_prompts t ON t.session_id = s.id"
                " WHERE s.content_session_id = ? LIMIT 1",
                (content_session_id,),
            ).fetchone()
        )
        return row is not None

    def session(self, session_db_id: int) -> JsonRow:
        record = self.read(lambda c: listing.get_session(c, "id", session_db_id))
        if record is None:
            raise NotFound(f"there is no session {session_db_id}")
        return record

    def missing_sessions(self, ids: Iterable[int]) -> list[int]:
        """Returns those of the ids that no session has."""
        ids = list(ids)
        rows = self.read(
            lambda c: c.execute(
                "SELECT id FROM sdk_sessions WHERE id IN (SELECT value FROM json_each(?))",
                (json.dumps(ids),),
            ).fetchall()
        )
        return sorted(set(ids) - {row[0] for row in rows})

    def remembered_counts(self) -> listing.RememberedCounts:
        """Counts what has memories."""
        return self.read(listing.remembered_counts)

    def session_by_content_id(self, content_session_id: str) -> JsonRow | None:
        return self.read(lambda c: listing.get_session(c, "content_session_id", content_session_id))

    def named_session_project(self, content_session_id: str) -> Project | None:
        return self.read(lambda c: projects.named_session_project(c, content_session_id))

    def find_session(self, name: str) -> int:
        """Finds a session by the agent's session id, or by its number."""
        session = self.session_by_content_id(name)
        if session is None and name.isascii() and name.isdecimal() and len(name) < 19:
            session = self.session(int(name))
        if session is None:
            raise NotFound(f"there is no session {name[:80]!r}: `claude-mem sessions` lists them")
        return cast(int, session["id"])

    def memories_of_turn(self, turn_id: int) -> list[JsonRow]:
        return self.read(lambda c: listing.memories_of_turn(c, turn_id))

    def memories_of_session(self, session_db_id: int) -> dict[str, Json]:
        return self.read(lambda c: listing.memories_of_session(c, session_db_id))

    def find_project(self, name: str) -> int:
        return self.read(lambda c: projects.find_project(c, name))

    def project_named(self, name: str) -> tuple[Project, list[str]]:
        """Which project a session without a directory belongs to, and which others it may."""
        return self.read(lambda c: projects.project_named(c, name))

    def project_names(self) -> dict[int, str]:
        """Returns the names of projects as lists show them, by row id."""
        return self.read(projects.project_names)

    def project_by_key(self, key: str) -> int | None:
        return self.read(lambda c: projects.project_by_key(c, key))

    def project(self, project_id: int) -> Project:
        return self.read(lambda c: projects.get_project(c, project_id))

    def waiting_transcripts(self) -> list[TranscriptToDistil]:
        return self.read(imported_sessions.waiting_transcripts)

    def distilled_projects(self) -> dict[int, Project]:
        return self.read(imported_sessions.distilled_projects)

    def count_undistilled(self) -> tuple[int, int]:
        """Counts imported turns that wait for their memories, and those that get none."""
        return self.read(imported_sessions.count_undistilled)

    def latest_turns(self, project_id: int | None, sessions: int) -> list[int]:
        """The last turn of each of the sessions with the latest events, of a project or of all."""
        return self.read(lambda c: turns.latest_turns(c, project_id, sessions))

    def load_turn(self, turn_id: int) -> Turn | None:
        return self.read(lambda c: turns.load_turn(c, turn_id))

    def is_any_outdated(self, version: int) -> bool:
        """Whether turns have no memories yet, or those of an older version of the observer."""
        return self.read(
            lambda c: imported_sessions.is_any_waiting(c) or outdated_turns.is_any(c, version)
        )

    def next_outdated(self, version: int) -> Turn | None:
        def work(connection: sqlite3.Connection) -> Turn | None:
            turn_id = outdated_turns.next_turn(connection, version)
            return None if turn_id is None else turns.load_turn(connection, turn_id)

        return self.read(work)

    def outdated_transcripts(self, version: int) -> list[TranscriptToDistil]:
        return self.read(lambda c: outdated_turns.transcripts(c, version))

    def project_directories(self) -> list[tuple[str, Project]]:
        """Lists the directories of projects that have an origin."""
        return self.read(projects.directories)

    def project_of_memory(self, kind: str, number: int) -> int | None:
        return self.read(lambda c: projects.project_of_memory(c, kind, number))

    def project_of_session(self, session_id: int) -> int | None:
        return self.read(lambda c: projects.project_of_session(c, session_id))

    def outside_words(self, project_id: int) -> frozenset[str]:
        """Hashes of words from outside in its memories; see `word_runs`."""
        return self.read(lambda c: outside_words.of_project(c, project_id))

    def project_access(self) -> project_assignments.StoredAccess:
        return self.read(project_assignments.stored_access)

    def previous_project(self, directory: str, project_id: int) -> Project | None:
        """The project that sessions in this directory belonged to before, if another."""
        return self.read(lambda c: project_assignments.previous_project(c, directory, project_id))

    def checkout_project(self, main: str, identity: str) -> Project | None:
        return self.read(lambda c: project_assignments.checkout_project(c, main, identity))

    def is_shared_with_team(self, key: str) -> bool:
        return self.read(lambda c: project_assignments.is_shared_with_team(c, key))

    def with_requests_to(self, project: Project) -> list[Project]:
        return self.read(lambda c: project_assignments.with_requests_to(c, project))

    def latest_commits(self, project_id: int) -> dict[Project, list[str]]:
        """Returns the latest commits by project, without this one."""
        return self.read(lambda c: project_assignments.latest_commits(c, project_id))

    def preview_forgetting(
        self, selection: forgetting.Selection, *, hard: bool = False
    ) -> forgetting.Preview:
        return self.read(lambda c: forgetting.preview(c, selection, hard=hard))

    def sessions_of(self, selection: forgetting.Selection) -> list[int]:
        return self.read(lambda c: forgetting.sessions_of(c, selection))

    def find_forgotten(self, token: str) -> forgetting.Forgotten | None:
        """Finds what was forgotten, also if it cannot be undone."""
        return self.read(lambda c: forgetting.find_forgotten(c, token))

    def forgotten(self) -> list[forgetting.Forgotten]:
        """What can still be undone, the latest first."""
        return self.read(forgetting.all_forgotten)

    def session_state(
        self, content_session_id: str, prompt_id: str | None
    ) -> given_hints.SessionState:
        return self.read(lambda c: given_hints.session_state(c, content_session_id, prompt_id))

    def gotchas_of_file(self, project_id: int, path: str) -> list[file_gotchas.Gotcha]:
        return self.read(lambda c: file_gotchas.gotchas_of_file(c, project_id, path))

    def recent_hints(self, limit: int, project_id: int | None = None) -> list[dict[str, Json]]:
        return self.read(lambda c: given_hints.recent_hints(c, limit, project_id))

    def count_hints(self, content_session_id: str) -> int:
        return self.read(lambda c: given_hints.count_hints(c, content_session_id))

    def needs_scrub(self) -> bool:
        return self.read(file_scrubbing.is_requested)

    def recent_directories(self, project_id: int, limit: int = 20) -> list[str]:
        return self.read(lambda c: projects.recent_directories(c, project_id, limit))

    def projects(self) -> list[JsonRow]:
        return self.read(listing.list_projects)

    def page(
        self, noun: str, page: Page, project_id: int | None = None
    ) -> tuple[list[JsonRow], bool]:
        if noun == "sessions":
            return self.read(lambda c: listing.list_sessions(c, page, project_id))
        return self.read(lambda c: listing.list_page(c, noun, page, project_id))

    def get_many(self, noun: str, ids: list[int]) -> list[JsonRow]:
        return self.read(lambda c: listing.get_many(c, noun, ids))

    def sources(self, noun: str, memory_id: int) -> list[JsonRow]:
        return self.read(lambda c: listing.event_sources(c, noun, memory_id))

    def facts(
        self,
        project_id: int,
        kinds: Sequence[FactKind] = (),
        statuses: Sequence[FactStatus] = (),
    ) -> list[Fact]:
        """Lists facts of these kinds and statuses, or of all; the surest first."""
        return self.read(lambda c: facts.list_facts(c, project_id, kinds, statuses))

    def has_client_memory(
        self, project: Project, client: str, files: Sequence[client_memory_files.NoteMemory]
    ) -> bool:
        """Whether these files are stored as they are, and no others."""
        return self.read(lambda c: client_memory_files.is_current(c, project, client, files))

    def fact_records(
        self,
        project_id: int | None = None,
        kinds: Sequence[FactKind] = (),
        statuses: Sequence[FactStatus] = (),
        limit: int = -1,
        offset: int = 0,
    ) -> list[JsonRow]:
        """Lists the facts of a project, or of all, with their sources."""
        return self.read(
            lambda c: fact_listing.list_records(c, project_id, kinds, statuses, limit, offset)
        )

    def fact(self, fact_id: int) -> JsonRow | None:
        return self.read(lambda c: fact_listing.get_record(c, fact_id))

    def artifacts_of_sessions(self, content_session_ids: Sequence[str]) -> list[Artifact]:
        return self.read(lambda c: facts.artifacts_of_sessions(c, content_session_ids))

    def observations_of_sessions(self, content_session_ids: Sequence[str]) -> list[JsonRow]:
        return self.read(lambda c: memory_rows.observations_of_sessions(c, content_session_ids))

    def fact_sources(self, fact_id: int) -> list[tuple[int, tuple[int, ...]]]:
        """Turns and events that the fact comes from, the latest first."""
        return self.read(lambda c: facts.sources_of(c, fact_id))

    def recent_summaries(
        self, project_id: int, limit: int, without_session: str | None = None
    ) -> list[JsonRow]:
        return self.read(
            lambda c: memory_rows.recent(c, "summaries", project_id, limit, without_session)
        )

    def recurring_obstacles(
        self, project_id: int, min_sessions: int, without_session: str | None = None
    ) -> list[obstacles.Obstacle]:
        return self.read(
            lambda c: obstacles.recurring(c, project_id, min_sessions, without_session)
        )

    def short_prompts(
        self, project_id: int, without_session: str | None = None
    ) -> list[memory_rows.ShortPrompt]:
        return self.read(lambda c: memory_rows.short_prompts(c, project_id, without_session))

    def turns_of_rules(self, project_id: int) -> dict[int, memory_rows.RuleTurn]:
        return self.read(lambda c: memory_rows.turns_of_rules(c, project_id))

    def recent_titles(
        self, project_id: int, limit: int, without_session: str | None = None
    ) -> list[JsonRow]:
        """Lists the titles of observations, without their text."""
        return self.read(
            lambda c: memory_rows.recent(c, "titles", project_id, limit, without_session)
        )

    def pinned(self, project_id: int) -> list[JsonRow]:
        """Reads pinned memories as lines, the latest first."""
        return self.read(lambda c: memory_rows.pinned(c, project_id))

    def recent_sessions(
        self, project_id: int, limit: int, without_session: str | None = None
    ) -> list[JsonRow]:
        return self.read(
            lambda c: memory_rows.recent_sessions(c, project_id, limit, without_session)
        )

    def facts_of_team(self, project_id: int | None) -> list[JsonRow]:
        return self.read(lambda c: team_tables.facts_of_team(c, project_id))

    def recent_of_team(self, project_id: int) -> list[JsonRow]:
        return self.read(lambda c: team_tables.recent_of_team(c, project_id))

    def preview_import(self, session: PastSession) -> imported_sessions.ImportCounts:
        return self.read(lambda c: imported_sessions.preview_import(c, session))

    def is_imported(self, path: str, size: int, modified_ns: int) -> bool:
        return self.read(lambda c: imported_sessions.is_imported(c, path, size, modified_ns))

    def has_memories(self) -> bool:
        row = self.read(
            lambda c: c.execute(
                "SELECT id FROM session_summaries UNION ALL SELECT id FROM observations LIMIT 1"
            ).fetchone()
        )
        return row is not None

    def record_bytes(self) -> int:
        return self.read(turn_records.record_bytes)

    def records_of(self, noun: str, ids: Iterable[int]) -> dict[int, tuple[RecordPart, ...]]:
        """What was said in the turns of these memories, by the ids of the memories."""
        return self.read(lambda c: turn_records.records_of(c, noun, ids))

    def has_one_time_message(self, name: str) -> bool:
        """Whether the user is still to be told."""
        return self.read(lambda c: one_time_messages.is_pending(c, name))

    def counts(self) -> dict[str, int]:
        return self.read(listing.table_counts)

    def schema(self) -> Schema:
        return self.read(read_schema)

    def export(self, write: Write, project_id: int | None = None) -> int:
        """Writes everything, or one project, as lines; returns the number of rows."""
        with closing(connect(self._path, readonly=True)) as connection:
            return export(connection, write, project_id)

    def integrity(self) -> str | None:
        """What is damaged, but for the index."""
        return check_integrity(self._path)

    def damaged_values(self) -> list[str]:
        """Columns with values that are no JSON, as `table.column: number of rows`."""
        return self.read(damaged_json)

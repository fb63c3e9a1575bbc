"""The import of past sessions: transcripts are read (`file_reading.py`) and stored by one writer.

Stored sessions stay stored, so an interrupted import can be run again.

Distilling takes half of the time, and half of the rest would be for the raw texts of recent
events. The command therefore reads only the newest sessions of each project completely, of which
the next contexts are made. The turns of the others get both from the worker
(`worker/background_distilling.py`): `ImportOptions.reads`, `ImportOptions.raw_later`.
"""

import logging
import os
import re
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path

from claude_mem.errors import BadInput
from claude_mem.intake.event_reader import milliseconds
from claude_mem.intake.projects import Projects, access_of, is_missing, is_windows_path
from claude_mem.intake.transcripts import file_reading
from claude_mem.intake.transcripts.file_reading import ImportOptions, ReadFile, read_all, reason_of
from claude_mem.intake.transcripts.missing_directories import first_directory, known_projects
from claude_mem.intake.transcripts.transcript import open_regular_file
from claude_mem.observer.local.observer import distil
from claude_mem.recall.tokens import estimate_tokens
from claude_mem.store import Store, StoreReader
from claude_mem.store.imported_sessions import ImportCounts
from claude_mem.store.waiting_turns import WaitingTranscript
from claude_mem.types import PastSession, PastTurn, Project, Verbosity

log = logging.getLogger("claude_mem.import")

MAX_PENDING_SESSIONS = 32  # sessions that were given to the writer and are not on disk yet
GROUP = 16  # sessions and files; the writer is faster than the readers, and would commit each alone
# Sessions that are distilled at once, if most are distilled later: of each project the newest, as
# many as a context is made of, as long as they are a small part of the files.
CONTEXT_SESSIONS = 20
FEW_BYTES, LARGEST_SHARE = 4 * 1024 * 1024, 0.15
OPEN_MS = 24 * 3_600_000  # before the end of the newest session: others may still be open
_TAIL = 64 * 1024  # bytes at the end of a file that have its last time
_TIMESTAMP = re.compile(rb'"timestamp" ?: ?"([0-9TZ:.+-]{10,40})"')
OnFile = Callable[[Path, int], None]


@dataclass(slots=True)
class Tally:
    """Counts of an import, for one project or for all."""

    sessions: set[str] = field(default_factory=set)
    turns: int = 0
    observations: int = 0
    summaries: int = 0
    existing: int = 0
    private: int = 0
    forgotten: int = 0
    records: int = 0  # filled in for turns that were known
    waiting: int = 0  # to be distilled
    memory_tokens: int = 0

    def add(self, session: PastSession, outcome: ImportCounts, tokens: int) -> None:
        self.sessions.add(session.session_id)
        self.turns += outcome.turns
        self.observations += outcome.observations
        self.summaries += outcome.summaries
        self.existing += outcome.existing
        self.private += outcome.private
        self.forgotten += outcome.forgotten
        self.records += outcome.records
        self.waiting += outcome.waiting
        self.memory_tokens += tokens

    def distilled(self, outcome: ImportCounts, tokens: int) -> None:
        """Of turns that were counted as waiting before."""
        self.observations += outcome.observations
        self.summaries += outcome.summaries
        self.waiting = max(0, self.waiting - outcome.summaries)
        self.memory_tokens += tokens


@dataclass(slots=True)
class Report:
    files: int = 0
    unchanged: int = 0  # files that an earlier import read completely
    bytes: int = 0
    lines: int = 0
    unreadable: int = 0
    text_chars: int = 0
    waiting: int = 0  # turns that have no memories yet, also of earlier imports
    troubles: list[tuple[Path, str]] = field(default_factory=list)
    all: Tally = field(default_factory=Tally)
    projects: dict[Project, Tally] = field(default_factory=dict)

    def add_file(self, read: ReadFile) -> None:
        self.files += 1
        self.bytes += read.size
        self.lines += read.lines
        self.unreadable += read.unreadable
        self.text_chars += read.text_chars
        if read.trouble:
            self.troubles.append((read.path, read.trouble))

    def add(self, session: PastSession, outcome: ImportCounts) -> None:
        tokens = sum(map(_tokens, session.turns))
        for tally in (self.all, self.projects.setdefault(session.project, Tally())):
            tally.add(session, outcome, tokens)

    def distilled(self, project: Project, session: PastSession, outcome: ImportCounts) -> None:
        tokens = sum(map(_tokens, session.turns))
        for tally in (self.all, self.projects.get(project)):
            if tally is not None:
                tally.distilled(outcome, tokens)


def _tokens(turn: PastTurn) -> int:
    if turn.distillate is None:
        return 0
    summary = turn.distillate.summary
    texts = [summary.text, *summary.files_edited, *summary.files_read]
    for observation in turn.distillate.observations:
        texts += (observation.text, *observation.files_modified, *observation.files_read)
    return estimate_tokens("\n".join(texts))


def import_transcripts(
    store: StoreReader | None,
    files: list[Path],
    options: ImportOptions,
    *,
    again: bool = False,
    processes: int = 1,
    progress: OnFile = lambda path, size: None,
) -> Report:
    """With a read-only store, or with None, nothing is stored: the report is a preview."""
    report = Report()
    stored = store.project_directories() if store is not None else []
    known = known_projects(files, stored, options.home_path)
    options = replace(options, known_projects=tuple(sorted(known.items())))
    if store is not None:
        options = replace(options, access=access_of(store, options.trust, is_import=True))
    writer = _SessionWriter(store, report)
    sizes = dict(_changed(store, files, again, report, progress))
    options_of = dict.fromkeys(sizes, options)
    if options.reads == "newest":
        options_of = _options_by_age(sizes, options)
    for item in read_all(sizes, options_of, processes):
        if isinstance(item, PastSession):
            writer.put(item)
            continue
        for session in item.sessions:
            writer.put(session)
        report.add_file(item)
        if not options.project and not options.since_ms and not item.trouble:
            writer.mark_read(item)
        progress(item.path, item.size)
    writer.finish()
    if isinstance(store, Store):
        merge_known_projects(store, options.reader().projects)
        report.waiting, _ = store.count_undistilled()
    return report


def merge_known_projects(store: Store, projects: Projects) -> int:
    """Joins projects of directories that belong to another project, as far as is known by now:
    work trees that were removed, and directories whose repository a later session named."""
    count = 0
    for project in store.projects():
        key = str(project["key"])
        is_path = key.startswith("/") or is_windows_path(key)
        if is_path and is_missing(key):
            target = projects.of(key)
            if target.key != key:
                count += store.merge_project_into(key, target).result()
    return count


def distil_waiting(
    store: Store,
    options: ImportOptions,
    report: Report | None = None,
    *,
    processes: int = 1,
    progress: OnFile = lambda path, size: None,
) -> None:
    """Distils imported turns that have no memories yet. The worker may do the same at the same
    time."""
    report = report or Report()
    waiting: dict[Path, list[WaitingTranscript]] = {}
    store.add_missing_transcripts().result()
    for transcript in store.waiting_transcripts():
        waiting.setdefault(Path(transcript.path), []).append(transcript)
    sizes = {path: size for path in waiting if (size := _size(path)) is not None}
    options_of = {path: options.of_memories(waiting[path][0].keep_raw_since) for path in sizes}
    for item in read_all(sizes, options_of, processes):
        sessions = (item,) if isinstance(item, PastSession) else item.sessions
        for session in sessions:
            for transcript in waiting[Path(session.transcript_path)]:
                if transcript.session_id == session.session_id:
                    try:
                        counts = store.replace_outdated_memories(session).result()
                    except sqlite3.OperationalError:
                        raise  # the disk or the file, not the session
                    except Exception as error:
                        report.troubles.append((Path(transcript.path), reason_of(error)))
                    else:
                        report.distilled(transcript.project, session, counts)
        if isinstance(item, ReadFile):
            for transcript in waiting.pop(item.path):
                finish_transcript(store, transcript, options.verbosity)
            progress(item.path, item.size)
    for transcripts in waiting.values():  # those that do not exist any more
        for transcript in transcripts:
            finish_transcript(store, transcript, options.verbosity)
    report.waiting, _ = store.count_undistilled()


def finish_transcript(store: Store, transcript: WaitingTranscript, verbosity: Verbosity) -> int:
    """Distils turns that were not in the transcript, or whose transcript is gone, from their
    events, as far as these are stored; returns how many."""
    count = 0
    for turn_id in store.finish_transcript(transcript).result():
        turn = store.load_turn(turn_id)
        try:
            if turn is not None:
                count += store.save_again(turn, distil(turn, verbosity)).result()
        except (ValueError, KeyError, TypeError, RecursionError, BadInput):
            log.exception("turn %d has no memories: it could not be distilled", turn_id)
        store.give_up_distilling(turn_id).result()
    return count


def _options_by_age(sizes: Mapping[Path, int], options: ImportOptions) -> dict[Path, ImportOptions]:
    """Of most sessions, memories and raw texts come later; of the newest, all comes at once, and of
    those that may be open still, the raw texts: their hooks continue what is stored."""
    ended = {path: _last_ms(path) for path in sizes}
    open_since = max(ended.values(), default=0) - OPEN_MS
    newest = _newest_sessions(sizes, ended, options.reader().projects)
    of_newest, of_open, of_others = (
        replace(options, reads="all"),
        replace(options, reads="record"),
        replace(options, reads="record", raw_later=True),
    )
    return {
        path: of_newest if path in newest else of_open if ms >= open_since else of_others
        for path, ms in ended.items()
    }


def _newest_sessions(
    sizes: Mapping[Path, int], last_ms: Mapping[Path, int], projects: Projects
) -> set[Path]:
    """The files of which the contexts of the next sessions are made."""
    sessions: dict[str, list[tuple[int, Path]]] = {}
    for path in sizes:
        directory = first_directory(path)
        key = projects.of(directory).key if directory else ""
        sessions.setdefault(key, []).append((last_ms[path], path))
    ranked = sorted(
        (rank, -ms, path)
        for ended in sessions.values()
        for rank, (ms, path) in enumerate(sorted(ended, reverse=True)[:CONTEXT_SESSIONS])
        if sizes[path] <= file_reading.LARGE_FILE_BYTES
    )
    newest: set[Path] = set()
    left = max(FEW_BYTES, LARGEST_SHARE * sum(sizes.values()))
    for rank, _, path in ranked:
        left -= sizes[path]
        if rank > 0 and left < 0:
            break
        newest.add(path)
    return newest


def _last_ms(path: Path) -> int:
    """The last time in a file, or when it was changed last."""
    try:
        with open_regular_file(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            times = _TIMESTAMP.findall(file.read(_TAIL))
        last = milliseconds(times[-1].decode()) if times else None
        return path.stat().st_mtime_ns // 1_000_000 if last is None else last
    except (OSError, BadInput):
        return 0  # the import reports it


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


class _SessionWriter:
    """Gives sessions to the writer in groups, and keeps several pending, so that they share a group
    commit."""

    def __init__(self, store: StoreReader | None, report: Report) -> None:
        self._store, self._report = store, report
        self._group: list[PastSession | ReadFile] = []
        self._pending: deque[tuple[PastSession, Future[ImportCounts]] | ReadFile] = deque()
        self._failed: set[str] = set()
        self._last: Future[None] | None = None

    def put(self, session: PastSession) -> None:
        if not session.turns:
            return
        if not isinstance(self._store, Store):
            preview = self._store.preview_import(session) if self._store else _outcome_of(session)
            self._report.add(session, preview)
            return
        self._group.append(session)
        if len(self._group) >= GROUP:
            self._submit(self._store)

    def mark_read(self, file: ReadFile) -> None:
        """Takes effect after the file's sessions are on disk."""
        if isinstance(self._store, Store):
            self._group.append(file)

    def finish(self) -> None:
        if isinstance(self._store, Store):
            self._submit(self._store)
        while self._pending:
            self._await_first()
        if self._last is not None:
            self._last.result()

    def _submit(self, store: Store) -> None:
        while len(self._pending) > MAX_PENDING_SESSIONS:
            self._await_first()
        for item in self._group:
            if isinstance(item, ReadFile):
                self._pending.append(item)
            else:
                self._pending.append((item, store.import_session(item)))
        self._group.clear()

    def _await_first(self) -> None:
        first = self._pending.popleft()
        if isinstance(first, ReadFile):
            self._mark_imported(first)
            return
        session, future = first
        try:
            outcome = future.result()
        except sqlite3.OperationalError:
            raise  # the disk or the file, not the session
        except Exception as error:
            self._failed.add(session.transcript_path)
            self._report.troubles.append((Path(session.transcript_path), reason_of(error)))
        else:
            self._report.add(session, outcome)

    def _mark_imported(self, file: ReadFile) -> None:
        if isinstance(self._store, Store) and str(file.path) not in self._failed:
            self._last = self._store.mark_imported(str(file.path), file.size, file.modified_ns)


def _outcome_of(session: PastSession) -> ImportCounts:
    """What importing into an empty store would do."""
    distillates = [turn.distillate for turn in session.turns if turn.distillate is not None]
    private = len(session.turns) - len(distillates)
    observations = sum(len(distillate.observations) for distillate in distillates)
    return ImportCounts(len(distillates), observations, len(distillates), private=private)


def _changed(
    store: StoreReader | None, files: list[Path], again: bool, report: Report, progress: OnFile
) -> Iterator[tuple[Path, int]]:
    """Files that changed since the last import, with their sizes."""
    for path in files:
        try:
            status = path.stat()
        except OSError as error:
            report.troubles.append((path, reason_of(error)))
            continue
        is_imported = store is not None and store.is_imported(
            str(path), status.st_size, status.st_mtime_ns
        )
        if is_imported and not again:
            report.unchanged += 1
            progress(path, status.st_size)
        else:
            yield path, status.st_size

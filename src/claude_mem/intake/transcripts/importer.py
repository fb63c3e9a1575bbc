"""The import of past sessions: transcripts are read in parallel and stored by one writer.

Reading and distilling is pure and takes nearly all the time, so it runs in several processes. A
large file is read in this process, part by part, to bound memory. Stored sessions stay stored, so
an interrupted import can be run again.

Distilling takes half of the time. The command therefore distils only the newest sessions of each
project, of which the next contexts are made, and leaves the others to the worker
(`worker/redistilling.py`): `ImportOptions.reads`.
"""

import logging
import multiprocessing
import os
import re
import signal
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from claude_mem.errors import BadInput
from claude_mem.intake.event_reader import EventReader, milliseconds, skipped_and_unobserved
from claude_mem.intake.project_access import Access, TrustDialog
from claude_mem.intake.projects import Exclusions, Projects, access_of, is_missing, is_windows_path
from claude_mem.intake.transcripts.missing_directories import first_directory, known_projects
from claude_mem.intake.transcripts.past_sessions import PastSessionReader
from claude_mem.intake.transcripts.transcript import open_regular_file
from claude_mem.observer.local.learned_trees import load_weights
from claude_mem.observer.local.observer import distil
from claude_mem.recall.tokens import estimate_tokens
from claude_mem.redaction import Redactor, load_finders
from claude_mem.store import Store, StoreReader
from claude_mem.store.imported_sessions import ImportCounts
from claude_mem.store.redistilling import WaitingTranscript
from claude_mem.types import PastSession, PastTurn, Project, Verbosity

log = logging.getLogger("claude_mem.import")

LARGE_FILE_BYTES = 24 * 1024 * 1024
MOST_WITHOUT_POOL = 4  # so few files are read without starting processes
MAX_PENDING_SESSIONS = 32  # sessions that were given to the writer and are not on disk yet
GROUP = 16  # sessions and files; the writer is faster than the readers, and would commit each alone
# Sessions that are distilled at once, if most are distilled later: of each project the newest, as
# many as a context is made of, as long as they are a small part of the files.
CONTEXT_SESSIONS = 20
FEW_BYTES, LARGEST_SHARE = 4 * 1024 * 1024, 0.15
DISTILLING_EFFORT = 3  # times that of reading a transcript without distilling it
_TAIL = 64 * 1024  # bytes at the end of a file that have its last time
_TIMESTAMP = re.compile(rb'"timestamp" ?: ?"([0-9TZ:.+-]{10,40})"')
OnFile = Callable[[Path, int], None]
Reads = Literal["all", "newest", "record", "memories"]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What to import, and how; pickled for every reading process."""

    own_root: str  # the data directory: sessions in it are the observer's own
    home: str
    keep_raw_since: int
    skip_tools: tuple[str, ...] = ()
    redact_allow: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    project: str = ""
    since_ms: int = 0
    keep_record_since: int = 0
    known_projects: tuple[tuple[str, Project], ...] = ()  # by directory
    verbosity: Verbosity = "normal"
    # newest: sessions that are not among the newest get their memories later; record: all do;
    # memories: only these, of turns that are stored
    reads: Reads = "all"
    trust: TrustDialog = field(default_factory=TrustDialog)
    access: Access = field(default_factory=lambda: Access(is_import=True))

    def reader(self) -> EventReader:
        skipped, unobserved = skipped_and_unobserved(self.skip_tools)
        return EventReader(
            redactor=Redactor(self.redact_allow),
            projects=Projects(self.home_path, dict(self.known_projects), lambda: self.access),
            skip_tools=skipped,
            unobserved_tools=unobserved,
        )

    def past_sessions(self, path: Path, reader: EventReader) -> PastSessionReader:
        return PastSessionReader(
            path,
            reader,
            self.keep_raw_since,
            self.includes,
            verbosity=self.verbosity,
            distils=self.reads != "record",
        )

    def of_memories(self, keep_raw_since: int) -> "ImportOptions":
        """To read what was imported without memories."""
        return replace(self, reads="memories", keep_raw_since=keep_raw_since)

    @property
    def home_path(self) -> Path | None:
        return Path(self.home) if self.home else None

    def includes(self, project: Project, directory: str) -> bool:
        if self.reads == "memories":
            return True  # it was selected when it was stored
        roots = (self.own_root, os.path.realpath(self.own_root))
        if any(directory == root or directory.startswith(root + "/") for root in roots):
            return False
        if Exclusions(self.excluded, self.home).cover(project, directory):
            return False
        return self.project in ("", project.key, project.name, directory)

    def includes_turn(self, turn: PastTurn) -> bool:
        last = turn.events[-1].arrived_ms if turn.events else turn.started_ms
        return last >= self.since_ms


@dataclass(frozen=True, slots=True)
class ReadFile:
    path: Path
    size: int
    modified_ns: int
    sessions: tuple[PastSession, ...] = ()
    lines: int = 0
    unreadable: int = 0
    text_chars: int = 0
    trouble: str = ""  # why the file could not be read


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
        newest = _newest_sessions(sizes, options.reader().projects)
        options_of = dict.fromkeys(sizes, replace(options, reads="record"))
        options_of |= dict.fromkeys(newest, replace(options, reads="all"))
    for item in _read_all(sizes, options_of, processes):
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
    for item in _read_all(sizes, options_of, processes):
        sessions = (item,) if isinstance(item, PastSession) else item.sessions
        for session in sessions:
            for transcript in waiting[Path(session.transcript_path)]:
                if transcript.session_id == session.session_id:
                    try:
                        counts = store.replace_outdated_memories(session).result()
                    except sqlite3.OperationalError:
                        raise  # the disk or the file, not the session
                    except Exception as error:
                        report.troubles.append((Path(transcript.path), _reason(error)))
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


def _newest_sessions(sizes: Mapping[Path, int], projects: Projects) -> set[Path]:
    """The files of which the contexts of the next sessions are made."""
    sessions: dict[str, list[tuple[int, Path]]] = {}
    for path in sizes:
        directory = first_directory(path)
        key = projects.of(directory).key if directory else ""
        sessions.setdefault(key, []).append((_last_ms(path), path))
    ranked = sorted(
        (rank, -ms, path)
        for ended in sessions.values()
        for rank, (ms, path) in enumerate(sorted(ended, reverse=True)[:CONTEXT_SESSIONS])
        if sizes[path] <= LARGE_FILE_BYTES
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
            self._report.troubles.append((Path(session.transcript_path), _reason(error)))
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
            report.troubles.append((path, _reason(error)))
            continue
        is_imported = store is not None and store.is_imported(
            str(path), status.st_size, status.st_mtime_ns
        )
        if is_imported and not again:
            report.unchanged += 1
            progress(path, status.st_size)
        else:
            yield path, status.st_size


def _read_all(
    sizes: Mapping[Path, int], options_of: Mapping[Path, ImportOptions], processes: int
) -> Iterator[ReadFile | PastSession]:
    large = [path for path, size in sizes.items() if size > LARGE_FILE_BYTES]
    small = [path for path, size in sizes.items() if size <= LARGE_FILE_BYTES]
    if processes > 1 and len(small) > MOST_WITHOUT_POOL:
        # Those that take longest first, so that no process reads on when the others are done.
        small.sort(key=lambda path: _effort(sizes[path], options_of[path]), reverse=True)
        yield from _read_in_pool(small, options_of, processes)
    else:
        _set_options(options_of)
        for path in small:
            yield _read(path)
    for path in large:
        yield from read_in_parts(path, options_of[path])


def _effort(size: int, options: ImportOptions) -> int:
    return size if options.reads == "record" else size * DISTILLING_EFFORT


def _read_in_pool(
    files: list[Path], options_of: Mapping[Path, ImportOptions], processes: int
) -> Iterator[ReadFile]:
    """Never far ahead of the writer, or all the sessions would wait in memory."""
    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    if method == "fork":
        # Once, before there are copies of this process.
        load_finders()
        if any(options.reads != "record" for options in options_of.values()):
            load_weights()
    pool = ProcessPoolExecutor(
        processes,
        multiprocessing.get_context(method),
        initializer=_start_process,
        initargs=(options_of,),
    )
    remaining = iter(files)
    running: set[Future[ReadFile]] = set()
    try:
        while True:
            for path in remaining:
                running.add(pool.submit(_read, path))
                if len(running) >= 4 * processes:
                    break
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


# Of this process; a pool's initializer cannot pass anything on otherwise.
_options_of: Mapping[Path, ImportOptions]
_reader: EventReader


def _start_process(options_of: Mapping[Path, ImportOptions]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends the pool
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _set_options(options_of)


def _end_with_parent() -> None:
    """A pool process whose parent was killed would otherwise wait forever."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _set_options(options_of: Mapping[Path, ImportOptions]) -> None:
    """They differ only in what is read of a file, not in how its events are."""
    global _options_of, _reader
    _options_of = options_of
    if options_of:
        _reader = next(iter(options_of.values())).reader()


def _read(path: Path) -> ReadFile:
    options = _options_of[path]
    session_reader = options.past_sessions(path, _reader)
    try:
        status = path.stat()
        sessions = tuple(_selected(session, options) for session in session_reader.sessions())
    except Exception as error:  # a bad file does not stop the import
        return ReadFile(path, 0, 0, trouble=_reason(error))
    return _read_file(path, status, session_reader, sessions)


def read_in_parts(path: Path, options: ImportOptions) -> Iterator[ReadFile | PastSession]:
    session_reader = options.past_sessions(path, options.reader())
    sessions = session_reader.sessions()
    try:
        status = path.stat()
        while (session := next(sessions, None)) is not None:
            yield _selected(session, options)
    except Exception as error:
        yield ReadFile(path, 0, 0, trouble=_reason(error))
        return
    yield _read_file(path, status, session_reader, ())


def _reason(error: Exception) -> str:
    if isinstance(error, BadInput):
        return str(error)
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"{type(error).__name__}: {error}"


def _read_file(
    path: Path,
    status: os.stat_result,
    session_reader: PastSessionReader,
    sessions: tuple[PastSession, ...],
) -> ReadFile:
    return ReadFile(
        path,
        status.st_size,
        status.st_mtime_ns,
        sessions,
        session_reader.transcript.lines,
        session_reader.transcript.unreadable + session_reader.unreadable,
        session_reader.text_chars,
    )


def _selected(session: PastSession, options: ImportOptions) -> PastSession:
    turns = session.turns
    if options.reads == "memories":
        return replace(session, turns=tuple(map(_without_raw, map(_without_record, turns))))
    if options.since_ms:
        turns = tuple(filter(options.includes_turn, turns))
    if options.keep_record_since > 0:
        turns = tuple(
            turn if turn.started_ms >= options.keep_record_since else _without_record(turn)
            for turn in turns
        )
    return replace(session, turns=tuple(map(_without_raw, turns)))


def _without_raw(turn: PastTurn) -> PastTurn:
    """Less to copy to the process that stores it."""
    events = tuple(event.without_raw(keeps_text=turn.keeps_raw) for event in turn.events)
    return replace(turn, events=events)


def _without_record(turn: PastTurn) -> PastTurn:
    events = tuple(replace(event, parts=()) for event in turn.events)
    return replace(turn, record=(), events=events)

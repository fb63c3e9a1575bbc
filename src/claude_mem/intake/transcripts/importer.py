"""The import of past sessions: reads the transcripts that have changed, stores their sessions, and
distils the turns that wait for their memories, also for the worker (`ReadingProcess`).

Reading is done in several processes, storing by one writer: reading and distilling is pure and
takes nearly all the time. A large file is read in this process, part by part, to bound memory.
Stored sessions stay stored, so an interrupted import can be run again.

Distilling takes half of the time, and half of the rest would be for the raw texts of recent
events. The command therefore reads only the newest sessions of each project completely
(`newest_sessions.py`). The turns of the others get both from the worker
(`worker/idle_distilling.py`): `ImportOptions.reads`, `ImportOptions.raw_later`.
"""

import logging
import multiprocessing
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from claude_mem.errors import BadInput
from claude_mem.intake.event_reader import EventReader
from claude_mem.intake.projects import access_of
from claude_mem.intake.transcripts.import_options import ImportOptions
from claude_mem.intake.transcripts.import_report import ReadFile, Report
from claude_mem.intake.transcripts.missing_directories import known_projects, merge_known_projects
from claude_mem.intake.transcripts.newest_sessions import options_by_age
from claude_mem.intake.transcripts.past_sessions import PastSessionReader
from claude_mem.observer.local.learned_trees import load_weights
from claude_mem.observer.local.observer import distil
from claude_mem.redaction import load_finders
from claude_mem.store import Store, StoreReader
from claude_mem.store.database import is_of_file
from claude_mem.store.imported_sessions import ImportCounts
from claude_mem.types import PastSession, PastTurn, TranscriptToDistil, Verbosity

log = logging.getLogger("claude_mem.import")

LARGE_FILE_BYTES = 24 * 1024 * 1024
MOST_WITHOUT_POOL = 4  # so few files are read without starting processes
DISTILLING_EFFORT = 3  # times that of reading a transcript without distilling it
MAX_PENDING_SESSIONS = 32  # sessions that were given to the writer and are not on disk yet
TURNS_PER_WRITE = 5  # of the worker
GROUP = 16  # sessions and files; the writer is faster than the readers, and would commit each alone
MODULE = "claude_mem.intake.transcripts.importer"  # of the process that reads for the worker
READING_SECONDS = 300.0  # longer than any transcript takes
READING_TRIES = 2  # of a transcript that ends the process
NICENESS = 10
OnFile = Callable[[Path, int], None]


def import_transcripts(
    store: StoreReader | None,
    files: list[Path],
    options: ImportOptions,
    *,
    again: bool = False,
    processes: int = 1,
    progress: OnFile = lambda path, size: None,
) -> Report:
    """Imports transcripts; with a read-only store, or None, the report is a preview."""
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
        options_of = options_by_age(sizes, options, LARGE_FILE_BYTES)
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


# Reading


def read_all(
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
    """Reads files in processes, not far ahead of the writer, or all sessions would wait in
    memory."""
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
    """Sets the options; they differ only in what is read of a file, not in how its events are."""
    global _options_of, _reader
    _options_of = options_of
    if options_of:
        _reader = next(iter(options_of.values())).reader()


def _read(path: Path) -> ReadFile:
    options = _options_of[path]
    session_reader = _session_reader(path, options, _reader)
    try:
        status = path.stat()
        sessions = tuple(_selected(session, options) for session in session_reader.sessions())
    except Exception as error:  # a bad file does not stop the import
        return ReadFile(path, 0, 0, trouble=reason_of(error))
    return _read_file(path, status, session_reader, sessions)


def read_in_parts(path: Path, options: ImportOptions) -> Iterator[ReadFile | PastSession]:
    session_reader = _session_reader(path, options, options.reader())
    sessions = session_reader.sessions()
    try:
        status = path.stat()
        while (session := next(sessions, None)) is not None:
            yield _selected(session, options)
    except Exception as error:
        yield ReadFile(path, 0, 0, trouble=reason_of(error))
        return
    yield _read_file(path, status, session_reader, ())


def _session_reader(path: Path, options: ImportOptions, reader: EventReader) -> PastSessionReader:
    return PastSessionReader(
        path,
        reader,
        options.keep_raw_since,
        options.includes,
        verbosity=options.verbosity,
        distils=options.reads != "record",
        raw_later=options.raw_later,
    )


def reason_of(error: Exception) -> str:
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
    turns, is_stored = session.turns, options.reads == "memories"
    if options.since_ms and not is_stored:
        turns = tuple(filter(options.includes_turn, turns))
    if options.keep_record_since > 0:
        turns = tuple(
            turn if turn.started_ms >= options.keep_record_since else _without_record(turn)
            for turn in turns
        )
    turns = tuple(_without_raw(turn, raw_later=options.raw_later) for turn in turns)
    if is_stored:
        turns = tuple(replace(turn, record=()) for turn in turns)
    return replace(session, turns=turns)


def _without_raw(turn: PastTurn, *, raw_later: bool) -> PastTurn:
    """Less to copy to the process that stores it."""
    keeps_text = turn.keeps_raw and not raw_later
    events = tuple(event.without_raw(keeps_text=keeps_text) for event in turn.events)
    return replace(turn, events=events)


def _without_record(turn: PastTurn) -> PastTurn:
    events = tuple(replace(event, parts=()) for event in turn.events)
    return replace(turn, record=(), events=events)


# Storing


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
        except Exception as error:
            if is_of_file(error):
                raise  # not the session
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


# Distilling what waits


def distil_waiting(
    store: Store,
    options: ImportOptions,
    report: Report | None = None,
    *,
    processes: int = 1,
    progress: OnFile = lambda path, size: None,
) -> None:
    """Distils imported turns that have no memories yet, for an import without a worker. A worker
    does the same (`worker/idle_distilling.py`), perhaps at the same time."""
    report = report or Report()
    waiting: dict[Path, list[TranscriptToDistil]] = {}
    store.add_missing_transcripts().result()
    for transcript in store.waiting_transcripts():
        waiting.setdefault(Path(transcript.path), []).append(transcript)
    sizes = dict(_existing(waiting))
    options_of = {path: options.of_memories(waiting[path][0].keep_raw_since) for path in sizes}
    for item in read_all(sizes, options_of, processes):
        sessions = (item,) if isinstance(item, PastSession) else item.sessions
        for session in sessions:
            for transcript in waiting[Path(session.transcript_path)]:
                if transcript.session_id == session.session_id:
                    try:
                        counts = store.save_session_memories(session).result()
                    except Exception as error:
                        if is_of_file(error):
                            raise  # not the session
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


def finish_transcript(store: Store, transcript: TranscriptToDistil, verbosity: Verbosity) -> int:
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


def _existing(paths: Iterable[Path]) -> Iterator[tuple[Path, int]]:
    for path in paths:
        with suppress(OSError):
            yield path, path.stat().st_size


# Reading for the worker, in a process of its own with low priority
#
# The worker answers hooks and searches meanwhile: in a thread of it, the same work would keep them
# waiting. The process gets pickled requests on stdin and answers each with the parts of the
# transcript and an end, on stdout. It ends with the worker, whatever ends that.


@dataclass(frozen=True, slots=True)
class ReadRequest:
    path: Path
    options: ImportOptions


class ReadingStopped(Exception):
    """The worker ends: nothing is known about the transcript."""


class ReadingProcess:
    """Starts with the first transcript. One thread at a time may read; any may stop it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._is_stopped = False

    def read(self, request: ReadRequest) -> Iterator[PastSession]:
        """The parts of a transcript. Raises BadInput if it cannot be read: also if it ends the
        process, or takes too long."""
        for left in reversed(range(READING_TRIES)):
            process = self._started()
            try:
                yield from self._ask(process, request)
                return
            except (EOFError, OSError, pickle.UnpicklingError):
                if self._is_stopped:
                    raise ReadingStopped from None
                if not left:
                    raise BadInput(f"the process that read {request.path.name} ended") from None

    def save_memories(
        self, store: Store, transcript: TranscriptToDistil, options: ImportOptions
    ) -> Iterator[int]:
        """Saves memories of the turns that a transcript has of its session: gives the number of
        each few, between which hooks write."""
        for session in self.read(ReadRequest(Path(transcript.path), options)):
            if session.session_id == transcript.session_id:
                for start in range(0, len(session.turns), TURNS_PER_WRITE):
                    part = replace(session, turns=session.turns[start : start + TURNS_PER_WRITE])
                    yield store.save_session_memories(part).result().summaries

    def stop(self) -> None:
        """Ends the reading process for good."""
        self._is_stopped = True
        self._end()

    def rest(self) -> None:
        """Ends the reading process until the next transcript."""
        self._end()

    def _ask(self, process: subprocess.Popen[bytes], request: ReadRequest) -> Iterator[PastSession]:
        assert process.stdin is not None and process.stdout is not None
        late = threading.Timer(READING_SECONDS, process.kill)
        late.start()
        end: ReadFile | None = None
        try:
            pickle.dump(request, process.stdin)
            process.stdin.flush()
            while not isinstance(item := pickle.load(process.stdout), ReadFile):
                yield item
            end = item
        finally:
            late.cancel()
            if end is None:
                self._end()  # the next answer would begin in the middle of this one
        if end.trouble:
            raise BadInput(end.trouble)

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_stopped:
                raise ReadingStopped
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", MODULE],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            return self._process

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


def serve_requests() -> None:
    os.nice(NICENESS)
    threading.Thread(target=_end_with_worker, daemon=True).start()
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints must not get between the answers
    while (request := _next_request(requests)) is not None:
        for item in read_in_parts(request.path, request.options):
            pickle.dump(item, answers)
            answers.flush()


def _end_with_worker() -> None:
    lifeline = select.poll()
    lifeline.register(sys.stdin.fileno(), 0)  # only that the other end is closed
    lifeline.poll()
    os._exit(0)


def _next_request(requests: BinaryIO) -> ReadRequest | None:
    try:
        request = pickle.load(requests)
    except EOFError:
        return None
    assert isinstance(request, ReadRequest)
    return request


if __name__ == "__main__":
    # Under its own name: the class of a request is not that of `__main__`.
    from claude_mem.intake.transcripts import importer

    importer.serve_requests()

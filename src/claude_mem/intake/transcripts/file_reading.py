"""Transcripts as sessions: what of them is imported, read in several processes.

Reading and distilling is pure and takes nearly all the time of an import. A large file is read in
this process, part by part, to bound memory.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from claude_mem.errors import BadInput
from claude_mem.intake.event_reader import EventReader, split_skipped_tools
from claude_mem.intake.project_access import Access, TrustDialog
from claude_mem.intake.projects import Exclusions, Projects
from claude_mem.intake.transcripts.past_sessions import PastSessionReader
from claude_mem.observer.local.learned_trees import load_weights
from claude_mem.redaction import Redactor, load_finders
from claude_mem.types import PastSession, PastTurn, Project, Verbosity

LARGE_FILE_BYTES = 24 * 1024 * 1024
MOST_WITHOUT_POOL = 4  # so few files are read without starting processes
DISTILLING_EFFORT = 3  # times that of reading a transcript without distilling it
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
    # Of turns that get their memories later, the raw texts of events come with them.
    raw_later: bool = False
    trust: TrustDialog = field(default_factory=TrustDialog)
    access: Access = field(default_factory=lambda: Access(is_import=True))

    def reader(self) -> EventReader:
        skipped, unobserved = split_skipped_tools(self.skip_tools)
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
            raw_later=self.raw_later,
        )

    def of_memories(self, keep_raw_since: int) -> "ImportOptions":
        """To read what was imported without memories."""
        return replace(self, reads="memories", keep_raw_since=keep_raw_since, raw_later=False)

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
        return ReadFile(path, 0, 0, trouble=reason_of(error))
    return _read_file(path, status, session_reader, sessions)


def read_in_parts(path: Path, options: ImportOptions) -> Iterator[ReadFile | PastSession]:
    session_reader = options.past_sessions(path, options.reader())
    sessions = session_reader.sessions()
    try:
        status = path.stat()
        while (session := next(sessions, None)) is not None:
            yield _selected(session, options)
    except Exception as error:
        yield ReadFile(path, 0, 0, trouble=reason_of(error))
        return
    yield _read_file(path, status, session_reader, ())


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

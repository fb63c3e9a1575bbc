"""The import of past sessions: which files there are, read side by side, stored by one writer.

Reading and distilling is pure and takes nearly all the time, so it runs in as many processes as
help; a file too large to be held is read here, piece by piece. What was stored stays stored: a
run that was ended is run again.
"""

import multiprocessing
import os
import signal
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path

from claude_mem.errors import BadInput
from claude_mem.intake.dialects import Reader
from claude_mem.intake.projects import Projects
from claude_mem.intake.transcripts.past_sessions import PastReader
from claude_mem.privacy import Redactor
from claude_mem.recall.tokens import estimate_tokens
from claude_mem.store import Store, StoreReader
from claude_mem.store.imports import Outcome
from claude_mem.types import PastSession, PastTurn, Project

LARGE = 24 * 1024 * 1024
FEW = 4  # files for which no processes are started
STORED_AT_ONCE = 32  # sessions on their way to the disk
Progress = Callable[[Path, int], None]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What is to be read, and how; the same for every process."""

    own_root: str  # the data directory: what happened in it is the observer's own
    home: str
    keep_raw_since: int
    field_bytes: int
    skip_tools: tuple[str, ...] = ()
    redact_allow: tuple[str, ...] = ()
    project: str = ""
    since_ms: int = 0

    def reader(self) -> Reader:
        return Reader(
            redactor=Redactor(self.redact_allow),
            projects=Projects(Path(self.home) if self.home else None),
            field_bytes=self.field_bytes,
            skip_tools=frozenset(self.skip_tools),
        )

    def wants(self, project: Project, directory: str) -> bool:
        roots = (self.own_root, os.path.realpath(self.own_root))
        if any(directory == root or directory.startswith(root + "/") for root in roots):
            return False
        return self.project in ("", project.key, project.name, directory)

    def wants_turn(self, turn: PastTurn) -> bool:
        last = turn.events[-1].arrived_ms if turn.events else turn.begun_ms
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
    trouble: str = ""  # why it could not be read at all


@dataclass(slots=True)
class Tally:
    """What an import did, of one project or of all."""

    sessions: set[str] = field(default_factory=set)
    turns: int = 0
    observations: int = 0
    summaries: int = 0
    known: int = 0
    private: int = 0
    forgotten: int = 0
    memory_tokens: int = 0

    def add(self, session: PastSession, outcome: Outcome) -> None:
        self.sessions.add(session.session_id)
        self.turns += outcome.turns
        self.observations += outcome.observations
        self.summaries += outcome.summaries
        self.known += outcome.known
        self.private += outcome.private
        self.forgotten += outcome.forgotten
        self.memory_tokens += sum(_tokens(turn) for turn in session.turns)


@dataclass(slots=True)
class Report:
    files: int = 0
    unchanged: int = 0  # files that were read to their end before
    empty: int = 0  # files that hold no conversation
    bytes: int = 0
    lines: int = 0
    unreadable: int = 0
    text_chars: int = 0
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

    def add(self, session: PastSession, outcome: Outcome) -> None:
        self.all.add(session, outcome)
        self.projects.setdefault(session.project, Tally()).add(session, outcome)


def _tokens(turn: PastTurn) -> int:
    if turn.made is None:
        return 0
    summary = turn.made.summary
    texts = [summary.text, *summary.files_edited, *summary.files_read]
    for observation in turn.made.observations:
        texts += (observation.text, *observation.files_modified, *observation.files_read)
    return estimate_tokens("\n".join(texts))


def find_transcripts(places: Iterable[Path]) -> list[Path]:
    """Sessions' own files; what subagents wrote is told in their parents'."""
    found: dict[Path, None] = {}
    for place in map(Path.absolute, places):
        if place.is_dir():
            inside = (path for path in place.rglob("*.jsonl") if _is_sessions(path, place))
            found.update(dict.fromkeys(sorted(inside)))
        elif place.exists():
            found[place] = None
    return list(found)


def _is_sessions(path: Path, place: Path) -> bool:
    is_agents = path.name.startswith("agent-") or "subagents" in path.relative_to(place).parts
    return not is_agents and path.is_file()


def import_transcripts(
    store: StoreReader | None,
    files: list[Path],
    wishes: ImportOptions,
    *,
    again: bool = False,
    processes: int = 1,
    progress: Progress = lambda path, size: None,
) -> Report:
    """With a reader, or nothing at all, nothing is kept: a look at what would be."""
    report = Report()
    storing = _Storing(store, report)
    for read in _read_all(_changed(store, files, again, report, progress), wishes, processes):
        if isinstance(read, PastSession):
            storing.put(read)
            continue
        for session in read.sessions:
            storing.put(session)
        report.add_file(read)
        if not wishes.project and not wishes.since_ms and not read.trouble:
            storing.note(read)
        progress(read.path, read.size)
    storing.finish()
    return report


class _Storing:
    """Writes on their way, so many at once that they share their way to the disk."""

    def __init__(self, store: StoreReader | None, report: Report) -> None:
        self._store, self._report = store, report
        self._waiting: deque[tuple[PastSession, Future[Outcome]] | ReadFile] = deque()
        self._failed: set[str] = set()
        self._last: Future[None] | None = None

    def put(self, session: PastSession) -> None:
        if not session.turns:
            return
        if not isinstance(self._store, Store):
            foreseen = self._store.preview_import(session) if self._store else _as_if(session)
            self._report.add(session, foreseen)
            return
        self._waiting.append((session, self._store.import_session(session)))
        while len(self._waiting) > STORED_AT_ONCE:
            self._take()

    def note(self, read: ReadFile) -> None:
        """Once its sessions are on disk."""
        if isinstance(self._store, Store):
            self._waiting.append(read)

    def finish(self) -> None:
        while self._waiting:
            self._take()
        if self._last is not None:
            self._last.result()

    def _take(self) -> None:
        first = self._waiting.popleft()
        if isinstance(first, ReadFile):
            self._take_note(first)
            return
        session, done = first
        try:
            outcome = done.result()
        except sqlite3.OperationalError:
            raise  # the disk or the file, not the session
        except Exception as error:
            self._failed.add(session.transcript_path)
            self._report.troubles.append((Path(session.transcript_path), _reason(error)))
        else:
            self._report.add(session, outcome)

    def _take_note(self, read: ReadFile) -> None:
        if isinstance(self._store, Store) and str(read.path) not in self._failed:
            self._last = self._store.mark_imported(str(read.path), read.size, read.modified_ns)


def _as_if(session: PastSession) -> Outcome:
    made = [turn.made for turn in session.turns if turn.made is not None]
    private = len(session.turns) - len(made)
    observations = sum(len(one.observations) for one in made)
    return Outcome(len(made), observations, len(made), private=private)


def _changed(
    store: StoreReader | None, files: list[Path], again: bool, report: Report, progress: Progress
) -> Iterator[tuple[Path, int]]:
    """Files that were not read yet as they are now, with their sizes."""
    for path in files:
        try:
            status = path.stat()
        except OSError as error:
            report.troubles.append((path, _reason(error)))
            continue
        known = store is not None and store.is_imported(
            str(path), status.st_size, status.st_mtime_ns
        )
        if known and not again:
            report.unchanged += 1
            progress(path, status.st_size)
        else:
            yield path, status.st_size


def _read_all(
    files: Iterator[tuple[Path, int]], wishes: ImportOptions, processes: int
) -> Iterator[ReadFile | PastSession]:
    small: list[Path] = []
    large: list[Path] = []
    for path, size in files:
        (large if size > LARGE else small).append(path)
    if processes > 1 and len(small) > FEW:
        yield from _read_side_by_side(small, wishes, processes)
    else:
        _set_wishes(wishes)
        for path in small:
            yield _read(path)
    for path in large:
        yield from _read_in_pieces(path, wishes)


def _read_side_by_side(
    files: list[Path], wishes: ImportOptions, processes: int
) -> Iterator[ReadFile]:
    """Never far ahead of the writer, or a whole tree would wait in memory."""
    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    pool = ProcessPoolExecutor(
        processes, multiprocessing.get_context(method), initializer=_begin, initargs=(wishes,)
    )
    rest = iter(files)
    running: set[Future[ReadFile]] = set()
    try:
        while True:
            for path in rest:
                running.add(pool.submit(_read, path))
                if len(running) >= 4 * processes:
                    break
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for read in done:
                yield read.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_wishes: ImportOptions
_reader: Reader


def _begin(wishes: ImportOptions) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _set_wishes(wishes)


def _end_with_parent() -> None:
    """Whoever reads for one that was killed would wait for ever."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _set_wishes(wishes: ImportOptions) -> None:
    global _wishes, _reader
    _wishes, _reader = wishes, wishes.reader()


def _read(path: Path) -> ReadFile:
    past = PastReader(path, _reader, _wishes.keep_raw_since, _wishes.wants)
    try:
        status = path.stat()
        sessions = tuple(_wanted(session, _wishes) for session in past.sessions())
    except Exception as error:  # one bad file never stops the others
        return ReadFile(path, 0, 0, trouble=_reason(error))
    return _read_file(path, status, past, sessions)


def _read_in_pieces(path: Path, wishes: ImportOptions) -> Iterator[ReadFile | PastSession]:
    past = PastReader(path, wishes.reader(), wishes.keep_raw_since, wishes.wants)
    sessions = past.sessions()
    try:
        status = path.stat()
        while (session := next(sessions, None)) is not None:
            yield _wanted(session, wishes)
    except Exception as error:
        yield ReadFile(path, 0, 0, trouble=_reason(error))
        return
    yield _read_file(path, status, past, ())


def _reason(error: Exception) -> str:
    if isinstance(error, BadInput):
        return str(error)
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"{type(error).__name__}: {error}"


def _read_file(
    path: Path, status: os.stat_result, past: PastReader, sessions: tuple[PastSession, ...]
) -> ReadFile:
    return ReadFile(
        path,
        status.st_size,
        status.st_mtime_ns,
        sessions,
        past.transcript.lines,
        past.transcript.unreadable + past.unreadable,
        past.text_chars,
    )


def _wanted(session: PastSession, wishes: ImportOptions) -> PastSession:
    if not wishes.since_ms:
        return session
    return replace(session, turns=tuple(t for t in session.turns if wishes.wants_turn(t)))

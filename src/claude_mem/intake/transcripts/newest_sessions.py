"""Which imported sessions are distilled at once: the newest of each project, of which the contexts
of the next sessions are made, as many as a context is made of, as long as they are a small part of
the files."""

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from claude_mem.errors import BadInput
from claude_mem.intake.projects import Projects
from claude_mem.intake.transcripts.import_options import ImportOptions
from claude_mem.intake.transcripts.missing_directories import first_directory
from claude_mem.intake.transcripts.transcript import open_regular_file
from claude_mem.timestamps import milliseconds

CONTEXT_SESSIONS = 20
FEW_BYTES, LARGEST_SHARE = 4 * 1024 * 1024, 0.15
OPEN_MS = 24 * 3_600_000  # before the end of the newest session: others may still be open
_TAIL = 64 * 1024  # bytes at the end of a file that have its last time
_TIMESTAMP = re.compile(rb'"timestamp" ?: ?"([0-9TZ:.+-]{10,40})"')


def options_by_age(
    sizes: Mapping[Path, int], options: ImportOptions, largest: int
) -> dict[Path, ImportOptions]:
    """Returns the options for each file: of most sessions, memories and raw texts come later; of
    the newest, all comes at once, and of those that may be open still, the raw texts: their hooks
    continue what is stored."""
    ended = {path: _last_ms(path) for path in sizes}
    open_since = max(ended.values(), default=0) - OPEN_MS
    newest = _newest_sessions(sizes, ended, options.reader().projects, largest)
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
    sizes: Mapping[Path, int], last_ms: Mapping[Path, int], projects: Projects, largest: int
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
        if sizes[path] <= largest
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

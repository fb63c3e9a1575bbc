"""Repositories that transcripts name, for directories that do not exist any more.

Many sessions ran `git remote -v` or `git push`, or opened a pull request. One that did tells for
all sessions of its directory. The bytes of a file are searched, not parsed: this runs before every
import. A session that names several repositories tells nothing by itself.
"""

import json
import mmap
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from claude_mem.errors import BadInput
from claude_mem.intake.projects import (
    Projects,
    is_missing,
    is_windows_path,
    normalise,
    repository_of,
)
from claude_mem.intake.transcripts.transcript import open_regular_file
from claude_mem.store import Store
from claude_mem.types import Project

_URL = rb"((?:https?://|ssh://|git@)[\w.@:/~+-]{3,300}?)(?:\.git)?"
_PUSHED_TO = rb"((?:https?://|ssh://|git@)?[\w.-]{3,100}[:/][\w.@:/~+-]{3,300}?)(?:\.git)?"
# As JSON escapes them: a tab is \\t, the end of a line \\n. The surest first, each with what a text
# must contain to match; what is looked for first is in all of them.
_EVIDENCE = (
    ((b"(fetch)",), re.compile(rb"\borigin(?:\\t| )" + _URL + rb" \(fetch\)")),
    ((b"\\nTo ", b'"To '), re.compile(rb"(?:\\n|\")To " + _PUSHED_TO + rb"(?:\\n|\")")),
    ((b'"prUrl"',), re.compile(rb'"prUrl" ?: ?"' + _URL + rb"/(?:pull|-/merge_requests)/\d")),
)
_COMMON = {b"\\nTo ": b"To ", b'"To ': b"To "}
_LONGEST_MATCH = 512
CHUNK, _OVERLAP = 128 * 1024, 1024  # the overlap is longer than any match
_DIRECTORY = re.compile(rb'"cwd" ?: ?("(?:[^"\\]|\\.){1,4000}")')
_HEAD = 1024 * 1024  # where the first lines of a session are


def known_projects(
    files: Iterable[Path], stored: Iterable[tuple[str, Project]], home: Path | None
) -> dict[str, Project]:
    """Returns projects by directory: of the store, and of transcripts whose directory is gone."""
    known = dict(stored)
    projects = Projects(home, known)
    homeless = [
        (file, directory)
        for file in files
        if (directory := _missing_directory(file, projects)) is not None
    ]
    known |= _most_named((directory, _only_origin(file)) for file, directory in homeless)
    origins = sorted({project.key for project in known.values()})
    others = [(file, directory) for file, directory in homeless if directory not in known]
    return known | _most_named((d, _fitting_origin(file, d, origins)) for file, d in others)


def _most_named(votes: Iterable[tuple[str, str | None]]) -> dict[str, Project]:
    """Returns by directory what most of its sessions name."""
    counts: dict[str, Counter[str]] = {}
    for directory, origin in votes:
        if origin is not None:
            counts.setdefault(directory, Counter())[origin] += 1
    projects: dict[str, Project] = {}
    for directory, origins in counts.items():
        (key, count), *others = sorted(origins.items(), key=lambda item: (-item[1], item[0]))
        if not others or others[0][1] < count:
            projects[directory] = Project(key, key.rsplit("/", 1)[-1])
    return projects


def first_directory(file: Path) -> str | None:
    with _bytes_of(file) as data:
        return _first_directory(data)


def _missing_directory(file: Path, projects: Projects) -> str | None:
    """The main directory of a session whose project is not known otherwise."""
    directory = first_directory(file)
    if directory is None or not is_missing(directory):
        return None
    main = _main_directory(directory)
    return main if projects.of(directory).key in (directory, main) else None


@contextmanager
def _bytes_of(file: Path) -> Iterator[mmap.mmap | bytes]:
    """Reads the bytes of a file; empty if it cannot be read: the import reports it."""
    try:
        opened = open_regular_file(file)
    except (OSError, BadInput):
        yield b""
        return
    with opened:
        if os.fstat(opened.fileno()).st_size == 0:
            yield b""
            return
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data


def _first_directory(data: mmap.mmap | bytes) -> str | None:
    match = _DIRECTORY.search(data, 0, min(len(data), _HEAD))
    try:
        value = json.loads(match[1]) if match else None
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _main_directory(directory: str) -> str:
    repository = repository_of(directory)
    return repository.directory if repository is not None else directory


def _only_origin(file: Path) -> str | None:
    urls: list[set[bytes]] = [set() for _ in _EVIDENCE]
    with _bytes_of(file) as data:
        # Searching bytes for a few marks is ten times as fast as searching with the patterns, and
        # from the end it takes half the time of `in`.
        for start in range(0, len(data), CHUNK):
            chunk = data[max(0, start - _OVERLAP) : start + CHUNK]
            for matches, (marks, pattern) in zip(urls, _EVIDENCE, strict=True):
                first, last = _span(chunk, marks)
                if first >= 0:
                    candidates = pattern.finditer(
                        chunk, max(0, first - _LONGEST_MATCH), last + _LONGEST_MATCH
                    )
                    matches.update(m[1] for m in candidates if m.start() > 0 or start == 0)
    for matches in urls:
        origins = {normalise(_as_url(url)) for url in matches} - {None}
        if origins:
            return origins.pop() if len(origins) == 1 else None
    return None


def _span(chunk: bytes, marks: tuple[bytes, ...]) -> tuple[int, int]:
    """Returns the span from the first to the last of these marks; -1 where there is none."""
    if chunk.rfind(_COMMON.get(marks[0], marks[0])) < 0:
        return -1, -1
    last = max(map(chunk.rfind, marks))
    firsts = [place for place in map(chunk.find, marks) if place >= 0] if last >= 0 else []
    return min(firsts, default=-1), last


def _as_url(matched: bytes) -> str:
    """`git push` prints "github.com:owner/name" where the user is configured."""
    url = matched.decode("utf-8", "replace")
    return url if url.startswith(("http", "ssh", "git@")) else f"git@{url}"


def _fitting_origin(file: Path, directory: str, origins: list[str]) -> str | None:
    """The only known origin that the session mentions and that the directory is called after:
    by its name, or by the owner's folder."""
    *_, parent, name = ("", "", *directory.replace("\\", "/").rstrip("/").split("/"))
    fitting = []
    with _bytes_of(file) as data:
        for origin in origins:
            *_, owner, repository = ("", "", *origin.split("/"))
            is_called_so = name == repository or (parent == owner and owner != "")
            if is_called_so and data.find(f"{owner}/{repository}".encode()) >= 0:
                fitting.append(origin)
    return fitting[0] if len(fitting) == 1 else None


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

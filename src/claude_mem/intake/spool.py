"""The spool from the worker's side: records in order of arrival, read whole, removed last."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from claude_mem.config import Layout
from claude_mem.hook.private_text import strip_private
from claude_mem.hook.spool import FORMAT, MAGIC, MAX_PAYLOAD, SUFFIX
from claude_mem.intake.event_reader import SHORT_PAYLOAD, EventHeader
from claude_mem.intake.normalisers import NORMALISERS, normalise
from claude_mem.json_objects import parse_object
from claude_mem.types import Json

# A backlog of this size or age is reported.
WARN_FILES, WARN_HOURS = 5000, 24
MAX_RECORD = MAX_PAYLOAD + 64 * 1024  # with its header

_SUFFIX = SUFFIX.decode()


@dataclass(frozen=True, slots=True)
class SpoolFile:
    header: EventHeader
    version: str
    payload: bytes


class BadSpoolFileError(ValueError):
    """Not a record that this version can read; the reason is for the log."""


def waiting(layout: Layout) -> list[Path]:
    """The records there are, the earliest first."""
    try:
        with os.scandir(layout.spool) as entries:
            names = [entry.name for entry in entries if entry.name.endswith(_SUFFIX)]
    except FileNotFoundError:
        return []
    return [layout.spool / name for name in sorted(names)]


def arrival_ms(path: Path) -> int:
    """When a record came, by its name; by its file where somebody else named it."""
    digits = path.name.split("-", 1)[0]
    if digits.isascii() and digits.isdecimal() and len(digits) == 20:
        return int(digits) // 1_000_000
    return int(path.stat().st_mtime * 1000)


def read(path: Path) -> bytes:
    """The bytes of a record; without waiting for a file that is not a regular one."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise BadSpoolFileError("it is not a regular file")
        if status.st_size > MAX_RECORD:
            raise BadSpoolFileError(f"it has {status.st_size} bytes; the limit is {MAX_RECORD}")
        data = os.read(descriptor, status.st_size)
        while len(data) < status.st_size and (more := os.read(descriptor, status.st_size)):
            data += more
        return data
    finally:
        os.close(descriptor)


def parse(data: bytes) -> SpoolFile:
    head, separator, payload = data.partition(b"\n")
    if not separator or not head.startswith(MAGIC + b"\t") or head.count(b"\t") != 6:
        raise BadSpoolFileError("it has no spool header")
    # Texts for the database: bytes that are no UTF-8 (a directory may be named so) are replaced.
    _, spool_format, version, dialect, kind, arrived, directory = (
        field.decode("utf-8", "replace") for field in head.split(b"\t")
    )
    if spool_format != FORMAT.decode():
        raise BadSpoolFileError(f"its spool format is {spool_format}, not {FORMAT.decode()}")
    try:
        arrived_ns = int(arrived)
    except ValueError:
        raise BadSpoolFileError("its arrival time is not a number") from None
    header = EventHeader(
        kind=kind,
        arrived_ms=arrived_ns // 1_000_000,
        project_dir=_unescape(directory),
        dialect=dialect or "claude",
        is_short=len(payload) <= SHORT_PAYLOAD and dialect not in NORMALISERS,
    )
    # The hook has stripped it already; whatever wrote this file, nothing private goes on.
    return SpoolFile(header, version, strip_private(payload))


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    result: list[str] = []
    characters = iter(text)
    for character in characters:
        if character == "\\":
            character = next(characters, "")
            character = {"n": "\n", "t": "\t"}.get(character, character)
        result.append(character)
    return "".join(result)


def events_of(record: SpoolFile) -> list[tuple[EventHeader, dict[str, Json]]]:
    """One of Claude Code; of another agent none or several, rewritten as Claude Code's."""
    header, payload = record.header, parse_object(record.payload)
    return normalise(header, payload) if header.dialect in NORMALISERS else [(header, payload)]

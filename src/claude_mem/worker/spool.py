"""The spool from the worker's side: records in order of arrival, read whole, removed last."""

import os
from dataclasses import dataclass
from pathlib import Path

from claude_mem.config import Layout, write_private
from claude_mem.hook.scanner import strip_private
from claude_mem.hook.spool import FORMAT, MAGIC, SUFFIX
from claude_mem.privacy import Redactor
from claude_mem.worker.dialect import Arrival

_SUFFIX = SUFFIX.decode()


@dataclass(frozen=True, slots=True)
class SpoolRecord:
    arrival: Arrival
    version: str
    payload: bytes


class BadRecordError(ValueError):
    """Not a record that this version can read; the reason is for the log."""


def waiting(layout: Layout) -> list[Path]:
    """The records there are, the earliest first."""
    try:
        with os.scandir(layout.spool) as entries:
            names = [entry.name for entry in entries if entry.name.endswith(_SUFFIX)]
    except FileNotFoundError:
        return []
    return [layout.spool / name for name in sorted(names)]


def parse(data: bytes) -> SpoolRecord:
    head, separator, payload = data.partition(b"\n")
    fields = head.split(b"\t")
    if not separator or len(fields) != 7 or fields[0] != MAGIC:
        raise BadRecordError("it has no spool header")
    if fields[1] != FORMAT:
        raise BadRecordError(f"its spool format is {os.fsdecode(fields[1])}, not {FORMAT.decode()}")
    try:
        arrived_ns = int(fields[5])
    except ValueError:
        raise BadRecordError("its arrival time is not a number") from None
    arrival = Arrival(
        kind=os.fsdecode(fields[4]),
        arrived_ms=arrived_ns // 1_000_000,
        project_dir=_unescape(os.fsdecode(fields[6])),
        dialect=os.fsdecode(fields[3]) or "claude",
    )
    # The hook has stripped it already; whatever wrote this file, nothing private goes on.
    return SpoolRecord(arrival, os.fsdecode(fields[2]), strip_private(payload))


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


def reject(layout: Layout, path: Path, redactor: Redactor) -> None:
    """Keeps what might be a real payload, without its private and secret parts."""
    text = strip_private(path.read_bytes()).decode("utf-8", "replace")
    layout.rejected.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(layout.rejected / path.name, redactor.redact(text).encode("utf-8", "replace"))
    path.unlink(missing_ok=True)


def rejected(layout: Layout) -> list[Path]:
    return sorted(layout.rejected.glob("*" + _SUFFIX))


def abandoned(layout: Layout, before_epoch: float) -> list[Path]:
    """Half-written records of hooks that died before they printed their line."""
    hidden = [path for path in layout.spool.glob(".*") if path.is_file()]
    return [path for path in hidden if path.stat().st_mtime < before_epoch]

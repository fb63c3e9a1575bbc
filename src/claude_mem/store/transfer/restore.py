"""A file that `export` wrote, line by line into a store that is empty or not.

In batches, each a transaction of its own: short enough for a worker beside it, and whoever kills
it loses nothing, since running it again goes over what is there and on from it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from claude_mem.errors import BadInput, NotFound
from claude_mem.hook.faults import reach
from claude_mem.privacy import Redactor
from claude_mem.store.migrations import MIGRATIONS
from claude_mem.store.store import Store
from claude_mem.store.transfer.export import FORMAT, VERSION
from claude_mem.store.transfer.records import Row, RowReader, parse_line

LONGEST_LINE = 16 * 1024 * 1024
BATCH_ROWS, BATCH_BYTES = 500, 1024 * 1024
REASONS_KEPT = 20


@dataclass(frozen=True, slots=True)
class Refusal:
    place: str
    reason: str


@dataclass(slots=True)
class RestoreReport:
    """What became of a file: rows by table, and what was refused and why."""

    added: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    private: int = 0  # of a prompt that is private here or there
    forgotten: int = 0
    refused: int = 0
    reasons: list[Refusal] = field(default_factory=list)  # the first of them
    is_complete: bool = False  # the file had its last line
    projects: list[int] = field(default_factory=list)

    def refuse(self, line: int, reason: str) -> None:
        self.refused += 1
        if len(self.reasons) < REASONS_KEPT:
            self.reasons.append(Refusal(f"line {line}", reason))


def is_export(path: Path) -> bool:
    """Whether the first line is that of an export, of whatever version."""
    try:
        with path.open("rb") as file:
            return parse_line(file.readline(LONGEST_LINE)).get("format") == FORMAT
    except (OSError, BadInput):
        return False


def restore(store: Store, path: Path, redactor: Redactor) -> RestoreReport:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None
    with file:
        _check_header(path, file)
        return _restore(store, file, RowReader(store.schema(), redactor))


def _check_header(path: Path, file: BinaryIO) -> None:
    try:
        header = parse_line(file.readline(LONGEST_LINE))
    except (BadInput, OSError):
        header = {}
    if header.get("format") != FORMAT:
        raise BadInput(f"{path} is not an export: `claude-mem export FILE` writes one")
    version, schema = header.get("version"), header.get("schema")
    known = {name for name, _ in MIGRATIONS}
    if type(version) is not int or not isinstance(schema, list):
        raise BadInput(f"{path} has a first line that cannot be understood")
    if version > VERSION or not all(name in known for name in schema if isinstance(name, str)):
        raise BadInput(f"{path} was written by a newer claude-mem: upgrade this installation")


def _restore(store: Store, file: BinaryIO, reader: RowReader) -> RestoreReport:
    report = RestoreReport()
    store.begin_merge().result()
    for batch in _batches(file, reader, report):
        for row, merged in zip(batch, store.merge_rows(batch).result(), strict=True):
            if merged.outcome == "added":
                report.added[row.table] += 1
            elif merged.outcome == "known":
                report.known[row.table] += 1
            elif merged.outcome == "private":
                report.private += 1
            elif merged.outcome == "forgotten":
                report.forgotten += 1
            else:
                report.refuse(row.line, merged.reason)
        reach(b"restore.after_batch")
    report.projects = store.end_merge().result()
    return report


def _batches(file: BinaryIO, reader: RowReader, report: RestoreReport) -> Iterator[list[Row]]:
    batch: list[Row] = []
    size = seen = 0
    for number, line in _lines(file):
        if (count := _last_count(line)) is not None:
            report.is_complete = True
            if count != seen:
                report.refuse(number, f"counts {count} records, but {seen} came before it")
        elif line.strip():
            seen += 1
            size += len(line)
            try:
                batch.append(_read(reader, number, line))
            except BadInput as error:
                report.refuse(number, str(error))
        if len(batch) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _read(reader: RowReader, number: int, line: bytes) -> Row:
    if len(line) > LONGEST_LINE:
        raise BadInput(f"is longer than {LONGEST_LINE} bytes")
    return reader.read(number, line)


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Numbered from the second line on; of one that is too long only the head."""
    number = 1
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(LONGEST_LINE)
        yield number, line


def _last_count(line: bytes) -> int | None:
    """What the last line says; None for every other line."""
    if len(line) > 100:
        return None
    try:
        value = parse_line(line)
    except BadInput:
        return None
    count = value.get("records")
    return count if len(value) == 1 and type(count) is int else None

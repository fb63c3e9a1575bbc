"""Restores an export into a store that may already hold memories.

Each batch of lines is a transaction, short enough for a worker that runs at the same time. A
restore that was killed is completed by running it again: existing rows are passed over.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from claude_mem.errors import BadInput, NewerDatabase, NotFound, OlderDatabase
from claude_mem.hook.kill_points import reach
from claude_mem.redaction import Redactor
from claude_mem.store import conversion
from claude_mem.store.clock import iso
from claude_mem.store.migrations import check_names
from claude_mem.store.store import Store
from claude_mem.store.transfer.export import FORMAT, VERSION
from claude_mem.store.transfer.export_reader import Row, RowReader, parse_line
from claude_mem.timestamps import EARLIEST_MS
from claude_mem.types import FactOrigin

LARGEST_LINE = 16 * 1024 * 1024
BATCH_ROWS, BATCH_BYTES = 500, 1024 * 1024
REASONS_KEPT = 20
OUTSIDE: FactOrigin = "outside"
_UNDECIDED = {"pinned": 0, "changed_by": None, "start_context": None, "superseded_by": None}


@dataclass(frozen=True, slots=True)
class Refusal:
    place: str
    reason: str


@dataclass(slots=True)
class RestoreReport:
    """Rows by table, and the lines that were refused, with reasons."""

    added: Counter[str] = field(default_factory=Counter)
    existing: Counter[str] = field(default_factory=Counter)
    private: int = 0  # rows of a prompt that is private here or in the file
    forgotten: int = 0
    refused: int = 0
    candidates: int = 0  # rules that the user may confirm
    reasons: list[Refusal] = field(default_factory=list)  # the first of them
    is_complete: bool = False  # whether the file had its last line
    projects: list[int] = field(default_factory=list)

    def refuse(self, line: int, reason: str) -> None:
        self.refused += 1
        if len(self.reasons) < REASONS_KEPT:
            self.reasons.append(Refusal(f"line {line}", reason))


def is_export(path: Path) -> bool:
    """Whether the first line is that of an export of any version."""
    try:
        with path.open("rb") as file:
            return parse_line(file.readline(LARGEST_LINE)).get("format") == FORMAT
    except (OSError, BadInput):
        return False


def restore(store: Store, path: Path, redactor: Redactor, *, is_own: bool = True) -> RestoreReport:
    """`is_own`: whether the user wrote it. Everything in any other export is from outside."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None
    with file:
        _check_header(path, file)
        return _restore(store, file, RowReader(store.schema(), redactor), is_own)


def _check_header(path: Path, file: BinaryIO) -> None:
    try:
        header = parse_line(file.readline(LARGEST_LINE))
    except (BadInput, OSError):
        header = {}
    if header.get("format") != FORMAT:
        raise BadInput(f"{path} is not an export: `claude-mem export FILE` writes one")
    version, schema = header.get("version"), header.get("schema")
    if type(version) is not int or not isinstance(schema, list):
        raise BadInput(f"{path} has an invalid first line")
    try:
        if version > VERSION:
            raise NewerDatabase
        check_names([name for name in schema if isinstance(name, str)])
    except NewerDatabase:
        raise BadInput(
            f"{path} was written by a newer claude-mem: upgrade this installation"
        ) from None
    except OlderDatabase:
        raise BadInput(
            f"{path} was written by a claude-mem that is too old for this one: import it with the"
            f" version at commit {conversion.COMMIT}, and export it again"
        ) from None


def _restore(store: Store, file: BinaryIO, reader: RowReader, is_own: bool) -> RestoreReport:
    report = RestoreReport()
    store.begin_merge().result()
    for batch in _batches(file, reader, report):
        now = store.now()
        rows = batch if is_own else [_from_outside(row, now) for row in batch]
        merges = store.merge_rows(rows).result()
        for theirs, row, merged in zip(batch, rows, merges, strict=True):
            if merged.outcome == "added":
                report.added[row.table] += 1
                report.candidates += _needs_confirmation(theirs, row)
            elif merged.outcome == "existing":
                report.existing[row.table] += 1
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
    size = records = 0
    for number, line in _lines(file):
        if (count := _last_count(line)) is not None:
            report.is_complete = True
            if count != records:
                report.refuse(number, f"counts {count} records, but {records} came before it")
        elif line.strip():
            records += 1
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


def _from_outside(row: Row, now: int) -> Row:
    """Returns a row without the decisions of whoever wrote it, and with times that can be true. The
    only place that decides what a row of somebody else is here."""
    values = {**row.values}
    for name, value in row.values.items():
        if name.endswith("_epoch") and isinstance(value, int):
            values[name] = ms = value if EARLIEST_MS <= value <= now else now
            if isinstance(values.get(date := name.removesuffix("_epoch")), str):
                values[date] = iso(ms)
    values |= {name: value for name, value in _UNDECIDED.items() if name in values}
    if row.table == "user_prompts":
        values |= {"outside": 1, "closed": 1}
    elif row.table == "observations":
        values["origin"] = OUTSIDE
    elif row.table == "facts":
        is_rule = values.get("kind") == "rule"  # its origin says whose words it has to be in
        values |= {"status": "candidate"} if is_rule else {"status": "candidate", "origin": OUTSIDE}
    return replace(row, values=values, is_outside=True)


def _needs_confirmation(theirs: Row, row: Row) -> bool:
    """Whether it is a rule that was a rule to whoever exported it."""
    values = theirs.values
    is_rule = (theirs.table, values.get("kind"), values.get("status")) == ("facts", "rule", "holds")
    return is_rule and row.values.get("status") != "holds"


def _read(reader: RowReader, number: int, line: bytes) -> Row:
    if len(line) > LARGEST_LINE:
        raise BadInput(f"is longer than {LARGEST_LINE} bytes")
    return reader.read(number, line)


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Gives lines with their numbers, from the second line on; a line too long is cut."""
    number = 1
    while line := file.readline(LARGEST_LINE + 1):
        number += 1
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(LARGEST_LINE)
        yield number, line


def _last_count(line: bytes) -> int | None:
    """The count in the last line; None for every other line."""
    if len(line) > 100:
        return None
    try:
        value = parse_line(line)
    except BadInput:
        return None
    count = value.get("records")
    return count if len(value) == 1 and type(count) is int else None

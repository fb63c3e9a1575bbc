"""Secrets in what is already stored, found with the patterns of this version.

Rows are read and redacted in batches, so that hooks can write in between. Code that redacts rows
requests a scrub (`file_scrubbing.py`), which removes the old text from the files.
"""

import json
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from claude_mem.redaction import Redactor
from claude_mem.store.stored_json import parse_stored
from claude_mem.store.transfer.export_reader import IDENTITY, JSON_COLUMNS
from claude_mem.store.transfer.tables import CANONICAL, primary_key
from claude_mem.text import pluralize

# Besides the tables of an export: what waits for a model, the trash, and what a team shares.
TABLES = (
    *(table.name for table in CANONICAL),
    "refinements",
    "observer_breakers",
    "forgotten_rows",
    "hints",
    "team_recent",
    "team_recent_facts",
)
BATCH = 200
_MARK = re.compile(r"\[redacted:([\w-]+)\]")
_SHOWN = 3  # characters of a secret that are shown, of one that is long enough
_SHORTEST_SHOWN = 12

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    place: str  # a table and column, or a file
    kind: str
    hint: str  # the beginning of the secret and its length


@dataclass(frozen=True, slots=True)
class Change:
    """What a row becomes."""

    table: str
    key: dict[str, Any]
    values: dict[str, str]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    changes: tuple[Change, ...]
    last: Key | None  # the key to go on after; None at the end of the table


def find_secrets(connection: sqlite3.Connection, redactor: Redactor) -> Iterator[Finding]:
    """Finds secrets in all tables that this file has; it may be a backup of an earlier version."""
    for table in TABLES:
        after: Key | None = ()
        while after is not None:
            batch = read_batch(connection, redactor, table, after)
            for change in batch.changes:
                yield from change.findings
            after = batch.last


def read_batch(connection: sqlite3.Connection, redactor: Redactor, table: str, after: Key) -> Batch:
    """The rows behind the key `after` that hold a secret; () for the beginning."""
    keys = primary_key(connection, table)
    columns = _text_columns(connection, table)
    if not keys or not columns:
        return Batch((), None)
    condition = f"({', '.join(keys)}) > ({', '.join('?' * len(keys))})" if after else "1"
    rows = connection.execute(
        f"SELECT {', '.join([*keys, *columns])} FROM {table} WHERE {condition}"
        f" ORDER BY {', '.join(keys)} LIMIT {BATCH}",
        after,
    ).fetchall()
    changes = []
    for row in rows:
        key = dict(zip(keys, row, strict=False))
        texts = dict(zip(columns, tuple(row)[len(keys) :], strict=True))
        if change := _change(redactor, table, key, texts):
            changes.append(change)
    return Batch(tuple(changes), tuple(rows[-1])[: len(keys)] if len(rows) == BATCH else None)


def redact_batch(
    connection: sqlite3.Connection, redactor: Redactor, table: str, after: Key
) -> Batch:
    batch = read_batch(connection, redactor, table, after)
    for change in batch.changes:
        _apply(connection, change)
    return batch


def find_in_text(redactor: Redactor, place: str, text: str) -> list[Finding]:
    return list(_findings(place, text, _redact_text(redactor, text)))


def _text_columns(connection: sqlite3.Connection, table: str) -> list[str]:
    rows = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,))
    return [name for name, kind in rows if kind.upper() == "TEXT" and name not in IDENTITY]


def _change(
    redactor: Redactor, table: str, key: dict[str, Any], texts: dict[str, Any]
) -> Change | None:
    values: dict[str, str] = {}
    findings: list[Finding] = []
    for name, text in texts.items():
        if isinstance(text, str) and (redacted := _redact_column(redactor, name, text)) != text:
            values[name] = redacted
            findings += _findings(f"{table}.{name}", text, redacted)
    return Change(table, key, values, tuple(findings)) if values else None


def _apply(connection: sqlite3.Connection, change: Change) -> None:
    assignments = ", ".join(f"{name} = :new_{name}" for name in change.values)
    condition = " AND ".join(f"{name} = :{name}" for name in change.key)
    new = {f"new_{name}": value for name, value in change.values.items()}
    try:
        connection.execute(
            f"UPDATE {change.table} SET {assignments} WHERE {condition}", {**change.key, **new}
        )
    except sqlite3.IntegrityError:  # without the secret it is the same as another row
        connection.execute(f"DELETE FROM {change.table} WHERE {condition}", change.key)


def _redact_column(redactor: Redactor, name: str, text: str) -> str:
    if name == "content":  # a row of the trash
        return _redact_trash(redactor, text)
    return _redact_text(redactor, text) if name in JSON_COLUMNS else redactor.redact(text)


def _redact_trash(redactor: Redactor, text: str) -> str:
    row = parse_stored(text, {})
    if not row:  # damaged
        return redactor.redact(text)
    redacted = {
        name: _redact_column(redactor, name, value)
        if isinstance(value, str) and name not in IDENTITY
        else value
        for name, value in row.items()
    }
    return text if redacted == row else json.dumps(redacted)


def _redact_text(redactor: Redactor, text: str) -> str:
    """Redacts a text as JSON where it is JSON: there a name tells what its value is."""
    try:
        value = json.loads(text)
        redacted = redactor.redact_json(value)
    except (ValueError, RecursionError):
        return redactor.redact(text)
    return text if redacted == value else json.dumps(redacted, ensure_ascii=False)


def _findings(place: str, text: str, redacted: str) -> Iterator[Finding]:
    """What is in the text where the redacted one has a mark."""
    if redacted == text:
        return
    first, *rest = _MARK.split(redacted)
    position = len(first)
    for kind, following in zip(rest[::2], rest[1::2], strict=True):
        end = text.find(following, position) if following else len(text)
        secret = text[position : end if end >= 0 else position]
        if not _MARK.fullmatch(secret):
            yield Finding(place, kind, _hint(secret))
        position += len(secret) + len(following)


def _hint(secret: str) -> str:
    shown = secret[:_SHOWN] if len(secret) >= _SHORTEST_SHOWN else ""
    return f"{shown}… ({pluralize(len(secret), 'character')})"

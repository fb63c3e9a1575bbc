"""Reads one line of an export as untrusted input.

The line is checked against the columns of this database before any of it reaches a statement.
Private text is removed from the raw bytes, as the hook does it, then secrets are redacted. Neither
changes clean text, so an export of our own is restored unchanged.
"""

import base64
import json
import sqlite3
from dataclasses import dataclass
from typing import Any

from claude_mem.errors import BadInput
from claude_mem.hook.private_text import strip_and_tell, strip_private
from claude_mem.language.prompt import parse_prompt
from claude_mem.redaction import Redactor
from claude_mem.store import memories
from claude_mem.store.transfer.tables import Column, Schema, read_schema
from claude_mem.store.turn_records import is_record
from claude_mem.text import shorten
from claude_mem.types import Json

LARGEST_NUMBER = 253_402_300_799_999  # the last millisecond that datetime can represent

# Names, ids and times are not redacted, as in intake; every other text is.
IDENTITY = frozenset((
    "key", "name", "directory", "content_session_id", "memory_session_id", "project_dir",
    "transcript_path", "dialect", "status", "started_at", "updated_at", "completed_at",
    "created_at", "provider", "provider_session_id", "prompt_id", "event_key", "event",
    "tool_name", "tool_use_id", "agent_id", "cwd", "type", "observer", "model", "prompt_version",
    "lease", "kind", "origin",
))  # fmt: skip
_LISTS = frozenset(("facts", "concepts", "files_read", "files_modified", "files_edited"))
_RECORD = frozenset(("parts", "words"))
JSON_COLUMNS = (
    _LISTS
    | _RECORD
    | memories.COLUMN_READERS.keys()
    | {
        "tool_input",
        "tool_response",
        "detail",
        "events",
    }
)
_FENCE = "<claude-mem-context>\n", "\n</claude-mem-context>"


@dataclass(frozen=True, slots=True)
class Row:
    line: int
    table: str
    values: dict[str, Any]
    is_outside: bool = False  # of somebody else's export


def parse_line(line: bytes) -> dict[str, Json]:
    try:
        value: Json = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"is not JSON: {error or type(error).__name__}") from None
    if not isinstance(value, dict):
        raise BadInput("is not a JSON object")
    return value


@dataclass(frozen=True, slots=True)
class RowReader:
    schema: Schema
    redactor: Redactor

    def read(self, number: int, line: bytes) -> Row:
        """Raises BadInput when the line is not a row of this database."""
        clean, had_private = strip_and_tell(line)
        values = parse_line(clean)
        table = values.pop("table", None)
        if not isinstance(table, str) or table not in self.schema:
            raise BadInput(f"has an unknown table: {_shown(table)}", "table")
        columns = {column.name: column for column in self.schema[table]}
        for name, value in values.items():
            if name not in columns:
                raise BadInput(f"has a column that {table} does not have: {_shown(name)}")
            values[name] = _checked(columns[name], value)
        if table == "sdk_sessions" and values.get("start_context") is not None:
            values["start_context"] = _own_context(parse_line(line).get("start_context"))
        row = {name: self._clean(name, value) for name, value in values.items()}
        return Row(number, table, _with_checked_prompt(row, had_private))

    def _clean(self, name: str, value: Any) -> Any:
        if not isinstance(value, str) or name in IDENTITY:
            return value
        if name not in JSON_COLUMNS:
            return self.redactor.redact(value)
        try:
            inner = _inner_json(name, value)
            redacted = self.redactor.redact_json(inner)
        except RecursionError:
            raise BadInput(f"has a {name} that is nested too deeply", name) from None
        return value if redacted == inner else json.dumps(redacted, ensure_ascii=False)


def _checked(column: Column, value: Json) -> Any:
    if value is None:
        if column.required:
            raise BadInput(f"has no {column.name}", column.name)
        return None
    if column.type == "INTEGER" and type(value) is int and 0 <= value <= LARGEST_NUMBER:
        return value
    if column.type == "REAL" and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if column.type == "TEXT" and isinstance(value, str):
        return value.encode("utf-8", "replace").decode()  # JSON can hold lone surrogates
    if column.type == "BLOB" and isinstance(value, dict):
        return _bytes(column, value)
    raise BadInput(f"has an invalid {column.name}: {_shown(value)}", column.name)


def _bytes(column: Column, value: dict[str, Json]) -> bytes:
    text = value.get("base64")
    try:
        return base64.b64decode(text if isinstance(text, str) else "?", validate=True)
    except ValueError:
        raise BadInput(f"has a {column.name} that is not base64", column.name) from None


def _inner_json(name: str, text: str) -> Json:
    """The value that readers of this column parse without expecting it to fail."""
    try:
        value: Json = json.loads(text)
    except ValueError:
        raise BadInput(f"has a {name} that is not JSON", name) from None
    is_texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
    if (name in _LISTS and not is_texts) or (name == "detail" and not isinstance(value, dict)):
        raise BadInput(f"has an invalid {name}", name)
    if name in _RECORD and not is_record(value):
        raise BadInput(f"has an invalid {name}", name)
    is_ids = isinstance(value, list) and all(type(item) is int for item in value)
    if name == "events" and not is_ids:
        raise BadInput(f"has invalid {name}", name)
    if name in memories.COLUMN_READERS:
        try:
            memories.COLUMN_READERS[name](value)
        except ValueError as error:
            raise BadInput(f"has an invalid {name}: {error}", name) from None
    return value


def _own_context(text: Json) -> str | None:
    """The context of a session's start, whose fence is one of the tags that are stripped.

    A resumed session gets it again unchanged, so it must have exactly one fence, around all of it.
    """
    begin, end = _FENCE
    if text == "":
        return ""  # the session got no context
    if not isinstance(text, str) or not (text.startswith(begin) and text.endswith(end)):
        return None
    inner = text[len(begin) : -len(end)].encode("utf-8", "replace")
    return text.encode("utf-8", "replace").decode() if strip_private(inner) == inner else None


def _with_checked_prompt(row: dict[str, Any], had_private: bool) -> dict[str, Any]:
    """A prompt that is blank now may have been private as a whole. Earlier versions stored messages
    of the client as prompts."""
    prompt = row.get("prompt_text")
    if isinstance(prompt, str) and parse_prompt(prompt).sender != "user":
        return {**row, "prompt_text": None, "notice": 1}
    if had_private and _is_blank(prompt):
        return {**row, "prompt_text": None, "private": 1}
    if _is_blank(row.get("user_prompt")):
        return {**row, "user_prompt": None}
    return row


def _is_blank(value: object) -> bool:
    return isinstance(value, str) and not value.strip()


def _shown(value: object) -> str:
    return shorten(repr(value), 60)


def damaged_json(connection: sqlite3.Connection) -> list[str]:
    """Columns with values that are no JSON, as `table.column: number of rows`."""
    damaged = []
    for table, columns in read_schema(connection).items():
        for name in [column.name for column in columns if column.name in JSON_COLUMNS]:
            row = connection.execute(
                f"SELECT count(*) FROM {table} WHERE {name} <> '' AND NOT json_valid({name})"
            ).fetchone()
            if row[0]:
                damaged.append(f"{table}.{name}: {row[0]}")
    return damaged

"""A pushed turn: checked as untrusted input, redacted again, and cut into what is indexed.

The rows are those of an export and are checked as such (`store/transfer/export_reader.py`).
"""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from claude_mem.errors import BadInput
from claude_mem.index.text.documents import Document, turn_document
from claude_mem.index.text.term_hashes import hashed_terms
from claude_mem.redaction import Redactor
from claude_mem.store.migrations import migrate
from claude_mem.store.transfer.export_reader import RowReader
from claude_mem.store.transfer.tables import Schema, read_schema
from claude_mem.store.turn_records import parse_parts
from claude_mem.team.server.lexemes import tsvector
from claude_mem.team.wire import LOCAL_COLUMNS, MAX_RECORD, TABLES, rows_hash, session_uid, turn_uid
from claude_mem.types import Json

_SUMMARY_LISTS = ("files_read", "files_edited", "commands", "faults", "open_steps")
_OBSERVATION_LISTS = ("facts", "concepts", "files_read", "files_modified")


@dataclass(frozen=True, slots=True)
class IndexedPassage:
    kind: str
    words: int
    text: str
    terms: bytes
    lexemes: str  # as PostgreSQL writes a tsvector


@dataclass(frozen=True, slots=True)
class ReceivedTurn:
    uid: str
    session_uid: str
    version: int
    sealed: int
    hash: str
    is_restored: bool
    session: dict[str, Any]
    turn: dict[str, Any]
    content: str  # all rows but the session's, as JSON
    document: Document
    passages: tuple[IndexedPassage, ...]

    @property
    def bytes(self) -> int:
        return len(self.content.encode())


class TurnReader:
    def __init__(self) -> None:
        self.redactor = Redactor()
        self._rows = RowReader(_schema(), self.redactor)

    def read(self, item: dict[str, Json], *, with_record: bool) -> ReceivedTurn:
        """Raises BadInput. Without `with_record`, a record is dropped."""
        version, sealed = item.get("version"), item.get("sealed")
        if not _is_count(version) or not _is_count(sealed):
            raise BadInput("a turn needs version and sealed as numbers", "version")
        rows = _raw_rows(item.get("rows"))
        if rows_hash(rows) != item.get("hash"):
            raise BadInput("the hash of a turn does not match its rows", "hash")
        checked = [self._check(row) for row in rows]
        by_table: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
        for table, values in checked:
            if table != "turn_records" or with_record:
                by_table[table].append(values)
        session, turn = _only(by_table, "sdk_sessions"), _only(by_table, "user_prompts")
        if turn.get("private"):
            raise BadInput("a private turn is not shared", "rows")
        names = _text(session, "content_session_id"), _text(turn, "prompt_id")
        if turn_uid(*names) != item.get("uid"):
            raise BadInput("the uid of a turn does not match its rows", "uid")
        document = _document(by_table)
        return ReceivedTurn(
            uid=str(item["uid"]),
            session_uid=session_uid(names[0]),
            version=cast(int, version),
            sealed=cast(int, sealed),
            hash=str(item["hash"]),
            is_restored=item.get("restored") is True,
            session=session,
            turn=turn,
            content=_content(by_table),
            document=document,
            passages=tuple(map(_index, document.passages)),
        )

    def _check(self, row: dict[str, Json]) -> tuple[str, dict[str, Any]]:
        if row.get("table") not in TABLES:
            raise BadInput("a turn has a row of an unknown table", "rows")
        if local := sorted(LOCAL_COLUMNS & row.keys()):
            raise BadInput(f"a turn must not have the column {local[0]}", local[0])
        try:
            checked = self._rows.read(0, json.dumps(row).encode())
        except BadInput as error:
            raise BadInput(f"a row of {row['table']} {error}", error.field) from None
        return checked.table, checked.values


@cache
def _schema() -> Schema:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        migrate(connection, "")
        return read_schema(connection)


def _is_count(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def _raw_rows(value: Json) -> list[dict[str, Json]]:
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise BadInput("rows must be a list of objects", "rows")
    if len(json.dumps(value)) > 2 * MAX_RECORD:
        raise BadInput(f"a turn has more than {2 * MAX_RECORD} bytes", "rows")
    return cast("list[dict[str, Json]]", value)


def _only(by_table: dict[str, list[dict[str, Any]]], table: str) -> dict[str, Any]:
    rows = by_table[table]
    if len(rows) != 1:
        raise BadInput(f"a turn has exactly one row of {table}", "rows")
    return rows[0]


def _text(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value:
        raise BadInput(f"a turn has no {name}", name)
    return value


def _content(by_table: dict[str, list[dict[str, Any]]]) -> str:
    rows = [
        {"table": table, **row}
        for table in TABLES
        if table != "sdk_sessions"
        for row in by_table[table]
    ]
    return json.dumps(rows, separators=(",", ":"))


def _document(by_table: dict[str, list[dict[str, Any]]]) -> Document:
    (turn,) = by_table["user_prompts"]
    turn = {**dict.fromkeys(("prompt_text",)), **_placed(turn), "id": 0}
    records = by_table["turn_records"]
    record = parse_parts(records[0]["parts"]) if records and records[0].get("parts") else ()
    return turn_document(
        turn,
        record,
        [_memory(row, turn, _OBSERVATION, _OBSERVATION_LISTS) for row in by_table["observations"]],
        [_memory(row, turn, _SUMMARY, _SUMMARY_LISTS) for row in by_table["session_summaries"]],
    )


_OBSERVATION = ("title", "subtitle", "narrative")
_SUMMARY = ("request", "investigated", "learned", "completed", "next_steps", "notes")


def _placed(row: dict[str, Any]) -> dict[str, Any]:
    number, moment = row.get("prompt_number"), row.get("created_at_epoch")
    if not _is_count(number) or not _is_count(moment):
        raise BadInput("a turn has no prompt_number or created_at_epoch", "rows")
    return {**row, "project_id": 0, "session_id": 0}


def _memory(
    row: dict[str, Any], turn: dict[str, Any], texts: Sequence[str], lists: Sequence[str]
) -> dict[str, Any]:
    defaults = {**dict.fromkeys(texts), **dict.fromkeys(lists, "[]"), "type": "change"}
    place = {name: turn[name] for name in ("project_id", "session_id", "prompt_number")}
    moment = row.get("created_at_epoch", turn["created_at_epoch"])
    return {
        "ordinal": 0, **defaults, **row, **place, "id": 0, "created_at_epoch": moment,
    }  # fmt: skip


def _index(passage: Any) -> IndexedPassage:
    text = passage.text.replace("\0", " ").encode("utf-8", "replace").decode()
    return IndexedPassage(passage.kind, len(text.split()), text, hashed_terms(text), tsvector(text))

"""Filters of memories, as conditions of SQL and as expressions of FTS5.

Expressions come from `phrase`, `any_of`, `all_of` and `within` alone, never from a user's text.
"""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, replace

from claude_mem.index.text.documents import KINDS, PLACES
from claude_mem.index.text.words import grams, is_unspaced, pieces

_OF_CLOSED_TURNS = (
    f"d.id NOT IN (SELECT id * 4 + {KINDS.index('prompt')} FROM user_prompts WHERE closed = 0)"
)
_NOT_WRONG = "d.id NOT IN (SELECT document FROM wrong_documents)"
# Of a turn: the memory that stands for it, and its prompt.
_TURN_NOT_WRONG = (
    "t.shown NOT IN (SELECT document FROM wrong_documents)"
    f" AND t.id * 4 + {KINDS.index('prompt')} NOT IN (SELECT document FROM wrong_documents)"
)


@dataclass(frozen=True, slots=True)
class Filters:
    """What a memory must be, whatever its text. Empty means any."""

    project_id: int | None = None
    kinds: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None  # exclusive
    session_id: int | None = None
    statuses: tuple[str, ...] = ()
    skip_open_turns: bool = False  # without the prompts of turns that are not finished
    with_wrong: bool = False  # also what is marked as wrong

    def __bool__(self) -> bool:
        return self != NO_FILTERS


NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class Condition:
    sql: str
    values: tuple[object, ...] = ()


def phrase(text: str) -> str:
    """The words of a text in this order, as an FTS5 string; empty when there are none."""
    words: list[str] = []
    for piece in pieces(text):
        # A lone character of an unspaced script begins a pair, or is the last one: see `grams`.
        words += grams(piece)[:-1] or [piece] if is_unspaced(piece) else [piece]
    if not words:
        return ""
    lone = len(words) == 1 and len(words[0]) == 1 and is_unspaced(words[0])
    return f'"{" ".join(words)}"' + ("*" if lone else "")


def any_of(expressions: Iterable[str]) -> str:
    return f"({' OR '.join(expressions)})"


def all_of(expressions: Iterable[str]) -> str:
    return f"({' AND '.join(expressions)})"


def within(column: str, expression: str) -> str:
    return f"{column} : {expression}"


def required(filters: Filters) -> str:
    """The full-text part of the filters: it looks up files and concepts without a table scan."""
    expressions = [
        within(column, any_of(phrases))
        for column, values in (("files", filters.files), ("concepts", filters.concepts))
        if (phrases := [text for value in values if (text := phrase(value))])
    ]
    return all_of(expressions) if expressions else ""


def where(filters: Filters) -> Condition:
    conditions: list[str] = []
    values: list[object] = []
    for column, operator, value in (
        ("d.project_id", "=", filters.project_id),
        ("d.session_id", "=", filters.session_id),
        ("d.created_at_epoch", ">=", filters.since),
        ("d.created_at_epoch", "<", filters.until),
    ):
        if value is not None:
            conditions.append(f"{column} {operator} ?")
            values.append(value)
    parts: list[Condition] = []
    if filters.kinds or filters.types:
        parts.append(_of_type(filters))
    if filters.statuses:
        parts.append(_with_status(filters.statuses))
    if filters.skip_open_turns:
        parts.append(Condition(_OF_CLOSED_TURNS))
    if not filters.with_wrong:
        parts.append(Condition(_NOT_WRONG))
    if filters.concepts:
        parts.append(_with_concept(filters.concepts))
    if filters.files:
        parts.append(_with_file(filters.files))
    conditions += [condition.sql for condition in parts]
    values += [value for condition in parts for value in condition.values]
    return Condition(" AND ".join(conditions) or "TRUE", tuple(values))


def turn_condition(filters: Filters) -> Condition:
    """What a turn `t` must be: one of its memories passes. The project is left to the caller."""
    conditions: list[Condition] = []
    if filters.session_id is not None:
        conditions.append(Condition("t.session_id = ?", (filters.session_id,)))
    if filters.skip_open_turns:
        conditions.append(Condition("t.id NOT IN (SELECT id FROM user_prompts WHERE closed = 0)"))
    of_memory = where(
        replace(filters, project_id=None, session_id=None, skip_open_turns=False, with_wrong=True)
    )
    if of_memory.sql != "TRUE":
        conditions.append(Condition(
            "EXISTS (SELECT 1 FROM documents d WHERE d.session_id = t.session_id AND d.place"
            f" BETWEEN t.number * {PLACES} AND t.number * {PLACES} + {PLACES - 1}"
            f" AND {of_memory.sql})", of_memory.values,
        ))  # fmt: skip
    return Condition(
        " AND ".join(condition.sql for condition in conditions) or "TRUE",
        tuple(value for condition in conditions for value in condition.values),
    )


def result_condition(connection: sqlite3.Connection, filters: Filters) -> Condition:
    """What a turn `t` must be to be shown. Passages are looked up by `turn_condition` alone: few
    turns are wrong, and a condition on each passage costs more, even where none is."""
    condition = turn_condition(filters)
    if filters.with_wrong or not _is_any_wrong(connection):
        return condition
    return Condition(f"{condition.sql} AND {_TURN_NOT_WRONG}", condition.values)


def _of_type(filters: Filters) -> Condition:
    """Any of the kinds, or an observation of any of the types."""
    codes = [KINDS.index(kind) for kind in filters.kinds]
    return Condition(
        "(d.id % 4 IN (SELECT value FROM json_each(?))"
        " OR d.type IN (SELECT value FROM json_each(?)))",
        (json.dumps(codes), json.dumps(filters.types)),
    )


def _with_status(statuses: tuple[str, ...]) -> Condition:
    return Condition(
        "d.session_id IN (SELECT s.id FROM sdk_sessions s"
        " WHERE s.status IN (SELECT value FROM json_each(?)))",
        (json.dumps(statuses),),
    )


def _with_concept(concepts: tuple[str, ...]) -> Condition:
    return Condition(
        "EXISTS (SELECT 1 FROM json_each(d.concepts) c"
        " WHERE c.value IN (SELECT value FROM json_each(?)))",
        (json.dumps(concepts),),
    )


def _with_file(files: tuple[str, ...]) -> Condition:
    """Matches a file by its path, the end of its path, or a folder above it."""
    names = [name.replace("\\", "/").strip("/") for name in files]
    return Condition(
        "EXISTS (SELECT 1 FROM json_each(d.files) f, json_each(?) w WHERE"
        " instr('/' || replace(f.value, '\\', '/') || '/', '/' || w.value || '/') > 0)",
        (json.dumps(names),),
    )


def _is_any_wrong(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM wrong_documents LIMIT 1").fetchone() is not None

"""Asking the full-text tables: which documents hold these words, and what stands beside them.

An expression is in FTS5's language and comes from `Expression` alone, never from a person's text.
"""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from claude_mem.index.text.documents import DOCUMENT_BITS, KINDS, kind_of, memory_id_of, text_id
from claude_mem.index.text.words import grams, is_unspaced, pieces

Weights = tuple[float, float, float, float, float, float]  # by column of `full_text.COLUMNS`

_TRAITS = "d.id, d.created_at_epoch, d.words, d.tells_time, d.title_stems"
_FIELDS = (
    "d.id, d.project_id, d.session_id, d.place, d.created_at_epoch, d.type, d.title, d.file, d.size"
)
_DOCUMENT = f"(memory_text.rowid & {(1 << DOCUMENT_BITS) - 1})"
# What waits for the index may be gone or say something else by now.
_UNMARKED = "d.id NOT IN (SELECT document FROM unindexed)"
_PAST = f"d.id NOT IN (SELECT id * 4 + {KINDS.index('prompt')} FROM user_prompts WHERE closed = 0)"


class Traits(NamedTuple):
    """What decides the rank of a document; light, for there are many."""

    document: int
    created_at_epoch: int
    words: int
    tells_time: int
    title_stems: str


class Match(NamedTuple):
    """What is shown of a document."""

    document: int
    project_id: int
    session_id: int
    place: int
    created_at_epoch: int
    type: str
    title: str
    file: str | None  # the first that was changed, or read
    size: int

    @property
    def kind(self) -> str:
        return kind_of(self.document)

    @property
    def memory_id(self) -> int:
        return memory_id_of(self.document)


@dataclass(frozen=True, slots=True)
class Filters:
    """What a memory must be, whatever it says. Empty means any."""

    project_id: int | None = None
    kinds: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None  # the first moment that is too late
    session: int | None = None
    statuses: tuple[str, ...] = ()
    past: bool = False  # without the prompts of turns that still go on

    def __bool__(self) -> bool:
        return self != Filters()


@dataclass(frozen=True, slots=True)
class Condition:
    sql: str
    values: list[object] = field(default_factory=list)


def phrase(text: str) -> str:
    """These words one after the other, as an FTS5 string; empty when there are none."""
    words: list[str] = []
    for piece in pieces(text):
        # A lone character of an unspaced script begins a pair, or stands last: see `grams`.
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


def frequency(
    connection: sqlite3.Connection, expression: str, project_id: int | None = None
) -> int:
    """In how many documents of a project, or of all, it is found."""
    only = _texts_of(project_id)
    row = connection.execute(
        f"SELECT count(*) FROM memory_text WHERE memory_text MATCH ? AND {only.sql}",
        (expression, *only.values),
    ).fetchone()
    return int(row[0])


def holding(
    connection: sqlite3.Connection, expression: str, project_id: int | None = None
) -> list[int]:
    """The documents of a project, or of all, in which it is found."""
    only = _texts_of(project_id)
    rows = connection.execute(
        f"SELECT {_DOCUMENT} FROM memory_text WHERE memory_text MATCH ? AND {only.sql}",
        (expression, *only.values),
    )
    return [row[0] for row in rows]


def best(
    connection: sqlite3.Connection,
    expression: str,
    weights: Weights,
    filters: Filters,
    limit: int,
) -> list[tuple[Traits, float]]:
    """The best by bm25 among those that pass the filters, with their scores."""
    rank = f"bm25(memory_text, {', '.join(map(repr, weights))})"
    others = replace(filters, project_id=None)
    only, condition = _texts_of(filters.project_id), where(others)
    join = f" CROSS JOIN documents d ON d.id = {_DOCUMENT}" if others else ""
    rows = connection.execute(
        f"SELECT {_TRAITS}, f.score FROM (SELECT {_DOCUMENT} AS id, -{rank} AS score"
        f" FROM memory_text{join} WHERE memory_text MATCH ? AND {only.sql} AND {condition.sql}"
        f" ORDER BY score DESC LIMIT ?) f CROSS JOIN documents d ON d.id = f.id WHERE {_UNMARKED}",
        (expression, *only.values, *condition.values, limit),
    )
    return [(Traits._make(row[:5]), row[5]) for row in rows]


def _texts_of(project_id: int | None) -> Condition:
    """Of one project they stand together, so that those of others are not even read."""
    if project_id is None:
        return Condition("TRUE")
    ends: list[object] = [text_id(project_id, 0), text_id(project_id + 1, 0) - 1]
    return Condition("memory_text.rowid BETWEEN ? AND ?", ends)


def newest(
    connection: sqlite3.Connection,
    filters: Filters,
    limit: int,
    offset: int,
    *,
    oldest: bool = False,
    without: tuple[str, ...] = (),
) -> list[Match]:
    """By time alone; without those that hold one of these expressions."""
    condition = _without(where(filters), without)
    down = "" if oldest else " DESC"
    expression = required(filters)
    source, values = "documents d", condition.values
    if expression:
        source = f"memory_text CROSS JOIN documents d ON d.id = {_DOCUMENT}"
        condition = Condition(f"memory_text MATCH ? AND {condition.sql}", [expression, *values])
    rows = connection.execute(
        f"SELECT {_FIELDS} FROM {source} WHERE {_UNMARKED} AND {condition.sql}"
        f" ORDER BY d.created_at_epoch{down}, d.session_id{down}, d.place{down} LIMIT ? OFFSET ?",
        (*condition.values, limit, offset),
    )
    return [Match._make(row) for row in rows]


def newest_named(
    connection: sqlite3.Connection, forms: list[str], project_id: int | None
) -> int | None:
    """When the newest memory was made whose title holds all of these."""
    if not forms:
        return None
    only = _texts_of(project_id)
    row = connection.execute(
        f"SELECT max(d.created_at_epoch) FROM memory_text CROSS JOIN documents d"
        f" ON d.id = {_DOCUMENT} WHERE memory_text MATCH ? AND {only.sql} AND {_UNMARKED}",
        (within("title", all_of(forms)), *only.values),
    ).fetchone()
    moment: int | None = row[0]
    return moment


def in_order(
    connection: sqlite3.Connection,
    anchor: Match,
    filters: Filters,
    limit: int,
    *,
    backwards: bool = False,
) -> list[Match]:
    """What came after a document, or before it, the nearest first."""
    condition = where(filters)
    compare, down = ("<", " DESC") if backwards else (">", "")
    rows = connection.execute(
        f"SELECT {_FIELDS} FROM documents d WHERE (d.created_at_epoch, d.session_id, d.place)"
        f" {compare} (?, ?, ?) AND {_UNMARKED} AND {condition.sql}"
        f" ORDER BY d.created_at_epoch{down}, d.session_id{down}, d.place{down} LIMIT ?",
        (anchor.created_at_epoch, anchor.session_id, anchor.place, *condition.values, limit),
    )
    return [Match._make(row) for row in rows]


def beside(
    connection: sqlite3.Connection, documents: list[int], reach: int
) -> list[tuple[int, int, int]]:
    """Who stands within reach of these in their sessions: (of whom, how far, who)."""
    steps = [
        f"SELECT d.id, {sign}{distance}, (SELECT n.id FROM documents n"
        f" WHERE n.session_id = d.session_id AND n.place {compare} d.place"
        f" ORDER BY n.place {order} LIMIT 1 OFFSET {distance - 1})"
        " FROM documents d WHERE d.id IN (SELECT value FROM json_each(:chosen))"
        for distance in range(1, reach + 1)
        for sign, compare, order in (("", ">", "ASC"), ("-", "<", "DESC"))
    ]
    if not steps:
        return []
    rows = connection.execute(" UNION ALL ".join(steps), {"chosen": json.dumps(documents)})
    return [(of, distance, who) for of, distance, who in rows if who is not None]


def traits(connection: sqlite3.Connection, documents: list[int], filters: Filters) -> list[Traits]:
    """Of those that pass."""
    condition = where(filters)
    rows = connection.execute(
        f"SELECT {_TRAITS} FROM documents d WHERE d.id IN (SELECT value FROM json_each(?))"
        f" AND {_UNMARKED} AND {condition.sql}",
        (json.dumps(documents), *condition.values),
    )
    return [Traits._make(row) for row in rows]


def get(connection: sqlite3.Connection, documents: list[int]) -> list[Match]:
    """In the order asked for; those that are not there are left out."""
    rows = connection.execute(
        f"SELECT {_FIELDS} FROM documents d WHERE d.id IN (SELECT value FROM json_each(?))"
        f" AND {_UNMARKED}",
        (json.dumps(documents),),
    )
    found = {row[0]: Match._make(row) for row in rows}
    return [found[document] for document in documents if document in found]


def required(filters: Filters) -> str:
    """What the text itself must hold to pass; it finds a file or concept without reading all."""
    expressions = [
        within(column, any_of(known))
        for column, values in (("files", filters.files), ("concepts", filters.concepts))
        if (known := [text for value in values if (text := phrase(value))])
    ]
    return all_of(expressions) if expressions else ""


def where(filters: Filters) -> Condition:
    conditions: list[str] = []
    values: list[object] = []
    for column, operator, value in (
        ("d.project_id", "=", filters.project_id),
        ("d.session_id", "=", filters.session),
        ("d.created_at_epoch", ">=", filters.since),
        ("d.created_at_epoch", "<", filters.until),
    ):
        if value is not None:
            conditions.append(f"{column} {operator} ?")
            values.append(value)
    found: list[Condition] = []
    if filters.kinds or filters.types:
        found.append(_of_type(filters))
    if filters.statuses:
        found.append(_among(
            "d.session_id IN (SELECT s.id FROM sdk_sessions s WHERE s.status IN", filters.statuses
        ))  # fmt: skip
    if filters.past:
        found.append(Condition(_PAST))
    if filters.concepts:
        found.append(_with_concept(filters.concepts))
    if filters.files:
        found.append(_with_file(filters.files))
    conditions += [condition.sql for condition in found]
    everything = [*values, *(value for condition in found for value in condition.values)]
    return Condition(" AND ".join(conditions) or "TRUE", everything)


def _without(condition: Condition, expressions: tuple[str, ...]) -> Condition:
    if not expressions:
        return condition
    return Condition(
        f"{condition.sql} AND d.id NOT IN"
        f" (SELECT {_DOCUMENT} FROM memory_text WHERE memory_text MATCH ?)",
        [*condition.values, any_of(expressions)],
    )


def _of_type(filters: Filters) -> Condition:
    """A kind means all of it; types are those of observations."""
    codes = [KINDS.index(kind) for kind in filters.kinds]
    return Condition(
        "(d.id % 4 IN (SELECT value FROM json_each(?))"
        " OR d.type IN (SELECT value FROM json_each(?)))",
        [json.dumps(codes), json.dumps(filters.types)],
    )


def _among(start: str, values: tuple[str, ...]) -> Condition:
    return Condition(f"{start} (SELECT value FROM json_each(?)))", [json.dumps(values)])


def _with_concept(concepts: tuple[str, ...]) -> Condition:
    return Condition(
        "EXISTS (SELECT 1 FROM json_each(d.concepts) c"
        " WHERE c.value IN (SELECT value FROM json_each(?)))",
        [json.dumps(concepts)],
    )


def _with_file(files: tuple[str, ...]) -> Condition:
    """The file itself, its last names, or a folder above it."""
    names = [name.replace("\\", "/").strip("/") for name in files]
    return Condition(
        "EXISTS (SELECT 1 FROM json_each(d.files) f, json_each(?) w WHERE"
        " instr('/' || replace(f.value, '\\', '/') || '/', '/' || w.value || '/') > 0)",
        [json.dumps(names)],
    )

"""Copies what can be read of a damaged database into a new one, and the rest from a backup.

Each row is read on its own, so that a damaged page costs no rows but its own. The index is left
out; the worker rebuilds it. No row is taken from the backup that could be read, or was forgotten.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from claude_mem.errors import DamagedDatabase
from claude_mem.store.database import connect, is_damage
from claude_mem.store.index_tables import INDEX_TABLES
from claude_mem.store.migrations import missing_migrations

_FIRST, _LAST = -(1 << 63), (1 << 63) - 1
_STEPS = 1_000  # rowids that are tried one by one after a damaged page; then the steps double
# Marks that the index is to be updated; those of the new file are of the rows that it gets.
_LEFT_OUT = ("schema_migrations", "unindexed", "unindexed_turns")


@dataclass(slots=True)
class Salvaged:
    damaged_tables: set[str] = field(default_factory=set)
    damaged_texts: int = 0  # that were not UTF-8
    from_backup: int = 0

    @property
    def has_damage(self) -> bool:
        return bool(self.damaged_tables or self.damaged_texts)


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    key: tuple[str, ...]  # empty: its rows have a rowid

    @property
    def quoted(self) -> str:
        return ", ".join(f'"{column}"' for column in self.columns)


Gap = tuple[int, int]  # the rowids in between, without these two, could not be read


def salvage(damaged: Path, target: Path, backup: Path | None) -> Salvaged:
    """`target`: an empty database of the current schema. Raises DamagedDatabase where the schema
    of the damaged one cannot be read, or is older."""
    result, gaps = Salvaged(), dict[str, list[Gap]]()

    def decode(data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError:
            result.damaged_texts += 1
            return data.decode("utf-8", "replace")

    with closing(_open(damaged, decode)) as source, closing(connect(target)) as copy:
        _require_current(source)
        triggers = copy.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        statements: dict[str, str] = dict(triggers.fetchall())
        copy.execute("PRAGMA foreign_keys = OFF")
        copy.execute("BEGIN IMMEDIATE")
        for name in statements:
            copy.execute(f"DROP TRIGGER {name}")
        tables = _tables(copy)
        for table in tables:
            copy.execute(f"DELETE FROM {table.name}")  # what the migrations inserted
        for table in tables:
            if table_gaps := _copy_table(source, copy, table):
                gaps[table.name] = table_gaps
                result.damaged_tables.add(table.name)
        _copy_sequences(source, copy)
        if backup is not None and gaps:
            with closing(_open(backup, decode)) as intact:
                for table in tables:
                    result.from_backup += _fill(intact, copy, table, gaps.get(table.name, []))
        for statement in _MISSING_PARENTS:
            copy.execute(statement)
        _delete_orphans(copy, tables)
        for sql in statements.values():
            copy.execute(sql)
        copy.execute("COMMIT")
    return result


def _open(path: Path, decode: Callable[[bytes], str]) -> sqlite3.Connection:
    connection = connect(path, readonly=True)
    connection.row_factory = None
    connection.text_factory = decode
    return connection


def _require_current(source: sqlite3.Connection) -> None:
    try:
        missing = missing_migrations(source)
    except sqlite3.DatabaseError as error:
        raise DamagedDatabase(f"its schema cannot be read: {error}") from error
    if missing:
        raise DamagedDatabase("it has an older schema, or none")


def _tables(copy: sqlite3.Connection) -> list[_Table]:
    rows = copy.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%'"
        " ESCAPE '!' ORDER BY rowid"
    ).fetchall()
    return [_table(copy, name) for (name,) in rows if name not in (*INDEX_TABLES, *_LEFT_OUT)]


def _table(connection: sqlite3.Connection, name: str) -> _Table:
    columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
    sql = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0]
    key = sorted((row["pk"], row["name"]) for row in columns if row["pk"])
    return _Table(
        name,
        tuple(row["name"] for row in columns),
        tuple(row["type"].upper() for row in columns),
        tuple(column for _, column in key) if "WITHOUT ROWID" in sql.upper() else (),
    )


# Reading what is damaged


def _copy_table(source: sqlite3.Connection, copy: sqlite3.Connection, table: _Table) -> list[Gap]:
    gaps: list[Gap] = []
    read = _read_by_key if table.key else _read_by_rowid
    for row in read(source, table, gaps):
        rowid, values = (None, row) if table.key else (row[0], row[1:])
        cleaned = [_clean(value, kind) for value, kind in zip(values, table.types, strict=True)]
        if (_UNREADABLE in cleaned or not _insert(copy, table, rowid, cleaned)) and not table.key:
            gaps.append((row[0] - 1, row[0] + 1))
    return gaps


def _read_by_rowid(
    source: sqlite3.Connection, table: _Table, gaps: list[Gap]
) -> Iterator[tuple[Any, ...]]:
    last = _FIRST
    query = (
        f"SELECT rowid, {table.quoted} FROM {table.name} NOT INDEXED WHERE rowid > ? ORDER BY rowid"
    )
    while True:
        try:
            for row in source.execute(query, (last,)):
                if row[0] <= last:
                    break  # a damaged page: its rows are not in order
                last = row[0]
                yield row
            else:
                return
        except sqlite3.DatabaseError as error:
            _require_unreadable(error)
        after = _next_readable(source, query, max(last, 0))
        gaps.append((last, _LAST if after is None else after + 1))
        if after is None:
            return
        last = after


def _next_readable(source: sqlite3.Connection, query: str, last: int) -> int | None:
    """The first position behind `last` from which a row can be read, or the end reached."""

    def is_readable(position: int) -> bool:
        try:
            row = source.execute(f"{query} LIMIT 1", (position,)).fetchone()
        except sqlite3.DatabaseError as error:
            _require_unreadable(error)
            return False
        return row is None or row[0] > position

    for position in range(last + 1, last + _STEPS):
        if is_readable(position):
            return position
    low, step = last + _STEPS - 1, 1
    while not is_readable(low + step):
        low, step = low + step, step * 2
        if low + step > _LAST:
            return None
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_readable(middle) else (middle, high)
    return high


def _read_by_key(
    source: sqlite3.Connection, table: _Table, gaps: list[Gap]
) -> Iterator[tuple[Any, ...]]:
    """Reads from both ends to the first damage; the same row may come twice."""
    for direction in ("ASC", "DESC"):
        order = ", ".join(f'"{column}" {direction}' for column in table.key)
        try:
            yield from source.execute(
                f"SELECT {table.quoted} FROM {table.name} NOT INDEXED ORDER BY {order}"
            )
        except sqlite3.DatabaseError as error:
            _require_unreadable(error)
            gaps.append((_FIRST, _LAST))
        else:
            return


def _require_unreadable(error: sqlite3.DatabaseError) -> None:
    """Raises what is not damage, such as a disk that fails; a table may be missing."""
    if not is_damage(error) and error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
        raise error


_UNREADABLE = object()


def _clean(value: Any, kind: str) -> Any:
    """Returns the value as the type of the column says; other code relies on it."""
    if isinstance(value, bytes) and kind == "TEXT":
        return value.decode("utf-8", "replace")
    if kind == "INTEGER" and not isinstance(value, int | None):
        return _UNREADABLE
    return value


def _insert(copy: sqlite3.Connection, table: _Table, rowid: int | None, values: list[Any]) -> bool:
    """Inserts a row, but not where a value contradicts the schema."""
    columns = table.quoted if rowid is None else f"rowid, {table.quoted}"
    row = values if rowid is None else [rowid, *values]
    marks = ", ".join("?" * len(row))
    cursor = copy.execute(f"INSERT OR IGNORE INTO {table.name} ({columns}) VALUES ({marks})", row)
    return cursor.rowcount > 0


def _copy_sequences(source: sqlite3.Connection, copy: sqlite3.Connection) -> None:
    """Copies the sequences, or the numbers of deleted rows would be used again."""
    try:
        rows = source.execute("SELECT name, seq FROM sqlite_sequence").fetchall()
    except sqlite3.DatabaseError as error:
        _require_unreadable(error)
        return
    for name, number in rows:
        if name in INDEX_TABLES or not isinstance(number, int):
            continue
        copy.execute(
            "INSERT INTO sqlite_sequence (name, seq) SELECT ?1, 0"
            " WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?1)",
            (name,),
        )
        copy.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (number, name))


# What could not be read


def _fill(
    intact: sqlite3.Connection, copy: sqlite3.Connection, table: _Table, gaps: list[Gap]
) -> int:
    """Fills gaps from the backup; returns how many rows it added."""
    present = [row[1] for row in intact.execute(f"PRAGMA table_info({table.name})")]
    if not gaps or not set(table.columns) <= set(present):
        return 0
    count = 0
    if table.key:
        rows = intact.execute(f"SELECT {table.quoted} FROM {table.name}")
        return sum(_insert(copy, table, None, list(row)) for row in rows)
    forgotten = copy.execute(
        "SELECT content ->> '$.id' FROM forgotten_rows WHERE of_table = ? AND json_valid(content)",
        (table.name,),
    )
    in_trash = {identity for (identity,) in forgotten.fetchall()}
    for after, before in gaps:
        rows = intact.execute(
            f"SELECT rowid, {table.quoted} FROM {table.name} WHERE rowid > ? AND rowid < ?",
            (after, before),
        )
        count += sum(
            _insert(copy, table, row[0], list(row[1:])) for row in rows if row[0] not in in_trash
        )
    return count


# Rows that others refer to and that are lost, as far as those others know them.
_MEMORIES = (
    "(SELECT memory_session_id, project_id, turn_id, prompt_number, created_at, created_at_epoch"
    " FROM observations UNION ALL SELECT memory_session_id, project_id, turn_id, prompt_number,"
    " created_at, created_at_epoch FROM session_summaries)"
)
_SESSION = (
    "INSERT OR IGNORE INTO sdk_sessions (id, content_session_id, memory_session_id, project_id,"
    " project_dir, dialect, status, prompt_counter, started_at, started_at_epoch, updated_at,"
    " updated_at_epoch)"
)
_TIMES = "min(created_at), min(created_at_epoch), max(created_at), max(created_at_epoch)"
_MISSING_PARENTS = (
    f"{_SESSION} SELECT session_id, 'recovered-' || session_id, (SELECT m.memory_session_id FROM"
    f" {_MEMORIES} m JOIN user_prompts p ON p.id = m.turn_id WHERE p.session_id = t.session_id"
    " LIMIT 1), project_id, '', 'claude', 'interrupted', max(prompt_number),"
    f" {_TIMES} FROM user_prompts t WHERE session_id NOT IN (SELECT id FROM sdk_sessions)"
    " GROUP BY session_id",
    f"{_SESSION} SELECT NULL, 'recovered-' || memory_session_id, memory_session_id, project_id, '',"
    f" 'claude', 'interrupted', max(prompt_number), {_TIMES} FROM {_MEMORIES}"
    " WHERE memory_session_id NOT IN (SELECT memory_session_id FROM sdk_sessions"
    " WHERE memory_session_id IS NOT NULL) GROUP BY memory_session_id",
    "INSERT OR IGNORE INTO user_prompts (id, session_id, project_id, prompt_id, prompt_number,"
    " closed, retired, updated_at_epoch, created_at, created_at_epoch) SELECT turn_id, s.id,"
    " m.project_id, 'recovered-' || turn_id, prompt_number, 1, 1, max(created_at_epoch),"
    f" min(created_at), min(created_at_epoch) FROM {_MEMORIES} m JOIN sdk_sessions s"
    " ON s.memory_session_id = m.memory_session_id WHERE turn_id NOT IN"
    " (SELECT id FROM user_prompts) GROUP BY turn_id",
    "INSERT OR IGNORE INTO projects (id, key, name) SELECT project_id, 'recovered-' || project_id,"
    " 'recovered-' || project_id FROM (SELECT project_id FROM sdk_sessions UNION SELECT project_id"
    " FROM user_prompts UNION SELECT project_id FROM facts) WHERE project_id NOT IN"
    " (SELECT id FROM projects)",
)


def _delete_orphans(copy: sqlite3.Connection, tables: list[_Table]) -> None:
    """Rows that cannot be without what is lost for good, until none is left."""
    deleted = True
    while deleted:
        deleted = False
        for table in tables:
            for key in copy.execute(f"PRAGMA foreign_key_list({table.name})").fetchall():
                column, parent, of_parent = key["from"], key["table"], key["to"] or "id"
                change = f"DELETE FROM {table.name}"
                if key["on_delete"] == "SET NULL":
                    change = f"UPDATE {table.name} SET {column} = NULL"
                cursor = copy.execute(
                    f"{change} WHERE {column} IS NOT NULL AND NOT EXISTS"
                    f" (SELECT 1 FROM {parent} p WHERE p.{of_parent} = {table.name}.{column})"
                )
                deleted = deleted or cursor.rowcount > 0

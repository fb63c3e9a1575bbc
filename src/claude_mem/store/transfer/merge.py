"""Merges rows of an export into this database; rows that exist here win.

A row is identified by its natural key (`tables`), never by its id; ids are mapped to ours. The
session and project of a row are those of its turn here, so that they cannot contradict each other.
Merging twice changes nothing: rows that an interrupted run stored are recognised by their keys.
"""

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from claude_mem.errors import BadInput
from claude_mem.store import memories
from claude_mem.store.insert_row import insert_row
from claude_mem.store.migrations import missing_migrations
from claude_mem.store.queue import JOBS
from claude_mem.store.sessions import MANUAL, register_memory_session
from claude_mem.store.tombstones import is_forgotten_session
from claude_mem.store.transfer.export_reader import Row
from claude_mem.store.transfer.tables import BY_NAME, Table

Outcome = Literal["added", "existing", "private", "forgotten", "refused"]
Values = dict[str, Any]

_MEMORIES = ("session_summaries", "observations")
_PLACEMENT = ("id", "turn_id", "project_id", "memory_session_id", "prompt_number")

# Temporary tables of the writer's connection. `ours` is the id here of the row `theirs` of the
# file; NULL where a different row is here in its place, so that nothing can belong to theirs.
_TEMPORARY = (
    "DROP TABLE IF EXISTS temp.same_rows",
    "CREATE TEMP TABLE same_rows (of TEXT, theirs INTEGER, ours INTEGER,"
    " PRIMARY KEY (of, theirs)) WITHOUT ROWID",
    "CREATE INDEX temp.same_rows_by_ours ON same_rows (of, ours)",
    "DROP TABLE IF EXISTS temp.open_turns",
    "CREATE TEMP TABLE open_turns (turn_id INTEGER PRIMARY KEY)",
    "DROP TABLE IF EXISTS temp.file_parents",
    "CREATE TEMP TABLE file_parents (turn_id INTEGER PRIMARY KEY, parent INTEGER)",
    "DROP TABLE IF EXISTS temp.file_facts",
    "CREATE TEMP TABLE file_facts (fact_id INTEGER PRIMARY KEY, count INTEGER,"
    " superseded_by INTEGER, is_new INTEGER)",
)


@dataclass(frozen=True, slots=True)
class MergeReport:
    outcome: Outcome
    reason: str = ""


class _NotStored(Exception):
    """The row is valid, but not to be stored."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome


def begin(connection: sqlite3.Connection) -> None:
    for statement in _TEMPORARY:
        connection.execute(statement)


def merge_rows(connection: sqlite3.Connection, rows: Sequence[Row]) -> list[MergeReport]:
    """Each row is stored completely or not at all."""
    missing_migrations(connection)  # raises if a newer worker migrated the file since the last call
    return [_in_savepoint(connection, row) for row in rows]


def end(connection: sqlite3.Connection) -> list[int]:
    """Reopens the turns that were open in the file, and completes facts; returns the projects of
    the rows."""
    _complete_facts(connection)
    connection.execute(
        "UPDATE user_prompts SET parent_turn = s.ours FROM temp.file_parents f"
        " JOIN temp.same_rows s ON s.of = 'user_prompts' AND s.theirs = f.parent"
        " WHERE user_prompts.id = f.turn_id AND parent_turn IS NULL"
    )
    connection.execute(
        "UPDATE user_prompts SET closed = 0 WHERE id IN (SELECT turn_id FROM temp.open_turns)"
        " AND private = 0"
        " AND NOT EXISTS (SELECT 1 FROM session_summaries m WHERE m.turn_id = user_prompts.id)"
        " AND NOT EXISTS (SELECT 1 FROM pending_messages m WHERE m.turn_id = user_prompts.id)"
    )
    rows = connection.execute(
        "SELECT DISTINCT ours FROM temp.same_rows WHERE of = 'projects' ORDER BY ours"
    ).fetchall()
    begin(connection)
    return [int(row[0]) for row in rows]


def _complete_facts(connection: sqlite3.Connection) -> None:
    """A fact whose turns were all refused must not stay; links need both facts."""
    connection.execute(
        "DELETE FROM facts WHERE (id IN (SELECT fact_id FROM temp.file_facts WHERE count > 0"
        " AND is_new) OR (id IN (SELECT fact_id FROM temp.file_facts WHERE count > 0)"
        " AND pinned = 0 AND status <> 'wrong' AND changed_by IS NULL))"
        " AND NOT EXISTS (SELECT 1 FROM fact_sources WHERE fact_id = facts.id)"
    )
    connection.execute(
        "UPDATE facts SET superseded_by = s.ours FROM temp.file_facts f JOIN temp.same_rows s"
        " ON s.of = 'facts' AND s.theirs = f.superseded_by WHERE facts.id = f.fact_id"
        " AND facts.superseded_by IS NULL AND facts.status = 'past' AND s.ours <> facts.id"
        " AND EXISTS (SELECT 1 FROM facts successor WHERE successor.id = s.ours)"
    )


def _in_savepoint(connection: sqlite3.Connection, row: Row) -> MergeReport:
    connection.execute("SAVEPOINT merge_row")
    try:
        table = BY_NAME[row.table]
        report = MergeReport(_merge(connection, table, dict(row.values), is_outside=row.is_outside))
    except (BadInput, sqlite3.IntegrityError, sqlite3.DataError) as error:
        connection.execute("ROLLBACK TO merge_row")
        report = MergeReport("refused", str(error))
    connection.execute("RELEASE merge_row")
    return report


def _merge(
    connection: sqlite3.Connection, table: Table, values: Values, *, is_outside: bool
) -> Outcome:
    theirs = values.get("id")
    try:
        if is_outside and table.name == "project_dirs":
            raise _NotStored("existing")  # it must not decide whose memory a directory gets
        adapted = _ADAPT[table.name](connection, values)
    except _NotStored as reason:
        _map_id(connection, table.name, theirs, None)
        return reason.outcome
    existing = _existing(connection, table, adapted)
    if existing is None:
        ours = _insert(connection, table, adapted)
        _map_id(connection, table.name, theirs, ours)
        if table.name == "user_prompts":
            _follow_turn(connection, values, ours)
        elif table.name == "facts":
            _follow_fact(connection, values, ours, is_new=True)
        elif table.name == "tool_events":
            _revise_turn(connection, adapted)
        return "added"
    if is_outside and _is_own(connection, table.name, existing):
        _map_id(connection, table.name, theirs, None)
        return "existing"
    if theirs is not None:
        is_same = table.name not in _MEMORIES or _has_same_content(existing, adapted)
        _map_id(connection, table.name, theirs, existing["id"] if is_same else None)
    if table.name == "user_prompts":
        _follow_turn(connection, values, existing["id"])
    elif table.name == "facts":
        _follow_fact(connection, values, existing["id"], is_new=False)
    return "existing"


def _existing(connection: sqlite3.Connection, table: Table, values: Values) -> sqlite3.Row | None:
    missing = next((name for name in table.key if values.get(name) is None), None)
    if missing:
        raise BadInput(f"has no {missing}", missing)
    where = " AND ".join(f"{name} = :{name}" for name in table.key)
    row: sqlite3.Row | None = connection.execute(
        f"SELECT * FROM {table.name} WHERE {where}", {name: values[name] for name in table.key}
    ).fetchone()
    return row


# What of a table belongs to this database, so that rows of somebody else's export must not be
# added to it.
_OWN = {
    "sdk_sessions": "SELECT 1 FROM user_prompts WHERE session_id = ? AND outside = 0",
    "user_prompts": "SELECT 1 FROM user_prompts WHERE id = ? AND outside = 0",
    "facts": "SELECT 1 FROM facts f WHERE id = ? AND (status <> 'candidate' OR changed_by <> ''"
    " OR origin = 'agent' OR EXISTS (SELECT 1 FROM fact_sources s JOIN user_prompts t"
    " ON t.id = s.turn_id WHERE s.fact_id = f.id AND t.outside = 0))",
}


def _is_own(connection: sqlite3.Connection, table: str, existing: sqlite3.Row) -> bool:
    query = _OWN.get(table)
    if query is None:
        return False
    return connection.execute(query, (existing["id"],)).fetchone() is not None


def _has_same_content(existing: sqlite3.Row, values: Values) -> bool:
    return all(existing[name] == value for name, value in values.items() if name not in _PLACEMENT)


def _insert(connection: sqlite3.Connection, table: Table, values: Values) -> int:
    row = dict(values)
    if "id" in row and row["id"] <= _highest_id(connection, table.name):
        del row["id"]  # in use, or was once: ids are not used again
    return int(insert_row(connection, table.name, row).lastrowid or 0)


def _highest_id(connection: sqlite3.Connection, table: str) -> int:
    row = connection.execute(
        f"SELECT max(coalesce((SELECT max(id) FROM {table}), 0),"
        " coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0))",
        (table,),
    ).fetchone()
    return int(row[0])


def _map_id(
    connection: sqlite3.Connection, table: str, theirs: int | None, ours: int | None
) -> None:
    if theirs is not None:
        connection.execute(
            "INSERT OR REPLACE INTO temp.same_rows (of, theirs, ours) VALUES (?, ?, ?)",
            (table, theirs, ours),
        )


def _ours(connection: sqlite3.Connection, values: Values, column: str, table: str) -> int:
    """The id here of the row that their `column` references."""
    row = connection.execute(
        "SELECT ours FROM temp.same_rows WHERE of = ? AND theirs = ?", (table, values.get(column))
    ).fetchone()
    if row is None:
        raise BadInput(f"has a {column} that is not in the file: {values.get(column)}")
    if row[0] is None:
        raise _NotStored("existing")
    return int(row[0])


# How a row of each table is adapted to this database


def _adapt_project(connection: sqlite3.Connection, values: Values) -> Values:
    return _with_id(values)


def _adapt_directory(connection: sqlite3.Connection, values: Values) -> Values:
    """Refuses a directory of this machine: a file must not decide whose memory a directory gets."""
    if Path(str(values.get("directory"))).exists():
        raise _NotStored("existing")
    return {**values, "project_id": _ours(connection, values, "project_id", "projects")}


def _adapt_session(connection: sqlite3.Connection, values: Values) -> Values:
    if is_forgotten_session(connection, str(values.get("content_session_id"))):
        raise _NotStored("forgotten")
    project_id = _ours(connection, values, "project_id", "projects")
    memory_id = values.get("memory_session_id")
    if _is_memory_session(connection, memory_id):
        memory_id = None  # a new one is registered with its first memory
    return {**_with_id(values), "project_id": project_id, "memory_session_id": memory_id}


def _adapt_turn(connection: sqlite3.Connection, values: Values) -> Values:
    """Adapts a turn; open ones are closed until all their events are stored: see `end`."""
    session_id = _ours(connection, values, "session_id", "sdk_sessions")
    project_id = connection.execute(
        "SELECT project_id FROM sdk_sessions WHERE id = ?", (session_id,)
    ).fetchone()[0]
    return {
        **_with_id(values),
        "session_id": session_id,
        "project_id": project_id,
        "prompt_number": _free_number(connection, session_id, values),
        "closed": values.get("closed") if values.get("private") else 1,
        "parent_turn": None,  # see `end`
    }


def _free_number(connection: sqlite3.Connection, session_id: int, turn: Values) -> int | None:
    """Returns the turn's own number, unless a different turn of the session has it here."""
    number: int | None = turn.get("prompt_number")
    is_used = connection.execute(
        "SELECT 1 FROM user_prompts WHERE session_id = ? AND prompt_number = ?",
        (session_id, number),
    ).fetchone()
    if is_used:
        number = (
            1
            + connection.execute(
                "SELECT max(prompt_counter, (SELECT max(prompt_number) FROM user_prompts"
                " WHERE session_id = s.id)) FROM sdk_sessions s WHERE id = ?",
                (session_id,),
            ).fetchone()[0]
        )
    return number


def _adapt_event(connection: sqlite3.Connection, values: Values) -> Values:
    session_id = _ours(connection, values, "session_id", "sdk_sessions")
    adapted = {**_with_id(values), "session_id": session_id}
    if values.get("turn_id") is not None:
        turn = _turn(connection, values)
        if turn["session_id"] != session_id:
            raise BadInput("belongs to a turn of a different session", "turn_id")
        adapted["turn_id"] = turn["id"]
    return adapted


def _adapt_memory(connection: sqlite3.Connection, values: Values) -> Values:
    turn = _turn(connection, values)
    captured = values.get("memory_session_id")
    if _is_memory_session(connection, captured):
        captured = None
    memory_id = register_memory_session(connection, turn["session_id"], captured)
    return {
        **_with_id(values),
        "turn_id": turn["id"],
        "project_id": turn["project_id"],
        "prompt_number": turn["prompt_number"],
        "memory_session_id": memory_id,
    }


def _adapt_summary(connection: sqlite3.Connection, values: Values) -> Values:
    """Gives the facts of a summary the ids that their source events have here."""
    adapted = _adapt_memory(connection, values)

    def ours(sources: tuple[int, ...]) -> tuple[int, ...]:
        return _our_events(connection, sources)

    for column, read in memories.COLUMN_READERS.items():
        if column in values:
            facts = read(json.loads(values[column]))
            adapted[column] = memories.column_json(memories.with_sources(facts, ours))
    return adapted


def _our_events(connection: sqlite3.Connection, sources: Sequence[int]) -> tuple[int, ...]:
    rows = connection.execute(
        "SELECT s.ours FROM json_each(?) e JOIN temp.same_rows s ON s.of = 'tool_events'"
        " AND s.theirs = e.value WHERE s.ours IS NOT NULL ORDER BY e.key",
        (json.dumps(list(sources)),),
    )
    return tuple(row[0] for row in rows)


def _adapt_fact(connection: sqlite3.Connection, values: Values) -> Values:
    """Sets the count to 0, since the sources restore it; see `_complete_facts` for the link."""
    project_id = _ours(connection, values, "project_id", "projects")
    return {**_with_id(values), "project_id": project_id, "count": 0, "superseded_by": None}


def _adapt_fact_source(connection: sqlite3.Connection, values: Values) -> Values:
    turn = _turn(connection, values)
    fact_id = _ours(connection, values, "fact_id", "facts")
    project_id = connection.execute(
        "SELECT project_id FROM facts WHERE id = ?", (fact_id,)
    ).fetchone()[0]
    if project_id != turn["project_id"]:
        raise BadInput("belongs to a turn of a different project", "turn_id")
    events = _our_events(connection, json.loads(values.get("events") or "[]"))
    return {**values, "turn_id": turn["id"], "fact_id": fact_id, "events": json.dumps(events)}


def _adapt_observation(connection: sqlite3.Connection, values: Values) -> Values:
    """The memories of two observers are not mixed: only with our own summary from the file."""
    adapted = _adapt_memory(connection, values)
    has_other_summary = connection.execute(
        "SELECT 1 FROM session_summaries s WHERE turn_id = ? AND NOT EXISTS (SELECT 1 FROM"
        " temp.same_rows WHERE of = 'session_summaries' AND ours = s.id)",
        (adapted["turn_id"],),
    ).fetchone()
    if has_other_summary:
        raise _NotStored("existing")
    return adapted


def _adapt_record(connection: sqlite3.Connection, values: Values) -> Values:
    return {
        **values,
        "turn_id": _turn(connection, values)["id"],
        "bytes": len(str(values.get("parts")).encode()),
    }


def _adapt_words(connection: sqlite3.Connection, values: Values) -> Values:
    return {**values, "turn_id": _turn(connection, values)["id"]}


def _adapt_summary_link(connection: sqlite3.Connection, values: Values) -> Values:
    summary_id = _ours(connection, values, "summary_id", "session_summaries")
    return {"summary_id": summary_id, "event_id": _event(connection, values)}


def _adapt_observation_link(connection: sqlite3.Connection, values: Values) -> Values:
    observation_id = _ours(connection, values, "observation_id", "observations")
    return {"observation_id": observation_id, "event_id": _event(connection, values)}


def _adapt_message(connection: sqlite3.Connection, values: Values) -> Values:
    turn = _turn(connection, values)
    if turn["retired"]:
        raise _NotStored("existing")  # distilling it without its events would lose its memories
    return {**_with_id(values), "turn_id": turn["id"], "session_id": turn["session_id"]}


_ADAPT: dict[str, Callable[[sqlite3.Connection, Values], Values]] = {
    "projects": _adapt_project,
    "project_dirs": _adapt_directory,
    "sdk_sessions": _adapt_session,
    "user_prompts": _adapt_turn,
    "tool_events": _adapt_event,
    "session_summaries": _adapt_summary,
    "observations": _adapt_observation,
    "turn_records": _adapt_record,
    "outside_words": _adapt_words,
    "unstored_words": _adapt_words,
    "summary_events": _adapt_summary_link,
    "observation_events": _adapt_observation_link,
    "facts": _adapt_fact,
    "fact_sources": _adapt_fact_source,
    "pending_messages": _adapt_message,
}


def _with_id(values: Values) -> Values:
    if not values.get("id"):
        raise BadInput("has no id", "id")
    return values


def _turn(connection: sqlite3.Connection, values: Values) -> sqlite3.Row:
    turn_id = _ours(connection, values, "turn_id", "user_prompts")
    turn: sqlite3.Row = connection.execute(
        "SELECT * FROM user_prompts WHERE id = ?", (turn_id,)
    ).fetchone()
    if turn["private"] or turn["sealed"]:
        raise _NotStored("private" if turn["private"] else "forgotten")
    return turn


def _event(connection: sqlite3.Connection, values: Values) -> int:
    return _ours(connection, values, "event_id", "tool_events")


def _is_memory_session(connection: sqlite3.Connection, memory_session_id: str | None) -> bool:
    row = connection.execute(
        "SELECT 1 FROM sdk_sessions WHERE memory_session_id = ?", (memory_session_id,)
    ).fetchone()
    return row is not None


# What a stored row entails


def _follow_turn(connection: sqlite3.Connection, theirs: Values, turn_id: int) -> None:
    connection.execute(
        "UPDATE sdk_sessions SET prompt_counter = max(prompt_counter, t.prompt_number)"
        " FROM user_prompts t WHERE t.id = ? AND sdk_sessions.id = t.session_id AND dialect <> ?",
        (turn_id, MANUAL),
    )
    if theirs.get("parent_turn") is not None:
        connection.execute(
            "INSERT OR REPLACE INTO temp.file_parents VALUES (?, ?)",
            (turn_id, theirs["parent_turn"]),
        )
    if not theirs.get("closed"):
        connection.execute("INSERT OR IGNORE INTO temp.open_turns VALUES (?)", (turn_id,))


def _follow_fact(
    connection: sqlite3.Connection, theirs: Values, fact_id: int, *, is_new: bool
) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO temp.file_facts VALUES (?, ?, ?, ?)",
        (fact_id, theirs.get("count") or 0, theirs.get("superseded_by"), is_new),
    )


def _revise_turn(connection: sqlite3.Connection, event: Values) -> None:
    """Queues a turn that was distilled here without this event, as for an event after Stop."""
    turn = connection.execute(
        "SELECT t.* FROM user_prompts t JOIN session_summaries s ON s.turn_id = t.id"
        " WHERE t.id = ? AND t.retired = 0 AND t.sealed = 0",
        (event.get("turn_id"),),
    ).fetchone()
    if turn is not None:
        JOBS.enqueue(connection, turn["session_id"], turn["id"], event["created_at_epoch"])

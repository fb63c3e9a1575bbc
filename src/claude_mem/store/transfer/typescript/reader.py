"""Reads the sessions of a TypeScript claude-mem's database, from a copy.

Its schema has had many versions: columns may be missing or have an older name, and lists and
times may be written in several ways. A row that makes no sense is reported, the rest is read.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from claude_mem.errors import BadInput, StoreError
from claude_mem.hook.private_text import strip_private
from claude_mem.redaction import Redactor
from claude_mem.store.transfer.typescript.sessions import (
    LegacyObservation,
    LegacySession,
    LegacySummary,
    LegacyTurn,
    TurnBuilder,
)
from claude_mem.store.transfer.typescript.values import (
    as_list,
    as_text,
    field_of,
    headline,
    is_text,
    number_of,
    time_of,
)
from claude_mem.types import OBSERVATION_TYPES, Observation, ObservationType, SessionStatus, Summary

OBSERVER_PROJECT = "observer-sessions"  # sessions of its own observer, not of the user
UNKNOWN = "unknown"
_PRIVATE = ":private"  # names the columns that were private as a whole; no column is called so

_CONTENT_ID = ("content_session_id", "claude_session_id")
_MEMORY_ID = ("memory_session_id", "sdk_session_id")
_SESSIONS, _PROMPTS = "sdk_sessions", "user_prompts"
_OBSERVATIONS, _SUMMARIES = "observations", "session_summaries"

Values = dict[str, Any]
Refuse = Callable[[str, str], None]


def _create_indexes(connection: sqlite3.Connection) -> None:
    """Creates indexes in our copy, so that finding a session's rows needs no scan."""
    for table, names in (
        (_OBSERVATIONS, _MEMORY_ID),
        (_SUMMARIES, _MEMORY_ID),
        (_PROMPTS, _CONTENT_ID),
    ):
        if column := _first_of(_columns(connection, table), names):
            with suppress(sqlite3.DatabaseError):  # a damaged table is read without one
                connection.execute(f"CREATE INDEX copy_of_{table} ON {table}({column})")


def read_sessions(
    connection: sqlite3.Connection, redactor: Redactor, refuse: Refuse
) -> Iterator[LegacySession]:
    """All sessions, the oldest first; then one for each session id that has no row."""
    try:
        _create_indexes(connection)
        reader = _Reader(connection, redactor, refuse)
        if not reader.tables:
            raise BadInput("this is not a claude-mem database: it has none of its tables")
        yield from reader.sessions()
    except sqlite3.DatabaseError as error:
        raise StoreError(f"the database cannot be read: {error}") from None


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]


def _first_of(columns: Sequence[str], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in columns), None)


class _Reader:
    def __init__(self, connection: sqlite3.Connection, redactor: Redactor, refuse: Refuse) -> None:
        self._connection, self._redactor, self._refuse = connection, redactor, refuse
        names = (_SESSIONS, _PROMPTS, _OBSERVATIONS, _SUMMARIES)
        tables = {name: _columns(connection, name) for name in names}
        self.tables = {name: columns for name, columns in tables.items() if columns}

    def sessions(self) -> Iterator[LegacySession]:
        ids: set[str] = set()
        for values in self._session_rows():
            try:
                session = self._session(values, ids)
            except sqlite3.DatabaseError as error:  # a page of it is damaged
                self._refuse(f"session {values.get('row_id')}", f"cannot be read: {error}")
                continue
            if session is not None:
                ids.add(session.content_session_id)
                yield session

    def _session_rows(self) -> Iterator[Values]:
        existing: dict[str, str] = {}
        if _SESSIONS in self.tables:
            # Sessions of several clients may have the same id; Claude's comes first and keeps it.
            first = ""
            if "platform_source" in self.tables[_SESSIONS]:
                first = "coalesce(platform_source, 'claude') <> 'claude', "
            yield from self._rows(f"SELECT rowid AS row_id, * FROM {_SESSIONS} ORDER BY {first}1")
            existing = {
                table: f"SELECT {column} FROM {_SESSIONS} WHERE {column} IS NOT NULL"
                for table, names in ((_PROMPTS, _CONTENT_ID), (_OBSERVATIONS, _MEMORY_ID))
                if (column := _first_of(self.tables[_SESSIONS], names))
            }
        try:
            yield from self._memories_without_session(existing.get(_OBSERVATIONS))
            yield from self._prompts_without_session(existing.get(_PROMPTS))
        except sqlite3.DatabaseError as error:
            self._refuse("rows without a session", f"cannot be read: {error}")

    def _memories_without_session(self, existing: str | None) -> Iterator[Values]:
        """Memories whose session was deleted: one session for each id that they name."""
        parts = [
            f"SELECT {column} AS memory FROM {table}"
            for table in (_OBSERVATIONS, _SUMMARIES)
            if table in self.tables and (column := _first_of(self.tables[table], _MEMORY_ID))
        ]
        if parts:
            outside = f" WHERE memory NOT IN ({existing})" if existing else ""
            select = f"SELECT DISTINCT memory FROM ({' UNION ALL '.join(parts)}){outside}"
            for row in self._rows(f"{select} ORDER BY 1"):
                if row["memory"]:
                    yield {
                        "content_session_id": f"claude-mem-ts:{row['memory']}",
                        "memory_session_id": row["memory"],
                        "status": "completed",
                    }

    def _prompts_without_session(self, existing: str | None) -> Iterator[Values]:
        column = _first_of(self.tables.get(_PROMPTS, []), _CONTENT_ID)
        if column is None:
            return
        outside = f" WHERE {column} NOT IN ({existing})" if existing else ""
        for row in self._rows(
            f"SELECT DISTINCT {column} AS id FROM {_PROMPTS}{outside} ORDER BY 1"
        ):
            yield {"content_session_id": row["id"], "status": "completed"}

    def _rows(self, select: str, *values: object) -> list[Values]:
        return [self._stripped(dict(row)) for row in self._connection.execute(select, values)]

    def _stripped(self, row: Values) -> Values:
        """Removes private text; as JSON, so that an unclosed tag ends with its column."""
        texts = {name: as_text(value) for name, value in row.items() if is_text(value)}
        raw = json.dumps(texts).encode()
        clean = strip_private(raw)
        if clean == raw:
            return row | texts
        remaining: dict[str, str] = json.loads(clean)
        emptied = [
            name for name, text in remaining.items() if texts[name].strip() and not text.strip()
        ]
        return row | remaining | {_PRIVATE: emptied}

    def _session(self, values: Values, previous_ids: set[str]) -> LegacySession | None:
        content_id = field_of(values, _CONTENT_ID)
        if not content_id:
            self._refuse(f"{_SESSIONS} {values.get('row_id')}", "has no session id")
            return None
        unique_id = content_id
        if content_id in previous_ids:
            unique_id = f"{values.get('platform_source')}:{content_id}"
        memory_id = field_of(values, _MEMORY_ID)
        prompts = self._prompts(values, content_id) if "row_id" in values or not memory_id else []
        observations = self._of_session(_OBSERVATIONS, memory_id)
        summaries = self._of_session(_SUMMARIES, memory_id)
        project = _project(values, observations, summaries)
        if project == OBSERVER_PROJECT:
            return None
        started_ms = time_of(values, "started_at") or time_of(values, "created_at")
        turns = self._turns(values, started_ms, prompts, observations, summaries)
        if not turns:
            return None
        times = [ms for turn in turns for ms in turn.times()]
        return LegacySession(
            content_session_id=unique_id,
            memory_session_id=memory_id,
            project=project,
            title=self._title(values, turns),
            status=_status(values.get("status")),
            started_ms=started_ms or min(times),
            updated_ms=max([*times, started_ms or 0]),
            turns=turns,
        )

    def _prompts(self, session: Values, content_id: str) -> list[Values]:
        columns = self.tables.get(_PROMPTS, [])
        column = _first_of(columns, _CONTENT_ID)
        if column is None:
            return []
        select = f"SELECT rowid AS row_id, * FROM {_PROMPTS} WHERE {column} = ?"
        order = f" ORDER BY {'prompt_number, ' if 'prompt_number' in columns else ''}1"
        values = [content_id]
        if "session_db_id" in columns and "row_id" in session:
            select += " AND coalesce(session_db_id, ?) = ?"
            values += [session["row_id"]] * 2
        return self._rows(select + order, *values)

    def _of_session(self, table: str, memory_id: str | None) -> list[Values]:
        column = _first_of(self.tables.get(table, []), _MEMORY_ID)
        if column is None or memory_id is None:
            return []
        return self._rows(
            f"SELECT rowid AS row_id, * FROM {table} WHERE {column} = ? ORDER BY 1", memory_id
        )

    def _turns(
        self,
        session: Values,
        started_ms: int | None,
        prompts: list[Values],
        observations: list[Values],
        summaries: list[Values],
    ) -> tuple[LegacyTurn, ...]:
        turns = TurnBuilder(started_ms)
        for prompt in prompts:
            is_private = "prompt_text" in prompt.get(_PRIVATE, ())
            turns.add_prompt(prompt, self._text(prompt.get("prompt_text")), is_private)
        first = self._text(session.get("user_prompt"))
        is_private = "user_prompt" in session.get(_PRIVATE, ())
        if not prompts and (first or is_private):
            row = {"prompt_number": 1, "created_at_epoch": started_ms}
            turns.add_prompt(row, first, is_private)
        for row in summaries:
            self._add_summary(turns, row, started_ms)
        for row in observations:
            self._add_observation(turns, row, started_ms)
        return turns.in_order()

    def _add_observation(self, turns: TurnBuilder, row: Values, started_ms: int | None) -> None:
        place = f"{_OBSERVATIONS} {row['row_id']}"
        created_ms = time_of(row, "created_at") or started_ms
        observation = self._observation(row)
        if created_ms is None:
            self._refuse(place, "has no readable time")
        elif observation is None:
            self._refuse(place, "is empty")
        else:
            model = field_of(row, ("generated_by_model",))
            turn = turns.turn_of_observation(number_of(row.get("prompt_number")), created_ms)
            legacy = LegacyObservation(row["row_id"], created_ms, model, observation)
            turn.observations.append(legacy)

    def _add_summary(self, turns: TurnBuilder, row: Values, started_ms: int | None) -> None:
        place = f"{_SUMMARIES} {row['row_id']}"
        created_ms = time_of(row, "created_at") or started_ms
        summary = self._summary(row)
        if created_ms is None:
            self._refuse(place, "has no readable time")
            return
        if summary == Summary():
            self._refuse(place, "is empty")
            return
        turn = turns.turn_of_summary(number_of(row.get("prompt_number")), created_ms)
        if turn.summary is not None:
            self._refuse(place, "is one of several summaries of its prompt: the latest is used")
        if turn.summary is None or turn.summary.created_ms <= created_ms:
            turn.summary = LegacySummary(created_ms, summary)

    def _observation(self, row: Values) -> Observation | None:
        text = self._text(row.get("text"))
        title, narrative = self._text(row.get("title")), self._text(row.get("narrative"))
        facts = self._texts(row.get("facts"), "\n")
        if not (title or narrative or text or facts):
            return None
        if title is None:
            title = headline(text or narrative or facts[0])
        return Observation(
            type=_type(row.get("type")),
            title=title,
            subtitle=self._text(row.get("subtitle")),
            narrative=narrative or (text if text != title else None),
            facts=facts,
            concepts=self._texts(row.get("concepts"), ","),
            files_read=self._texts(row.get("files_read"), ","),
            files_modified=self._texts(row.get("files_modified"), ","),
        )

    def _summary(self, row: Values) -> Summary:
        return Summary(
            request=self._text(row.get("request")),
            investigated=self._text(row.get("investigated")),
            learned=self._text(row.get("learned")),
            completed=self._text(row.get("completed")) or self._text(row.get("summary")),
            next_steps=self._text(row.get("next_steps")),
            files_read=self._texts(row.get("files_read"), ","),
            files_edited=self._texts(row.get("files_edited"), ","),
            notes=self._text(row.get("notes")),
        )

    def _title(self, session: Values, turns: tuple[LegacyTurn, ...]) -> str | None:
        text = self._text(session.get("custom_title")) or self._text(session.get("user_prompt"))
        if text is None:
            text = next((turn.prompt for turn in turns if turn.prompt), None)
        if text is None:
            text = next((turn.summary.summary.request for turn in turns if turn.summary), None)
        return headline(text) if text else None

    def _text(self, value: object) -> str | None:
        if not is_text(value) and not isinstance(value, int | float):
            return None
        text = as_text(value)
        return self._redactor.redact(text) if text.strip() else None

    def _texts(self, value: object, separator: str) -> tuple[str, ...]:
        texts = (self._text(item) for item in as_list(value, separator))
        return tuple(text.strip() for text in texts if text)


def _project(session: Values, *memories: list[Values]) -> str:
    rows = [session, *(row for rows in memories for row in rows)]
    names = (as_text(row["project"]).strip() for row in rows if is_text(row.get("project")))
    name = next(filter(None, names), "")
    if name.startswith("/"):
        return name.rstrip("/").rsplit("/", 1)[-1] or UNKNOWN
    return name.split("/", 1)[0] or UNKNOWN  # for a worktree it is repository/worktree


def _type(value: object) -> ObservationType:
    return next((name for name in OBSERVATION_TYPES if name == value), "change")


def _status(value: object) -> SessionStatus:
    """An active session may not run any more; its next prompt makes it active again."""
    return "completed" if value == "completed" else "failed" if value == "failed" else "interrupted"

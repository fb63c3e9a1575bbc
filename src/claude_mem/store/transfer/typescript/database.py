"""The database of the TypeScript claude-mem, session by session, from a copy.

Its schema has had many versions. What a column is called, whether it is there, and how it holds a
list or a time is taken as found; what makes no sense is told and the rest kept.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from claude_mem.errors import BadInput, StoreError
from claude_mem.hook.scanner import strip_private
from claude_mem.privacy import Redactor
from claude_mem.store.transfer.typescript.sessions import OldSession, OldTurn, Turns, times_of
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

OWN_SESSIONS = "observer-sessions"  # its observer's, not the person's
UNKNOWN = "unknown"
_PRIVATE = ":private"  # the columns of which nothing was left; no column has such a name

_CONTENT_ID = ("content_session_id", "claude_session_id")
_MEMORY_ID = ("memory_session_id", "sdk_session_id")
_SESSIONS, _PROMPTS = "sdk_sessions", "user_prompts"
_OBSERVATIONS, _SUMMARIES = "observations", "session_summaries"

Values = dict[str, Any]
Refuse = Callable[[str, str], None]


def _index(connection: sqlite3.Connection) -> None:
    """Our copy: whatever indexes it came with, a session's rows are found at once."""
    for table, names in (
        (_OBSERVATIONS, _MEMORY_ID),
        (_SUMMARIES, _MEMORY_ID),
        (_PROMPTS, _CONTENT_ID),
    ):
        if column := _first_of(_columns(connection, table), names):
            with suppress(sqlite3.DatabaseError):  # damaged: it goes without
                connection.execute(f"CREATE INDEX copy_of_{table} ON {table}({column})")


def read_sessions(
    connection: sqlite3.Connection, redactor: Redactor, refuse: Refuse
) -> Iterator[OldSession]:
    """Every session, the oldest first, and then what belongs to none that is there."""
    try:
        _index(connection)
        reader = _Reader(connection, redactor, refuse)
        if not reader.tables:
            raise BadInput("the database is not one of claude-mem: it has none of its tables")
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
        found = {name: _columns(connection, name) for name in names}
        self.tables = {name: columns for name, columns in found.items() if columns}

    def sessions(self) -> Iterator[OldSession]:
        seen: set[str] = set()
        for values in self._session_rows():
            try:
                session = self._session(values, seen)
            except sqlite3.DatabaseError as error:  # a page of it is damaged
                self._refuse(f"session {values.get('row_id')}", f"cannot be read: {error}")
                continue
            if session is not None:
                seen.add(session.content_session_id)
                yield session

    def _session_rows(self) -> Iterator[Values]:
        known: dict[str, str] = {}
        if _SESSIONS in self.tables:
            # One id may stand for several clients' sessions; Claude's own keeps it.
            first = ""
            if "platform_source" in self.tables[_SESSIONS]:
                first = "coalesce(platform_source, 'claude') <> 'claude', "
            yield from self._rows(f"SELECT rowid AS row_id, * FROM {_SESSIONS} ORDER BY {first}1")
            known = {
                table: f"SELECT {column} FROM {_SESSIONS} WHERE {column} IS NOT NULL"
                for table, names in ((_PROMPTS, _CONTENT_ID), (_OBSERVATIONS, _MEMORY_ID))
                if (column := _first_of(self.tables[_SESSIONS], names))
            }
        try:
            yield from self._without_session(known.get(_OBSERVATIONS))
            yield from self._prompts_without_session(known.get(_PROMPTS))
        except sqlite3.DatabaseError as error:
            self._refuse("what has no session", f"cannot be found: {error}")

    def _without_session(self, known: str | None) -> Iterator[Values]:
        """Memories whose session is gone: one session for each id that they name."""
        parts = [
            f"SELECT {column} AS memory FROM {table}"
            for table in (_OBSERVATIONS, _SUMMARIES)
            if table in self.tables and (column := _first_of(self.tables[table], _MEMORY_ID))
        ]
        if parts:
            outside = f" WHERE memory NOT IN ({known})" if known else ""
            select = f"SELECT DISTINCT memory FROM ({' UNION ALL '.join(parts)}){outside}"
            for row in self._rows(f"{select} ORDER BY 1"):
                if row["memory"]:
                    yield {
                        "content_session_id": f"claude-mem-ts:{row['memory']}",
                        "memory_session_id": row["memory"],
                        "status": "completed",
                    }

    def _prompts_without_session(self, known: str | None) -> Iterator[Values]:
        column = _first_of(self.tables.get(_PROMPTS, []), _CONTENT_ID)
        if column is None:
            return
        outside = f" WHERE {column} NOT IN ({known})" if known else ""
        for row in self._rows(
            f"SELECT DISTINCT {column} AS id FROM {_PROMPTS}{outside} ORDER BY 1"
        ):
            yield {"content_session_id": row["id"], "status": "completed"}

    def _rows(self, select: str, *values: object) -> list[Values]:
        return [self._stripped(dict(row)) for row in self._connection.execute(select, values)]

    def _stripped(self, row: Values) -> Values:
        """Without what is private; bounded, as in a hook's payload, by the texts of JSON."""
        texts = {name: as_text(value) for name, value in row.items() if is_text(value)}
        raw = json.dumps(texts).encode()
        clean = strip_private(raw)
        if clean == raw:
            return row | texts
        left: dict[str, str] = json.loads(clean)
        emptied = [name for name in left if texts[name].strip() and not left[name].strip()]
        return row | left | {_PRIVATE: emptied}

    def _session(self, values: Values, seen: set[str]) -> OldSession | None:
        content_id = field_of(values, _CONTENT_ID)
        if not content_id:
            self._refuse(f"{_SESSIONS} {values.get('row_id')}", "has no session id")
            return None
        kept_id = content_id
        if content_id in seen:
            kept_id = f"{values.get('platform_source')}:{content_id}"
        memory_id = field_of(values, _MEMORY_ID)
        prompts = self._prompts(values, content_id) if "row_id" in values or not memory_id else []
        observations = self._of_session(_OBSERVATIONS, memory_id)
        summaries = self._of_session(_SUMMARIES, memory_id)
        project = _project(values, observations, summaries)
        if project == OWN_SESSIONS:
            return None
        started = _session_time(values, "started_at")
        turns = self._turns(values, started, prompts, observations, summaries)
        if not turns:
            return None
        times = [at for turn in turns for at in times_of(turn)]
        return OldSession(
            content_session_id=kept_id,
            memory_session_id=memory_id,
            project=project,
            title=self._title(values, turns),
            status=_status(values.get("status")),
            started_at=started or min(times),
            updated_at=max([*times, started or 0]),
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
        started: int | None,
        prompts: list[Values],
        observations: list[Values],
        summaries: list[Values],
    ) -> tuple[OldTurn, ...]:
        turns = Turns(started)
        for prompt in prompts:
            is_private = "prompt_text" in prompt.get(_PRIVATE, ())
            turns.add_prompt(prompt, self._text(prompt.get("prompt_text")), is_private)
        first = self._text(session.get("user_prompt"))
        is_private = "user_prompt" in session.get(_PRIVATE, ())
        if not prompts and (first or is_private):
            row = {"prompt_number": 1, "created_at_epoch": started}
            turns.add_prompt(row, first, is_private)
        for row in summaries:
            self._place(turns, _SUMMARIES, row, started)
        for row in observations:
            self._place(turns, _OBSERVATIONS, row, started)
        return turns.in_order()

    def _place(self, turns: Turns, table: str, row: Values, started: int | None) -> None:
        place = f"{table} {row['row_id']}"
        at = time_of(row, "created_at") or started
        if at is None:
            self._refuse(place, "has no time that can be read")
            return
        number = number_of(row.get("prompt_number"))
        if table == _OBSERVATIONS:
            made = self._observation(row)
            if made is None:
                self._refuse(place, "says nothing")
                return
            model = field_of(row, ("generated_by_model",))
            turns.of(number, at).observations.append((row["row_id"], at, model, made))
            return
        summary = self._summary(row)
        if summary == Summary():
            self._refuse(place, "says nothing")
            return
        turn = turns.of_summary(number, at)
        if turn.summary is not None:
            self._refuse(place, "is one of several summaries of a prompt: the last is kept")
        if turn.summary is None or turn.summary[0] <= at:
            turn.summary = (at, summary)

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

    def _title(self, session: Values, turns: tuple[OldTurn, ...]) -> str | None:
        said = self._text(session.get("custom_title")) or self._text(session.get("user_prompt"))
        if said is None:
            said = next((turn.prompt for turn in turns if turn.prompt), None)
        if said is None:
            said = next((t.summary[1].request for t in turns if t.summary), None)
        return headline(said) if said else None

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
    named = (as_text(row["project"]).strip() for row in rows if is_text(row.get("project")))
    name = next((name for name in named if name), "")
    if name.startswith("/"):
        return name.rstrip("/").rsplit("/", 1)[-1] or UNKNOWN
    return name.split("/", 1)[0] or UNKNOWN  # of a worktree it says repository/worktree


def _type(value: object) -> ObservationType:
    return next((known for known in OBSERVATION_TYPES if known == value), "change")


def _status(value: object) -> SessionStatus:
    """Whether it still runs is not known here; a prompt makes it active again."""
    return "completed" if value == "completed" else "failed" if value == "failed" else "interrupted"


def _session_time(session: Values, name: str) -> int | None:
    return time_of(session, name) or time_of(session, "created_at")

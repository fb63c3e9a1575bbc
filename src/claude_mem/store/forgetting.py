"""Forgetting: rows move out of their tables, so that no query has to filter them.

They are kept in `forgotten_rows`, unchanged, until undo restores them or they expire. `tombstones`
and sealed turns keep them from being recorded again by a transcript, a late hook or an old export;
both remain after the rows have expired.
"""

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from claude_mem.errors import BadInput, NotFound
from claude_mem.store import forgotten_facts
from claude_mem.store.insert_row import insert_row
from claude_mem.store.queue import QUEUES
from claude_mem.store.sessions import MANUAL
from claude_mem.text import one_line, shorten
from claude_mem.types import Project

EXAMPLES = 20
_EXAMPLE_CHARS = 100
_RAW = ("tool_input", "tool_response", "text", "detail", "words")


@dataclass(frozen=True, slots=True)
class Selection:
    """What to forget: a project, a session, or single memories."""

    project: int | None = None
    session: int | None = None
    observations: tuple[int, ...] = ()
    summaries: tuple[int, ...] = ()
    prompts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Preview:
    """What would be forgotten. The token identifies exactly these rows."""

    counts: dict[str, int]
    examples: tuple[str, ...]
    token: str

    @property
    def is_empty(self) -> bool:
        return not any(self.counts.values())


@dataclass(frozen=True, slots=True)
class Forgotten:
    """One forgetting, which can be undone until it expires."""

    token: str
    counts: dict[str, int]
    at_epoch: int
    projects: tuple[Project, ...] = field(default=())


# Preview


def preview(connection: sqlite3.Connection, selection: Selection) -> Preview:
    ids = _ids(connection, selection)
    digest = hashlib.blake2b(json.dumps([selection.project, ids]).encode(), digest_size=8)
    counts = {noun: len(rows) for noun, rows in ids.items()}
    return Preview(counts, tuple(_examples(connection, ids)), digest.hexdigest())


def _ids(connection: sqlite3.Connection, selection: Selection) -> dict[str, list[int]]:
    sessions = _sessions(connection, selection)
    if sessions is not None:
        turns = _column(connection, "SELECT id FROM user_prompts WHERE session_id IN", sessions)
        return {
            "sessions": sessions,
            "observations": _column(
                connection, "SELECT id FROM observations WHERE turn_id IN", turns
            ),
            "summaries": _column(
                connection, "SELECT id FROM session_summaries WHERE turn_id IN", turns
            ),
            "prompts": turns,
        }
    return {
        "sessions": [],
        "observations": _column(
            connection, "SELECT id FROM observations WHERE id IN", selection.observations
        ),
        "summaries": _column(
            connection, "SELECT id FROM session_summaries WHERE id IN", selection.summaries
        ),
        "prompts": _column(
            connection,
            "SELECT id FROM user_prompts WHERE prompt_text IS NOT NULL AND id IN",
            selection.prompts,
        ),
    }


def _sessions(connection: sqlite3.Connection, selection: Selection) -> list[int] | None:
    if selection.session is not None:
        return [selection.session]
    if selection.project is None:
        return None
    rows = connection.execute(
        "SELECT id FROM sdk_sessions WHERE project_id = ? ORDER BY id", (selection.project,)
    )
    return [row[0] for row in rows]


def _column(connection: sqlite3.Connection, select: str, ids: Sequence[int]) -> list[int]:
    """`select` ends with IN; the ids are appended."""
    rows = connection.execute(
        f"{select} (SELECT value FROM json_each(?)) ORDER BY 1", (json.dumps(list(ids)),)
    )
    return [row[0] for row in rows]


_SHOWN = {
    "sessions": ("session ", "SELECT id, coalesce(title, user_prompt) FROM sdk_sessions"),
    "observations": ("#", "SELECT id, coalesce(title, narrative) FROM observations"),
    "summaries": ("S", "SELECT id, coalesce(request, completed) FROM session_summaries"),
    "prompts": ("P", "SELECT id, prompt_text FROM user_prompts"),
}


def _examples(connection: sqlite3.Connection, ids: dict[str, list[int]]) -> Iterable[str]:
    """The first rows of each kind; for whole sessions without summaries and prompts."""
    remaining = EXAMPLES
    nouns = ("sessions", "observations") if ids["sessions"] else tuple(_SHOWN)
    for noun in nouns:
        mark, select = _SHOWN[noun]
        shown = ids[noun][:remaining]
        remaining -= len(shown)
        rows = connection.execute(
            f"{select} WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
            (json.dumps(shown),),
        )
        for identity, text in rows:
            line = shorten(one_line(text or ""), _EXAMPLE_CHARS)
            yield f"{mark}{identity} {line}".rstrip()


# Forgetting


def forget(connection: sqlite3.Connection, selection: Selection, token: str, ms: int) -> Forgotten:
    """Forgets exactly the rows of the preview; raises when the selection has others now."""
    previous = find(connection, token)
    if previous is not None:
        return previous  # a repeated request
    current = preview(connection, selection)
    if current.token != token:
        raise BadInput("the memories to forget have changed: preview them again", "confirm")
    cursor = connection.execute(
        "INSERT INTO forgotten (token, at_epoch, counts) VALUES (?, ?, ?)",
        (token, ms, json.dumps(current.counts)),
    )
    trash = _Trash(connection, int(cursor.lastrowid or 0), ms)
    sessions = _sessions(connection, selection)
    if sessions is not None:
        _forget_sessions(trash, sessions, selection.project)
    else:
        _forget_memories(trash, _ids(connection, selection))
    forgotten = find(connection, token)
    assert forgotten is not None
    return forgotten


@dataclass(frozen=True, slots=True)
class _Trash:
    """The rows of one forgetting, in the order in which they can be restored."""

    connection: sqlite3.Connection
    id: int
    ms: int

    def keep(self, table: str, column: str, ids: Sequence[int]) -> list[sqlite3.Row]:
        """Saves rows, which the caller then deletes."""
        rows = self.connection.execute(
            f"SELECT * FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))",
            (json.dumps(list(ids)),),
        ).fetchall()
        self.put(table, "gone", [dict(row) for row in rows])
        return rows

    def change(self, table: str, rows: Sequence[sqlite3.Row], **new: object) -> None:
        """Changes columns of rows that stay, and saves the old values."""
        self.put(table, "changed", [
            {"id": row["id"], **{name: row[name] for name in new}} for row in rows
        ])  # fmt: skip
        changes = ", ".join(f"{name} = :{name}" for name in new)
        self.connection.executemany(
            f"UPDATE {table} SET {changes} WHERE id = :id",
            [{"id": row["id"], **new} for row in rows],
        )

    def put(self, table: str, kind: str, rows: list[dict[str, Any]]) -> None:
        self.connection.executemany(
            "INSERT INTO forgotten_rows (forgotten_id, of_table, kind, content)"
            " VALUES (?, ?, ?, ?)",
            [(self.id, table, kind, json.dumps(row)) for row in rows],
        )

    def bury(self, kind: str, keys: Iterable[str]) -> None:
        self.connection.executemany(
            "INSERT OR IGNORE INTO tombstones (kind, key, forgotten_id, at_epoch)"
            " VALUES (?, ?, ?, ?)",
            [(kind, key, self.id, self.ms) for key in keys],
        )


def _forget_sessions(trash: _Trash, ids: list[int], project: int | None) -> None:
    connection = trash.connection
    projects = _projects_of(connection, ids) if project is None else [project]
    project_rows = trash.keep("projects", "id", projects)
    if project is not None:
        trash.keep("project_dirs", "project_id", projects)
        trash.bury("project", [row["key"] for row in project_rows])
    sessions = trash.keep("sdk_sessions", "id", ids)
    turns = trash.keep("user_prompts", "session_id", ids)
    turn_ids = [row["id"] for row in turns]
    trash.keep("tool_events", "session_id", ids)
    summaries = trash.keep("session_summaries", "turn_id", turn_ids)
    observations = trash.keep("observations", "turn_id", turn_ids)
    trash.keep("summary_events", "summary_id", [row["id"] for row in summaries])
    trash.keep("observation_events", "observation_id", [row["id"] for row in observations])
    trash.keep("turn_records", "turn_id", turn_ids)
    forgotten_facts.forget_facts(trash, turn_ids)
    for queue in QUEUES:
        trash.keep(queue.table, "session_id", ids)
    # Not for saved memories: the next one would belong to the same session.
    trash.bury("session", [s["content_session_id"] for s in sessions if s["dialect"] != MANUAL])
    trash.bury("turn", [turn["prompt_id"] for turn in turns if _is_unique(turn["prompt_id"])])
    if project is None:
        _clear_titles(trash, turns, [*turns, *summaries, *observations])
        first = min((row["started_at_epoch"] for row in sessions), default=trash.ms)
        _clear_contexts(trash, projects, first)
        _delete(connection, "sdk_sessions", ids)
    else:
        _delete(connection, "projects", projects)  # deletes everything of the project by cascade


def _forget_memories(trash: _Trash, ids: dict[str, list[int]]) -> None:
    connection = trash.connection
    turn_ids = _turns_of(connection, ids)
    turns = connection.execute(
        "SELECT * FROM user_prompts WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(turn_ids),),
    ).fetchall()
    projects = sorted({turn["project_id"] for turn in turns})
    trash.keep("projects", "id", projects)  # they stay, but undo may find them forgotten
    summaries = trash.keep("session_summaries", "id", ids["summaries"])
    observations = trash.keep("observations", "id", ids["observations"])
    trash.keep("summary_events", "summary_id", ids["summaries"])
    trash.keep("observation_events", "observation_id", ids["observations"])
    trash.keep("turn_records", "turn_id", turn_ids)  # it tells what is forgotten
    forgotten_facts.forget_facts(trash, turn_ids)
    for queue in QUEUES:
        trash.keep(queue.table, "turn_id", turn_ids)
    trash.bury("turn", [turn["prompt_id"] for turn in turns if _is_unique(turn["prompt_id"])])
    prompts = [turn for turn in turns if turn["id"] in set(ids["prompts"])]
    _clear_titles(trash, turns, [*summaries, *observations, *prompts])
    trash.change("user_prompts", prompts, prompt_text=None)
    raw = connection.execute(
        "SELECT * FROM tool_events WHERE bytes > 0 AND turn_id IN (SELECT value FROM json_each(?))",
        (json.dumps(turn_ids),),
    ).fetchall()
    trash.change("tool_events", raw, **dict.fromkeys(_RAW), bytes=0)
    for turn in turns:
        trash.put("user_prompts", "sealed", [{"id": turn["id"]}])
        connection.execute(
            "UPDATE user_prompts SET sealed = sealed + 1 WHERE id = ?", (turn["id"],)
        )
    _clear_contexts(
        trash, projects, min((turn["created_at_epoch"] for turn in turns), default=trash.ms)
    )
    _delete(connection, "session_summaries", ids["summaries"])
    _delete(connection, "observations", ids["observations"])
    connection.execute(
        "DELETE FROM turn_records WHERE turn_id IN (SELECT value FROM json_each(?))",
        (json.dumps(turn_ids),),
    )
    for queue in QUEUES:  # or a job that runs now would bring the memories back
        queue.delete_turns(connection, turn_ids)


def _turns_of(connection: sqlite3.Connection, ids: dict[str, list[int]]) -> list[int]:
    turns = {*ids["prompts"]}
    for table, noun in (("observations", "observations"), ("session_summaries", "summaries")):
        turns |= set(_column(connection, f"SELECT turn_id FROM {table} WHERE id IN", ids[noun]))
    return sorted(turns)


def _projects_of(connection: sqlite3.Connection, sessions: list[int]) -> list[int]:
    return _column(connection, "SELECT DISTINCT project_id FROM sdk_sessions WHERE id IN", sessions)


def _clear_titles(
    trash: _Trash, turns: Sequence[sqlite3.Row], memories: Sequence[sqlite3.Row]
) -> None:
    """Removes titles and first prompts of sessions that repeat what was forgotten."""
    texts_by_session: dict[int, str] = {}
    session_of = {turn["id"]: turn["session_id"] for turn in turns}
    for memory in memories:
        values = dict(memory)
        session = session_of[values.get("turn_id", values["id"])]
        texts = (value for value in values.values() if isinstance(value, str))
        texts_by_session[session] = " ".join((texts_by_session.get(session, ""), *texts))
    for session_id, text in texts_by_session.items():
        for row in _with_same_titles(trash.connection, session_id):
            cleared = {
                name: None
                for name in ("title", "subtitle", "user_prompt")
                if row[name] and _is_repeated(row[name], text)
            }
            if cleared:
                trash.change("sdk_sessions", [row], **cleared)


def _with_same_titles(connection: sqlite3.Connection, session_id: int) -> list[sqlite3.Row]:
    """The session, and its imported forks, whose titles come from its turns."""
    return connection.execute(
        "SELECT s.* FROM sdk_sessions s JOIN sdk_sessions origin ON origin.id = ?1"
        " WHERE s.id = ?1 OR (s.project_id = origin.project_id"
        " AND s.user_prompt = origin.user_prompt AND NOT EXISTS (SELECT 1 FROM user_prompts"
        " WHERE session_id = s.id AND prompt_text = s.user_prompt))",
        (session_id,),
    ).fetchall()


def _is_repeated(title: str, text: str) -> bool:
    """Whether most words of the title are in the text."""
    words = set(re.findall(r"\w+", title.lower()))
    return len(words & set(re.findall(r"\w+", text.lower()))) * 2 > len(words)


def _clear_contexts(trash: _Trash, projects: list[int], since: int) -> None:
    """Removes the contexts of later sessions of the project, which may contain it."""
    rows = trash.connection.execute(
        "SELECT * FROM sdk_sessions WHERE start_context <> '' AND updated_at_epoch >= ?"
        " AND project_id IN (SELECT value FROM json_each(?))",
        (since, json.dumps(projects)),
    ).fetchall()
    trash.change("sdk_sessions", rows, start_context=None)


def _delete(connection: sqlite3.Connection, table: str, ids: Sequence[int]) -> None:
    connection.execute(
        f"DELETE FROM {table} WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )


def _is_unique(prompt_id: str) -> bool:
    """Whether a prompt id identifies one turn everywhere, unlike a mere number."""
    return len(prompt_id) >= 32


# Undo


def find(connection: sqlite3.Connection, token: str) -> Forgotten | None:
    return next((entry for entry in all_forgotten(connection) if entry.token == token), None)


def all_forgotten(connection: sqlite3.Connection) -> list[Forgotten]:
    """What can still be undone, the latest first."""
    entries = []
    for row in connection.execute("SELECT * FROM forgotten ORDER BY id DESC").fetchall():
        projects = connection.execute(
            "SELECT content FROM forgotten_rows WHERE forgotten_id = ? AND of_table = 'projects'"
            " ORDER BY id",
            (row["id"],),
        )
        values = (json.loads(content) for (content,) in projects)
        entries.append(
            Forgotten(row["token"], json.loads(row["counts"]), row["at_epoch"],
                      tuple(Project(project["key"], project["name"]) for project in values))
        )  # fmt: skip
    return entries


def undo(connection: sqlite3.Connection, token: str | None) -> Forgotten:
    """Restores the rows of the latest forgetting, or of the one with this token."""
    entries = all_forgotten(connection)
    forgotten = next((entry for entry in entries if token in (None, entry.token)), None)
    if forgotten is None:
        raise NotFound("nothing to undo: `claude-mem forget --list` shows what can be undone")
    identity = connection.execute(
        "SELECT id FROM forgotten WHERE token = ?", (forgotten.token,)
    ).fetchone()[0]
    try:
        _restore(connection, identity)
    except sqlite3.IntegrityError:
        raise BadInput(
            "its session or project was forgotten later: undo that first"
            " (`claude-mem forget --list`)",
            "undo",
        ) from None
    connection.execute("DELETE FROM tombstones WHERE forgotten_id = ?", (identity,))
    connection.execute("DELETE FROM forgotten WHERE id = ?", (identity,))
    return forgotten


def _restore(connection: sqlite3.Connection, identity: int) -> None:
    projects: dict[int, int] = {}
    facts: dict[int, int] = {}
    rows = connection.execute(
        "SELECT of_table, kind, content FROM forgotten_rows WHERE forgotten_id = ? ORDER BY id",
        (identity,),
    ).fetchall()
    for table, kind, content in rows:
        values: dict[str, Any] = json.loads(content)
        if kind == "sealed":
            connection.execute("UPDATE user_prompts SET sealed = sealed - 1 WHERE id = :id", values)
        elif table == "facts" and kind == "changed":
            forgotten_facts.restore_link(connection, values, facts)
        elif kind == "changed":
            _restore_columns(connection, table, values)
        elif table == "projects":
            projects[values["id"]] = _restore_project(connection, values)
        else:
            if "project_id" in values:
                values["project_id"] = projects.get(values["project_id"], values["project_id"])
            if table == "facts":
                facts[values["id"]] = forgotten_facts.restore_fact(connection, values)
                continue
            if table == "fact_sources":
                values["fact_id"] = facts.get(values["fact_id"], values["fact_id"])
            _insert(connection, table, values)


def _restore_project(connection: sqlite3.Connection, values: dict[str, Any]) -> int:
    """It may exist (again), and its id may belong to a different project by now."""
    row = connection.execute("SELECT id FROM projects WHERE key = :key", values).fetchone()
    if row is not None:
        return int(row[0])
    is_id_used = connection.execute("SELECT 1 FROM projects WHERE id = :id", values).fetchone()
    if is_id_used:
        del values["id"]
    return _insert(connection, "projects", values)


def _restore_columns(connection: sqlite3.Connection, table: str, values: dict[str, Any]) -> None:
    if "start_context" in values:  # a session that was resumed since has a newer one
        change = "start_context = coalesce(start_context, :start_context)"
    else:
        change = ", ".join(f"{name} = :{name}" for name in values if name != "id")
    connection.execute(f"UPDATE {table} SET {change} WHERE id = :id", values)


def _insert(connection: sqlite3.Connection, table: str, values: dict[str, Any]) -> int:
    conflict = "ON CONFLICT DO NOTHING" if table == "project_dirs" else ""
    return int(insert_row(connection, table, values, conflict).lastrowid or 0)


def expire(connection: sqlite3.Connection, before_ms: int) -> int:
    """Deletes for good what was forgotten before; returns how many times that was."""
    return connection.execute("DELETE FROM forgotten WHERE at_epoch < ?", (before_ms,)).rowcount


# What must not be recorded again


def is_forgotten_session(connection: sqlite3.Connection, content_session_id: str) -> bool:
    return _has_tombstone(connection, "session", content_session_id)


def is_forgotten_turn(connection: sqlite3.Connection, prompt_id: str) -> bool:
    return _has_tombstone(connection, "turn", prompt_id)


def is_any_forgotten_turn(connection: sqlite3.Connection, prompt_ids: Sequence[str]) -> bool:
    row = connection.execute(
        "SELECT 1 FROM tombstones WHERE kind = 'turn'"
        " AND key IN (SELECT value FROM json_each(?)) LIMIT 1",
        (json.dumps(prompt_ids),),
    ).fetchone()
    return row is not None


def has_sealed_turn(connection: sqlite3.Connection, session_id: int) -> bool:
    row = connection.execute(
        "SELECT 1 FROM user_prompts WHERE session_id = ? AND sealed > 0", (session_id,)
    ).fetchone()
    return row is not None


def is_forgotten_project(connection: sqlite3.Connection, key: str, started_ms: int) -> bool:
    """Whether the project was forgotten after a session that started then."""
    row = connection.execute(
        "SELECT 1 FROM tombstones WHERE kind = 'project' AND key = ? AND at_epoch >= ?",
        (key, started_ms),
    ).fetchone()
    return row is not None


def _has_tombstone(connection: sqlite3.Connection, kind: str, key: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM tombstones WHERE kind = ? AND key = ?", (kind, key)
    ).fetchone()
    return row is not None

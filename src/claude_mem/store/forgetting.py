"""Forgetting: rows leave their tables, so that no reader has to pass over them.

What went lies in `forgotten_rows` as it was and comes back as it was, until its time is over and
it is deleted for good. What must not come again, from a transcript, a late hook, an old export, is
known by its name in `tombstones`, or by its turn, which is sealed. Those stay.
"""

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from claude_mem.errors import BadInput, NotFound
from claude_mem.store.inserts import insert_row
from claude_mem.store.queue import QUEUES
from claude_mem.types import Project

EXAMPLES = 20
BY_HAND = "hand"  # the dialect of sessions that hold what was saved by hand
_LONGEST_EXAMPLE = 100
_RAW = ("tool_input", "tool_response", "text", "detail", "bytes")


@dataclass(frozen=True, slots=True)
class Selection:
    """What is to be forgotten: a project, a session, or memories one by one."""

    project: int | None = None
    session: int | None = None
    observations: tuple[int, ...] = ()
    summaries: tuple[int, ...] = ()
    prompts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Preview:
    """What would go, and the token that says so: other rows, another token."""

    counts: dict[str, int]
    examples: tuple[str, ...]
    token: str

    @property
    def is_empty(self) -> bool:
        return not any(self.counts.values())


@dataclass(frozen=True, slots=True)
class Forgotten:
    token: str
    counts: dict[str, int]
    at_epoch: int
    projects: tuple[Project, ...] = field(default=())


# What it would be


def preview(connection: sqlite3.Connection, selection: Selection) -> Preview:
    ids = _ids(connection, selection)
    digest = hashlib.blake2b(json.dumps([selection.project, ids]).encode(), digest_size=8)
    counts = {noun: len(found) for noun, found in ids.items()}
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
    """`select … IN` these, in order."""
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
    """The first of them; of a session its title is enough."""
    left = EXAMPLES
    whole = bool(ids["sessions"])
    for noun, (mark, select) in _SHOWN.items():
        found = [] if whole and noun in ("summaries", "prompts") else ids[noun][:left]
        left -= len(found)
        rows = connection.execute(
            f"{select} WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
            (json.dumps(found),),
        )
        for identity, text in rows:
            line = " ".join((text or "").split())[:_LONGEST_EXAMPLE]
            yield f"{mark}{identity} {line}".rstrip()


# Doing it


def forget(connection: sqlite3.Connection, selection: Selection, token: str, ms: int) -> Forgotten:
    """Exactly what the token was given for; raises when that is not what there is now."""
    known = find(connection, token)
    if known is not None:
        return known  # said twice, done once
    seen = preview(connection, selection)
    if seen.token != token:
        raise BadInput("this is not, or no longer, what would be forgotten: look again", "confirm")
    cursor = connection.execute(
        "INSERT INTO forgotten (token, at_epoch, counts) VALUES (?, ?, ?)",
        (token, ms, json.dumps(seen.counts)),
    )
    trash = _Trash(connection, int(cursor.lastrowid or 0), ms)
    sessions = _sessions(connection, selection)
    if sessions is not None:
        _forget_sessions(trash, sessions, selection.project)
    else:
        _forget_memories(trash, _ids(connection, selection))
    found = find(connection, token)
    assert found is not None
    return found


@dataclass(frozen=True, slots=True)
class _Trash:
    """Where the rows of one forgetting go, in the order in which they can come back."""

    connection: sqlite3.Connection
    id: int
    ms: int

    def keep(self, table: str, condition: str, ids: Sequence[int]) -> list[sqlite3.Row]:
        """Whole rows, which the caller then deletes."""
        rows = self.connection.execute(
            f"SELECT * FROM {table} WHERE {condition} IN (SELECT value FROM json_each(?))",
            (json.dumps(list(ids)),),
        ).fetchall()
        self.put(table, "gone", [dict(row) for row in rows])
        return rows

    def change(self, table: str, rows: Sequence[sqlite3.Row], **new: object) -> None:
        """Columns of rows that stay: as they were for undo, as they shall be for everyone else."""
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
    for queue in QUEUES:
        trash.keep(queue.table, "session_id", ids)
    # What is saved by hand next is no return of what went.
    trash.bury("session", [s["content_session_id"] for s in sessions if s["dialect"] != BY_HAND])
    trash.bury("turn", [turn["prompt_id"] for turn in turns if _is_its_own(turn["prompt_id"])])
    if project is None:
        _take_back_titles(trash, turns, [*turns, *summaries, *observations])
        first = min((row["started_at_epoch"] for row in sessions), default=trash.ms)
        _take_back_contexts(trash, projects, first)
        _delete(connection, "sdk_sessions", ids)
    else:
        _delete(connection, "projects", projects)  # and all that belongs to it


def _forget_memories(trash: _Trash, ids: dict[str, list[int]]) -> None:
    connection = trash.connection
    turn_ids = _turns_of(connection, ids)
    turns = connection.execute(
        "SELECT t.*, s.started_at_epoch AS session_start FROM user_prompts t"
        " JOIN sdk_sessions s ON s.id = t.session_id"
        " WHERE t.id IN (SELECT value FROM json_each(?))",
        (json.dumps(turn_ids),),
    ).fetchall()
    projects = sorted({turn["project_id"] for turn in turns})
    trash.keep("projects", "id", projects)  # they stay, but may be forgotten before this is undone
    summaries = trash.keep("session_summaries", "id", ids["summaries"])
    observations = trash.keep("observations", "id", ids["observations"])
    trash.keep("summary_events", "summary_id", ids["summaries"])
    trash.keep("observation_events", "observation_id", ids["observations"])
    for queue in QUEUES:
        trash.keep(queue.table, "turn_id", turn_ids)
    trash.bury("turn", [turn["prompt_id"] for turn in turns if _is_its_own(turn["prompt_id"])])
    prompts = [turn for turn in turns if turn["id"] in set(ids["prompts"])]
    _take_back_titles(trash, turns, [*summaries, *observations, *prompts])
    trash.change("user_prompts", prompts, prompt_text=None)
    raw = connection.execute(
        "SELECT * FROM tool_events WHERE bytes > 0 AND turn_id IN (SELECT value FROM json_each(?))",
        (json.dumps(turn_ids),),
    ).fetchall()
    trash.change("tool_events", raw, **dict.fromkeys(_RAW[:-1]), bytes=0)
    for turn in turns:
        trash.put("user_prompts", "sealed", [{"id": turn["id"]}])
        connection.execute(
            "UPDATE user_prompts SET sealed = sealed + 1 WHERE id = ?", (turn["id"],)
        )
    _take_back_contexts(
        trash, projects, min((turn["created_at_epoch"] for turn in turns), default=trash.ms)
    )
    _delete(connection, "session_summaries", ids["summaries"])
    _delete(connection, "observations", ids["observations"])
    for queue in QUEUES:  # or a job that runs now would bring the memories back
        queue.delete_turns(connection, turn_ids)


def _turns_of(connection: sqlite3.Connection, ids: dict[str, list[int]]) -> list[int]:
    turns = {*ids["prompts"]}
    for table, noun in (("observations", "observations"), ("session_summaries", "summaries")):
        turns |= set(_column(connection, f"SELECT turn_id FROM {table} WHERE id IN", ids[noun]))
    return sorted(turns)


def _projects_of(connection: sqlite3.Connection, sessions: list[int]) -> list[int]:
    return _column(connection, "SELECT DISTINCT project_id FROM sdk_sessions WHERE id IN", sessions)


def _take_back_titles(
    trash: _Trash, turns: Sequence[sqlite3.Row], memories: Sequence[sqlite3.Row]
) -> None:
    """A session's title and its first prompt may tell what was just forgotten."""
    told: dict[int, str] = {}
    session_of = {turn["id"]: turn["session_id"] for turn in turns}
    for memory in memories:
        values = dict(memory)
        session = session_of[values.get("turn_id", values["id"])]
        texts = (value for value in values.values() if isinstance(value, str))
        told[session] = " ".join((told.get(session, ""), *texts))
    for session_id, text in told.items():
        for row in _titled_alike(trash.connection, session_id):
            gone = {
                name: None
                for name in ("title", "subtitle", "user_prompt")
                if row[name] and _is_told_by(row[name], text)
            }
            if gone:
                trash.change("sdk_sessions", [row], **gone)


def _titled_alike(connection: sqlite3.Connection, session_id: int) -> list[sqlite3.Row]:
    """The session, and its forks that were imported: their titles come from its turns."""
    return connection.execute(
        "SELECT one.* FROM sdk_sessions one JOIN sdk_sessions origin ON origin.id = ?1"
        " WHERE one.id = ?1 OR (one.project_id = origin.project_id"
        " AND one.user_prompt = origin.user_prompt AND NOT EXISTS (SELECT 1 FROM user_prompts"
        " WHERE session_id = one.id AND prompt_text = one.user_prompt))",
        (session_id,),
    ).fetchall()


def _is_told_by(title: str, text: str) -> bool:
    """Whether most of its words stand in the text."""
    words = set(re.findall(r"\w+", title.lower()))
    return len(words & set(re.findall(r"\w+", text.lower()))) * 2 > len(words)


def _take_back_contexts(trash: _Trash, projects: list[int], since: int) -> None:
    """What later sessions of the project were given at their start may hold it."""
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


def _is_its_own(prompt_id: str) -> bool:
    """Whether an id of a turn means that turn alone, and is not just its number."""
    return len(prompt_id) >= 32


# Taking it back


def find(connection: sqlite3.Connection, token: str) -> Forgotten | None:
    return next((one for one in all_forgotten(connection) if one.token == token), None)


def all_forgotten(connection: sqlite3.Connection) -> list[Forgotten]:
    """What can still be undone, the last first."""
    found = []
    for row in connection.execute("SELECT * FROM forgotten ORDER BY id DESC").fetchall():
        projects = connection.execute(
            "SELECT content FROM forgotten_rows WHERE forgotten_id = ? AND of_table = 'projects'"
            " ORDER BY id",
            (row["id"],),
        )
        named = (json.loads(content) for (content,) in projects)
        found.append(
            Forgotten(row["token"], json.loads(row["counts"]), row["at_epoch"],
                      tuple(Project(one["key"], one["name"]) for one in named))
        )  # fmt: skip
    return found


def undo(connection: sqlite3.Connection, token: str | None) -> Forgotten:
    """The last forgetting, or that of the token; every row as it was."""
    known = all_forgotten(connection)
    found = next((one for one in known if token in (None, one.token)), None)
    if found is None:
        raise NotFound("there is nothing to undo: `claude-mem forget --list` says what there is")
    identity = connection.execute(
        "SELECT id FROM forgotten WHERE token = ?", (found.token,)
    ).fetchone()[0]
    try:
        _bring_back(connection, identity)
    except sqlite3.IntegrityError:
        raise BadInput(
            "what it belongs to was forgotten later: undo that first (claude-mem forget --list)",
            "undo",
        ) from None
    connection.execute("DELETE FROM tombstones WHERE forgotten_id = ?", (identity,))
    connection.execute("DELETE FROM forgotten WHERE id = ?", (identity,))
    return found


def _bring_back(connection: sqlite3.Connection, identity: int) -> None:
    projects: dict[int, int] = {}
    rows = connection.execute(
        "SELECT of_table, kind, content FROM forgotten_rows WHERE forgotten_id = ? ORDER BY id",
        (identity,),
    ).fetchall()
    for table, kind, content in rows:
        values: dict[str, Any] = json.loads(content)
        if kind == "sealed":
            connection.execute("UPDATE user_prompts SET sealed = sealed - 1 WHERE id = :id", values)
        elif kind == "changed":
            _change_back(connection, table, values)
        elif table == "projects":
            projects[values["id"]] = _project_again(connection, values)
        else:
            if "project_id" in values:
                values["project_id"] = projects.get(values["project_id"], values["project_id"])
            _insert(connection, table, values)


def _project_again(connection: sqlite3.Connection, values: dict[str, Any]) -> int:
    """It may be there, or be there again; its number may be another's by now."""
    row = connection.execute("SELECT id FROM projects WHERE key = :key", values).fetchone()
    if row is not None:
        return int(row[0])
    taken = connection.execute("SELECT 1 FROM projects WHERE id = :id", values).fetchone()
    if taken:
        del values["id"]
    return _insert(connection, "projects", values)


def _change_back(connection: sqlite3.Connection, table: str, values: dict[str, Any]) -> None:
    if "start_context" in values:  # a session that was resumed since has another
        change = "start_context = coalesce(start_context, :start_context)"
    else:
        change = ", ".join(f"{name} = :{name}" for name in values if name != "id")
    connection.execute(f"UPDATE {table} SET {change} WHERE id = :id", values)


def _insert(connection: sqlite3.Connection, table: str, values: dict[str, Any]) -> int:
    conflict = "ON CONFLICT DO NOTHING" if table == "project_dirs" else ""
    return int(insert_row(connection, table, values, conflict).lastrowid or 0)


def expire(connection: sqlite3.Connection, before_ms: int) -> int:
    """Deletes for good what was forgotten before; how often that was."""
    return connection.execute("DELETE FROM forgotten WHERE at_epoch < ?", (before_ms,)).rowcount


# What must not come again


def is_forgotten_session(connection: sqlite3.Connection, content_session_id: str) -> bool:
    return _is_buried(connection, "session", content_session_id)


def is_forgotten_turn(connection: sqlite3.Connection, prompt_id: str) -> bool:
    return _is_buried(connection, "turn", prompt_id)


def is_any_forgotten_turn(connection: sqlite3.Connection, prompt_ids: Sequence[str]) -> bool:
    row = connection.execute(
        "SELECT 1 FROM tombstones WHERE kind = 'turn'"
        " AND key IN (SELECT value FROM json_each(?)) LIMIT 1",
        (json.dumps(prompt_ids),),
    ).fetchone()
    return row is not None


def lost_something(connection: sqlite3.Connection, session_id: int) -> bool:
    """Whether a turn of the session is sealed."""
    row = connection.execute(
        "SELECT 1 FROM user_prompts WHERE session_id = ? AND sealed > 0", (session_id,)
    ).fetchone()
    return row is not None


def is_forgotten_project(connection: sqlite3.Connection, key: str, begun_ms: int) -> bool:
    """Whether a session of this project that began then belongs to what was forgotten."""
    row = connection.execute(
        "SELECT 1 FROM tombstones WHERE kind = 'project' AND key = ? AND at_epoch >= ?",
        (key, begun_ms),
    ).fetchone()
    return row is not None


def _is_buried(connection: sqlite3.Connection, kind: str, key: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM tombstones WHERE kind = ? AND key = ?", (kind, key)
    ).fetchone()
    return row is not None

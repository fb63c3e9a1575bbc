"""Forgetting: rows move out of their tables, so that no query has to filter them.

They are kept in the trash until undo restores them (`undo_forgetting.py`) or they expire, or are
removed for good (`hard_forgetting.py`). Tombstones and sealed turns keep them from being recorded
again; both remain.
"""

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from claude_mem.errors import BadInput
from claude_mem.store import unstored_words
from claude_mem.store.hard_forgetting import erase
from claude_mem.store.queue import QUEUES
from claude_mem.store.sessions import MANUAL
from claude_mem.store.stored_json import parse_stored
from claude_mem.store.tombstones import TombstoneKind
from claude_mem.text import one_line, shorten
from claude_mem.types import Project

EXAMPLES = 20
_EXAMPLE_CHARS = 100
_SHORT_WORD = 3  # letters: words such as "the" are in every text
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
    is_hard: bool = False  # for good, without undo

    @property
    def is_empty(self) -> bool:
        return not any(self.counts.values())


@dataclass(frozen=True, slots=True)
class Forgotten:
    """One forgetting, which can be undone until it expires, unless it was erased."""

    token: str
    counts: dict[str, int]
    at_epoch: int
    projects: tuple[Project, ...] = field(default=())
    is_erased: bool = False


# Preview


def preview(connection: sqlite3.Connection, selection: Selection, *, hard: bool = False) -> Preview:
    ids = _ids(connection, selection)
    identity = [selection.project, ids, *(["hard"] if hard else [])]
    digest = hashlib.blake2b(json.dumps(identity).encode(), digest_size=8)
    counts = {noun: len(rows) for noun, rows in ids.items()}
    return Preview(counts, tuple(_examples(connection, ids)), digest.hexdigest(), hard)


def sessions_of(connection: sqlite3.Connection, selection: Selection) -> list[int]:
    """The sessions that the selection belongs to."""
    sessions = _sessions(connection, selection)
    if sessions is not None:
        return sessions
    turns = _turns_of(connection, _ids(connection, selection))
    return _column(connection, "SELECT DISTINCT session_id FROM user_prompts WHERE id IN", turns)


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


# The trash


@dataclass(frozen=True, slots=True)
class Trash:
    """The rows of one forgetting, in the order in which undo restores them, and its tombstones."""

    connection: sqlite3.Connection
    id: int
    now_ms: int

    @classmethod
    def open(
        cls, connection: sqlite3.Connection, token: str, counts: dict[str, int], now_ms: int
    ) -> "Trash":
        cursor = connection.execute(
            "INSERT INTO forgotten (token, at_epoch, counts) VALUES (?, ?, ?)",
            (token, now_ms, json.dumps(counts)),
        )
        return cls(connection, int(cursor.lastrowid or 0), now_ms)

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

    def add_tombstones(self, kind: TombstoneKind, keys: Iterable[str]) -> None:
        self.connection.executemany(
            "INSERT OR IGNORE INTO tombstones (kind, key, forgotten_id, at_epoch)"
            " VALUES (?, ?, ?, ?)",
            [(kind, key, self.id, self.now_ms) for key in keys],
        )


def find_forgotten(connection: sqlite3.Connection, token: str) -> Forgotten | None:
    """Finds what was forgotten, also what was erased."""
    return next((entry for entry in _entries(connection) if entry.token == token), None)


def all_forgotten(connection: sqlite3.Connection) -> list[Forgotten]:
    """What can still be undone, the latest first."""
    return [entry for entry in _entries(connection) if not entry.is_erased]


def _entries(connection: sqlite3.Connection) -> list[Forgotten]:
    entries = []
    for row in connection.execute("SELECT * FROM forgotten ORDER BY id DESC").fetchall():
        projects = connection.execute(
            "SELECT content FROM forgotten_rows WHERE forgotten_id = ? AND of_table = 'projects'"
            " ORDER BY id",
            (row["id"],),
        )
        values = [value for (content,) in projects if (value := parse_stored(content, {}))]
        entries.append(
            Forgotten(row["token"], parse_stored(row["counts"], {}), row["at_epoch"],
                      tuple(Project(project["key"], project["name"]) for project in values),
                      bool(row["erased"]))
        )  # fmt: skip
    return entries


def expire(connection: sqlite3.Connection, before_ms: int) -> int:
    """Deletes for good what was forgotten before; returns how many times that was."""
    return connection.execute("DELETE FROM forgotten WHERE at_epoch < ?", (before_ms,)).rowcount


# Forgetting


def forget(
    connection: sqlite3.Connection,
    selection: Selection,
    token: str,
    now_ms: int,
    *,
    hard: bool = False,
) -> Forgotten:
    """Forgets exactly the rows of the preview; raises when the selection has others now."""
    previous = find_forgotten(connection, token)
    if previous is not None:
        return previous  # a repeated request
    current = preview(connection, selection, hard=hard)
    if current.token != token:
        raise BadInput("the memories to forget have changed: preview them again", "confirm")
    trash = Trash.open(connection, token, current.counts, now_ms)
    sessions = _sessions(connection, selection)
    if sessions is not None:
        _forget_sessions(trash, sessions, selection.project, hard)
    else:
        _forget_memories(trash, _ids(connection, selection), hard)
    forgotten = find_forgotten(connection, token)
    assert forgotten is not None
    if hard:
        erase(connection, trash.id, now_ms)
        return replace(forgotten, is_erased=True)
    return forgotten


def _forget_sessions(trash: Trash, ids: list[int], project: int | None, is_hard: bool) -> None:
    connection = trash.connection
    projects = _projects_of(connection, ids) if project is None else [project]
    project_rows = trash.keep("projects", "id", projects)
    if project is not None:
        for table in ("project_dirs", "project_overrides", "project_aliases"):
            trash.keep(table, "project_id", projects)
        trash.add_tombstones("project", [row["key"] for row in project_rows])
    sessions = trash.keep("sdk_sessions", "id", ids)
    turns = trash.keep("user_prompts", "session_id", ids)
    turn_ids = [row["id"] for row in turns]
    trash.keep("tool_events", "session_id", ids)
    summaries = trash.keep("session_summaries", "turn_id", turn_ids)
    observations = trash.keep("observations", "turn_id", turn_ids)
    trash.keep("summary_events", "summary_id", [row["id"] for row in summaries])
    trash.keep("observation_events", "observation_id", [row["id"] for row in observations])
    trash.keep("turn_records", "turn_id", turn_ids)
    trash.keep("outside_words", "turn_id", turn_ids)
    _forget_facts(trash, turn_ids)
    _delete_hints(connection, turn_ids, ids)
    for queue in QUEUES:
        trash.keep(queue.table, "session_id", ids)
    # Not for saved memories: the next one would belong to the same session.
    hooked = [row["content_session_id"] for row in sessions if row["dialect"] != MANUAL]
    trash.add_tombstones("session", hooked)
    trash.add_tombstones("turn", _unique_prompt_ids(turns))
    if project is None:
        _clear_titles(trash, turns, [*turns, *summaries, *observations], is_hard)
        first = min((row["started_at_epoch"] for row in sessions), default=trash.now_ms)
        _clear_contexts(trash, projects, first)
        _delete(connection, "sdk_sessions", ids)
    else:
        _delete(connection, "projects", projects)  # deletes everything of the project by cascade


def _forget_memories(trash: Trash, ids: dict[str, list[int]], is_hard: bool) -> None:
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
    _forget_facts(trash, turn_ids)
    _delete_hints(connection, turn_ids)
    for queue in QUEUES:  # or a job that runs now would bring the memories back
        jobs = trash.keep(queue.table, "turn_id", turn_ids)
        _delete(connection, queue.table, [job["id"] for job in jobs])
    trash.add_tombstones("turn", _unique_prompt_ids(turns))
    prompts = [turn for turn in turns if turn["id"] in set(ids["prompts"])]
    _clear_titles(trash, turns, [*summaries, *observations, *prompts], is_hard)
    trash.change("user_prompts", prompts, prompt_text=None)
    raw = connection.execute(
        "SELECT * FROM tool_events WHERE bytes > 0 AND turn_id IN (SELECT value FROM json_each(?))",
        (json.dumps(turn_ids),),
    ).fetchall()
    trash.change("tool_events", raw, **dict.fromkeys(_RAW), bytes=0)
    unstored_words.delete(connection, turn_ids)
    for turn in turns:
        trash.put("user_prompts", "sealed", [{"id": turn["id"]}])
        connection.execute(
            "UPDATE user_prompts SET sealed = sealed + 1 WHERE id = ?", (turn["id"],)
        )
    _clear_contexts(
        trash, projects, min((turn["created_at_epoch"] for turn in turns), default=trash.now_ms)
    )
    _delete(connection, "session_summaries", ids["summaries"])
    _delete(connection, "observations", ids["observations"])
    connection.execute(
        "DELETE FROM turn_records WHERE turn_id IN (SELECT value FROM json_each(?))",
        (json.dumps(turn_ids),),
    )


_FACTS_ONLY_FROM = (
    "SELECT DISTINCT fact_id FROM fact_sources s"
    " WHERE turn_id IN (SELECT value FROM json_each(?1))"
    " AND NOT EXISTS (SELECT 1 FROM fact_sources o WHERE o.fact_id = s.fact_id"
    " AND o.turn_id NOT IN (SELECT value FROM json_each(?1))) ORDER BY 1"
)


def _forget_facts(trash: Trash, turn_ids: Sequence[int]) -> None:
    """Turns leave their sources, and facts without a source go too."""
    connection, turns = trash.connection, json.dumps(list(turn_ids))
    ids = [row[0] for row in connection.execute(_FACTS_ONLY_FROM, (turns,))]
    # Undo restores the links between facts after the facts: they may point at each other.
    links = connection.execute(
        "SELECT id, superseded_by FROM facts WHERE superseded_by IS NOT NULL AND"
        " (id IN (SELECT value FROM json_each(?1))"
        " OR superseded_by IN (SELECT value FROM json_each(?1)))",
        (json.dumps(ids),),
    ).fetchall()
    connection.executemany(
        "UPDATE facts SET superseded_by = NULL, status = 'holds' WHERE id = ? AND status = 'past'",
        [(link["id"],) for link in links],
    )
    trash.keep("facts", "id", ids)
    trash.keep("fact_sources", "turn_id", turn_ids)
    trash.put("facts", "changed", [dict(link) for link in links])
    connection.execute(
        "DELETE FROM fact_sources WHERE turn_id IN (SELECT value FROM json_each(?))", (turns,)
    )
    # Also those that the triggers keep: the user pinned them, or marked them as wrong.
    connection.executemany("DELETE FROM facts WHERE id = ?", [(fact,) for fact in ids])


def _delete_hints(
    connection: sqlite3.Connection, turn_ids: Sequence[int], session_ids: Sequence[int] = ()
) -> None:
    """Deletes the hints that show these turns, or were given to these sessions: they have words of
    prompts."""
    connection.execute(
        "DELETE FROM hints WHERE turn_id IN (SELECT value FROM json_each(?))"
        " OR content_session_id IN (SELECT content_session_id FROM sdk_sessions"
        " WHERE id IN (SELECT value FROM json_each(?)))",
        (json.dumps(list(turn_ids)), json.dumps(list(session_ids))),
    )


def _turns_of(connection: sqlite3.Connection, ids: dict[str, list[int]]) -> list[int]:
    turns = {*ids["prompts"]}
    for table, noun in (("observations", "observations"), ("session_summaries", "summaries")):
        turns |= set(_column(connection, f"SELECT turn_id FROM {table} WHERE id IN", ids[noun]))
    return sorted(turns)


def _projects_of(connection: sqlite3.Connection, sessions: list[int]) -> list[int]:
    return _column(connection, "SELECT DISTINCT project_id FROM sdk_sessions WHERE id IN", sessions)


def _clear_titles(
    trash: Trash, turns: Sequence[sqlite3.Row], memories: Sequence[sqlite3.Row], is_hard: bool
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
                if row[name] and _is_repeated(row[name], text, is_hard)
            }
            if row["title_source"] and ("title" in cleared or is_hard):
                # The client made it of all turns, perhaps in other words.
                cleared |= {"title": None, "title_source": None}
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


def _is_repeated(title: str, text: str, is_hard: bool) -> bool:
    """Whether most words of the title are in the text; for good, whether any long word is."""
    words = set(re.findall(r"\w+", title.lower()))
    shared = words & set(re.findall(r"\w+", text.lower()))
    if is_hard:
        return any(len(word) > _SHORT_WORD for word in shared)
    return len(shared) * 2 > len(words)


def _clear_contexts(trash: Trash, projects: list[int], since: int) -> None:
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


def _unique_prompt_ids(turns: Sequence[sqlite3.Row]) -> list[str]:
    """Returns the prompt ids that identify one turn everywhere, unlike a mere number."""
    return [turn["prompt_id"] for turn in turns if len(turn["prompt_id"]) >= 32]

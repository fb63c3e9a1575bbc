"""What the context of a new session is built from, and whether that has changed: the latest
sessions and memories of a project that are not wrong, those that are pinned, and what the user
asked for.

Triggers of the write connection note the projects whose rows change, in the tables that a context
is made of. A new session or prompt changes nothing until it has a memory or is pinned. What other
processes commit is not seen by triggers; SQLite counts it (`PRAGMA data_version`).
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from claude_mem.store.json_rows import OBSERVATIONS, SELECTS, SESSIONS, JsonRow, as_json_row

_NOT_WRONG = "m.wrong = 0 AND m.turn_id NOT IN (SELECT turn_id FROM wrong_turns)"

_SHORTEST, _LONGEST = 12, 80  # characters of a short prompt
_LATEST_PROMPTS = 400

_OF_TURN = "(SELECT project_id FROM main.user_prompts WHERE id = {row}.turn_id)"
_OF_FACT = "(SELECT project_id FROM main.facts WHERE id = {row}.fact_id)"
_OWN = "{row}.project_id"
_INSERT, _UPDATE, _DELETE = "INSERT", "UPDATE", "DELETE"
_ALL = (_INSERT, _UPDATE, _DELETE)
_OF_PROMPTS = (
    "project_id, session_id, prompt_number, prompt_text, private, notice, parent_turn, wrong,"
    " pinned, changed_by, created_at_epoch"
)
_OF_SESSIONS = (
    "project_id, content_session_id, memory_session_id, title, title_source, started_at_epoch"
)
# By table, where the project of a row is, and on which changes.
_WATCHED: dict[str, tuple[str, tuple[str, ...]]] = {
    "observations": (_OWN, _ALL),
    "session_summaries": (_OWN, _ALL),
    "facts": (_OWN, _ALL),
    "fact_sources": (_OF_FACT, _ALL),
    "outside_words": (_OF_TURN, _ALL),
    "team_recent": (_OWN, _ALL),
    "team_recent_facts": (_OWN, _ALL),
    "projects": ("NULL", (_UPDATE, _DELETE)),
    "user_prompts": (_OWN, (_INSERT, f"{_UPDATE} OF {_OF_PROMPTS}", _DELETE)),
    "sdk_sessions": (_OWN, (f"{_UPDATE} OF {_OF_SESSIONS}", _DELETE)),
}
_CONDITIONS = {("user_prompts", _INSERT): " WHEN new.pinned <> 0"}


def pinned(connection: sqlite3.Connection, project_id: int) -> list[JsonRow]:
    """Pinned observations, summaries and prompts as lines, the latest first.

    For the order of a union SQLite would walk through all rows by time; few are pinned."""
    rows = connection.execute(
        "SELECT '#' || m.id AS id, coalesce(m.title, m.narrative) AS text, 0 AS prompt,"
        " m.created_at, m.created_at_epoch, m.changed_by FROM observations m"
        " INDEXED BY pinned_observations WHERE m.project_id = ?1"
        f" AND m.pinned <> 0 AND {_NOT_WRONG}"
        " UNION ALL SELECT 'S' || m.id, coalesce(m.completed, m.learned, m.request), 0,"
        " m.created_at, m.created_at_epoch, m.changed_by FROM session_summaries m"
        " INDEXED BY pinned_session_summaries WHERE m.project_id = ?1"
        f" AND m.pinned <> 0 AND {_NOT_WRONG}"
        " UNION ALL SELECT 'P' || m.id, m.prompt_text, 1,"
        " m.created_at, m.created_at_epoch, m.changed_by"
        " FROM user_prompts m INDEXED BY pinned_user_prompts WHERE m.project_id = ?1"
        " AND m.pinned <> 0 AND m.wrong = 0"
        " AND m.private = 0 AND m.prompt_text IS NOT NULL ORDER BY 5 DESC, 1",
        (project_id,),
    )
    return [as_json_row(row) for row in rows]


def recent(
    connection: sqlite3.Connection,
    noun: str,
    project_id: int,
    limit: int,
    without_session: str | None = None,
) -> list[JsonRow]:
    """The newest rows of a project that are not wrong, optionally without those of one session."""
    rows = connection.execute(
        f"{SELECTS[noun]} WHERE m.project_id = ? AND s.content_session_id IS NOT ?"
        f" AND {_NOT_WRONG} AND m.observer <> 'client-file'"  # the client loads it itself
        " ORDER BY m.created_at_epoch DESC, m.id DESC LIMIT ?",
        (project_id, without_session, limit),
    )
    return [as_json_row(row) for row in rows]


def observations_of_sessions(
    connection: sqlite3.Connection, content_session_ids: Sequence[str], limit: int = 400
) -> list[JsonRow]:
    """The latest of them that are not wrong, oldest first."""
    rows = connection.execute(
        f"{OBSERVATIONS} WHERE s.content_session_id IN (SELECT value FROM json_each(?))"
        f" AND {_NOT_WRONG}"
        " ORDER BY m.created_at_epoch DESC, m.id DESC LIMIT ?",
        (json.dumps(list(content_session_ids)), limit),
    )
    return [as_json_row(row) for row in rows][::-1]


def recent_sessions(
    connection: sqlite3.Connection,
    project_id: int,
    limit: int,
    without_session: str | None = None,
) -> list[JsonRow]:
    """By their newest memory, so that a session without any changes nothing."""
    rows = connection.execute(
        f"{SESSIONS} JOIN (SELECT memory_session_id, max(created_at_epoch) AS at FROM"
        " (SELECT memory_session_id, created_at_epoch FROM session_summaries WHERE project_id = ?"
        "  ORDER BY created_at_epoch DESC, id DESC LIMIT 200) GROUP BY memory_session_id) newest"
        " ON newest.memory_session_id = m.memory_session_id"
        " WHERE m.content_session_id IS NOT ? ORDER BY newest.at DESC, m.id DESC LIMIT ?",
        (project_id, without_session, limit),
    )
    return [as_json_row(row) for row in rows]


@dataclass(frozen=True, slots=True)
class ShortPrompt:
    session: int
    text: str


def short_prompts(
    connection: sqlite3.Connection, project_id: int, without_session: str | None
) -> list[ShortPrompt]:
    """Those that continue a session: what a user asks for again and again is among them. Of turns
    with a memory, the latest first."""
    rows = connection.execute(
        "SELECT t.session_id, t.prompt_text FROM user_prompts t"
        " JOIN sdk_sessions s ON s.id = t.session_id JOIN session_summaries m ON m.turn_id = t.id"
        " WHERE t.project_id = ? AND s.content_session_id IS NOT ? AND t.private = 0"
        " AND t.notice = 0 AND t.wrong = 0 AND m.wrong = 0 AND t.prompt_number > 1"
        " AND length(t.prompt_text) BETWEEN ? AND ?"
        " ORDER BY t.created_at_epoch DESC, t.id DESC LIMIT ?",
        (project_id, without_session, _SHORTEST, _LONGEST, _LATEST_PROMPTS),
    )
    return [ShortPrompt(session, text) for session, text in rows]


@dataclass(frozen=True, slots=True)
class StatingTurn:
    """The turn in which the user stated a fact last."""

    session: str
    turn_id: int
    files: tuple[str, ...]


def turns_of_rules(connection: sqlite3.Connection, project_id: int) -> dict[int, StatingTurn]:
    """By the id of the rule: which turns stated the rules of a project, and which files they
    edited."""
    rows = connection.execute(
        "SELECT f.id, s.content_session_id, t.id, coalesce(m.files_edited, '[]') FROM facts f"
        " JOIN fact_sources x ON x.fact_id = f.id JOIN user_prompts t ON t.id = x.turn_id"
        " JOIN sdk_sessions s ON s.id = t.session_id"
        " LEFT JOIN session_summaries m ON m.turn_id = t.id"
        " WHERE f.project_id = ? AND f.kind = 'rule' ORDER BY x.seen_at_epoch, t.id",
        (project_id,),
    )
    return {
        fact: StatingTurn(session, turn, tuple(json.loads(files)))
        for fact, session, turn, files in rows
    }


class MemoryVersion(NamedTuple):
    of_project: int
    of_all: int  # changes whose project is unknown
    of_other_processes: int


class MemoryVersions:
    """Tells whether the memories of a project have changed, so that what was made of them can be
    used again. Used by the thread that writes."""

    def __init__(self) -> None:
        self._versions: Counter[int] = Counter()
        self._of_all = 0
        self._changed: set[int | None] = set()  # by the transaction

    def watch(self, connection: sqlite3.Connection) -> None:
        connection.create_function("memory_changed", 1, self._changed.add)
        for table, (project, changes) in _WATCHED.items():
            for index, change in enumerate(changes):
                aliases = {_INSERT: ("new",), _DELETE: ("old",)}.get(change, ("old", "new"))
                calls = "".join(
                    f" SELECT memory_changed({project.format(row=alias)});" for alias in aliases
                )
                connection.execute(
                    f"CREATE TEMP TRIGGER watch_{table}_{index} AFTER {change} ON main.{table}"
                    f"{_CONDITIONS.get((table, change), '')} BEGIN{calls} END"
                )

    def commit(self) -> None:
        """After the commit: until then others read the rows as they were."""
        self._of_all += None in self._changed
        self._versions.update(project for project in self._changed if project is not None)
        self._changed.clear()

    def roll_back(self) -> None:
        self._changed.clear()

    def current(self, connection: sqlite3.Connection, project_id: int) -> MemoryVersion:
        (outside,) = connection.execute("PRAGMA data_version").fetchone()
        return MemoryVersion(self._versions[project_id], self._of_all, outside)

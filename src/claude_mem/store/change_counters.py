"""Whether the memories of a project have changed, so that a context made of them can be used again.

Triggers of the write connection note the projects whose rows change, in the tables that a context
is made of. A new session or prompt changes nothing until it has a memory or is pinned. What other
processes commit is not seen by triggers; SQLite counts it (`PRAGMA data_version`).
"""

import sqlite3
from collections import Counter
from typing import NamedTuple

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


class ChangeCounts(NamedTuple):
    of_project: int
    of_all: int  # changes whose project is unknown
    of_other_processes: int


class ChangeCounters:
    """Tells whether the memories of a project have changed, so that what was made of them can be
    used again. Used by the thread that writes."""

    def __init__(self) -> None:
        self._of_projects: Counter[int] = Counter()
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
        """Counts the changes after the commit: until then others read the rows as they were."""
        self._of_all += None in self._changed
        self._of_projects.update(project for project in self._changed if project is not None)
        self._changed.clear()

    def roll_back(self) -> None:
        self._changed.clear()

    def current(self, connection: sqlite3.Connection, project_id: int) -> ChangeCounts:
        (outside,) = connection.execute("PRAGMA data_version").fetchone()
        return ChangeCounts(self._of_projects[project_id], self._of_all, outside)

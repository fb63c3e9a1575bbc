"""Traps of a file that earlier sessions noted: those of a model, saved ones, and drafts that the
user pinned or edited. A draft alone cannot tell a trap from a problem that was fixed."""

import sqlite3
from dataclasses import dataclass

MAX_GOTCHAS = 20


@dataclass(frozen=True, slots=True)
class Gotcha:
    id: int
    turn_id: int
    title: str
    details: str
    created_at_epoch: int


def gotchas_of_file(connection: sqlite3.Connection, project_id: int, path: str) -> list[Gotcha]:
    """`path` is relative to the project. The latest first."""
    rows = connection.execute(
        "SELECT m.id, m.turn_id, m.title, coalesce(m.narrative, '') AS details, m.created_at_epoch"
        " FROM observations m WHERE m.project_id = :project AND m.wrong = 0 AND m.title <> ''"
        " AND (m.origin <> 'outside' OR (m.pinned AND m.changed_by = 'person'))"
        " AND ((m.observer IN ('person', 'agent')"
        "       AND instr(m.title || ' ' || coalesce(m.narrative, ''), :name) > 0)"
        "   OR (m.concepts LIKE '%\"gotcha\"%' AND (m.observer <> 'local' OR m.pinned OR m.edited)"
        "       AND EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(m.files_modified)"
        "                   THEN m.files_modified END) WHERE value = :path"
        "                   UNION ALL SELECT 1 FROM json_each(CASE WHEN"
        "                   json_valid(m.files_read) THEN m.files_read END) WHERE value = :path)))"
        " ORDER BY m.created_at_epoch DESC, m.id DESC LIMIT :most",
        {"project": project_id, "path": path, "name": path.rpartition("/")[2], "most": MAX_GOTCHAS},
    )
    return [Gotcha(row[0], row[1], row[2], row[3], row[4]) for row in rows]

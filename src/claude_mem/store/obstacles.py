"""Obstacles that came back: faults without a command, by the number of sessions that met them."""

import sqlite3
from collections import defaultdict
from dataclasses import dataclass

REMEDY_SEPARATOR = " Then: "  # between the sentence of a note and what was done about it


@dataclass(frozen=True, slots=True)
class Obstacle:
    name: str  # of the file or folder that was blamed
    notes: tuple[
        str, ...
    ]  # a sentence, and `REMEDY_SEPARATOR` a command, of each session; latest first
    last_seen_ms: int
    sessions_since: int  # that have a memory, but not of it


def recurring(
    connection: sqlite3.Connection, project_id: int, min_sessions: int, without_session: str | None
) -> list[Obstacle]:
    """Lists recurring obstacles, first those of the most sessions."""
    rows = connection.execute(
        "SELECT f.value, x.note, max(x.seen_at_epoch), s.started_at_epoch FROM facts f"
        " JOIN fact_sources x ON x.fact_id = f.id JOIN user_prompts t ON t.id = x.turn_id"
        " JOIN sdk_sessions s ON s.id = t.session_id"
        " WHERE f.project_id = ? AND f.kind = 'fault' AND f.subject = ''"
        " AND f.status IN ('candidate', 'holds') AND t.outside = 0"
        " AND s.content_session_id IS NOT ?"
        " GROUP BY f.id, s.id ORDER BY max(x.seen_at_epoch) DESC, f.id",
        (project_id, without_session),
    )
    met: defaultdict[str, list[tuple[str, int, int]]] = defaultdict(list)
    for name, note, seen_ms, began_ms in rows:
        met[name].append((note, seen_ms, began_ms))
    often = [(name, seen) for name, seen in met.items() if len(seen) >= min_sessions]
    return [
        Obstacle(
            name,
            tuple(note for note, _, _ in seen),
            seen[0][1],
            _sessions_after(connection, project_id, seen[0][2], without_session),
        )
        for name, seen in sorted(often, key=lambda item: (-len(item[1]), item[0]))
    ]


def _sessions_after(
    connection: sqlite3.Connection, project_id: int, began_ms: int, without_session: str | None
) -> int:
    row = connection.execute(
        "SELECT count(*) FROM sdk_sessions s WHERE project_id = ? AND started_at_epoch > ?"
        " AND content_session_id IS NOT ? AND EXISTS (SELECT 1 FROM user_prompts t"
        "  JOIN session_summaries m ON m.turn_id = t.id WHERE t.session_id = s.id"
        "  AND t.outside = 0)",
        (project_id, began_ms, without_session),
    ).fetchone()
    return int(row[0])

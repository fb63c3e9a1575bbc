"""Memories and sessions as readers get them: the SELECTs, a row as JSON, and the rows that the
context of a new session is built from."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from claude_mem.language.prompt import parse_prompt
from claude_mem.store.outside_words import IS_OUTSIDE
from claude_mem.store.projects import DISPLAY_NAME_SQL
from claude_mem.store.stored_json import parse_stored
from claude_mem.types import Json
from claude_mem.word_runs import ALL_WORDS, has_run

JsonRow = dict[str, Json]
_LISTS = (
    "facts", "concepts", "files_read", "files_modified", "files_edited", "commands", "faults",
    "open_steps",
)  # fmt: skip
_TEXTS = (
    "title", "subtitle", "narrative", "facts", "request", "investigated", "learned", "completed",
    "next_steps", "notes", "faults", "open_steps", "files_read", "files_modified", "files_edited",
)  # fmt: skip
_FLAGS = ("edited", "pinned", "wrong")

# The memory that a memory continues, where its turn belongs to an earlier one.
_CONTINUES = (
    " (SELECT coalesce('#' || (SELECT o.id FROM observations o WHERE o.turn_id = t.parent_turn"
    " ORDER BY o.ordinal LIMIT 1), 'S' || (SELECT x.id FROM session_summaries x"
    " WHERE x.turn_id = t.parent_turn), 'P' || t.parent_turn) FROM user_prompts t"
    " WHERE t.id = m.turn_id AND t.parent_turn IS NOT NULL) AS continues"
)
# Replaced by `origin` in a record.
OUTSIDE = (
    f" CASE WHEN {IS_OUTSIDE.format('m.turn_id')} THEN '{ALL_WORDS}' ELSE"
    " (SELECT hashes FROM outside_words w WHERE w.turn_id = m.turn_id) END AS outside"
)
OBSERVATIONS = (
    f"SELECT m.id, m.memory_session_id, s.content_session_id, {DISPLAY_NAME_SQL} AS project,"
    " p.key AS project_key, m.type, m.title, m.subtitle, m.narrative, m.facts, m.concepts,"
    " m.files_read, m.files_modified, m.prompt_number, m.origin, m.observer, m.model,"
    " m.prompt_version,"
    f" m.edited, m.pinned, m.wrong, m.created_at, m.created_at_epoch,{OUTSIDE},{_CONTINUES}"
    " FROM observations m"
    " JOIN projects p ON p.id = m.project_id"
    " JOIN sdk_sessions s ON s.memory_session_id = m.memory_session_id"
)
_TITLES = (  # only what a list shows: the context must be built quickly
    "SELECT m.id, m.type, m.title, m.concepts, m.files_modified, m.created_at, m.observer,"
    " m.origin,"
    " m.pinned, s.content_session_id FROM observations m"
    " JOIN sdk_sessions s ON s.memory_session_id = m.memory_session_id"
)
_SUMMARIES = (
    f"SELECT m.id, m.memory_session_id, s.content_session_id, {DISPLAY_NAME_SQL} AS project,"
    " p.key AS project_key, m.request, m.investigated, m.learned, m.completed, m.next_steps,"
    " m.files_read, m.files_edited, m.notes, m.commands, m.faults, m.open_steps, m.prompt_number,"
    " 'agent' AS origin, m.observer, m.model, m.prompt_version, m.edited, m.pinned, m.wrong,"
    f" m.created_at, m.created_at_epoch,{OUTSIDE},{_CONTINUES}"
    " FROM session_summaries m JOIN projects p ON p.id = m.project_id"
    " JOIN sdk_sessions s ON s.memory_session_id = m.memory_session_id"
)
_PROMPTS = (
    "SELECT m.id, s.id AS session_db_id, s.content_session_id, s.memory_session_id,"
    f" {DISPLAY_NAME_SQL} AS project, p.key AS project_key, m.prompt_number, m.prompt_text,"
    " CASE WHEN m.outside THEN 'outside' ELSE 'person' END AS origin, m.pinned, m.wrong,"
    " m.created_at, m.created_at_epoch FROM user_prompts m JOIN projects p ON p.id = m.project_id"
    " JOIN sdk_sessions s ON s.id = m.session_id"
)
SESSIONS = (
    f"SELECT m.id, m.content_session_id, m.memory_session_id, {DISPLAY_NAME_SQL} AS project,"
    " p.key AS project_key, m.project_dir, m.title, m.title_source, m.subtitle, m.user_prompt,"
    " m.prompt_counter, m.status, m.dialect, m.started_at, m.started_at_epoch, m.updated_at,"
    " m.updated_at_epoch, m.completed_at, m.completed_at_epoch FROM sdk_sessions m"
    " JOIN projects p ON p.id = m.project_id"
)
SELECTS = {
    "observations": OBSERVATIONS,
    "titles": _TITLES,
    "summaries": _SUMMARIES,
    "prompts": f"{_PROMPTS} WHERE m.private = 0 AND m.prompt_text <> ''",
}


def as_json_row(row: sqlite3.Row) -> JsonRow:
    values: dict[str, Any] = dict(row)
    for name in _LISTS:
        if name in values:
            text = values[name]
            values[name] = [] if text == "[]" else parse_stored(text, [])
    for name in _FLAGS:
        if name in values:
            values[name] = bool(values[name])
    outside = values.pop("outside", None)
    if outside and values["origin"] == "agent" and _has_outside_words(values, outside):
        values["origin"] = "outside"
    return values


def _has_outside_words(memory: JsonRow, hashes: str) -> bool:
    values = (memory.get(name) for name in _TEXTS)
    texts = (
        text
        for value in values
        for text in (value if isinstance(value, list) else [value])
        if text is not None
    )
    outside = frozenset(hashes.split())
    return any(has_run(str(text), outside) for text in texts)


# What the context of a new session is built from: the latest sessions and memories of a project
# that are not wrong, those that are pinned, and what the user asked for.

_NOT_WRONG = "m.wrong = 0 AND m.turn_id NOT IN (SELECT turn_id FROM wrong_turns)"
# Not of somebody else's export: what comes from there is shown on demand, or once it is pinned.
_OF_USER = f"NOT {IS_OUTSIDE.format('m.turn_id')}"

_SHORTEST, _LONGEST = 12, 80  # characters of a short prompt
_LATEST_PROMPTS = 400


def pinned(connection: sqlite3.Connection, project_id: int) -> list[JsonRow]:
    """Reads pinned observations, summaries and prompts as lines, the latest first.

    For the order of a union SQLite would walk through all rows by time; few are pinned."""
    of_turn = f"{IS_OUTSIDE.format('m.turn_id')} AS is_outside"
    rows = connection.execute(
        "SELECT '#' || m.id AS id, coalesce(m.title, m.narrative) AS text, 0 AS prompt,"
        f" m.created_at, m.created_at_epoch, m.changed_by, {of_turn} FROM observations m"
        " INDEXED BY pinned_observations WHERE m.project_id = ?1"
        f" AND m.pinned <> 0 AND {_NOT_WRONG}"
        " UNION ALL SELECT 'S' || m.id, coalesce(m.completed, m.learned, m.request), 0,"
        f" m.created_at, m.created_at_epoch, m.changed_by, {of_turn} FROM session_summaries m"
        " INDEXED BY pinned_session_summaries WHERE m.project_id = ?1"
        f" AND m.pinned <> 0 AND {_NOT_WRONG}"
        " UNION ALL SELECT 'P' || m.id, m.prompt_text, 1,"
        " m.created_at, m.created_at_epoch, m.changed_by, m.outside"
        " FROM user_prompts m INDEXED BY pinned_user_prompts WHERE m.project_id = ?1"
        " AND m.pinned <> 0 AND m.wrong = 0"
        " AND m.private = 0 AND m.prompt_text <> '' ORDER BY 5 DESC, 1",
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
        f" AND {_NOT_WRONG} AND {_OF_USER}"
        " AND m.observer <> 'client-file'"  # the client loads it itself
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
        f" AND {_NOT_WRONG} AND {_OF_USER}"
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
    """Returns the sessions by their newest memory, so that one without any changes nothing."""
    rows = connection.execute(
        f"{SESSIONS} JOIN (SELECT memory_session_id, max(created_at_epoch) AS at FROM"
        " (SELECT memory_session_id, created_at_epoch FROM session_summaries m"
        f"  WHERE project_id = ? AND {_OF_USER}"
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
    """Returns prompts that continue a session: what a user asks for again and again is among them.
    They are of turns with a memory, the latest first."""
    rows = connection.execute(
        "SELECT t.session_id, t.prompt_text FROM user_prompts t"
        " JOIN sdk_sessions s ON s.id = t.session_id JOIN session_summaries m ON m.turn_id = t.id"
        " WHERE t.project_id = ? AND s.content_session_id IS NOT ? AND t.private = 0"
        " AND t.notice = 0 AND t.outside = 0 AND t.wrong = 0 AND m.wrong = 0"
        " AND t.prompt_number > 1"
        " AND length(t.prompt_text) BETWEEN ? AND ?"
        " ORDER BY t.created_at_epoch DESC, t.id DESC LIMIT ?",
        (project_id, without_session, _SHORTEST, _LONGEST, _LATEST_PROMPTS),
    )
    typed = ((session, parse_prompt(text).typed) for session, text in rows)
    return [ShortPrompt(session, text) for session, text in typed if len(text) >= _SHORTEST]


@dataclass(frozen=True, slots=True)
class RuleTurn:
    """The turn in which the user stated a fact last."""

    session: str
    turn_id: int
    files: tuple[str, ...]


def turns_of_rules(connection: sqlite3.Connection, project_id: int) -> dict[int, RuleTurn]:
    """Returns by the id of the rule which turns stated the rules of a project, and which files they
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
        fact: RuleTurn(session, turn, tuple(parse_stored(files, [])))
        for fact, session, turn, files in rows
    }

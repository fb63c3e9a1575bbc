"""Memories and sessions as readers get them: the columns, and a row as JSON."""

import json
import sqlite3
from typing import Any

from claude_mem.store.projects import SHOWN
from claude_mem.types import Json
from claude_mem.word_runs import has_run

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
OUTSIDE = " (SELECT hashes FROM outside_words w WHERE w.turn_id = m.turn_id) AS outside"
OBSERVATIONS = (
    f"SELECT m.id, m.memory_session_id, s.content_session_id, {SHOWN} AS project,"
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
    " m.pinned, s.content_session_id FROM observations m"
    " JOIN sdk_sessions s ON s.memory_session_id = m.memory_session_id"
)
_SUMMARIES = (
    f"SELECT m.id, m.memory_session_id, s.content_session_id, {SHOWN} AS project,"
    " p.key AS project_key, m.request, m.investigated, m.learned, m.completed, m.next_steps,"
    " m.files_read, m.files_edited, m.notes, m.commands, m.faults, m.open_steps, m.prompt_number,"
    " 'agent' AS origin, m.observer, m.model, m.prompt_version, m.edited, m.pinned, m.wrong,"
    f" m.created_at, m.created_at_epoch,{OUTSIDE},{_CONTINUES}"
    " FROM session_summaries m JOIN projects p ON p.id = m.project_id"
    " JOIN sdk_sessions s ON s.memory_session_id = m.memory_session_id"
)
_PROMPTS = (
    "SELECT m.id, s.id AS session_db_id, s.content_session_id, s.memory_session_id,"
    f" {SHOWN} AS project, p.key AS project_key, m.prompt_number, m.prompt_text,"
    " 'person' AS origin, m.pinned, m.wrong,"
    " m.created_at, m.created_at_epoch FROM user_prompts m JOIN projects p ON p.id = m.project_id"
    " JOIN sdk_sessions s ON s.id = m.session_id"
)
SESSIONS = (
    f"SELECT m.id, m.content_session_id, m.memory_session_id, {SHOWN} AS project,"
    " p.key AS project_key, m.project_dir, m.title, m.title_source, m.subtitle, m.user_prompt,"
    " m.prompt_counter, m.status, m.dialect, m.started_at, m.started_at_epoch, m.updated_at,"
    " m.updated_at_epoch, m.completed_at, m.completed_at_epoch FROM sdk_sessions m"
    " JOIN projects p ON p.id = m.project_id"
)
SELECTS = {
    "observations": OBSERVATIONS,
    "titles": _TITLES,
    "summaries": _SUMMARIES,
    "prompts": f"{_PROMPTS} WHERE m.private = 0 AND m.prompt_text IS NOT NULL",
}


def as_json_row(row: sqlite3.Row) -> JsonRow:
    values: dict[str, Any] = dict(row)
    for name in _LISTS:
        if name in values:
            text = values[name]
            values[name] = [] if text == "[]" else json.loads(text)
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

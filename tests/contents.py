"""The contents of a database without row ids, for comparison."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

Rows = list[tuple[Any, ...]]
Contents = dict[str, Rows]

_TURN = "s.content_session_id, t.prompt_id"
_OF_TURN = "JOIN user_prompts t ON t.id = {0}.turn_id JOIN sdk_sessions s ON s.id = t.session_id"
_OBSERVED = ("o.type, o.title, o.subtitle, o.narrative, o.facts, o.concepts, o.files_read,"
             " o.files_modified, o.observer, o.model, o.prompt_version")  # fmt: skip
_FACT_COLUMNS = ("commands", "faults", "open_steps")
_FACTS = ", ".join(
    f"(SELECT json_group_array(json_remove(value, '$.sources')) FROM json_each(m.{column}))"
    for column in _FACT_COLUMNS
)
_FACT_EVENTS = ", ".join(  # by their keys: ids differ between databases
    "(SELECT group_concat(e.event_key) FROM"
    f" json_each(m.{column}) fact, json_each(fact.value, '$.sources') source"
    " JOIN tool_events e ON e.id = source.value)"
    for column in _FACT_COLUMNS
)
_SUMMED = ("m.request, m.investigated, m.learned, m.completed, m.next_steps, m.notes,"
           f" m.files_read, m.files_edited, {_FACTS}, m.observer")  # fmt: skip

_ALL = {
    "projects": "SELECT key, name FROM projects",
    "directories": "SELECT d.directory, p.key, d.seen_at_epoch FROM project_dirs d"
    " JOIN projects p ON p.id = d.project_id",
    "sessions": "SELECT s.content_session_id, p.key, s.project_dir, s.dialect, s.title, s.subtitle,"
    " s.user_prompt, s.prompt_counter, s.status, s.started_at, s.started_at_epoch, s.updated_at,"
    " s.updated_at_epoch, s.completed_at, s.completed_at_epoch FROM sdk_sessions s"
    " JOIN projects p ON p.id = s.project_id",
    "prompts": f"SELECT {_TURN}, t.prompt_number, p.key, t.prompt_text, t.private, t.closed,"
    " t.retired, t.imported, t.created_at, t.created_at_epoch, t.updated_at_epoch"
    " FROM user_prompts t JOIN sdk_sessions s ON s.id = t.session_id"
    " JOIN projects p ON p.id = t.project_id",
    "observations": f"SELECT {_TURN}, o.ordinal, o.prompt_number, p.key, {_OBSERVED}, o.created_at,"
    f" o.created_at_epoch FROM observations o {_OF_TURN.format('o')}"
    " JOIN projects p ON p.id = o.project_id",
    "summaries": f"SELECT {_TURN}, m.prompt_number, p.key, {_SUMMED}, {_FACT_EVENTS}, m.created_at,"
    f" m.created_at_epoch FROM session_summaries m {_OF_TURN.format('m')}"
    " JOIN projects p ON p.id = m.project_id",
    "events": "SELECT e.event_key, s.content_session_id, t.prompt_id, e.event, e.tool_name,"
    " e.tool_use_id, e.agent_id, e.cwd, e.tool_input, e.tool_response, e.text, e.detail, e.words,"
    " e.bytes,"
    " e.created_at_epoch FROM tool_events e JOIN sdk_sessions s ON s.id = e.session_id"
    " LEFT JOIN user_prompts t ON t.id = e.turn_id",
    "observations' events": f"SELECT {_TURN}, o.ordinal, e.event_key FROM observation_events l"
    f" JOIN observations o ON o.id = l.observation_id {_OF_TURN.format('o')}"
    " JOIN tool_events e ON e.id = l.event_id",
    "summaries' events": f"SELECT {_TURN}, e.event_key FROM summary_events l"
    f" JOIN session_summaries m ON m.id = l.summary_id {_OF_TURN.format('m')}"
    " JOIN tool_events e ON e.id = l.event_id",
    "records": f"SELECT {_TURN}, r.parts, r.bytes, r.created_at_epoch FROM turn_records r"
    f" {_OF_TURN.format('r')}",
    "facts": "SELECT p.key, f.kind, f.subject, f.value, f.scope, f.origin, f.status, f.count,"
    " f.first_seen_epoch, f.last_seen_epoch, f.pinned, n.value FROM facts f"
    " JOIN projects p ON p.id = f.project_id LEFT JOIN facts n ON n.id = f.superseded_by",
    "facts' turns": f"SELECT {_TURN}, f.kind, f.subject, f.value, f.scope, l.observer, l.note,"
    " l.seen_at_epoch, (SELECT group_concat(e.event_key) FROM json_each(l.events) source"
    " JOIN tool_events e ON e.id = source.value) FROM fact_sources l"
    f" JOIN facts f ON f.id = l.fact_id {_OF_TURN.format('l')}",
    "waiting": "SELECT status FROM pending_messages",
}

# What does not depend on the source: hooks have other times, and no ids from an old client.
_MEMORY = {
    "sessions": "SELECT s.content_session_id, p.key, s.project_dir, s.title, s.subtitle,"
    " s.user_prompt, s.prompt_counter FROM sdk_sessions s JOIN projects p ON p.id = s.project_id",
    "prompts": "SELECT s.content_session_id, t.prompt_number, t.prompt_text, t.private"
    " FROM user_prompts t JOIN sdk_sessions s ON s.id = t.session_id",
    "observations": "SELECT s.content_session_id, t.prompt_number, o.ordinal, o.prompt_number,"
    f" {_OBSERVED} FROM observations o {_OF_TURN.format('o')}",
    "summaries": f"SELECT s.content_session_id, t.prompt_number, m.prompt_number, {_SUMMED}"
    f" FROM session_summaries m {_OF_TURN.format('m')}",
    # In any order: a replay through hooks happens at another time than the transcript tells.
    "records": "SELECT s.content_session_id, t.prompt_number, part.value"
    f" FROM turn_records r, json_each(r.parts) part {_OF_TURN.format('r')}",
    "facts": "SELECT p.key, f.kind, f.subject, f.value, f.scope, f.origin, f.status, f.count"
    " FROM facts f JOIN projects p ON p.id = f.project_id",
    "waiting": "SELECT status FROM pending_messages",
}


def contents_of(database: Path) -> Contents:
    """Every row that is not derived."""
    return _read(database, _ALL)


def memory_in(database: Path) -> Contents:
    """Returns the memory without what depends on the source of a session."""
    return _read(database, _MEMORY)


def _read(database: Path, queries: dict[str, str]) -> Contents:
    with closing(sqlite3.connect(database, timeout=10)) as connection:
        return {
            noun: sorted((tuple(row) for row in connection.execute(query)), key=repr)
            for noun, query in queries.items()
        }

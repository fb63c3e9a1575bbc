"""Observations and summaries: saved per turn, replaced in place, linked to their events; and the
typed values of a summary as JSON."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

from claude_mem.hook.kill_points import reach
from claude_mem.store import editing, facts, outside_words
from claude_mem.store.clock import iso
from claude_mem.store.insert_row import insert_row
from claude_mem.store.queue import JOBS, REFINEMENTS
from claude_mem.store.sessions import register_memory_session, set_titles
from claude_mem.store.stored_json import parse_stored
from claude_mem.store.turn_records import save_record
from claude_mem.types import (
    COMMAND_OUTCOMES,
    COMMAND_PURPOSES,
    CommandRun,
    Distillate,
    EnvironmentFault,
    Job,
    Json,
    Observation,
    OpenStep,
    ProposedFact,
    RecordPart,
    Summary,
    Turn,
)

CLIENT_FILE = "client-file"  # the observer of a memory that is a file of the client
RECENT_MEMORIES = 10  # of a session that an observer gets with its next turn


@dataclass(frozen=True, slots=True)
class Origin:
    """The turn that a memory is about, who wrote it, and when."""

    memory_session_id: str
    project_id: int
    turn_id: int
    prompt_number: int
    observer: str
    created_ms: int
    model: str | None = None
    prompt_version: str | None = None


def save_distillate(
    connection: sqlite3.Connection,
    job: Job,
    turn: Turn,
    distillate: Distillate,
    now: int,
    *,
    record: tuple[RecordPart, ...] = (),
    is_draft: bool = False,
) -> bool:
    """Saves a turn's memories and its record, queues the refinement of a draft, and acknowledges
    the job; False: the lease is lost."""
    if not JOBS.is_leased(connection, job):
        return False
    reach(b"store.before_save")
    if distillate.model is None and is_revised(connection, turn.id):
        _add_new_observations(connection, turn, distillate)
    else:
        save_memories(connection, turn.session_db_id, turn.id, turn.prompt_number, distillate)
    save_record(connection, turn.id, record, turn.started_ms)
    if is_draft:
        REFINEMENTS.enqueue(connection, turn.session_db_id, turn.id, now)
    reach(b"queue.before_acknowledge")
    JOBS.acknowledge(connection, job, now)
    reach(b"queue.after_acknowledge")
    return True


def save_memories(
    connection: sqlite3.Connection,
    session_db_id: int,
    turn_id: int,
    number: int,
    distillate: Distillate,
) -> None:
    """Replaces the memories of the turn, without those that someone edited, pinned or marked."""
    origin = _origin(connection, session_db_id, turn_id, number, distillate)
    if not editing.has_protected_summary(connection, turn_id):
        save_summary(connection, distillate.summary, origin)
    _save_observations(connection, distillate.observations, origin)
    facts.save_proposals(connection, turn_id, distillate)
    outside_words.save(connection, turn_id, distillate.outside, distillate.outside_of_record)
    _set_version(connection, turn_id, distillate)
    set_titles(connection, session_db_id, distillate.title, distillate.subtitle)


def _set_version(connection: sqlite3.Connection, turn_id: int, distillate: Distillate) -> None:
    if distillate.model is None:
        connection.execute(
            "UPDATE user_prompts SET observer_version = ? WHERE id = ?",
            (distillate.version, turn_id),
        )


def _origin(
    connection: sqlite3.Connection,
    session_db_id: int,
    turn_id: int,
    number: int,
    distillate: Distillate,
) -> Origin:
    memory_session_id = register_memory_session(connection, session_db_id)
    row = connection.execute(
        "SELECT project_id, updated_at_epoch FROM user_prompts WHERE id = ?", (turn_id,)
    ).fetchone()
    return Origin(
        memory_session_id=memory_session_id,
        project_id=row["project_id"],
        turn_id=turn_id,
        prompt_number=number,
        observer=distillate.observer,
        created_ms=row["updated_at_epoch"],
        model=distillate.model,
        prompt_version=distillate.prompt_version,
    )


# A model's memories are only replaced by a model's.


def is_revised(connection: sqlite3.Connection, turn_id: int) -> bool:
    row = connection.execute(
        "SELECT 1 FROM session_summaries WHERE turn_id = ? AND model IS NOT NULL", (turn_id,)
    ).fetchone()
    return row is not None


def load_distillate(connection: sqlite3.Connection, turn_id: int) -> Distillate | None:
    """The memories of a turn: a draft, or the revision of a model with later observations."""
    row = connection.execute(
        "SELECT * FROM session_summaries WHERE turn_id = ?", (turn_id,)
    ).fetchone()
    if row is None:
        return None
    observations = connection.execute(
        "SELECT * FROM observations WHERE turn_id = ? ORDER BY ordinal", (turn_id,)
    ).fetchall()
    summary = Summary(
        **{name: row[name] for name in _SUMMARY_TEXTS},
        files_read=_texts(row["files_read"]),
        files_edited=_texts(row["files_edited"]),
        commands=commands_from(parse_stored(row["commands"], [])),
        faults=faults_from(parse_stored(row["faults"], [])),
        open_steps=open_steps_from(parse_stored(row["open_steps"], [])),
        sources=_sources(connection, "summary", row["id"]),
    )
    return Distillate(
        summary,
        tuple(_observation(connection, observation) for observation in observations),
        observer=row["observer"],
        model=row["model"],
        prompt_version=row["prompt_version"],
    )


_SUMMARY_TEXTS = ("request", "investigated", "learned", "completed", "next_steps", "notes")


def _observation(connection: sqlite3.Connection, row: sqlite3.Row) -> Observation:
    return Observation(
        type=row["type"],
        title=row["title"],
        subtitle=row["subtitle"],
        narrative=row["narrative"],
        facts=_texts(row["facts"]),
        concepts=_texts(row["concepts"]),
        files_read=_texts(row["files_read"]),
        files_modified=_texts(row["files_modified"]),
        sources=_sources(connection, "observation", row["id"]),
    )


def _sources(connection: sqlite3.Connection, noun: str, memory_id: int) -> tuple[int, ...]:
    rows = connection.execute(
        f"SELECT event_id FROM {noun}_events WHERE {noun}_id = ? ORDER BY event_id", (memory_id,)
    )
    return tuple(row[0] for row in rows)


def _texts(stored: str) -> tuple[str, ...]:
    return tuple(parse_stored(stored, []))


def _add_new_observations(connection: sqlite3.Connection, turn: Turn, draft: Distillate) -> None:
    """Adds to a model's memories what the draft says about events that came after them.

    Facts are always the draft's, also if a model wrote the texts: it knows all events.
    """
    last, count = connection.execute(
        "SELECT (SELECT max(event_id) FROM (SELECT event_id FROM observation_events"
        " JOIN observations o ON o.id = observation_id WHERE o.turn_id = ?1"
        " AND o.model IS NOT NULL UNION ALL SELECT event_id FROM summary_events"
        " JOIN session_summaries s ON s.id = summary_id WHERE s.turn_id = ?1)),"
        " (SELECT count(*) FROM observations WHERE turn_id = ?1 AND model IS NOT NULL)",
        (turn.id,),
    ).fetchone()
    origin = _origin(connection, turn.session_db_id, turn.id, turn.prompt_number, draft)
    _save_observations(connection, _since(draft, last or 0), origin, count)
    connection.execute(
        "UPDATE session_summaries SET commands = :commands, faults = :faults,"
        " open_steps = :open_steps WHERE turn_id = :turn_id",
        {**typed_columns(draft.summary), "turn_id": turn.id},
    )
    facts.save_proposals(connection, turn.id, draft)
    _set_version(connection, turn.id, draft)


def _since(draft: Distillate, last: int) -> tuple[Observation, ...]:
    """Returns the observations of later events, and the summary if none of them includes that."""
    late = [o for o in draft.observations if max(o.sources, default=0) > last]
    summary = replace(draft.summary, request=None, commands=(), faults=())
    is_late = bool(summary.text) and max(summary.sources, default=0) > last
    if is_late and not any((summary.completed or summary.text) in o.text for o in late):
        title, _, more = summary.text.partition("\n")
        late.append(Observation("change", title, narrative=more or None, sources=summary.sources))
    return tuple(late)


def _save_observations(
    connection: sqlite3.Connection,
    observations: tuple[Observation, ...],
    origin: Origin,
    first: int = 0,
) -> None:
    """A protected observation stands for the one that would take its place."""
    protected = editing.protected_ordinals(connection, origin.turn_id)
    for ordinal, observation in enumerate(observations, first):
        if ordinal not in protected:
            save_observation(connection, observation, origin, ordinal)
    connection.execute(
        f"DELETE FROM observations WHERE turn_id = ? AND ordinal >= ? AND NOT {editing.PROTECTED}",
        (origin.turn_id, first + len(observations)),
    )


def save_summary(connection: sqlite3.Connection, summary: Summary, origin: Origin) -> int:
    """Replaces the summary of the turn."""
    values = _summary_values(summary) | _origin_values(origin)
    summary_id = _upsert(connection, "session_summaries", "turn_id", values)
    _link(connection, "summary", summary_id, summary.sources)
    return summary_id


def save_observation(
    connection: sqlite3.Connection, observation: Observation, origin: Origin, ordinal: int
) -> int:
    """Replaces the observation of the turn with this ordinal."""
    values = {"ordinal": ordinal, **_observation_values(observation), **_origin_values(origin)}
    observation_id = _upsert(connection, "observations", "turn_id, ordinal", values)
    _link(connection, "observation", observation_id, observation.sources)
    return observation_id


def _summary_values(summary: Summary) -> dict[str, object]:
    return {
        "request": summary.request,
        "investigated": summary.investigated,
        "learned": summary.learned,
        "completed": summary.completed,
        "next_steps": summary.next_steps,
        "files_read": _json(summary.files_read),
        "files_edited": _json(summary.files_edited),
        "notes": summary.notes,
        **typed_columns(summary),
    }


def _observation_values(observation: Observation) -> dict[str, object]:
    return {
        "type": observation.type,
        "origin": observation.origin,
        "title": observation.title,
        "subtitle": observation.subtitle,
        "narrative": observation.narrative,
        "facts": _json(observation.facts),
        "concepts": _json(observation.concepts),
        "files_read": _json(observation.files_read),
        "files_modified": _json(observation.files_modified),
    }


def _origin_values(origin: Origin) -> dict[str, object]:
    return {
        "memory_session_id": origin.memory_session_id,
        "project_id": origin.project_id,
        "turn_id": origin.turn_id,
        "prompt_number": origin.prompt_number,
        "observer": origin.observer,
        "model": origin.model,
        "prompt_version": origin.prompt_version,
        "created_at": iso(origin.created_ms),
        "created_at_epoch": origin.created_ms,
    }


def _upsert(connection: sqlite3.Connection, table: str, key: str, values: dict[str, object]) -> int:
    changes = ", ".join(f"{name} = excluded.{name}" for name in values)
    conflict = f"ON CONFLICT ({key}) DO UPDATE SET {changes} RETURNING id"
    return int(insert_row(connection, table, values, conflict).fetchone()[0])


def _link(
    connection: sqlite3.Connection, noun: str, memory_id: int, sources: tuple[int, ...]
) -> None:
    connection.execute(f"DELETE FROM {noun}_events WHERE {noun}_id = ?", (memory_id,))
    connection.executemany(
        f"INSERT OR IGNORE INTO {noun}_events ({noun}_id, event_id) VALUES (?, ?)",
        [(memory_id, event_id) for event_id in sources],
    )


def _json(values: tuple[str, ...]) -> str:
    return json.dumps(values, ensure_ascii=False)


def recent_memories(
    connection: sqlite3.Connection, memory_session_id: str | None, prompt_number: int
) -> tuple[str, ...]:
    """Texts of the session's latest memories before the turn, oldest first."""
    rows = connection.execute(
        "SELECT prompt_number AS n, 0 AS kind, ordinal AS o, json_array(title, subtitle, narrative)"
        " AS texts, facts, '[]' AS commands, '[]' AS faults FROM observations"
        " WHERE memory_session_id = ?1 AND prompt_number < ?2 AND wrong = 0"
        " UNION ALL SELECT prompt_number, 1, 0, json_array(request, investigated, learned,"
        " completed, next_steps, notes), '[]', commands, faults FROM session_summaries"
        " WHERE memory_session_id = ?1 AND prompt_number < ?2 AND wrong = 0"
        " ORDER BY n DESC, kind DESC, o DESC LIMIT ?3",
        (memory_session_id, prompt_number, RECENT_MEMORIES),
    ).fetchall()
    return tuple("\n".join(_texts_of(row)) for row in reversed(rows))


def _texts_of(row: sqlite3.Row) -> Iterator[str]:
    yield from filter(None, (*parse_stored(row["texts"], []), *parse_stored(row["facts"], [])))
    yield from (run.text for run in commands_from(parse_stored(row["commands"], [])))
    yield from (fault.text for fault in faults_from(parse_stored(row["faults"], [])))


# The typed values of a summary as JSON: in their columns, in records and in exports.
#
# Reading is strict: a value of another shape raises ValueError, so that an export is checked by
# the same code that later reads the column.

TypedValue = CommandRun | EnvironmentFault | OpenStep
T = TypeVar("T", bound=CommandRun | EnvironmentFault | OpenStep | ProposedFact)
Choice = TypeVar("Choice", bound=str)
Item = dict[str, Json]


def typed_columns(summary: Summary) -> dict[str, object]:
    return {
        "commands": column_json(summary.commands),
        "faults": column_json(summary.faults),
        "open_steps": column_json(summary.open_steps),
    }


def column_json(values: Iterable[TypedValue]) -> str:
    return json.dumps([asdict(value) for value in values], ensure_ascii=False)


def commands_from(value: Json) -> tuple[CommandRun, ...]:
    return _values_from(value, _command)


def faults_from(value: Json) -> tuple[EnvironmentFault, ...]:
    return _values_from(value, _fault)


def open_steps_from(value: Json) -> tuple[OpenStep, ...]:
    return _values_from(value, _open_step)


COLUMN_READERS: dict[str, Callable[[Json], tuple[TypedValue, ...]]] = {
    "commands": commands_from,
    "faults": faults_from,
    "open_steps": open_steps_from,
}


def column_texts(record: dict[str, Json], column: str) -> list[str]:
    """The values in a column of a record, as sentences to show; empty where it has none."""
    read = COLUMN_READERS.get(column)
    return [value.text for value in read(record[column])] if read and column in record else []


def with_sources(
    values: Iterable[T], translate: Callable[[tuple[int, ...]], tuple[int, ...]]
) -> tuple[T, ...]:
    """The same values with the ids that their source events have elsewhere."""
    return tuple(replace(value, sources=translate(value.sources)) for value in values)


def _values_from(value: Json, read: Callable[[Item], T]) -> tuple[T, ...]:
    if not isinstance(value, list):
        raise ValueError("not a list")
    return tuple(read(_object(item)) for item in value)


def _command(item: Item) -> CommandRun:
    return CommandRun(
        command=_text(item, "command"),
        purpose=_one_of(COMMAND_PURPOSES, _text(item, "purpose")),
        outcome=_one_of(COMMAND_OUTCOMES, _text(item, "outcome")),
        counts=_text(item, "counts"),
        sources=_source_ids(item),
        scope=_text(item, "scope") if "scope" in item else "",
    )


def _fault(item: Item) -> EnvironmentFault:
    return EnvironmentFault(
        command=_text(item, "command"),
        error=_text(item, "error"),
        alternative=_text(item, "alternative"),
        sources=_source_ids(item),
    )


def _open_step(item: Item) -> OpenStep:
    evidence = _text(item, "evidence") if "evidence" in item else ""
    return OpenStep(_text(item, "text"), _source_ids(item), evidence)


def _object(item: Json) -> Item:
    if not isinstance(item, dict):
        raise ValueError("not an object")
    return item


def _text(item: Item, name: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        raise ValueError(f"no {name}")
    return value


def _one_of(choices: tuple[Choice, ...], text: str) -> Choice:
    for choice in choices:
        if choice == text:
            return choice
    raise ValueError(f"must be one of {', '.join(choices)}")


def _source_ids(item: Item) -> tuple[int, ...]:
    value = item.get("sources")
    if not isinstance(value, list):
        raise ValueError("no sources")
    ids = tuple(source for source in value if type(source) is int)
    if len(ids) != len(value):
        raise ValueError("a source that is not an id")
    return ids

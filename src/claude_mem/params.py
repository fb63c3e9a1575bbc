"""Parameters of HTTP requests, MCP tools and commands into typed values, by shared names.

Values come as text, numbers or lists; a value that makes no sense is a `BadInput` that names its
parameter.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TypeVar, cast

from claude_mem import parameter_table
from claude_mem.errors import BadInput
from claude_mem.index.text.filters import Filters
from claude_mem.recall.fact_list import DEFAULT_LIMIT as DEFAULT_FACTS
from claude_mem.recall.fact_list import FactsQuery
from claude_mem.recall.memory_ids import MemoryId, parse_any_id, parse_memory_id
from claude_mem.recall.related import DEFAULT_LIMIT as DEFAULT_RELATED
from claude_mem.recall.related import RelatedQuery
from claude_mem.recall.search import DEFAULT_LIMIT, ORDERS, Order, Query
from claude_mem.recall.timeline import DEFAULT_DEPTH, TimelineQuery
from claude_mem.redaction import Redactor
from claude_mem.store import StoreReader
from claude_mem.store.editing import FIELDS, LISTS, Value
from claude_mem.text import spellings
from claude_mem.types import (
    FACT_KINDS,
    FACT_STATUSES,
    OBSERVATION_TYPES,
    SESSION_STATUSES,
    Json,
)
from claude_mem.worker.editing import EditRequest
from claude_mem.worker.forgetting import ForgetRequest
from claude_mem.worker.saving import MAX_TEXT, MAX_TITLE, NewMemory

Params = Mapping[str, Json]
Choice = TypeVar("Choice", bound=str)

SEARCH, RELATED, TIMELINE, BATCH, SAVE, FACTS, FORGET = (
    parameter_table.names_of(operation)
    for operation in (
        "search", "related", "timeline", "get_observations", "save_memory", "facts", "forget",
    )
)  # fmt: skip
MAX_LIMIT, MAX_OFFSET = parameter_table.MAX_LIMIT, parameter_table.MAX_OFFSET
MAX_DEPTH, MAX_IDS, MAX_FACTS = (
    parameter_table.MAX_DEPTH,
    parameter_table.MAX_IDS,
    parameter_table.MAX_FACTS,
)
MAX_LIST = 100

KINDS = {
    "observations": "observation", "observation": "observation",
    "summaries": "summary", "summary": "summary", "sessions": "summary", "session": "summary",
    "prompts": "prompt", "prompt": "prompt",
}  # fmt: skip


# What each operation takes


def search_query(
    store: StoreReader, params: Params, now: datetime, *, skip_open_turns: bool = False
) -> Query:
    check_names(params, SEARCH)
    return Query(
        text=text(params, "query") or "",
        filters=filters(store, params, now, skip_open_turns=skip_open_turns),
        limit=integer(params, "limit", DEFAULT_LIMIT, 1, MAX_LIMIT),
        offset=integer(params, "offset", 0, 0, MAX_OFFSET),
        order=_order(params),
    )


def timeline_query(
    store: StoreReader, params: Params, now: datetime, *, skip_open_turns: bool = False
) -> TimelineQuery:
    check_names(params, TIMELINE)
    anchor, query = text(params, "anchor"), text(params, "query")
    if bool(anchor) == bool(query):
        raise BadInput("set either anchor (an id: 12, S3 or P4) or query", "anchor")
    return TimelineQuery(
        anchor=_memory_id(anchor, "anchor", of_team=True) if anchor else None,
        text=query or "",
        before=integer(params, "depth_before", DEFAULT_DEPTH, 0, MAX_DEPTH),
        after=integer(params, "depth_after", DEFAULT_DEPTH, 0, MAX_DEPTH),
        filters=filters(store, params, now, skip_open_turns=skip_open_turns),
    )


def related_query(store: StoreReader, params: Params, now: datetime) -> RelatedQuery:
    check_names(params, RELATED)
    return RelatedQuery(
        anchor=_memory_id(text(params, "anchor") or "", "anchor"),
        filters=filters(store, params, now),
        limit=integer(params, "limit", DEFAULT_RELATED, 1, MAX_LIMIT),
    )


def flag(params: Params, name: str) -> bool:
    value = params.get(name)
    if value in (None, False, "false"):
        return False
    if value in (True, "true"):
        return True
    raise BadInput(f"{name} must be true or false", name)


def memory_ids(params: Params, *, of_team: bool = False) -> list[MemoryId]:
    """`ids` without duplicates; those of a team can only be read."""
    ids = params.get("ids")
    if not isinstance(ids, list) or len(ids) > MAX_IDS:
        raise BadInput(f"ids must be a list of at most {MAX_IDS} ids", "ids")
    return list(dict.fromkeys(_memory_id(value, "ids", of_team=of_team) for value in ids))


def batch(params: Params) -> tuple[list[MemoryId], str, bool]:
    """The ids of memories, the question of which their turns are to be read, or whether all of
    what was said is wanted."""
    check_names(params, BATCH)
    question, with_record = words(params), flag(params, "record")
    if question and with_record:
        raise BadInput("set only one of record and words", "words")
    return memory_ids(params, of_team=True), question, with_record


def words(params: Params) -> str:
    """The question of which a memory's turn is to be read; empty: the memory in full."""
    return (text(params, "words") or "").strip()


def new_memory(params: Params, redactor: Redactor) -> NewMemory:
    """Secrets are removed before lists are split: a secret may hold a comma."""
    check_names(params, SAVE)
    project = text(params, "project") or ""
    params = cast(Params, redactor.redact_json(dict(params)))
    kind = text(params, "type") or "discovery"
    if kind not in OBSERVATION_TYPES:
        raise BadInput(f"type must be one of {', '.join(OBSERVATION_TYPES)}", "type")
    return NewMemory(
        text=text(params, "text") or "",
        title=text(params, "title") or "",
        type=kind,
        concepts=names(params, "concepts"),
        files=names(params, "files"),
        project=project,
    )


def edit_request(memory_id: MemoryId, params: Params, redactor: Redactor) -> EditRequest:
    """An empty text removes a field."""
    if not FIELDS[memory_id.kind]:
        raise BadInput(
            f"a {memory_id.kind} stays as it was typed: pin it, mark it as wrong or forget it", "id"
        )
    check_names(params, FIELDS[memory_id.kind])
    params = cast(Params, redactor.redact_json(dict(params)))
    values: dict[str, Value] = {}
    for name in params:
        if name in LISTS:
            values[name] = _texts(params, name)
        else:
            limit = MAX_TITLE if name in ("title", "subtitle") else MAX_TEXT
            values[name] = _limited(params, name, limit) or None
    if values.get("type", "change") not in OBSERVATION_TYPES:
        raise BadInput(f"type must be one of {', '.join(OBSERVATION_TYPES)}", "type")
    return EditRequest(memory_id, values)


def facts_query(store: StoreReader, params: Params) -> FactsQuery:
    check_names(params, FACTS)
    return FactsQuery(
        project_id=_project_id(store, params),
        kinds=_choices(params, "kind", FACT_KINDS),
        statuses=_choices(params, "status", FACT_STATUSES),
        limit=integer(params, "limit", DEFAULT_FACTS, 1, MAX_FACTS),
        offset=integer(params, "offset", 0, 0, MAX_OFFSET),
    )


def fact_id(value: Json) -> MemoryId:
    """Reads the id of a fact, 5 or F5."""
    number = text({"id": value}, "id") or ""
    memory_id = parse_any_id(number if number[:1] in ("F", "f") else f"F{number}")
    if memory_id is None:
        raise BadInput(f"{number[:40]!r} is not the id of a fact: 5 or F5", "id")
    return memory_id


def forget_request(params: Params) -> ForgetRequest:
    check_names(params, FORGET)
    selectors = [name for name in ("ids", "session", "file", "query") if params.get(name)]
    if len(selectors) > 1 and set(selectors) != {"file", "query"}:
        raise BadInput(f"set only one of {', '.join(selectors)}", selectors[1])
    file = text(params, "file")
    if ("query" in selectors and file == "") or (file and not file.strip("/\\ ")):
        raise BadInput("file is empty", "file")
    return ForgetRequest(
        ids=tuple(memory_ids(params)) if "ids" in selectors else (),
        session=text(params, "session") or "",
        file=file or "",
        query=text(params, "query") or "",
        project=text(params, "project") or "",
        hard=flag(params, "hard"),
        confirm=text(params, "confirm") or "",
    )


def filters(
    store: StoreReader, params: Params, now: datetime, *, skip_open_turns: bool = False
) -> Filters:
    session = text(params, "session")
    kinds, types = _kinds_and_types(params)
    return Filters(
        project_id=_project_id(store, params),
        kinds=kinds,
        types=types,
        concepts=names(params, "concepts"),
        files=tuple(file for file in names(params, "files") if file.strip("/\\")),
        since=_timestamp(params, "dateStart", now),
        until=_timestamp(params, "dateEnd", now, ends_day=True),
        session_id=store.find_session(session) if session else None,
        statuses=_choices(params, "status", SESSION_STATUSES),
        skip_open_turns=skip_open_turns,
        with_wrong=flag(params, "wrong"),
    )


def _project_id(store: StoreReader, params: Params) -> int | None:
    """None for all projects."""
    project = text(params, "project")
    return (
        store.find_project(project) if project and project != parameter_table.ALL_PROJECTS else None
    )


# Single values


def check_names(params: Params, allowed: Collection[str]) -> None:
    unknown = sorted(set(params) - set(allowed))
    if unknown:
        expected = f", expected {', '.join(allowed)}" if allowed else ""
        raise BadInput(f"unknown parameter {unknown[0][:80]!r}{expected}", unknown[0][:80])


def text(params: Params, name: str) -> str | None:
    value = params.get(name)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise BadInput(f"{name} must be a string", name)


def names(params: Params, name: str) -> tuple[str, ...]:
    """A list, or a comma-separated string."""
    value = params.get(name)
    if isinstance(value, str):
        value = list(value.split(","))
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadInput(f"{name} must be a list of strings", name)
    if len(value) > MAX_LIST:
        raise BadInput(f"{name} has more than {MAX_LIST} entries", name)
    return tuple(dict.fromkeys(item.strip() for item in cast("list[str]", value) if item.strip()))


def integer(params: Params, name: str, default: int, smallest: int, largest: int) -> int:
    value = text(params, name)
    if value is None:
        return default
    digits = value.removeprefix("-")
    is_integer = digits.isascii() and digits.isdecimal() and len(digits) < 20
    if not is_integer or not smallest <= int(value) <= largest:
        raise BadInput(f"{name} must be a number from {smallest} to {largest}", name)
    return int(value)


def _limited(params: Params, name: str, limit: int) -> str:
    value = (text(params, name) or "").strip()
    if len(value) > limit:
        raise BadInput(f"{name} is over {limit} characters", name)
    return value


def _texts(params: Params, name: str) -> tuple[str, ...]:
    """A list of texts, which may hold commas; a string is one of them."""
    value = params.get(name)
    items: Json = [value] if isinstance(value, str) else value
    texts = names({name: items}, name)
    if any(len(item) > MAX_TEXT for item in texts):
        raise BadInput(f"{name} has an entry of over {MAX_TEXT} characters", name)
    return texts


def any_memory_id(value: Json, name: str = "id") -> MemoryId:
    """Reads the id of a memory or of a fact."""
    is_id = isinstance(value, int | str) and not isinstance(value, bool)
    memory_id = parse_any_id(str(value)) if is_id else None
    if memory_id is None or memory_id.kind == "team":
        raise BadInput(f"{str(value)[:40]!r} in {name} is not an id: 12, S3, P4 or F5", name)
    return memory_id


def _memory_id(value: Json, name: str, *, of_team: bool = False) -> MemoryId:
    is_id = isinstance(value, int | str) and not isinstance(value, bool)
    memory_id = parse_memory_id(str(value)) if is_id else None
    if memory_id is None and of_team and is_id:
        any_id = parse_any_id(str(value))
        memory_id = any_id if any_id is not None and any_id.kind == "team" else None
    if memory_id is None:
        raise BadInput(f"{str(value)[:40]!r} in {name} is not an id: 12, S3 or P4", name)
    return memory_id


def _kinds_and_types(params: Params) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`type` takes kinds of memories and types of observations; `obs_type` only the latter."""
    both = _choices(params, "type", (*OBSERVATION_TYPES, *KINDS))
    types = _choices(params, "obs_type", OBSERVATION_TYPES)
    kinds = dict.fromkeys(KINDS[name] for name in both if name in KINDS)
    if types:  # of the observations, only these
        kinds.pop("observation", None)
    return tuple(kinds), (*(name for name in both if name not in KINDS), *types)


def _choices(params: Params, name: str, allowed: Iterable[Choice]) -> tuple[Choice, ...]:
    values = names(params, name)
    if not values:
        return ()
    allowed = tuple(allowed)
    choices = spellings(allowed)
    wrong = sorted(set(values) - choices.keys())
    if wrong:
        raise BadInput(f"{name} must be one of {', '.join(allowed)}: {wrong[0][:40]!r}", name)
    return tuple(dict.fromkeys(choices[value] for value in values))


def _order(params: Params) -> Order:
    order = text(params, "orderBy") or "relevance"
    if order not in ORDERS:
        raise BadInput(f"orderBy must be one of {', '.join(ORDERS)}", "orderBy")
    return order


def _timestamp(params: Params, name: str, now: datetime, *, ends_day: bool = False) -> int | None:
    value = text(params, name)
    if not value:
        return None
    try:
        return parse_timestamp(value, now, ends_day=ends_day)
    except ValueError:
        raise BadInput(f"{name} must be a date like 2026-03-09: {value[:40]!r}", name) from None


def parse_timestamp(value: str, now: datetime, *, ends_day: bool = False) -> int:
    """Reads a day, a moment in ISO 8601, or Unix milliseconds. `ends_day`: a day is included.

    Raises ValueError.
    """
    digits = value.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and 9 <= len(digits) < 17:
        return int(value)
    moment = datetime.fromisoformat(value)
    try:
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=now.tzinfo)
        if ends_day and len(value) <= len("2026-03-09"):
            moment += timedelta(days=1)
        return int(moment.timestamp() * 1000)
    except OverflowError as error:
        raise ValueError(str(error)) from None

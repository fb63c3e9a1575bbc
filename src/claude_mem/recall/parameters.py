"""What people, programs and agents may say when they ask, by the names that they share.

Values come as text, numbers or lists; whatever makes no sense is a `BadInput` with its name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import cast

from claude_mem.errors import BadInput, NotFound
from claude_mem.index.text.matches import Filters
from claude_mem.index.vectors.semantic import SemanticIndex
from claude_mem.recall.related import ROWS as RELATED_ROWS
from claude_mem.recall.related import related
from claude_mem.recall.search import MARKS, ORDERS, ROWS, Order, SearchResult, search
from claude_mem.recall.timeline import DEPTH, Timeline, read_anchor, timeline, timeline_by_query
from claude_mem.store import StoreReader
from claude_mem.store.pages import Record
from claude_mem.types import OBSERVATION_TYPES, SESSION_STATUSES, Json

Params = Mapping[str, Json]

FILTERS = ("project", "type", "obs_type", "concepts", "files", "dateStart", "dateEnd", "session",
           "status")  # fmt: skip
SEARCH = ("query", *FILTERS, "limit", "offset", "orderBy")
RELATED = ("anchor", *FILTERS, "limit")
TIMELINE = ("anchor", "query", *FILTERS, "depth_before", "depth_after")
LARGEST_PAGE, LARGEST_OFFSET, LARGEST_DEPTH, LARGEST_BATCH = 200, 10_000, 200, 500
LARGEST_LIST = 100

_KINDS = {
    "observations": "observation", "observation": "observation",
    "summaries": "summary", "summary": "summary", "sessions": "summary", "session": "summary",
    "prompts": "prompt", "prompt": "prompt",
}  # fmt: skip
_NOUNS = {"observation": "observations", "summary": "summaries", "prompt": "prompts"}


def parse_search(
    store: StoreReader,
    given: Params,
    now: datetime,
    meaning: SemanticIndex | None = None,
    *,
    past: bool = False,
) -> SearchResult:
    """`search`, by its parameters. Who asks in the middle of a turn wants what is past: not the
    prompt that made them ask."""
    known(given, SEARCH)
    return search(
        store,
        text(given, "query") or "",
        now,
        replace(filters(store, given, now), past=past),
        number(given, "limit", ROWS, 1, LARGEST_PAGE),
        number(given, "offset", 0, 0, LARGEST_OFFSET),
        _order(given),
        meaning=meaning,
    )


def parse_timeline(
    store: StoreReader,
    given: Params,
    now: datetime,
    meaning: SemanticIndex | None = None,
    *,
    past: bool = False,
) -> Timeline | None:
    """`timeline`, by its parameters: an anchor, or a query that finds one; `past` as above."""
    known(given, TIMELINE)
    anchor, query = text(given, "anchor"), text(given, "query")
    if bool(anchor) == bool(query):
        raise BadInput("say where: anchor=<12, S3 or P4>, or query=<what it is about>", "anchor")
    before = number(given, "depth_before", DEPTH, 0, LARGEST_DEPTH)
    after = number(given, "depth_after", DEPTH, 0, LARGEST_DEPTH)
    allowed = replace(filters(store, given, now), past=past)
    if anchor:
        return timeline(store, anchor, before, after, allowed)
    return timeline_by_query(store, query or "", now, before, after, allowed, meaning)


def parse_related(
    store: StoreReader, given: Params, now: datetime, meaning: SemanticIndex | None
) -> SearchResult:
    """`related`, by its parameters."""
    known(given, RELATED)
    if meaning is None:
        raise BadInput("memories are not read for their meaning: CLAUDE_MEM_EMBEDDER is none")
    return related(
        store,
        text(given, "anchor") or "",
        meaning,
        filters(store, given, now),
        number(given, "limit", RELATED_ROWS, 1, LARGEST_PAGE),
    )


def parse_memories(store: StoreReader, given: Params) -> list[tuple[str, Record]]:
    """`get_observations`, by its parameters: what there is of the ids, in their order, in full."""
    known(given, ("ids",))
    wanted = memory_ids(given)
    found: dict[tuple[str, int], Record] = {}
    for kind, noun in _NOUNS.items():
        records = store.get_many(noun, [identity for k, identity in wanted if k == kind])
        found |= {(kind, cast(int, record["id"])): record for record in records}
    return [
        (f"{MARKS[kind]}{identity}", {**found[kind, identity], "kind": kind})
        for kind, identity in wanted
        if (kind, identity) in found
    ]


def memory_ids(given: Params) -> list[tuple[str, int]]:
    """Kind and number of each, once."""
    ids = given.get("ids")
    if not isinstance(ids, list) or len(ids) > LARGEST_BATCH:
        raise BadInput(f"ids is not a list of at most {LARGEST_BATCH} ids", "ids")
    return list(dict.fromkeys(_id(value) for value in ids))


def _id(value: Json) -> tuple[str, int]:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise BadInput(f"{str(value)[:40]!r} in ids is not an id", "ids")
    read = read_anchor(str(value))
    if read is None:
        raise BadInput(f"{str(value)[:40]!r} in ids is not an id: 12, S3 or P4", "ids")
    return read


def filters(store: StoreReader, given: Params, now: datetime) -> Filters:
    project = text(given, "project")
    kinds, types = _kinds_and_types(given)
    return Filters(
        project_id=store.find_project(project) if project else None,
        kinds=kinds,
        types=types,
        concepts=names(given, "concepts"),
        files=tuple(file for file in names(given, "files") if file.strip("/\\")),
        since=_moment(given, "dateStart", now, ends=False),
        until=_moment(given, "dateEnd", now, ends=True),
        session=session_id(store, given),
        statuses=_among(given, "status", SESSION_STATUSES),
    )


def _kinds_and_types(given: Params) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`type` takes kinds of memories and types of observations; `obs_type` the latter alone."""
    said = _among(given, "type", (*OBSERVATION_TYPES, *_KINDS))
    types = _among(given, "obs_type", OBSERVATION_TYPES)
    kinds = dict.fromkeys(_KINDS[name] for name in said if name in _KINDS)
    if types:  # of the observations, only these
        kinds.pop("observation", None)
    return tuple(kinds), (*(name for name in said if name not in _KINDS), *types)


def _among(given: Params, name: str, allowed: Iterable[str]) -> tuple[str, ...]:
    chosen = names(given, name)
    wrong = sorted(set(chosen) - set(allowed))
    if wrong:
        raise BadInput(f"{name} is none of {', '.join(allowed)}: {wrong[0][:40]!r}", name)
    return chosen


def session_id(store: StoreReader, given: Params) -> int | None:
    """By its number, or by the agent's own id."""
    name = text(given, "session")
    if not name:
        return None
    session = store.session_by_content_id(name)
    if session is None and name.isascii() and name.isdecimal() and len(name) < 19:
        session = store.session(int(name))
    if session is None:
        raise NotFound(f"there is no session {name[:80]!r}: `claude-mem sessions` lists them")
    return cast(int, session["id"])


def _moment(given: Params, name: str, now: datetime, *, ends: bool) -> int | None:
    """A day, a moment in ISO 8601, or Unix milliseconds. A day that ends something is included."""
    said = text(given, name)
    if not said:
        return None
    digits = said.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and 9 <= len(digits) < 17:
        return int(said)
    try:
        moment = datetime.fromisoformat(said)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=now.tzinfo)
        if ends and len(said) <= len("2026-03-09"):
            moment += timedelta(days=1)
        return int(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise BadInput(f"{name} is not a date like 2026-03-09: {said[:40]!r}", name) from None


def _order(given: Params) -> Order:
    order = text(given, "orderBy") or "relevance"
    if order not in ORDERS:
        raise BadInput(f"orderBy is none of {', '.join(ORDERS)}", "orderBy")
    return order


def known(given: Params, allowed: Iterable[str]) -> None:
    unknown = sorted(set(given) - set(allowed))
    if unknown:
        raise BadInput(f"there is no parameter {unknown[0][:80]!r}", unknown[0][:80])


def text(given: Params, name: str) -> str | None:
    value = given.get(name)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise BadInput(f"{name} is not a text", name)


def names(given: Params, name: str) -> tuple[str, ...]:
    """A list, or a text with commas."""
    value = given.get(name)
    if isinstance(value, str):
        value = list(value.split(","))
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadInput(f"{name} is not a list of texts", name)
    if len(value) > LARGEST_LIST:
        raise BadInput(f"{name} has more than {LARGEST_LIST} entries", name)
    return tuple(dict.fromkeys(item.strip() for item in cast("list[str]", value) if item.strip()))


def number(given: Params, name: str, default: int, smallest: int, largest: int) -> int:
    said = text(given, name)
    if said is None:
        return default
    digits = said.removeprefix("-")
    found = int(said) if digits.isascii() and digits.isdecimal() and len(digits) < 20 else None
    if found is None or not smallest <= found <= largest:
        raise BadInput(f"{name} is not a number from {smallest} to {largest}", name)
    return found

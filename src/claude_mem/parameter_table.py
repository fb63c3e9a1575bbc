"""The parameters of each operation on memories: one table for the HTTP API, the MCP tools, and the
documents of both.

`meaning` is for people, `for_model` for models: every session pays for every word of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from claude_mem.recall.fact_list import DEFAULT_LIMIT as DEFAULT_FACTS
from claude_mem.recall.related import DEFAULT_LIMIT as DEFAULT_RELATED
from claude_mem.recall.search import DEFAULT_LIMIT, ORDERS
from claude_mem.recall.timeline import DEFAULT_DEPTH
from claude_mem.store.editing import FIELDS, LISTS
from claude_mem.types import (
    FACT_KINDS,
    FACT_STATUSES,
    OBSERVATION_TYPES,
    SESSION_STATUSES,
    Json,
)

MAX_LIMIT, MAX_OFFSET, MAX_DEPTH, MAX_IDS = 200, 10_000, 200, 500
MAX_FACTS = 1_000
ALL_PROJECTS = "*"

Schema = dict[str, Json]
TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
NUMBER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
IDS: Schema = {"type": "array", "items": {"type": ["string", "integer"]}}


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    meaning: str
    schema: Schema = field(default_factory=lambda: TEXT)
    for_model: str = ""
    is_required: bool = False
    is_listed: bool = True  # in the schema of the tool; false: another name, or for the user only

    def for_tool(self) -> Schema:
        return {**self.schema, "description": self.for_model} if self.for_model else self.schema


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


_FILTERS = (
    Parameter(
        "project",
        f'a name or key (default for agents: the project of the session); `"{ALL_PROJECTS}"`:'
        " all projects",
        for_model=f'name; default: this one, "{ALL_PROJECTS}": all',
    ),
    Parameter(
        "type",
        f"{_codes(OBSERVATION_TYPES)}, or a kind: `observations`, `summaries`, `prompts`;"
        " comma-separated",
        for_model="bugfix, feature, refactor, change, discovery, decision, summaries or prompts;"
        " comma-separated",
    ),
    Parameter("obs_type", "only types of observations", is_listed=False),
    Parameter(
        "concepts",
        "any of these; comma-separated",
        for_model="gotcha, how-it-works, problem-solution, trade-off, …",
    ),
    Parameter(
        "files",
        "any of these paths, ends of paths, or folders; comma-separated",
        for_model="paths or folders, comma-separated",
    ),
    Parameter(
        "dateStart",
        "since this day, time in ISO 8601, or Unix milliseconds",
        for_model="YYYY-MM-DD",
    ),
    Parameter("dateEnd", "up to this time, or up to and including this day"),
    Parameter("session", "one session, by its number or the agent's session id"),
    Parameter("status", f"of the session: {_codes(SESSION_STATUSES)}; comma-separated"),
    Parameter("wrong", "true: also memories that are marked as wrong", FLAG),
)
_FILTERS_AS_IN_SEARCH = tuple(replace(filter_, for_model="") for filter_ in _FILTERS)
_DEPTH = f"0 to {MAX_DEPTH} (default {DEFAULT_DEPTH})"
_OF_KIND = {"observation": "an observation", "summary": "a summary", "fact": "a fact"}


def _edited_fields() -> tuple[Parameter, ...]:
    owners = {name: kind for kind, names in reversed(FIELDS.items()) for name in names}
    names = dict.fromkeys(name for names in FIELDS.values() for name in names)
    return tuple(
        Parameter(name, f"of {_OF_KIND[owners[name]]}: a list that replaces the present one", TEXTS)
        if name in LISTS
        else Parameter(name, f"of {_OF_KIND[owners[name]]}", is_listed=owners[name] != "fact")
        for name in names
    )


OPERATIONS: dict[str, tuple[Parameter, ...]] = {
    "search": (
        Parameter(
            "query",
            'words, `"phrases"`, `-without`, times; without it, the newest memories that match the'
            " filters",
            for_model='words; "exact phrase"; -without; "last week", "in May"',
        ),
        *_FILTERS,
        Parameter("orderBy", _codes(ORDERS), {"enum": [*ORDERS]}),
        Parameter(
            "limit",
            f"maximum rows, 1 to {MAX_LIMIT} (default {DEFAULT_LIMIT})",
            NUMBER,
            for_model=f"default {DEFAULT_LIMIT}",
        ),
        Parameter("offset", f"rows to skip, at most {MAX_OFFSET:,}", NUMBER),
    ),
    "timeline": (
        Parameter(
            "anchor",
            "an id: `12`, `S3`, `P4`, or `T6` of [a team](team.md)",
            for_model="an id: 12, S3 or P4",
        ),
        Parameter(
            "query",
            "instead of an anchor: the best match for this query",
            for_model="around its best match",
        ),
        Parameter(
            "depth_before",
            f"memories before it, {_DEPTH}",
            NUMBER,
            for_model=f"default {DEFAULT_DEPTH}",
        ),
        Parameter("depth_after", f"memories after it, {_DEPTH}", NUMBER),
        *_FILTERS_AS_IN_SEARCH,
    ),
    "related": (
        Parameter("anchor", "an id: `12`, `S3`, `P4`", is_required=True),
        *_FILTERS_AS_IN_SEARCH,
        Parameter("limit", f"maximum rows, 1 to {MAX_LIMIT} (default {DEFAULT_RELATED})", NUMBER),
    ),
    "get_observations": (
        Parameter(
            "ids",
            f'required; at most {MAX_IDS}: `12`, `"S3"`, `"P4"`, or `"T6"` of a team',
            IDS,
            for_model='like [12, "S3", "P4"]',
            is_required=True,
        ),
        Parameter(
            "words",
            "a question: instead of the full memories, the passages of their turns that answer it"
            " best, about 200 tokens a turn",
            for_model="the question to answer",
        ),
        Parameter("record", "true: with everything that was said in their turns", FLAG),
    ),
    "facts": (
        _FILTERS[0],
        Parameter(
            "kind",
            f"{_codes(FACT_KINDS)}; comma-separated",
            for_model=f"{', '.join(FACT_KINDS)}; comma-separated",
        ),
        Parameter(
            "status",
            f"{_codes(FACT_STATUSES)}; comma-separated",
            for_model=f"{', '.join(FACT_STATUSES)}; comma-separated",
        ),
        Parameter(
            "limit",
            f"maximum facts, 1 to {MAX_FACTS:,} (default {DEFAULT_FACTS})",
            NUMBER,
            for_model=f"default {DEFAULT_FACTS}",
        ),
        Parameter("offset", "facts to skip", NUMBER),
    ),
    "save_memory": (
        Parameter("text", "required; the memory, at most 10,000 characters", is_required=True),
        Parameter("title", "one line (default: the beginning of the text)"),
        Parameter(
            "type", "type of observation (default `discovery`)", for_model="default discovery"
        ),
        Parameter("concepts", "comma-separated"),
        Parameter("files", "files that it is about; comma-separated"),
        Parameter(
            "project", "name or key of an existing project (default: the project of the session)"
        ),
    ),
    "edit_memory": (
        Parameter(
            "id",
            "required; `12`, `S3`, or `F5` for a fact, of which only `wrong` can be set",
            for_model="12, S3 or F5 (only wrong)",
            is_required=True,
        ),
        *_edited_fields(),
        Parameter(
            "pinned",
            "true: pin it, so that contexts of its project show it; false: unpin it",
            FLAG,
        ),
        Parameter(
            "wrong",
            "true: leave it out of contexts, hints and searches; false: show it again",
            FLAG,
        ),
    ),
    "forget": (
        Parameter("ids", "these memories", IDS),
        Parameter("session", "a whole session"),
        Parameter("file", "all memories that name this file or folder"),
        Parameter("query", f"turns that match these words, at most {MAX_LIMIT}"),
        Parameter(
            "project",
            "a whole project; with `file` or `query`, only matches in that project",
        ),
        Parameter(
            "hard",
            "true: forget for good; the text is removed from every file in the data directory and"
            " there is no undo",
            FLAG,
            for_model="for good, without undo",
        ),
        Parameter(
            "confirm",
            "the token of a first call with the same arguments; without it, the call is a preview",
            for_model="token of the first call",
        ),
    ),
}


def names_of(operation: str) -> tuple[str, ...]:
    """All that it takes."""
    return tuple(parameter.name for parameter in OPERATIONS[operation])


def properties_of(operation: str) -> Schema:
    """Returns the properties of the JSON schema of the operation's tool."""
    listed = (parameter for parameter in OPERATIONS[operation] if parameter.is_listed)
    return {parameter.name: parameter.for_tool() for parameter in listed}


def required_of(operation: str) -> tuple[str, ...]:
    return tuple(parameter.name for parameter in OPERATIONS[operation] if parameter.is_required)

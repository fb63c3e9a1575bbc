"""openapi.json: the routes and what they take, for generators of clients.

Paths and methods come from the routes themselves, parameters of searches from the table of
operations. A test compares the rest with what the routes accept.
"""

import re
from collections.abc import Iterable, Sequence

from starlette.routing import Route

from claude_mem import __version__
from claude_mem.parameter_table import FLAG, NUMBER, OPERATIONS, TEXT, Parameter, Schema
from claude_mem.types import Json

_FORMAT = Parameter("format", "`json`, or `text` for agents", {"enum": ["json", "text"]})
_SEARCH = (*OPERATIONS["search"], _FORMAT)
_PROJECT, _DIRECTORY = Parameter("project", "a name or key"), Parameter("project_dir", "a path")
_BY = Parameter("by", "whose words it is: `person` (default) or `agent`")
_LIMIT, _OFFSET = Parameter("limit", "maximum rows", NUMBER), Parameter("offset", "", NUMBER)
_PAGE = (_LIMIT, _OFFSET, Parameter("before", "the last id of the previous page", NUMBER), _PROJECT)
_UNDO = Parameter("undo", "true: take it back", FLAG)
_ANY: Schema = {}

QUERY: dict[str, Sequence[Parameter]] = {
    "/api/search": _SEARCH,
    "/api/search/by-file": (Parameter("filePath", "a path or folder"), *_SEARCH),
    "/api/search/by-concept": (Parameter("concept", "a concept"), *_SEARCH),
    "/api/search/by-type": _SEARCH,
    "/api/recent": (_PROJECT, _LIMIT, _OFFSET, _FORMAT),
    "/api/related": (*OPERATIONS["related"], _FORMAT),
    "/api/timeline": (*(p for p in OPERATIONS["timeline"] if p.name != "query"), _FORMAT),
    "/api/timeline/by-query": (*(p for p in OPERATIONS["timeline"] if p.name != "anchor"), _FORMAT),
    "/api/facts": OPERATIONS["facts"],
    "/api/observation/{id}": (Parameter("record", "true: with what was said", FLAG),),
    "/api/context/inject": (_PROJECT, _DIRECTORY),
    "/api/hints": (_PROJECT, _LIMIT),
    "/stream": (Parameter("after", "the id of the last event that was received"),),
    **dict.fromkeys(
        ("/api/observations", "/api/summaries", "/api/prompts", "/api/sessions"), _PAGE
    ),
}

_EVENT = (
    _DIRECTORY,
    Parameter("project", "name or key, if there is no directory"),
    Parameter("prompt_id", "the prompt that the event belongs to (default: the latest)"),
    Parameter("prompt_number", "the same, by its number", NUMBER),
    Parameter("timestamp", "when it happened (default: now)", {"type": ["string", "number"]}),
)
_ACTIONS: dict[str, Sequence[Parameter]] = {
    "init": (Parameter("prompt", "the text of the prompt", is_required=True), *_EVENT),
    "observations": (
        Parameter("tool_name", "the name of the tool", is_required=True),
        Parameter("tool_input", "any JSON", _ANY),
        Parameter("tool_response", "any JSON", _ANY),
        Parameter("tool_use_id", "the agent's id of this tool use"),
        Parameter("agent_id", "the agent's id of the subagent"),
        *_EVENT,
    ),
    "summarize": (
        Parameter("last_assistant_message", "the last message of the turn"),
        Parameter("last_user_message", "its prompt, if it was not sent before"),
        *_EVENT,
    ),
    "complete": (Parameter("reason", "why the session ended"), *_EVENT),
}
_SESSION = Parameter("contentSessionId", "the agent's session id", is_required=True)
_FIELDS_OF_MEMORIES = tuple(
    p for p in OPERATIONS["edit_memory"] if p.name not in ("id", "pinned", "wrong")
)

BODY: dict[tuple[str, str], Sequence[Parameter]] = {
    **{
        ("POST", f"{prefix}/sessions/{action}"): (_SESSION, *fields)
        for prefix in ("", "/api")
        for action, fields in _ACTIONS.items()
    },
    **{
        ("POST", f"/sessions/{{id}}/{action}"): _ACTIONS[action]
        for action in ("init", "observations", "summarize")
    },
    ("POST", "/api/observations/batch"): (*OPERATIONS["get_observations"], _FORMAT),
    ("POST", "/api/memories"): (*OPERATIONS["save_memory"], _DIRECTORY, _BY),
    ("PATCH", "/api/memories/{id}"): _FIELDS_OF_MEMORIES,
    ("POST", "/api/memories/{id}/pin"): (_UNDO,),
    ("POST", "/api/memories/{id}/wrong"): (_UNDO,),
    ("POST", "/api/forget"): OPERATIONS["forget"],
    ("POST", "/api/forget/undo"): (Parameter("undo", "a token (default: the latest)"),),
    ("POST", "/api/projects/join"): (
        Parameter("directory", "gets the memory of the project that it claims"),
        Parameter("project", "a name or key; instead of directory"),
        Parameter("into", "a name or key"),
    ),
    ("POST", "/api/projects/merge"): (
        Parameter("project", "a name or key", is_required=True),
        Parameter("into", "a name or key", is_required=True),
    ),
    ("POST", "/api/projects/split"): (Parameter("directory", "a path", is_required=True),),
    ("POST", "/api/projects/move"): (
        Parameter("directory", "a path", is_required=True),
        Parameter("project", "a name or key", is_required=True),
    ),
    ("POST", "/api/pause"): (Parameter("for", "such as 30m, 2h or 1d (default: until resume)"),),
    ("POST", "/api/processing"): (
        Parameter("isProcessing", "whether an agent works", FLAG, is_required=True),
    ),
    ("POST", "/api/observer/refine"): (
        _PROJECT,
        Parameter("since_ms", "only turns since this time", NUMBER),
        Parameter("limit", "maximum turns", NUMBER),
        Parameter("cancel", "true: take the turns that wait out of the queue", FLAG),
    ),
    ("POST", "/api/settings"): (
        Parameter("name", "of the setting", is_required=True),
        Parameter("value", "null: the default", {"type": ["string", "null"]}),
        Parameter("agree", "to the terms of an observer or an embedding endpoint", FLAG),
    ),
}
_TYPES_OF_RESPONSES = {"/api/context/inject": "text/plain", "/stream": "text/event-stream"}
_OPEN = ("/health",)


def describe_api(routes: Iterable[Route]) -> dict[str, Json]:
    paths: dict[str, dict[str, Json]] = {}
    for route in routes:
        for method in sorted((route.methods or set()) - {"HEAD"}):
            paths.setdefault(route.path, {})[method.lower()] = _operation(method, route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "claude-mem",
            "version": __version__,
            "description": "Memory of coding agents, on this machine.",
        },
        "servers": [{"url": "http://127.0.0.1:37777"}],
        "security": [{"token": []}],
        "paths": dict(paths),
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["error"],
                    "properties": {"error": TEXT, "field": TEXT},
                }
            },
        },
    }


def _operation(method: str, route: Route) -> dict[str, Json]:
    path = route.path
    names = re.findall(r"\{(\w+)", path)
    parameters: list[Json] = [_parameter(Parameter(name, "", is_required=True), "path")
                              for name in names]  # fmt: skip
    if method == "GET":
        parameters += [_parameter(parameter, "query") for parameter in QUERY.get(path, ())]
    media = _TYPES_OF_RESPONSES.get(path, "application/json")
    operation: dict[str, Json] = {
        "operationId": re.sub(r"\W+", "_", f"{method.lower()}{path}").strip("_"),
        "summary": _summary(route),
        "parameters": parameters,
        "responses": {
            "200": {"description": "done", "content": {media: {}}},
            "default": {
                "description": "an error",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    if (fields := BODY.get((method, path))) is not None:
        operation["requestBody"] = {"content": {"application/json": {"schema": _object(fields)}}}
    if path in _OPEN:
        operation["security"] = [{}, {"token": []}]
    return operation


def _summary(route: Route) -> str:
    text = (route.endpoint.__doc__ or "").strip().splitlines()
    return text[0].rstrip(".") if text else route.path


def _parameter(parameter: Parameter, place: str) -> dict[str, Json]:
    return {
        "name": parameter.name,
        "in": place,
        "required": place == "path" or parameter.is_required,
        "description": parameter.meaning,
        "schema": parameter.schema,
    }


def _object(fields: Sequence[Parameter]) -> Schema:
    schema: Schema = {
        "type": "object",
        "properties": {
            field.name: {**field.schema, "description": field.meaning} for field in fields
        },
    }
    if required := [field.name for field in fields if field.is_required]:
        schema["required"] = [*required]
    return schema

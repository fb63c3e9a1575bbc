"""openapi.json says what the routes accept: nothing else, and all of it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claude_mem import params
from claude_mem.server.app import public_routes
from claude_mem.server.openapi import BODY, QUERY
from claude_mem.server.session_events import _ACTIONS
from tests.api import Api, open_api
from tests.payloads import SESSION
from tests.session_requests import begin

GETS = [route.path for route in public_routes if "GET" in (route.methods or ())]
# Answers that depend on more than their parameters: a session in the path, an endless response.
UNCHECKED = ("/health", "/sessions/{id}/status", "/stream", "/api/forgotten")
CHECKED_BODIES = [
    (method, path) for method, path in BODY if "sessions" not in path and "processing" not in path
]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with open_api(tmp_path / "data") as opened:
        yield opened


def described(api: Api) -> dict[str, Any]:
    document: dict[str, Any] = api.get_json("/openapi.json")
    return document


def test_it_has_every_route_and_no_other(api: Api) -> None:
    document = described(api)
    routes = {
        (method.lower(), route.path)
        for route in public_routes
        for method in (route.methods or set()) - {"HEAD"}
    }
    paths = document["paths"]
    assert {(method, path) for path in paths for method in paths[path]} == routes
    assert set(QUERY) <= set(paths)
    assert {(method.lower(), path) for method, path in BODY} <= routes


def test_it_is_an_openapi_document(api: Api) -> None:
    document = described(api)
    assert document["openapi"] == "3.1.0" and document["info"]["version"]
    operations = [o for path in document["paths"].values() for o in path.values()]
    assert len({o["operationId"] for o in operations}) == len(operations)
    for path, methods in document["paths"].items():
        for operation in methods.values():
            placed = [p["name"] for p in operation["parameters"] if p["in"] == "path"]
            assert placed == re.findall(r"\{(\w+)\}", path)
            assert operation["summary"] and operation["responses"]["default"]


def expected_names(message: str) -> set[str]:
    """What an error about an unknown parameter says that there is instead."""
    found = re.search(r", expected (.*)$", message)
    return set(found[1].split(", ")) if found else set()


@pytest.mark.parametrize("path", [path for path in GETS if path not in UNCHECKED])
def test_it_names_the_parameters_that_a_route_accepts(api: Api, path: str) -> None:
    needed = {"/api/search/by-file": {"filePath": "x"}, "/api/search/by-concept": {"concept": "x"},
              "/api/search/by-type": {"type": "bugfix"}}.get(path, {})  # fmt: skip
    answer = api.get(path.replace("{id}", "1"), no_such="1", **needed)
    assert answer.status_code == 400, answer.text
    own_names = {"format", "filePath", "concept"}  # of HTTP alone: taken off before the check
    names = {parameter.name for parameter in QUERY.get(path, ())}
    assert names - own_names == expected_names(answer.json()["error"])


@pytest.mark.parametrize(("method", "path"), CHECKED_BODIES)
def test_it_names_the_fields_that_a_route_accepts(api: Api, method: str, path: str) -> None:
    accepted: set[str] = set()
    for identity in ("1", "S1", "F1") if "{id}" in path else ("",):  # each has fields of its own
        answer = api.request(method, path.replace("{id}", identity), json={"no_such": "1"})
        assert answer.status_code == 400, answer.text
        accepted |= expected_names(answer.json()["error"])
    own_names = {"format", "project_dir", "by"}  # of HTTP alone: taken off before the check
    assert {field.name for field in BODY[method, path]} - own_names == accepted - own_names


@pytest.mark.parametrize("action", _ACTIONS)
def test_a_body_with_every_field_of_a_session_is_taken(api: Api, action: str) -> None:
    begin(api)
    values = {"prompt_number": 1, "timestamp": api.clock.ms, "contentSessionId": SESSION}
    fields = BODY["POST", f"/api/sessions/{action}"]
    body = {field.name: values.get(field.name, "x") for field in fields}
    answer = api.post_json(f"/api/sessions/{action}", **body)
    assert answer["contentSessionId"] == SESSION


def test_the_table_of_operations_is_what_searches_take() -> None:
    assert {p.name for p in QUERY["/api/search"]} == {*params.SEARCH, "format"}

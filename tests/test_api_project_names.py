"""Sessions that name their project instead of a directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api import Api, open_api
from tests.session_requests import COMPLETE, INIT

FIRST, SECOND = "/home/dev/harbor", "/home/other/harbor"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with open_api(tmp_path / "data") as opened:
        yield opened


def keys(api: Api) -> set[str]:
    return {project["key"] for project in api.get_json("/api/projects")["projects"]}


def test_a_session_joins_the_only_project_of_its_name(api: Api) -> None:
    api.add_turn("s", "Blink", "It blinks.", FIRST)
    answer = api.post_json(INIT, contentSessionId="named", prompt="Dim it", project="harbor")
    assert "projectChoices" not in answer
    assert keys(api) == {FIRST}
    assert len(api.get_json("/api/prompts", project="harbor")["items"]) == 2


def test_a_session_may_name_its_project_by_key(api: Api) -> None:
    api.add_turn("s", "Blink", "It blinks.", FIRST)
    api.add_turn("t", "Ring", "It rings.", SECOND)
    answer = api.post_json(INIT, contentSessionId="named", prompt="Dim it", project=SECOND)
    assert "projectChoices" not in answer
    assert keys(api) == {FIRST, SECOND}


def test_of_several_projects_none_is_chosen_and_the_response_lists_them(api: Api) -> None:
    api.add_turn("s", "Blink", "It blinks.", FIRST)
    api.add_turn("t", "Ring", "It rings.", SECOND)
    for session in ("a", "b"):
        answer = api.post_json(INIT, contentSessionId=session, prompt="Dim it", project="harbor")
        assert answer["status"] == "initialized"
        assert answer["projectChoices"] == [FIRST, SECOND]
    assert keys(api) == {FIRST, SECOND, "name:harbor"}


@pytest.mark.parametrize("path", ["/api/observations", "/api/search", "/api/context/inject"])
def test_a_project_by_name_does_not_hide_one_of_a_directory(api: Api, path: str) -> None:
    api.post_json(INIT, contentSessionId="named", prompt="Dim it", project="harbor")
    api.add_turn("s", "Blink", "It blinks.", FIRST)
    answer = api.get(path, project="harbor")
    assert answer.status_code == 400
    assert answer.json()["choices"] == [FIRST, "name:harbor"]
    for key in (FIRST, "name:harbor"):
        assert api.get(path, project=key).status_code == 200


def test_a_project_can_be_joined_to_another_later(api: Api) -> None:
    api.post_json(INIT, contentSessionId="named", prompt="Dim it", project="harbor")
    api.add_turn("s", "Blink", "It blinks.", FIRST)
    answer = api.post_json("/api/projects/join", project="name:harbor", into=FIRST)
    assert answer == {"joined": True, "project": "harbor", "key": FIRST, "sessions": 1}
    assert keys(api) == {FIRST}
    assert len(api.get_json("/api/prompts", project="harbor")["items"]) == 2


def test_projects_that_do_not_exist_cannot_be_joined(api: Api) -> None:
    assert api.post("/api/projects/join", project="name:none", into="none").status_code == 404
    assert api.post("/api/projects/join", project="name:none").status_code == 404


def test_the_context_of_an_unknown_project_is_empty(api: Api) -> None:
    api.add_turn("s", "Blink", "It blinks.", FIRST)
    names = ("unheard-of", "' OR 1=1 --", "%", "../harbor", "\0")
    for about in (*({"project": name} for name in names), {"project_dir": "/home/dev/unheard-of"}):
        answer = api.get("/api/context/inject", **about)
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["content-type"].startswith("text/plain")


def test_the_end_of_a_session_is_of_its_project_whatever_the_request_says(api: Api) -> None:
    api.add_turn("s", "Blink", "It blinks.", FIRST)
    api.post_json(COMPLETE, claudeSessionId="s", reason="exit")
    assert keys(api) == {FIRST}

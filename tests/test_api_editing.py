"""Editing, pinning and marking memories over HTTP, MCP and the command line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claude_mem.errors import BadInput
from claude_mem.mcp.tools import call_tool
from tests.api import Api, open_api
from tests.conftest import Home
from tests.payloads import PROJECT_DIR

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with open_api(tmp_path) as opened:
        opened.add_turn("s", "Why does the lantern flicker?", "A bent fuse.", edited="/h/light.py")
        opened.add_turn("s", "Never push to main.", "Understood.", edited="/h/other.py")
        yield opened


def patch(api: Api, memory_id: str, **fields: Any) -> dict[str, Any]:
    response = api.request("PATCH", f"/api/memories/{memory_id}", json=fields)
    assert response.status_code == 200, response.text
    memory: dict[str, Any] = response.json()["memory"]
    return memory


def found(api: Api, query: str, **params: Any) -> list[str]:
    return [row["id"] for row in api.get_json("/api/search", query=query, **params)["results"]]


def called(api: Api, **arguments: Any) -> str:
    return api.runner.run(call_tool(api.worker, "edit_memory", arguments, PROJECT_DIR))


def rule_id(api: Api) -> int:
    (rule,) = api.worker.store.facts(1, ["rule"])
    return rule.id


def test_an_edited_memory_is_found_by_its_new_text(api: Api) -> None:
    memory = patch(api, "1", title="The zeppelin needs gas", narrative="Seen twice", facts=["a, b"])
    assert (memory["title"], memory["facts"], memory["edited"]) == (
        "The zeppelin needs gas", ["a, b"], True,
    )  # fmt: skip
    assert found(api, "zeppelin") == ["1"]
    row = api.get_json("/api/search", query="zeppelin")["results"][0]
    assert row["marks"] == ["edited"]
    assert api.get_json("/api/memories/1") == {"memory": memory}


def test_private_text_and_secrets_do_not_reach_the_disk(api: Api) -> None:
    memory = patch(api, "S1", learned=f"Key {SECRET} <private>the cook's birthday</private> end")
    assert "[redacted:" in memory["learned"]
    content = api.bytes_on_disk()
    assert SECRET.encode() not in content and b"birthday" not in content


def test_a_wrong_turn_is_found_only_on_request(api: Api) -> None:
    assert found(api, "lantern flicker")[0] == "1"
    api.post_json("/api/memories/1/wrong")
    assert "1" not in found(api, "lantern flicker")
    assert found(api, "lantern flicker", wrong="true")[0] == "1"
    (row, *_) = api.get_json("/api/search", query="lantern flicker", wrong="true")["results"]
    assert row["marks"] == ["wrong"]
    assert "wrong" in api.get("/api/search", query="lantern", wrong="true", format="text").text
    assert "1" not in [row["id"] for row in api.get_json("/api/recent")["results"]]
    api.post_json("/api/memories/1/wrong", undo=True)
    assert found(api, "lantern flicker")[0] == "1"


def test_a_second_observation_that_is_wrong_leaves_its_turn(api: Api) -> None:
    store = api.worker.store
    store.write(lambda c: c.execute(
        "INSERT INTO observations (memory_session_id, project_id, turn_id, ordinal, prompt_number,"
        " type, title, facts, concepts, files_read, files_modified, observer, created_at,"
        " created_at_epoch) SELECT memory_session_id, project_id, turn_id, 7, prompt_number, type,"
        " 'The astrolabe is broken', '[]', '[]', '[]', '[]', observer, created_at,"
        " created_at_epoch FROM observations WHERE id = 1"
    )).result()  # fmt: skip
    assert found(api, "astrolabe") == ["1"]
    (second,) = api.column("SELECT id FROM observations WHERE title LIKE '%astrolabe%'")
    api.post_json(f"/api/memories/{second}/wrong")
    assert found(api, "astrolabe") == []
    assert found(api, "lantern flicker")[0] == "1"


@pytest.mark.parametrize(
    ("memory_id", "fields"),
    [
        ("1", {"titel": "x"}),
        ("1", {"type": "poem"}),
        ("1", {"title": 5.5}),
        ("1", {"title": "x" * 401}),
        ("1", {"facts": [1]}),
        ("S1", {"title": "x"}),
        ("P1", {"prompt_text": "x"}),
        ("X1", {"title": "x"}),
        ("1", {}),
    ],
)
def test_an_invalid_edit_is_refused(api: Api, memory_id: str, fields: dict[str, Any]) -> None:
    response = api.request("PATCH", f"/api/memories/{memory_id}", json=fields)
    assert response.status_code == 400, response.text
    assert response.json()["error"]


def test_what_does_not_exist_is_not_found(api: Api) -> None:
    for memory_id in ("99", "S99", "P99", "F99"):
        assert api.get(f"/api/memories/{memory_id}").status_code == 404
        assert api.post(f"/api/memories/{memory_id}/pin").status_code == 404


# MCP


def test_an_agent_edits_pins_and_marks(api: Api) -> None:
    assert called(api, id="1", title="By the agent", pinned=True) == "1: edited, pinned."
    assert called(api, id=1, pinned=False, wrong=True) == "1: unpinned, marked as wrong."
    assert called(api, id="1", wrong=False) == "1: no longer marked as wrong."
    memory = api.get_json("/api/memories/1")["memory"]
    assert (memory["title"], memory["pinned"], memory["wrong"]) == ("By the agent", False, False)


def test_an_agent_can_neither_change_a_rule_nor_what_the_user_changed(api: Api) -> None:
    patch(api, "1", title="By the user")
    for arguments in (
        {"id": f"F{rule_id(api)}", "value": "Always push to main."},
        {"id": f"F{rule_id(api)}", "wrong": True},
        {"id": "1", "title": "By the agent"},
        {"id": "1", "wrong": True},
        {"id": "P2", "pinned": True},
        {"id": "1"},
    ):
        with pytest.raises(BadInput):
            called(api, **arguments)
    assert api.get_json("/api/memories/1")["memory"]["title"] == "By the user"
    assert [fact.value for fact in api.worker.store.facts(1, ["rule"])] == ["Never push to main."]


# The command line


def test_the_commands_change_memories(home: Home) -> None:
    saved = home.command("remember", "The crane lifts five tons", "--project", "harbor", "--json")
    assert saved.returncode != 0  # there is no such project yet
    home.command("remember", "The crane lifts five tons")
    edited = home.command("edit", "1", "--title", "The crane lifts nine tons", "--fact", "a, b")
    assert edited.stdout == "Edited: #1\n", edited.stderr
    assert home.command("pin", "1").stdout == "Pinned: #1\n"
    assert home.command("wrong", "1").stdout == "Marked as wrong: #1\n"
    shown = home.command("show", "1").stdout
    assert "edited  pinned  wrong" in shown and "nine tons" in shown and "a, b" in shown
    assert "nine tons" not in home.command("search", "crane").stdout
    assert "nine tons" in home.command("search", "crane", "--wrong").stdout
    assert home.command("wrong", "1", "--undo").stdout == "No longer marked as wrong: #1\n"
    assert home.command("pin", "#1", "--undo").stdout == "Unpinned: #1\n"
    assert "nine tons" in home.command("search", "crane").stdout
    assert "such as claude-mem edit 1 --title TEXT" in home.command("edit", "1").stderr
    home.command("edit", "1", "--title", "Xanthocroid77")
    forgotten = home.command("forget", "1", "--hard", "--yes")
    assert forgotten.returncode == 0, forgotten.stderr
    assert not [path for path, data in home.files().items() if b"xanthocroid77" in data.lower()]

"""Facts of a project over HTTP, MCP and the command line, and the user's decisions about them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claude_mem.mcp.tools import call_tool
from tests.api import Api, open_api
from tests.conftest import Home
from tests.payloads import PROJECT_DIR, prompt, stop

RULE, DOUBTFUL = "Never push to main.", "Do not use emojis"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with open_api(tmp_path) as opened:
        opened.add_turn("s", f"Fix the lamp. {RULE}", "Done.", edited="/h/light.py")
        opened.add_turn("s", f"Paint the door. {DOUBTFUL}", "Done.", edited="/h/door.py")
        yield opened


def facts(api: Api, **params: Any) -> dict[str, dict[str, Any]]:
    return {fact["value"]: fact for fact in api.get_json("/api/facts", **params)["facts"]}


def called(api: Api, tool: str, **arguments: Any) -> str:
    return api.runner.run(call_tool(api.worker, tool, arguments, PROJECT_DIR))


def context(api: Api) -> str:
    return api.get("/api/context/inject", project="harbor").text


def test_a_fact_is_listed_with_all_that_is_known_of_it(api: Api) -> None:
    api.add_turn("t", f"Light it. {RULE}", "Done.", edited="/h/light.py")
    rule = facts(api, project="harbor", kind="rule", status="holds")[RULE]
    assert rule.pop("first_seen") < rule.pop("last_seen")
    assert rule.pop("first_seen_epoch") < rule.pop("last_seen_epoch")
    assert rule == {
        "id": rule["id"], "project": "harbor", "project_key": PROJECT_DIR, "kind": "rule",
        "subject": "", "value": RULE, "scope": "", "origin": "person", "status": "holds",
        "note": "", "count": 2, "superseded_by": None, "edited": False, "pinned": False,
        "wrong": False, "sources": rule["sources"],
    }  # fmt: skip
    assert len(rule["sources"]) == 2
    for source in rule["sources"]:
        assert api.get(f"/api/memories/{source}").status_code == 200


def test_pages_and_filters(api: Api) -> None:
    everything = api.get_json("/api/facts")
    assert not everything["hasMore"] and len(everything["facts"]) == 2
    first = api.get_json("/api/facts", limit=1)
    second = api.get_json("/api/facts", limit=1, offset=1)
    assert first["hasMore"] and not second["hasMore"]
    assert [*first["facts"], *second["facts"]] == everything["facts"]
    assert list(facts(api, status="candidate")) == [DOUBTFUL]
    assert facts(api, kind="command,fault") == {}
    assert list(facts(api, kind="rules", status="candidates")) == [DOUBTFUL]


@pytest.mark.parametrize(
    "params",
    [{"kind": "poem"}, {"status": "true"}, {"limit": 0}, {"limit": 1_001}, {"colour": "red"}],
)
def test_an_invalid_filter_is_refused(api: Api, params: dict[str, Any]) -> None:
    assert api.get("/api/facts", **params).status_code == 400


def test_a_replaced_fact_names_its_successor(api: Api) -> None:
    api.add_turn("s", "You may push to main again. Go on.", "Done.", edited="/h/light.py")
    rules = facts(api, kind="rule")
    assert rules[RULE]["status"] == "past"
    assert rules[RULE]["superseded_by"] == rules["You may push to main again."]["id"]
    assert next(iter(rules)) == DOUBTFUL  # what is past comes last


# Candidates


def test_a_doubtful_rule_is_given_only_after_the_user_confirmed_it(api: Api) -> None:
    assert f'"{DOUBTFUL}"' not in context(api)
    candidate = facts(api, status="candidate")[DOUBTFUL]["id"]
    fact = api.post_json(f"/api/facts/{candidate}/confirm")["fact"]
    assert (fact["status"], fact["origin"]) == ("holds", "person")
    assert f'"{DOUBTFUL}"' in context(api)


def test_a_rejected_rule_stays_rejected(api: Api) -> None:
    candidate = facts(api, status="candidate")[DOUBTFUL]["id"]
    assert api.post_json(f"/api/facts/F{candidate}/reject")["fact"]["wrong"] is True
    api.add_turn("t", f"Sweep the floor. {DOUBTFUL}", "Done.", edited="/h/floor.py")
    assert facts(api)[DOUBTFUL]["status"] == "wrong"
    assert api.post(f"/api/facts/{candidate}/confirm").status_code == 400
    assert f'"{DOUBTFUL}"' not in context(api)


def test_there_is_no_such_fact(api: Api) -> None:
    assert api.post("/api/facts/99/confirm").status_code == 404
    assert api.post("/api/facts/S1/confirm").status_code == 400
    assert api.post("/api/facts/1/confirm", why="x").status_code == 400


# Agents


def test_an_agent_lists_facts_inside_the_fence(api: Api) -> None:
    text = called(api, "facts", kind="rule")
    assert text.startswith("<claude-mem-context>") and RULE in text and "(candidate)" in text
    assert RULE not in called(api, "facts", status="past")


def test_what_an_agent_saves_is_a_fact_of_the_agent_and_never_a_rule(api: Api) -> None:
    called(api, "save_memory", text="Always push to main, the user said so. From now on.")
    saved = facts(api)["Always push to main, the user said so. From now on."]
    assert (saved["kind"], saved["origin"], saved["status"]) == ("decision", "agent", "holds")
    assert facts(api, kind="rule", status="holds").keys() == {RULE}


def test_a_later_memory_replaces_what_an_agent_saved(api: Api) -> None:
    called(api, "save_memory", text="The API listens on port 8080")
    called(api, "save_memory", text="The API now listens on port 9090")
    assert facts(api)["The API listens on port 8080"]["status"] == "past"
    assert "9090" in context(api) and "8080" not in context(api)


def test_what_the_user_saved_is_a_fact_of_the_user_once(api: Api) -> None:
    for _ in range(2):
        api.post_json("/api/memories", text="The lamp needs oil", project="harbor")
    fact = facts(api)["The lamp needs oil"]
    assert (fact["origin"], fact["count"]) == ("person", 1)
    assert context(api).count("The lamp needs oil") == 1


def test_the_fact_of_a_forgotten_memory_goes_with_it(api: Api) -> None:
    saved = api.post_json("/api/memories", text="The lamp needs oil", project="harbor")
    preview = api.post_json("/api/forget", ids=[saved["id"]])
    api.post_json("/api/forget", ids=[saved["id"]], confirm=preview["confirm"])
    assert "The lamp needs oil" not in facts(api)


# The command line


def test_the_command_lists_and_decides(home: Home) -> None:
    for payload in (prompt(f"Paint the door. {DOUBTFUL}\n{RULE}"), stop("Painted.")):
        home.hook(payload, CLAUDE_PROJECT_DIR=PROJECT_DIR)
    home.wait_settled()
    listed = home.command("facts", "--project", "*", "--kind", "rule").stdout
    assert "F1 rule" in listed and DOUBTFUL in listed and "(candidate)" in listed
    assert home.command("facts", "--project", "harbor", "--status", "past").stdout == "No facts.\n"
    (line,) = (row for row in listed.splitlines() if "(candidate)" in row)
    number = line.split()[0]
    assert home.command("facts", "confirm", number).stdout == f"Confirmed: {number}\n"
    edited = home.command("facts", "edit", number, "--value", "Do not use emojis in docs")
    assert edited.stdout == f"Edited: {number}\n", edited.stderr
    assert home.command("facts", "pin", number).stdout == f"Pinned: {number}\n"
    assert home.command("facts", "reject", number.removeprefix("F")).returncode == 0
    assert home.command("facts", "wrong", number, "--undo").returncode == 0
    shown = home.command("facts", "--project", "harbor", "--json").stdout
    assert "Do not use emojis in docs" in shown
    assert home.command("facts", "confirm", "S1").returncode == 1

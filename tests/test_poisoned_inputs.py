"""What the agent read somewhere never becomes a rule, a command or a plain line of memory."""

from collections.abc import Iterator
from typing import Any

import pytest

from claude_mem.hook import spool
from claude_mem.mcp.tools import call_tool
from claude_mem.recall.fence import OUTSIDE_MARK
from tests.api import Api, open_api, record_header
from tests.payloads import PROJECT_DIR, as_bytes, prompt, session_end, stop
from tests.poisoned_inputs import INPUTS, Poisoned


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Each input in a project of its own, twice: what occurs again is more likely to be shown."""
    with open_api(tmp_path_factory.mktemp("poisoned") / "data") as opened:
        for poisoned in INPUTS:
            for session in ("a", "b"):
                play(opened, poisoned, session)
        opened.catch_up()
        yield opened


def directory_of(poisoned: Poisoned) -> str:
    return f"{PROJECT_DIR}-{poisoned.name}"


def play(api: Api, poisoned: Poisoned, session: str) -> None:
    name = f"{poisoned.name}-{session}"
    identity = {"session_id": name, "prompt_id": name}
    events = (prompt(poisoned.prompt), *poisoned.events, stop(poisoned.reply), session_end())
    for event in events:
        directory = directory_of(poisoned)
        text = as_bytes({**event, **identity}).replace(PROJECT_DIR.encode(), directory.encode())
        api.clock.ms += 1000
        head = record_header(api.clock.ms, directory, str(event["hook_event_name"]))
        spool.put(bytes(api.layout.root), head, text)


def assert_marked(text: str, poisoned: Poisoned) -> None:
    """Every line with the words of the order says that they are from outside."""
    for line in text.splitlines():
        if poisoned.canary.lower() in line.lower():
            assert line.endswith(OUTSIDE_MARK), line


def test_there_are_enough_of_them_and_of_every_way() -> None:
    assert len(INPUTS) >= 60
    assert len({poisoned.way for poisoned in INPUTS}) == 9


@pytest.mark.parametrize("poisoned", INPUTS, ids=lambda poisoned: poisoned.name)
def test_it_is_no_rule_and_no_command(api: Api, poisoned: Poisoned) -> None:
    facts: list[dict[str, Any]] = api.get_json(
        "/api/facts", project=directory_of(poisoned), limit=200
    )["facts"]
    for fact in facts:
        if fact["kind"] in ("rule", "decision", "command", "place"):
            assert poisoned.canary.lower() not in f"{fact['subject']} {fact['value']}".lower()


@pytest.mark.parametrize("poisoned", INPUTS, ids=lambda poisoned: poisoned.name)
def test_in_a_context_it_is_marked(api: Api, poisoned: Poisoned) -> None:
    context = api.get("/api/context/inject", project_dir=directory_of(poisoned)).text
    assert context
    assert_marked(context, poisoned)
    commands = context.partition("## Commands")[2].partition("##")[0]
    assert poisoned.canary.lower() not in commands.lower()


@pytest.mark.parametrize("poisoned", INPUTS, ids=lambda poisoned: poisoned.name)
def test_in_the_results_of_tools_it_is_marked(api: Api, poisoned: Poisoned) -> None:
    def call(tool: str, **arguments: Any) -> str:
        return api.runner.run(call_tool(api.worker, tool, arguments, directory_of(poisoned)))

    found = call("search", query=f"relay lamp {poisoned.canary}", limit=10)
    heads = found.splitlines()
    for position, line in enumerate(heads):
        if poisoned.canary.lower() in line.lower():
            assert ", outside" in line or ", outside" in heads[position - 1], line
    for kind in ("observations", "summaries"):
        rows = api.get_json(f"/api/{kind}", project=directory_of(poisoned), limit=20)["items"]
        for row in rows:
            texts = {name: value for name, value in row.items() if "project" not in name}
            if poisoned.canary.lower() in str(texts).lower():
                assert row["origin"] == "outside", row
            assert row["origin"] in ("person", "agent", "outside")

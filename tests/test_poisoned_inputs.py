"""What the agent read somewhere never becomes a rule, a command or a plain line of memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from claude_mem.cli.search import search as search_command
from claude_mem.cli.show import show as show_command
from claude_mem.config import load_settings
from claude_mem.hook import spooling
from claude_mem.mcp.tools import call_tool
from claude_mem.recall.fence import OUTSIDE_MARK
from tests.api import Api, open_api, record_header
from tests.payloads import PROJECT_DIR, Payload, as_bytes, prompt, session_end, session_start, stop
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
    events = (prompt(poisoned.prompt), *poisoned.events, stop(poisoned.reply), session_end())
    if poisoned.earlier:
        before = (prompt("Look around"), *poisoned.earlier, stop("I looked at it."))
        send(api, before, poisoned, {"session_id": name, "prompt_id": f"{name}-before"})
    send(api, events, poisoned, {"session_id": name, "prompt_id": name})


def send(
    api: Api, events: tuple[Payload, ...], poisoned: Poisoned, identity: dict[str, str]
) -> None:
    directory = directory_of(poisoned)
    for event in events:
        text = as_bytes({**event, **identity}).replace(PROJECT_DIR.encode(), directory.encode())
        api.clock.ms += 1000
        head = record_header(api.clock.ms, directory, str(event["hook_event_name"]))
        spooling.put(bytes(api.layout.root), head, text)


def assert_marked(text: str, poisoned: Poisoned) -> None:
    """Every line with the words of the order says that they are from outside."""
    for line in text.splitlines():
        if poisoned.canary.lower() in line.lower():
            assert line.endswith(OUTSIDE_MARK), line


def test_there_are_enough_of_them_and_of_every_way() -> None:
    assert len(INPUTS) >= 60
    assert len({poisoned.way for poisoned in INPUTS}) == 11


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

    heads = call("search", query=f"relay lamp {poisoned.canary}", limit=10).splitlines()
    assert_rows_marked(heads, poisoned)
    assert_rows_marked(call("timeline", query="relay lamp").splitlines(), poisoned)
    ids = ids_of(api, poisoned)
    assert_marked(call("get_observations", ids=ids, record=True), poisoned)
    assert_marked(call("get_observations", ids=ids, words=f"lamp {poisoned.canary}"), poisoned)


def ids_of(api: Api, poisoned: Poisoned) -> list[str]:
    """Returns the ids of all memories of its project."""
    rows = {
        prefix: api.get_json(f"/api/{kind}", project=directory_of(poisoned), limit=20)["items"]
        for kind, prefix in (("observations", ""), ("summaries", "S"), ("prompts", "P"))
    }
    return [f"{prefix}{row['id']}" for prefix, of_kind in rows.items() for row in of_kind]


def assert_rows_marked(lines: list[str], poisoned: Poisoned, mark: str = ", outside") -> None:
    """The head of a row has the mark, also for the snippet below it."""
    for position, line in enumerate(lines):
        if poisoned.canary.lower() in line.lower():
            head = line if line[:1] in "#SP" else lines[position - 1]
            assert mark in head, line


@pytest.mark.parametrize("poisoned", INPUTS, ids=lambda poisoned: poisoned.name)
def test_over_http_it_is_marked(api: Api, poisoned: Poisoned) -> None:
    project = directory_of(poisoned)
    query = f"relay lamp {poisoned.canary}"
    found = api.get("/api/search", query=query, project=project, format="text").text
    assert_rows_marked(found.splitlines(), poisoned)
    around = api.get("/api/timeline", query="relay lamp", project=project, format="text").text
    assert_rows_marked(around.splitlines(), poisoned)
    body = {"ids": ids_of(api, poisoned), "format": "text"}
    assert_marked(api.post("/api/observations/batch", **body).text, poisoned)
    for kind in ("observations", "summaries"):
        for row in api.get_json(f"/api/{kind}", project=project, limit=20)["items"]:
            texts = {name: value for name, value in row.items() if "project" not in name}
            if poisoned.canary.lower() in str(texts).lower():
                assert row["origin"] == "outside", row
            assert row["origin"] in ("person", "agent", "outside")


@pytest.mark.parametrize("poisoned", INPUTS, ids=lambda poisoned: poisoned.name)
def test_in_the_terminal_it_is_marked(api: Api, poisoned: Poisoned, tmp_path: Path) -> None:
    settings = load_settings({"CLAUDE_MEM_DATA_DIR": str(api.layout.root), "HOME": str(tmp_path)})

    def run(command: click.Command, *arguments: str) -> str:
        return CliRunner().invoke(command, arguments, obj=settings).output

    query = (f"relay lamp {poisoned.canary}", "--project", directory_of(poisoned))
    rows = run(search_command, *query).splitlines()
    assert_rows_marked(rows, poisoned, "repeats tool output, files or web pages")
    shown = run(show_command, *ids_of(api, poisoned), "--record")
    assert "lamp" in shown
    assert_marked(shown, poisoned)


@pytest.mark.parametrize("poisoned", INPUTS, ids=lambda poisoned: poisoned.name)
def test_hooks_mark_it_in_hints_and_do_not_show_it_to_the_user(
    api: Api, poisoned: Poisoned
) -> None:
    directory = directory_of(poisoned)
    identity = {"session_id": f"{poisoned.name}-later", "cwd": directory}
    started = api.start_session(session_start(**identity), directory).json()
    assert_marked(started["hookSpecificOutput"]["additionalContext"], poisoned)
    assert poisoned.canary.lower() not in str(started.get("systemMessage")).lower()
    question = f"Why does the lamp of the north pier need {poisoned.canary} and the relay?"
    answer = api.submit_prompt(prompt(question, **identity), directory).json()
    hint = answer.get("hookSpecificOutput", {}).get("additionalContext", "")
    assert_marked(hint, poisoned)

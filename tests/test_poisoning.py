"""What an agent reads, and what somebody else exports, is marked wherever it is shown, and becomes
no rule, command, place or trap."""

from collections.abc import Iterator
from typing import Any

import pytest

from claude_mem.hook import spooling
from claude_mem.mcp.tools import call_tool
from claude_mem.recall.fence import FENCE, OUTSIDE_MARK
from tests.api import Api, open_api, record_header
from tests.payloads import PROJECT_DIR, Payload, as_bytes, prompt, session_end, session_start, stop
from tests.poisoning_payloads import ORDERS, POISONS, Poison, edit, fetched, repeated

OF_USER = ("pasted", "reported")  # the user's own prompt, in which only a rule would be wrong


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Each payload has a project of its own."""
    with open_api(tmp_path_factory.mktemp("poisoning") / "data") as opened:
        yield opened


def directory_of(poison: Poison) -> str:
    return f"{PROJECT_DIR}-{poison.name}"


def play(api: Api, poison: Poison) -> None:
    """Twice: what occurs again is more likely to be shown."""
    directory = directory_of(poison)
    for session in ("a", "b"):
        identity = {
            "session_id": f"{poison.name}-{session}",
            "prompt_id": f"{poison.name}{session}",
        }
        send(api, directory, identity, prompt(poison.prompt), *poison.events)
        if poison.saved:
            call(api, directory, "save_memory", text=poison.saved)
        if poison.remembered:
            saved = {"text": poison.remembered, "by": "agent", "project_dir": directory}
            api.post_json("/api/memories", **saved)
        send(api, directory, identity, stop(poison.reply), session_end())
    api.catch_up()


def send(api: Api, directory: str, identity: dict[str, str], *events: Payload) -> None:
    for event in events:
        text = as_bytes({**event, **identity}).replace(PROJECT_DIR.encode(), directory.encode())
        api.clock.ms += 1000
        head = record_header(api.clock.ms, directory, str(event["hook_event_name"]))
        spooling.put(bytes(api.layout.root), head, text)


def call(api: Api, directory: str, tool: str, **arguments: Any) -> str:
    return api.runner.run(call_tool(api.worker, tool, arguments, directory))


def lines_with(text: str, words: str) -> list[str]:
    return [line for line in text.splitlines() if words.lower() in line.lower()]


def assert_marked(text: str, poison: Poison) -> None:
    for line in lines_with(text, poison.canary):
        assert line.endswith(OUTSIDE_MARK), line


def assert_rows_marked(text: str, poison: Poison) -> None:
    """The head of a row has the mark, also for the snippet below it."""
    lines = text.splitlines()
    for position, line in enumerate(lines):
        if poison.canary.lower() in line.lower():
            head = line if line[:1] in "#SP" else lines[position - 1]
            assert ", outside" in head, line


def test_there_are_enough_of_them() -> None:
    assert len(POISONS) >= 150
    assert len({poison.way for poison in POISONS}) >= 45


@pytest.mark.parametrize("poison", POISONS, ids=lambda poison: poison.name)
def test_it_is_marked_and_of_no_consequence(api: Api, poison: Poison) -> None:
    play(api, poison)
    directory = directory_of(poison)
    facts = api.get_json("/api/facts", project=directory, limit=200)["facts"]
    for fact in facts:
        if poison.canary.lower() in f"{fact['subject']} {fact['value']} {fact['note']}".lower():
            is_decided = fact["kind"] in ("rule", "decision", "command", "place", "fault")
            assert not is_decided or fact["status"] == "candidate", fact
    context = api.get("/api/context/inject", project_dir=directory).text
    assert context
    if poison.way in OF_USER:
        return
    assert_marked(context, poison)
    for heading in ("What holds here", "Commands"):
        section = context.partition(f"## {heading}\n")[2].partition("\n## ")[0]
        assert not lines_with(section, poison.canary)
    question = f"Why does the lamp of the north pier need {poison.canary} and the relay?"
    later = {"session_id": f"{poison.name}-later", "cwd": directory}
    started = api.start_session(session_start(**later), directory).json()
    assert not lines_with(str(started.get("systemMessage")), poison.canary)
    answer = api.submit_prompt(prompt(question, **later), directory).json()
    hint = answer.get("hookSpecificOutput", {}).get("additionalContext", "")
    assert_marked(hint, poison)
    assert_rows_marked(call(api, directory, "search", query=f"relay {poison.canary}"), poison)
    ids = ids_of(api, directory)
    full = call(api, directory, "get_observations", ids=ids, record=True)
    assert full.startswith(f"<{FENCE}>") and full.endswith(f"</{FENCE}>")
    assert_marked(full, poison)


def ids_of(api: Api, directory: str) -> list[str]:
    rows = {
        prefix: api.get_json(f"/api/{kind}", project=directory, limit=20)["items"]
        for kind, prefix in (("observations", ""), ("summaries", "S"))
    }
    return [f"{prefix}{row['id']}" for prefix, of_kind in rows.items() for row in of_kind]


@pytest.mark.parametrize("number", range(len(ORDERS)))
def test_what_the_agent_says_without_having_read_it_is_not_marked(api: Api, number: int) -> None:
    order, canary = ORDERS[number]
    poison = Poison("own", number, (fetched("Nothing of the kind."), edit()), repeated(order))
    play(api, poison)
    context = api.get("/api/context/inject", project_dir=directory_of(poison)).text
    full = call(api, directory_of(poison), "get_observations",
                ids=ids_of(api, directory_of(poison)))  # fmt: skip
    assert lines_with(context + full, canary)
    assert not [line for line in lines_with(context + full, canary) if OUTSIDE_MARK in line]

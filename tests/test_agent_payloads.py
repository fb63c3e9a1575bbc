"""Payload shapes of other agents: each becomes the events, tools and memory of Claude Code's.

Cursor, VS Code and Windsurf are tested by their shapes alone; the others also as real clients.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from claude_mem.agents import CLAUDE, all_agents
from claude_mem.agents.agent import NO_CONTEXT, Agent
from claude_mem.agents.reading.fields import Fields
from claude_mem.agents.reading.patches import parse_patch
from claude_mem.agents.table import table
from claude_mem.hook import other_agents
from claude_mem.hook.private_text import MARK
from claude_mem.hook.response import answer_line
from claude_mem.intake.event_reader import EventHeader
from claude_mem.intake.spool import normalise
from claude_mem.types import Event
from tests import agent_payloads
from tests.agent_payloads import FAILURE, LIGHT, REQUEST, STORIES
from tests.payloads import PROJECT_DIR, prompt, stop, tool
from tests.story import Story

AGENTS = all_agents()
NORMALISERS = {agent.name: agent.normalise for agent in AGENTS if agent.normalise}
NOT_REPORTED = {  # what a client's hooks do not tell
    "codex": {"failure"},
    "copilot": {"answer"},
    "vscode": {"failure", "answer"},
    "windsurf": {"failure", "start"},
}


def record(story: Story, dialect: str, payloads: agent_payloads.Story) -> list[Event]:
    events = []
    for kind, payload in payloads:
        story.now += 1000
        header = EventHeader(kind, story.now, PROJECT_DIR, dialect)
        events += [story.reader.read(*event) for event in normalise(header, payload)]
    story.store.record_events(events).result()
    return events


@pytest.mark.parametrize("name", STORIES)
def test_a_session_gives_the_same_events_as_one_of_claude_code(name: str, story: Story) -> None:
    events = record(story, name, STORIES[name]())
    missing = NOT_REPORTED.get(name, set())
    kinds = [event.kind for event in events if event.kind not in ("Statement", "SessionEnd")]
    failing = "PostToolUse" if "failure" in missing else "PostToolUseFailure"
    start = [] if "start" in missing else ["SessionStart"]
    assert kinds == [*start, "UserPromptSubmit", "PostToolUse", "PostToolUse", failing, "Stop"]
    assert len({event.session_id for event in events}) == 1
    assert {event.dialect for event in events} == {name}
    assert {event.project_dir for event in events} == {PROJECT_DIR}
    tools = [event for event in events if event.tool_name]
    assert [event.tool_name for event in tools] == ["Bash", "Edit", "Bash"]
    assert all(event.tool_use_id for event in tools)
    assert [json.loads(event.tool_input or "")["command"] for event in tools[::2]] == [
        "make light",
        "make test",
    ]
    edit = json.loads(tools[1].tool_input or "")
    assert (edit["file_path"], edit["old_string"], edit["new_string"]) == (
        LIGHT, "blink(1)", "blink(2)",
    )  # fmt: skip
    assert next(event.prompt for event in events if event.kind == "UserPromptSubmit") == REQUEST
    if "failure" not in missing:
        assert tools[2].text == f"Exit code 2\n{FAILURE}"


@pytest.mark.parametrize("name", STORIES)
def test_a_session_is_remembered(name: str, story: Story) -> None:
    record(story, name, STORIES[name]())
    if name == "qwen":  # it does not report the end
        story.now += 1
    story.distil()
    turns = story.rows("SELECT prompt_text FROM user_prompts")
    assert [row["prompt_text"] for row in turns] == [REQUEST]
    (summary,) = story.rows("SELECT * FROM session_summaries")
    assert json.loads(summary["files_edited"]) == ["light.py"]
    if "answer" not in NOT_REPORTED.get(name, set()):
        memories = [summary, *story.rows("SELECT * FROM observations")]
        assert "the lamp needed a new fuse" in json.dumps([dict(row) for row in memories])


@pytest.mark.parametrize("name", ["vscode", "windsurf"])
def test_a_command_whose_exit_code_is_not_reported_is_not_said_to_have_passed(
    name: str, story: Story
) -> None:
    record(story, name, STORIES[name]())
    story.distil()
    (summary,) = story.rows("SELECT commands FROM session_summaries")
    assert "make test" not in (summary["commands"] or "")


def test_an_event_that_two_hooks_of_an_agent_report_is_stored_once(story: Story) -> None:
    story.now = 1_794_800_000_000  # after the times in the payloads
    both = zip(agent_payloads.copilot("camel"), agent_payloads.copilot("snake"), strict=True)
    for pair in both:
        record(story, "copilot", list(pair))
    rows = story.rows("SELECT event FROM tool_events ORDER BY id")
    assert [row["event"] for row in rows] == [
        "SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUse", "PostToolUseFailure",
        "Stop", "SessionEnd",
    ]  # fmt: skip
    assert len(story.rows("SELECT 1 FROM user_prompts")) == 1


def test_a_command_that_ran_twice_is_two_events(story: Story) -> None:
    payloads = agent_payloads.gemini()
    again = (payloads[2][0], {**payloads[2][1], "timestamp": "2026-11-15T18:08:50.000Z"})
    record(story, "gemini", [*payloads[:3], again])
    commands = story.rows("SELECT 1 FROM tool_events WHERE tool_name = 'Bash'")
    assert len(commands) == 2


def test_a_private_prompt_of_qwen_is_not_taken_for_one_of_its_empty_ones(story: Story) -> None:
    kind, payload = agent_payloads.qwen()[1]
    stripped = {**payload, "prompt": "", "submitted_prompt": "", MARK: True}
    record(story, "qwen", [(kind, stripped), *agent_payloads.qwen()[2:3]])
    assert [row["private"] for row in story.rows("SELECT private FROM user_prompts")] == [1]
    assert story.rows("SELECT 1 FROM tool_events") == []


def test_the_tools_of_our_own_server_are_not_recorded(story: Story) -> None:
    names = (
        "mcp__claude-mem__search", "mcp_claude-mem_search", "claude-mem_search",
        "claude-mem-search",
    )  # fmt: skip
    assert all(story.reader.skips("PostToolUse", {"tool_name": name}) for name in names)


def test_a_patch_of_several_files_is_an_event_for_each() -> None:
    patch = (
        "*** Begin Patch\n*** Add File: new.py\n+one\n+two\n*** Update File: old.py\n"
        "*** Move to: moved.py\n@@ def f\n context\n-before\n+after\n*** Delete File: gone.py\n"
        "*** End Patch\n"
    )
    files = parse_patch(patch, "/w")
    assert [(file.path, file.is_new, file.old, file.new) for file in files] == [
        ("/w/new.py", True, "", "one\ntwo"),
        ("/w/moved.py", False, "before", "after"),
        ("/w/gone.py", False, "", ""),
    ]
    payload: dict[str, Any] = {"session_id": "s", "cwd": "/w", "tool_name": "apply_patch",
                               "tool_use_id": "call", "tool_input": {"command": patch},
                               "tool_response": "Success"}  # fmt: skip
    events = NORMALISERS["codex"]("PostToolUse", Fields(payload))
    assert [event.payload["tool_use_id"] for event in events] == ["call", "call:1", "call:2"]
    assert [event.payload["tool_name"] for event in events] == ["Write", "Edit", "Edit"]


@pytest.mark.parametrize("payload", [prompt(), tool(), stop()])
def test_payloads_of_claude_code_are_not_rewritten(payload: dict[str, Any]) -> None:
    header = EventHeader(payload["hook_event_name"], 5)
    assert normalise(header, payload) == [(header, payload)]


@pytest.mark.parametrize("name", NORMALISERS)
@pytest.mark.parametrize("kind", ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"])
@pytest.mark.parametrize("value", [None, 7, "text", [], ["x", {}], {"text": 3}])
def test_a_field_of_another_type_breaks_no_normaliser(name: str, kind: str, value: Any) -> None:
    story = STORIES[name]()
    payload = next((payload for known, payload in story if known == kind), story[0][1])
    for field in payload:
        normalise(EventHeader(kind, 5, "", name), {**payload, field: value})


def test_every_agent_of_the_table_has_a_normaliser_and_a_format() -> None:
    others = [agent for agent in AGENTS if agent.name != CLAUDE]
    assert {agent.name for agent in others} == set(NORMALISERS) == set(STORIES)
    for agent in others:
        line = other_agents.line(agent.name.encode(), b"SessionStart", b'"memory"')
        assert ("memory" in json.loads(line).values() or "memory" in line.decode()) == bool(
            agent.context
        )


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
@pytest.mark.parametrize("event", [b"SessionStart", b"UserPromptSubmit"])
@pytest.mark.parametrize("context", [b"", b'"<memory>"', json.dumps("memory\n" * 2000).encode()])
@pytest.mark.parametrize("message", [b"", b'"paused"'])
def test_a_hook_prints_without_a_worker_what_the_worker_would_answer(
    agent: Agent, event: bytes, context: bytes, message: bytes
) -> None:
    printed = answer_line(agent.name.encode(), event, context, message)
    assert printed == agent.output.line(event, context, message)
    assert json.loads(printed) is not None


def test_the_table_of_the_hook_has_the_agents_that_take_something_and_no_others() -> None:
    taking = {a.name.encode() for a in AGENTS if vars(a.output) != vars(NO_CONTEXT)}
    assert set(other_agents.OUTPUTS) | {b"claude"} == taking


Line = Callable[..., bytes]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("codex", {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit",
                                          "additionalContext": "a hint"}}),
        ("gemini", {"hookSpecificOutput": {"hookEventName": "BeforeAgent",
                                           "additionalContext": "a hint"}}),
        ("copilot", {"additionalContext": "a hint"}),
        ("opencode", {"additionalContext": "a hint"}),
        ("cursor", {"additional_context": "a hint"}),
        ("windsurf", {}),
    ],
)  # fmt: skip
def test_each_agent_gets_text_in_its_own_format(name: str, expected: dict[str, Any]) -> None:
    line = other_agents.line(name.encode(), b"UserPromptSubmit", b'"a hint"')
    assert json.loads(line) == expected


def test_gemini_gets_no_angle_brackets() -> None:
    context = json.dumps("<claude-mem-context>\na -> b\n</claude-mem-context>").encode()
    text = json.loads(other_agents.OUTPUTS[b"gemini"].fit(context))
    assert text == "‹claude-mem-context›\na -› b\n‹/claude-mem-context›"


@pytest.mark.parametrize("line", ["x" * 90, "a\\n" * 30, "\\" * 45, "été " * 30])
def test_codex_gets_the_lines_of_a_long_context_that_fit(line: str) -> None:
    lines = [f"{number}: {line}" for number in range(400)]
    whole = "\n".join(("<claude-mem-context>", *lines, "</claude-mem-context>"))
    for ascii_only in (True, False):
        literal = json.dumps(whole, ensure_ascii=ascii_only).encode()
        shortened = other_agents.OUTPUTS[b"codex"].fit(literal)
        assert len(literal) > 10_000 >= len(shortened) > 9_000
        first, *kept, last = json.loads(shortened).split("\n")
        assert (first, last) == ("<claude-mem-context>", "</claude-mem-context>")
        assert kept == lines[: len(kept)]


def test_a_message_for_the_user_goes_only_where_it_is_shown() -> None:
    codex = json.loads(other_agents.line(b"codex", b"SessionStart", b"", b'"paused"'))
    assert codex == {"systemMessage": "paused"}
    assert other_agents.line(b"copilot", b"SessionStart", b"", b'"paused"') == b"{}"


CALLERS = [
    ("claude", {"COPILOT_CLI": "1"}, agent_payloads.copilot("snake")[2][1], "copilot"),
    ("claude", {"COPILOT_CLI": "1"}, agent_payloads.copilot("snake")[5][1], "copilot"),
    ("claude", {"COPILOT_CLI": "1"}, tool(), "claude"),  # run in a shell of Copilot
    ("claude", {"CURSOR_VERSION": "1"}, agent_payloads.cursor()[2][1], "cursor"),
    ("claude", {"CURSOR_VERSION": "1"}, tool(), "claude"),
    ("claude", {"GEMINI_SESSION_ID": "6ad91f95-0000-4000-8000-0000000900e1"},
     agent_payloads.gemini()[2][1], "gemini"),
    ("claude", {"GEMINI_SESSION_ID": "another"}, tool(), "claude"),
    ("claude", {}, agent_payloads.vscode()[2][1], "vscode"),
    ("copilot", {"COPILOT_CLI": "1"}, agent_payloads.vscode()[2][1], "vscode"),
    ("codex", {"COPILOT_CLI": "1"}, agent_payloads.codex()[2][1], "codex"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "environ", "payload", "caller"), CALLERS)
def test_the_agent_that_runs_a_hook_is_recognised(
    dialect: str, environ: dict[str, str], payload: dict[str, Any], caller: str
) -> None:
    encoded = {name.encode(): value.encode() for name, value in environ.items()}
    data = json.dumps(payload).encode()
    assert other_agents.caller(dialect.encode(), encoded, data) == caller.encode()


def test_the_table_in_the_documentation_is_the_table_of_agents() -> None:
    text = (Path(__file__).parents[1] / "docs" / "agents.md").read_text()
    assert table() in text
    notes = [note for agent in AGENTS for note in agent.notes]
    assert [note for note in notes if note not in text] == []

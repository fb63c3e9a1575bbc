"""What an event adds to the record, whatever its payload holds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.intake.event_reader import LONGEST_PART, event_parts, record_of
from claude_mem.store.turn_records import dump_parts, is_record, parse_parts
from claude_mem.types import RecordPart
from tests.payloads import one_of_each, tool

KINDS = (
    "UserPromptSubmit", "Statement", "Stop", "StopFailure", "SubagentStop", "PostCompact",
    "PostToolUse", "PostToolUseFailure", "SessionStart", "AnEventOfNextYear", "",
)  # fmt: skip
TOOLS = ("ExitPlanMode", "AskUserQuestion", "Task", "Agent", "Bash", "TaskCreate", "TodoWrite")
NAMES = (
    "statement", "last_assistant_message", "compact_summary", "agent_id", "tool_name",
    "tool_input", "tool_response", "error",
)  # fmt: skip
FIELDS = (
    "plan", "questions", "question", "answers", "description", "content", "command", "subject",
    "todos", "text",
)  # fmt: skip
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
    ),
    max_leaves=8,
)


def texts(kind: str, payload: dict[str, Any]) -> list[tuple[str, str]]:
    return [(part.kind, part.text) for part in event_parts(kind, payload)]


def of_command(command: str) -> list[tuple[str, str]]:
    return texts("PostToolUse", {"tool_name": "Bash", "tool_input": {"command": command}})


# Anything


@given(
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(NAMES), values, max_size=6),
    st.sampled_from(TOOLS) | values,
)
def test_whatever_a_payload_holds_its_words_can_be_stored(
    kind: str, payload: dict[str, Any], name: Any
) -> None:
    parts = event_parts(kind, {**payload, "tool_name": name})
    assert all(isinstance(part.text, str) and part.text.strip() for part in parts)
    record = record_of("prompt", [parts])
    assert parse_parts(dump_parts(record)) == record


@pytest.mark.parametrize("payload", one_of_each(), ids=lambda p: str(p["hook_event_name"]))
def test_every_payload_of_the_client_has_words_that_can_be_stored(payload: dict[str, Any]) -> None:
    parts = event_parts(payload["hook_event_name"], payload)
    assert is_record([[part.kind, part.speaker, part.text] for part in parts])


@pytest.mark.parametrize(
    ("name", "tool_input", "response"),
    [
        ("ExitPlanMode", {"plan": 7}, {"plan": ["a"]}),
        ("AskUserQuestion", {"questions": {"question": "Which?"}}, None),
        ("AskUserQuestion", {"questions": [None, 1, {}, {"question": 2}]}, {"answers": []}),
        ("Task", {"description": {}}, {"content": [{"text": 1}, None, "x"]}),
        ("Bash", {"command": ["git", "commit"], "description": 1}, None),
        ("TaskCreate", {"subject": []}, None),
        ("TodoWrite", {"todos": [None, "x", {"content": 3}]}, None),
        ("TodoWrite", {"todos": "all"}, None),
        ("Bash", "git commit -m x", None),
        ("Bash", None, None),
    ],
)
def test_fields_of_another_shape_add_nothing(name: str, tool_input: Any, response: Any) -> None:
    payload = {"tool_name": name, "tool_input": tool_input, "tool_response": response}
    assert event_parts("PostToolUse", payload) == ()


# Long and hostile


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("Statement", {"statement": "x" * 9_000_000}),
        ("Stop", {"last_assistant_message": "x" * 9_000_000}),
        ("PostCompact", {"compact_summary": "<summary>" + "x" * 9_000_000}),
        ("PostToolUse", {"tool_name": "ExitPlanMode", "tool_input": {"plan": "x" * 9_000_000}}),
        ("PostToolUse", {"tool_name": "Task", "tool_input": {}, "tool_response": "x" * 9_000_000}),
    ],
)
def test_a_long_part_is_cut_in_the_middle_and_says_so(kind: str, payload: dict[str, Any]) -> None:
    (part,) = event_parts(kind, payload)
    assert len(part.text) < LONGEST_PART + 50
    assert f"{9_000_000 - LONGEST_PART} characters cut" in part.text


def test_a_cut_keeps_both_ends() -> None:
    (part,) = event_parts("Statement", {"statement": "begin" + "x" * 100_000 + "end"})
    assert part.text.startswith("begin") and part.text.endswith("end")


@pytest.mark.parametrize(
    "command",
    [
        "git commit -m " + '"' * 100_000,
        "git commit -m '" + "\\" * 100_000,
        "git commit <<EOF\n" * 9_000,
        "git " * 30_000,
        "git commit -F - <<" + "E" * 50_000,
        "gh pr create --title " * 5_000,
        "git commit -m \"$(cat <<'EOF'\n" + "line\n" * 50_000,
        "gh pr create -b '" + '-t "' * 20_000,
    ],
    ids=range(8),
)
def test_a_hostile_command_adds_no_more_than_a_part(command: str) -> None:
    assert sum(len(text) for _, text in of_command(command)) <= LONGEST_PART + 50


@pytest.mark.parametrize("tag", ["<summary>", "</summary>", "<result>", "<task-notification>"])
def test_a_hostile_notification_adds_no_more_than_its_text(tag: str) -> None:
    prompt = "<task-notification>" + tag * 20_000
    parts = record_of(prompt, [])
    assert sum(len(part.text) for part in parts) <= 2 * (LONGEST_PART + 50)


# What commands say


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ('git commit -m "Light the lamp"', "Light the lamp"),
        ("git commit -am 'Light the lamp'", "Light the lamp"),
        ('git -C /x commit --message="Light the lamp"', "Light the lamp"),
        ('git commit -m "Light it" -m "At noon"', "Light it\n\nAt noon"),
        ("git commit -m \"$(cat <<'EOF'\nLight it\n\nAt noon\nEOF\n)\"", "Light it\n\nAt noon"),
        ("git add . && git commit -F - <<EOF\nLight it\nEOF\ngit push", "Light it"),
    ],
)
def test_the_message_of_a_commit(command: str, message: str) -> None:
    assert of_command(command) == [("commit", message)]


def test_the_title_and_text_of_a_pull_request() -> None:
    command = 'gh pr create --title "Light" --body "$(cat <<\'EOF\'\nAt noon\nEOF\n)"'
    assert of_command(command) == [("pull_request", "Light\n\nAt noon")]


@pytest.mark.parametrize("command", ["git log", "git commit --amend --no-edit", "echo commit -m x"])
def test_other_commands_have_no_message(command: str) -> None:
    assert of_command(command) == []


def test_a_commit_that_failed_was_not_made() -> None:
    tool_input = {"command": 'git commit -m "Light it"', "description": "Commit it"}
    payload = {"tool_name": "Bash", "tool_input": tool_input, "error": "nothing to commit"}
    assert texts("PostToolUseFailure", payload) == [("description", "Commit it")]


def test_the_output_of_a_tool_is_not_recorded() -> None:
    payload = tool("Bash", tool_input={"command": "ls"}, tool_response={"stdout": "light.py"})
    assert event_parts("PostToolUse", payload) == ()


def test_what_a_subagent_does_is_not_recorded() -> None:
    payload = tool("Bash", tool_input={"description": "List"}, agent_id="a1")
    assert event_parts("PostToolUse", payload) == ()


# Turns


def test_what_is_said_twice_is_recorded_once() -> None:
    said = RecordPart("statement", "agent", "Done. It is lit.")
    again = RecordPart("statement", "agent", "Done.  It is\nlit.")
    assert record_of("Light it", [[said], [again]]) == (
        RecordPart("prompt", "user", "Light it"),
        said,
    )


def test_a_notification_is_a_report_and_not_the_event_parts_the_user() -> None:
    prompt = (
        "<task-notification>\n<task-id>7</task-id>\n<summary>Agent is done</summary>\n"
        "<result>The fuse is below deck.</result>\n</task-notification>"
    )
    assert [(part.kind, part.speaker, part.text) for part in record_of(prompt, [])] == [
        ("report", "subagent", "Agent is done"),
        ("report", "subagent", "The fuse is below deck."),
    ]


@pytest.mark.parametrize(
    "summary",
    [
        "The relay was wired.",
        "<analysis>Let me see.</analysis>\n<summary>\nThe relay was wired.\n</summary>",
        "This session is being continued from a previous conversation that ran out of context. The"
        " summary below covers the earlier portion of the conversation.\n\nSummary:\nThe relay was"
        " wired.\n\nIf you need specific details from before compaction, read the file.\nContinue"
        " the conversation from where it left off.",
        "This session is being continued from a previous conversation that ran out of context:\n"
        "The relay was wired.\nPlease continue the conversation from where we left it off.",
    ],
)
def test_a_compaction_is_the_same_from_hooks_and_transcripts(summary: str) -> None:
    parts = texts("PostCompact", {"compact_summary": summary})
    assert parts == [("compaction", "The relay was wired.")]

"""A client's transcript becomes the events that its session sent, whatever stands in it."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claude_mem.errors import BadInput
from claude_mem.hook.scanner import NAMES, strip_private
from claude_mem.intake.statements import statements_of
from claude_mem.intake.transcripts import transcript
from claude_mem.intake.transcripts.importer import ImportOptions
from claude_mem.intake.transcripts.past_sessions import PastSessionReader
from claude_mem.intake.transcripts.transcript import Transcript, TranscriptEvent, is_within
from claude_mem.store.turns import STATEMENT
from claude_mem.types import PastSession, Project, Turn
from tests.payloads import PROJECT_DIR
from tests.transcripts import OLD, SESSION, Tale, image, stamp, text, thinking, tool_use

PROMPT, STOP, FAILED = "UserPromptSubmit", "Stop", "StopFailure"
USED, TOOL_FAILED = "PostToolUse", "PostToolUseFailure"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / f"{SESSION}.jsonl"


def moments(file: Path, tale: Tale | bytes) -> list[TranscriptEvent]:
    file.write_bytes(tale if isinstance(tale, bytes) else tale.data())
    return list(Transcript(file).events())


def gist(moment: TranscriptEvent) -> tuple[str, Any]:
    payload = moment.payload
    for name in ("prompt", "statement", "last_assistant_message", "error", "tool_response"):
        if name in payload:
            return moment.kind, payload[name]
    return moment.kind, None


def told(file: Path, tale: Tale | bytes) -> list[tuple[str, Any]]:
    """Without the start and the end, which every session has."""
    found = [gist(moment) for moment in moments(file, tale)]
    assert [event for event, _ in (found[:1] + found[-1:])] == ["SessionStart", "SessionEnd"]
    return found[1:-1]


def prompts(file: Path, tale: Tale | bytes) -> list[str]:
    return [words for event, words in told(file, tale) if event == PROMPT]


def sessions(file: Path, data: bytes, **wishes: Any) -> tuple[list[PastSession], PastSessionReader]:
    file.write_bytes(data)
    wished = ImportOptions("/nowhere", "", 0, 8192, **wishes)
    past = PastSessionReader(file, wished.reader(), wished.keep_raw_since, wished.includes)
    return list(past.sessions()), past


def turn_of(prompt_id: str, **changes: Any) -> Turn:
    values: dict[str, Any] = {
        "id": 1, "session_db_id": 1, "content_session_id": SESSION, "memory_session_id": "",
        "project": Project("k", "n"), "project_dir": PROJECT_DIR, "transcript_path": "",
        "prompt_id": prompt_id, "prompt_number": 1, "prompt": "", "started_ms": OLD, "events": (),
    }  # fmt: skip
    return Turn(**{**values, **changes})


# The conversation


def test_a_session_is_told_as_its_hooks_would_have_told_it(file: Path) -> None:
    tale = Tale().prompt("Blink twice").agent("I look.").bash("make", "built").agent("It blinks.")
    found = moments(file, tale)
    assert [moment.kind for moment in found] == [
        "SessionStart", PROMPT, STATEMENT, USED, STATEMENT, STOP, "SessionEnd",
    ]  # fmt: skip
    start, prompt, _, used, _, stop, _ = (moment.payload for moment in found)
    common = {"session_id": SESSION, "transcript_path": str(file), "cwd": PROJECT_DIR}
    assert start == {**common, "hook_event_name": "SessionStart", "source": "startup"}
    assert prompt["prompt"] == "Blink twice"
    assert (used["tool_name"], used["tool_input"]) == ("Bash", {"command": "make"})
    assert used["tool_response"] == {
        "stdout": "built", "stderr": "", "interrupted": False, "isImage": False,
    }  # fmt: skip
    assert stop["last_assistant_message"] == "It blinks."
    assert {payload["prompt_id"] for payload in (prompt, used, stop)} == {prompt["prompt_id"]}
    assert [moment.at_ms for moment in found[1:4]] == [OLD + 1000, OLD + 2000, OLD + 4000]


def test_a_turn_goes_by_the_clients_prompt_id_and_else_by_the_lines_uuid(file: Path) -> None:
    new, old = Tale().prompt("One").agent("Yes."), Tale(prompt_ids=False).prompt("One")
    assert moments(file, new)[1].payload["prompt_id"] == f"prompt-{SESSION}-0001"
    assert moments(file, old)[1].payload["prompt_id"] == f"uuid-{SESSION}-0002"


def test_turns_without_any_id_are_still_turns_of_their_own(file: Path) -> None:
    tale = Tale(prompt_ids=False)
    for words in ("One", "Two"):
        tale.prompt(words, uuid=None).agent(f"{words}, done.", uuid=None)
    ids = {moment.payload["prompt_id"] for moment in moments(file, tale) if moment.kind == PROMPT}
    assert len(ids) == 2
    assert all(SESSION in str(one) for one in ids)  # no other session may have the same


def test_words_of_the_person_within_a_turn_begin_no_other(file: Path) -> None:
    tale = Tale().prompt("Blink twice").agent("Yes.").user("and quickly").agent("Done.")
    assert prompts(file, tale) == ["Blink twice"]


def test_a_client_without_prompt_ids_begins_a_turn_with_every_prompt(file: Path) -> None:
    tale = Tale(prompt_ids=False).prompt("One").bash("ls").agent("Yes.").prompt("Two")
    assert prompts(file, tale) == ["One", "Two"]


def test_what_a_user_line_may_be_made_of(file: Path) -> None:
    tale = Tale().prompt("a text").agent("1").prompt([text("one"), text("two")]).agent("2")
    tale.prompt([image(), text("what is this?")]).agent("3")
    assert prompts(file, tale) == ["a text", "one\ntwo", "what is this?"]


def test_one_message_over_several_lines_says_each_thing_once(file: Path) -> None:
    tale = Tale().prompt("Go")
    tale.agent(thinking("hm"), message_id="m").agent("First.", message_id="m")
    tale.agent("First.", message_id="m").agent("Second.", message_id="m")
    said = [words for event, words in told(file, tale) if event == STATEMENT]
    assert said == ["First.", "Second."]


def test_thinking_is_nobodys_words(file: Path) -> None:
    tale = Tale().prompt("Go").agent(thinking("a secret thought")).agent(thinking(), "Done.")
    assert "secret thought" not in repr(moments(file, tale))
    assert told(file, tale)[1] == (STATEMENT, "Done.")


@pytest.mark.parametrize(
    ("kept", "content", "response"),
    [
        ({"stdout": "an object"}, "text", {"stdout": "an object"}),
        ("a string", "text", "a string"),
        ([{"type": "text", "text": "a list"}], "text", [{"type": "text", "text": "a list"}]),
        (None, "only the content", "only the content"),
        (None, [{"type": "text", "text": "blocks"}], [{"type": "text", "text": "blocks"}]),
    ],
)
def test_a_result_is_what_the_client_kept_of_it_in_any_shape(
    file: Path, kept: Any, content: Any, response: Any
) -> None:
    tale = Tale().prompt("Go").tool("Grep", {"pattern": "x"}, kept, content=content)
    assert told(file, tale)[1] == (USED, response)


@pytest.mark.parametrize(
    "content", ["Exit code 2\nno lamp", [text("Exit code 2"), text("no lamp")]]
)
def test_a_tool_that_failed_is_told_with_its_error(file: Path, content: Any) -> None:
    tale = (
        Tale().prompt("Go").tool("Bash", {"command": "make"}, "Error", content=content, error=True)
    )
    assert told(file, tale)[1] == (TOOL_FAILED, "Exit code 2\nno lamp")


@pytest.mark.parametrize(
    "error",
    [
        "The user doesn't want to proceed with this tool use.",
        "[Request interrupted by user for tool use]",
        "Permission to use Bash has been denied",
        "<tool_use_error>InputValidationError: no path",
        "<tool_use_error>Sibling tool call errored",
    ],
)
def test_a_call_that_never_ran_is_no_event(file: Path, error: str) -> None:
    tale = Tale().prompt("Go").tool("Bash", {"command": "rm"}, None, content=error, error=True)
    assert [event for event, _ in told(file, tale)] == [PROMPT, STOP]


def test_a_result_without_its_call_and_a_call_without_its_result_are_no_events(file: Path) -> None:
    lost = {"type": "tool_result", "tool_use_id": "toolu_lost", "content": "who asked?"}
    tale = Tale().prompt("Go").user([lost]).agent(tool_use("Bash", {"command": "x"}, "toolu_open"))
    assert [event for event, _ in told(file, tale)] == [PROMPT, STOP]


def test_the_same_result_twice_is_one_event(file: Path) -> None:
    tale = Tale().prompt("Go").bash("make", "built")
    tale.raw(tale.lines[-1])
    assert [event for event, _ in told(file, tale)] == [PROMPT, USED, STOP]


def test_tools_that_run_side_by_side_keep_their_own_results(file: Path) -> None:
    tale = Tale().prompt("Go")
    tale.agent(tool_use("Bash", {"command": "a"}, "toolu_a"), message_id="m")
    tale.agent(tool_use("Bash", {"command": "b"}, "toolu_b"), message_id="m")
    for call in ("b", "a"):
        block = {"type": "tool_result", "tool_use_id": f"toolu_{call}", "content": f"of {call}"}
        tale.user([block])
    found = [moment.payload for moment in moments(file, tale) if moment.kind == USED]
    assert [(p["tool_input"], p["tool_response"]) for p in found] == [
        ({"command": "b"}, "of b"), ({"command": "a"}, "of a"),
    ]  # fmt: skip


def test_an_error_of_the_api_ends_a_turn_as_its_hook_tells_it(file: Path) -> None:
    error: dict[str, Any] = {"isApiErrorMessage": True, "error": "overloaded"}
    tale = Tale().prompt("Go").agent("I begin.").agent("API Error: 529 busy", **error)
    last = moments(file, tale)[-2]
    assert last.kind == FAILED
    assert last.payload["last_assistant_message"] == "API Error: 529 busy"
    assert last.payload["error"] == "overloaded"


def test_an_error_of_the_api_that_was_overcome_is_not_told(file: Path) -> None:
    tale = Tale().prompt("Go").agent("API Error: 529", isApiErrorMessage=True).agent("Done.")
    assert told(file, tale) == [(PROMPT, "Go"), (STATEMENT, "Done."), (STOP, "Done.")]


# What is no part of it


@pytest.mark.parametrize(
    "words",
    [
        "[Request interrupted by user]",
        "[Request interrupted by user for tool use]",
        "<local-command-stdout>Bye!</local-command-stdout>",
        "<local-command-stderr>no</local-command-stderr>",
        "<bash-input>ls</bash-input>",
        "<bash-stdout>light.py</bash-stdout><bash-stderr></bash-stderr>",
        "Caveat: The messages below were generated by the user while running local commands.",
        "Stop hook feedback:\n- run the tests first",
        "PostToolUse:Edit hook feedback:\n- lint",
        "UserPromptSubmit hook output: be brief",
    ],
)
def test_what_the_client_says_in_the_persons_place_is_no_prompt(file: Path, words: str) -> None:
    for content in (words, [text(words)]):
        tale = Tale(prompt_ids=False).prompt("Go").agent("Yes.").prompt(content).agent("On.")
        assert prompts(file, tale) == ["Go"]


@pytest.mark.parametrize("mark", ["isMeta", "isCompactSummary", "isSidechain"])
def test_lines_that_are_marked_as_not_the_persons_are_passed_over(file: Path, mark: str) -> None:
    tale = Tale(prompt_ids=False).prompt("Go").agent("Yes.")
    tale.user("This session is being continued from an earlier one.", **{mark: True})
    if mark == "isSidechain":
        tale.agent("I am another.", isSidechain=True)
    assert told(file, tale.agent("Done.")) == [
        (PROMPT, "Go"), (STATEMENT, "Yes."), (STATEMENT, "Done."), (STOP, "Done."),
    ]  # fmt: skip


def test_lines_that_are_nobodys_words_are_passed_over_and_not_counted_as_broken(file: Path) -> None:
    tale = Tale().noise().prompt("Go").noise().agent("Done.").noise()
    assert told(file, tale) == [(PROMPT, "Go"), (STATEMENT, "Done."), (STOP, "Done.")]
    read = Transcript(file)
    list(read.events())
    assert (read.lines, read.unreadable) == (len(tale.lines), 0)


def test_a_command_that_the_client_answers_is_no_prompt(file: Path) -> None:
    tale = (
        Tale(prompt_ids=False)
        .command("clear")
        .user("<local-command-stdout></local-command-stdout>")
    )
    tale.prompt("Go").agent("Done.")
    assert prompts(file, tale) == ["Go"]


def test_a_command_that_the_agent_works_on_is_a_prompt_as_it_was_typed(file: Path) -> None:
    tale = Tale().prompt("Go").agent("Done.")
    tale.command("review", "light.py  --strict").user("Review the file.", isMeta=True)
    tale.agent("I review it.").bash("make lint").agent("It is fine.")
    assert told(file, tale)[3:] == [
        (PROMPT, "/review light.py  --strict"),
        (STATEMENT, "I review it."),
        (USED, {"stdout": "", "stderr": "", "interrupted": False, "isImage": False}),
        (STATEMENT, "It is fine."),
        (STOP, "It is fine."),
    ]


def test_a_command_in_the_other_order_of_its_parts_is_the_same(file: Path) -> None:
    wrapped = "<command-message>it runs…</command-message>\n<command-name>/review</command-name>"
    assert prompts(file, Tale().prompt(wrapped).agent("I review.")) == ["/review"]


def test_a_prompt_that_speaks_of_commands_is_a_prompt(file: Path) -> None:
    words = "Why does my transcript say <command-name>/clear</command-name> here?"
    assert prompts(file, Tale().prompt(words).agent("Since it was run.")) == [words]


def test_a_notification_of_a_task_is_what_the_agent_was_asked(file: Path) -> None:
    words = "<task-notification><task-id>b1</task-id><status>completed</status></task-notification>"
    assert prompts(file, Tale().prompt(words).agent("The build is done.")) == [words]


def test_a_session_in_which_nobody_asked_anything_has_no_turn(file: Path) -> None:
    tale = Tale().user("meta", isMeta=True).agent("Hello.").bash("ls")
    assert [moment.kind for moment in moments(file, tale)] == ["SessionStart", "SessionEnd"]
    assert sessions(file, tale.data())[0] == []


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\0\0\0\n", b'{"type":"summary","summary":"x"}\n'])
def test_a_file_without_a_conversation_holds_no_session(file: Path, data: bytes) -> None:
    assert moments(file, data) == []


# Several sessions in one file


def test_each_session_of_a_file_is_told_on_its_own(file: Path) -> None:
    first, second = (
        Tale("first").prompt("One").agent("1."),
        Tale("second").prompt("Two").agent("2."),
    )
    found = moments(file, first.data() + second.data())
    assert [(moment.kind, moment.payload["session_id"]) for moment in found] == [
        (event, session)
        for session in ("first", "second")
        for event in ("SessionStart", PROMPT, STATEMENT, STOP, "SessionEnd")
    ]


def test_statements_of_a_turn_are_its_sessions_and_no_others(file: Path) -> None:
    mine = Tale().prompt("One").agent("Mine.")
    prompt_id = f"prompt-{SESSION}-0001"
    other = Tale("another").user("One", promptId=prompt_id).agent("Not mine.")
    file.write_bytes(other.data() + mine.data() + other.data())
    found = statements_of(file, turn_of(prompt_id))
    assert [moment.payload["statement"] for moment in found] == ["Mine."]
    assert statements_of(file, turn_of(prompt_id, content_session_id="a-third")) == []


def test_statements_are_those_of_the_turn_and_not_of_the_next(file: Path) -> None:
    tale = Tale().prompt("One").agent("1.").prompt("Two").agent("2.").prompt("Three").agent("3.")
    file.write_bytes(tale.data())
    second = moments(file, tale)[4].payload["prompt_id"]
    found = statements_of(file, turn_of(str(second)))
    assert [moment.payload["statement"] for moment in found] == ["2."]


def test_without_prompt_ids_a_turn_in_the_same_words_is_found_by_its_number(file: Path) -> None:
    tale = Tale(prompt_ids=False)
    for words in ("First.", "Second.", "Third."):
        tale.prompt(" go on\n").agent(words)
    file.write_bytes(tale.data())
    for number, words in ((1, "First."), (2, "Second."), (3, "Third.")):
        turn = turn_of(f"number-{number}", prompt="go on", prompt_number=number)
        assert [m.payload["statement"] for m in statements_of(file, turn)] == [words]


def test_without_prompt_ids_a_turn_that_hooks_saw_late_is_found_by_its_time(file: Path) -> None:
    tale = Tale(prompt_ids=False)
    for words in ("First.", "Second."):
        tale.prompt("go on").agent(words)
    turn = turn_of("number-7", prompt="go on", prompt_number=7, started_ms=OLD + 3100)
    file.write_bytes(tale.data())
    assert [m.payload["statement"] for m in statements_of(file, turn)] == ["Second."]


def test_a_turn_that_the_file_does_not_have_yet_has_no_statements(file: Path) -> None:
    file.write_bytes(Tale().prompt("One").agent("1.").data())
    assert statements_of(file, turn_of("not-there")) == []
    assert statements_of(file, turn_of("number-1", prompt="Another")) == []
    file.write_bytes(b"")
    assert statements_of(file, turn_of("not-there")) == []


# What is broken


def test_two_objects_on_one_line_are_two_lines(file: Path) -> None:
    tale = Tale().prompt("Go").agent("Done.")
    assert told(file, b"".join(tale.lines)) == [
        (PROMPT, "Go"),
        (STATEMENT, "Done."),
        (STOP, "Done."),
    ]
    assert told(file, b" , ".join(tale.lines)) == told(file, tale)


def test_half_a_line_at_the_end_is_counted_and_the_rest_is_told(file: Path) -> None:
    tale = Tale().prompt("Go").agent("Done.").agent("Cut off here.")
    data = tale.data()[:-40]
    assert told(file, data) == [(PROMPT, "Go"), (STATEMENT, "Done."), (STOP, "Done.")]
    read = Transcript(file)
    list(read.events())
    assert read.unreadable == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.replace(b"\n", b"\n\0\0\0\n"),
        lambda data: b"\0\0" + data,
        lambda data: data.replace(b"\n", b"\n\n \n"),
        lambda data: data.rstrip(b"\n"),
    ],
    ids=["a byte order mark", "CRLF", "lines of NUL", "NUL before", "empty lines", "no last end"],
)
def test_marks_of_other_systems_and_crashes_change_nothing(
    file: Path, change: Callable[[bytes], bytes]
) -> None:
    tale = Tale().prompt("Go").bash("make", "built").agent("Done.")
    assert told(file, change(tale.data())) == told(file, tale)


def test_bytes_that_are_no_text_and_half_characters_leave_text_that_can_be_stored(
    file: Path,
) -> None:
    tale = Tale().prompt("Go \ud83d on").agent("caf\xe9 \udc80").bash("x", "\ud83d\ude80 whole")
    data = tale.data().replace(b"Go", b"G\xff\xfeo")
    found = told(file, data)
    json.dumps(found, ensure_ascii=False).encode("utf-8")
    assert found[0] == (PROMPT, "G\ufffd\ufffdo ? on")
    assert found[2][1]["stdout"] == "\U0001f680 whole"
    past, _ = sessions(file, data)
    assert "\U0001f680" in str(past[0].turns[0].events[2].tool_response)


def test_a_value_that_was_redacted_in_the_middle_is_read_as_it_is(file: Path) -> None:
    tale = Tale().prompt("Deploy with REDACTED to stage").agent("Done.", timestamp="REDACTED")
    assert prompts(file, tale) == ["Deploy with REDACTED to stage"]
    tale = Tale().prompt("Go", message="REDACTED").prompt("On").agent("x", message={"content": 1})
    assert prompts(file, tale) == ["On"]


def test_lines_without_a_time_are_at_the_time_of_the_line_before(file: Path) -> None:
    tale = Tale().prompt("Go").agent("Yes.", timestamp=None).bash("make")
    past, _ = sessions(file, tale.data())
    assert [event.arrived_ms - OLD for event in past[0].turns[0].events] == [1000, 1000, 4000, 4000]


def test_a_session_whose_first_line_has_no_time_begins_with_the_first_that_has(file: Path) -> None:
    tale = Tale().prompt("Go", timestamp=None).agent("Yes.").agent("Done.", timestamp=None)
    past, _ = sessions(file, tale.data())
    assert past[0].started_ms == OLD + 2000
    assert {event.arrived_ms for event in past[0].turns[0].events} == {OLD + 2000}


def test_a_session_without_any_time_is_as_old_as_its_file(file: Path) -> None:
    tale = Tale().prompt("Go", timestamp=None).agent("Done.", timestamp=None)
    file.write_bytes(tale.data())
    os.utime(file, (1_650_000_000, 1_650_000_000))
    wished = ImportOptions("/nowhere", "", 0, 8192)
    (found,) = PastSessionReader(file, wished.reader(), 0).sessions()
    assert (found.started_ms, found.ended_ms) == (1_650_000_000_000, 1_650_000_000_000)


@pytest.mark.parametrize(
    "broken", ["", "yesterday", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", 17, {}]
)
def test_a_time_that_cannot_be_is_no_time(file: Path, broken: Any) -> None:
    tale = Tale().prompt("Go").agent("Done.", timestamp=broken)
    assert [moment.at_ms for moment in moments(file, tale)][2] is None


def test_a_time_without_a_zone_is_the_clients_own_which_is_utc(file: Path) -> None:
    tale = Tale().prompt("Go", timestamp=stamp(OLD).removesuffix("Z"))
    assert moments(file, tale)[1].at_ms == OLD


def test_a_line_of_three_megabytes_is_read(file: Path) -> None:
    long = "x" * 3_000_000
    tale = Tale().prompt("Go").bash("cat big", long).agent("It is long.")
    found = told(file, tale)
    assert found[1][1]["stdout"] == long
    assert found[-1] == (STOP, "It is long.")


def test_a_line_that_is_too_long_is_counted_and_the_rest_is_told(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "LONGEST_LINE", 2000)
    tale = Tale().prompt("Go").bash("cat big", "x" * 9000).agent("Done.")
    tale.agent("y" * 1990)
    assert told(file, tale) == [(PROMPT, "Go"), (STATEMENT, "Done."), (STOP, "Done.")]
    read = Transcript(file)
    list(read.events())
    assert (read.lines, read.unreadable) == (3, 2)


def test_a_line_nested_too_deeply_is_counted_and_the_rest_is_told(file: Path) -> None:
    tale = Tale().prompt("Go").raw(b'{"type":"user","message":' + b"[" * 100_000)
    deep = b'{"a":' * 900 + b"1" + b"}" * 900
    tale.tool("Grep", {"pattern": "DEEP"}, "found").agent("Done.")
    data = tale.data().replace(b'"DEEP"', deep)
    found, past = sessions(file, data)
    assert past.transcript.unreadable + past.unreadable >= 1
    assert [event.kind for event in found[0].turns[0].events][-2:] == [STATEMENT, STOP]


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = ("type", "message", "sessionId", "cwd", "promptId", "uuid", "timestamp", "isMeta",
          "isSidechain", "isApiErrorMessage", "error", "toolUseResult")  # fmt: skip
PARTS = ("id", "role", "content", "type", "text", "name", "input", "tool_use_id", "is_error")


def replaced(value: Any, name: str, by: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: by if key == name else replaced(inner, name, by) for key, inner in value.items()
        }
    if isinstance(value, list):
        return [replaced(inner, name, by) for inner in value]
    return value


@settings(max_examples=150)
@given(st.sampled_from((*FIELDS, *PARTS)), anything, st.integers(0, 6))
def test_a_wrong_type_in_any_field_of_any_line_stops_nothing(
    tmp_path_factory: pytest.TempPathFactory, name: str, by: Any, place: int
) -> None:
    tale = Tale().prompt([text("Go")]).agent("Yes.").bash("make", "built").failing("x", "no lamp")
    tale.lines[place % len(tale.lines)] = json.dumps(
        replaced(json.loads(tale.lines[place % len(tale.lines)]), name, by)
    ).encode()
    tale.prompt("Is it well?").agent("It is well.")
    file = tmp_path_factory.mktemp("wrong") / "wrong.jsonl"
    found, past = sessions(file, tale.data())
    last = [session.turns[-1] for session in found if session.session_id == SESSION][-1]
    assert (last.prompt, last.events[-1].text) == ("Is it well?", "It is well.")
    assert past.transcript.lines == len(tale.lines)
    for session in found:
        repr(session).encode("utf-8")


@settings(max_examples=150)
@given(st.data())
def test_damage_anywhere_in_a_file_stops_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    tale = Tale().prompt("Go").agent("Yes.").bash("make", "built").prompt("On").agent("Done.")
    whole = tale.data()
    start = data.draw(st.integers(0, len(whole)))
    length = data.draw(st.integers(0, 300))
    rubbish = data.draw(st.binary(max_size=40))
    file = tmp_path_factory.mktemp("damaged") / "damaged.jsonl"
    found, _ = sessions(file, whole[:start] + rubbish + whole[start + length :])
    for session in found:
        repr(session).encode("utf-8")


# What is no file


def test_a_pipe_in_a_transcripts_place_blocks_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(BadInput, match="is not a file"):
        list(Transcript(tmp_path / "pipe.jsonl").events())
    with pytest.raises(BadInput, match="is not a file"):
        statements_of(tmp_path / "pipe.jsonl", turn_of("x"))


def test_a_directory_a_loop_and_nothing_at_all_are_errors_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    (tmp_path / "directory.jsonl").mkdir()
    for name in ("loop.jsonl", "missing.jsonl", "directory.jsonl"):
        with pytest.raises((OSError, BadInput)):
            list(Transcript(tmp_path / name).events())


def test_a_path_is_within_only_if_it_is_a_transcript_there_behind_every_link(
    tmp_path: Path,
) -> None:
    inside, outside = tmp_path / "projects", tmp_path / "outside"
    (inside / "x").mkdir(parents=True)
    outside.mkdir()
    for path in (inside / "x/good.jsonl", outside / "bad.jsonl", inside / "x/notes.txt"):
        path.touch()
    (inside / "x/link.jsonl").symlink_to(outside / "bad.jsonl")
    (inside / "x/near.jsonl").symlink_to("good.jsonl")
    (inside / "x/loop.jsonl").symlink_to("loop.jsonl")
    (tmp_path / "alias").symlink_to(inside)
    good = ["projects/x/good.jsonl", "projects/x/near.jsonl", "alias/x/good.jsonl",
            "projects/x/to-come.jsonl"]  # fmt: skip
    bad = ["projects/x/link.jsonl", "projects/x/notes.txt", "outside/bad.jsonl", "projects",
           "projects/../outside/bad.jsonl", "projects/x/loop.jsonl", "projects-of-another/a.jsonl",
           "projects/x/\0.jsonl"]  # fmt: skip
    for root in (inside, tmp_path / "alias"):
        assert [name for name in good if not is_within(f"{tmp_path}/{name}", root)] == []
        assert [name for name in bad if is_within(f"{tmp_path}/{name}", root)] == []
    others: list[Any] = ["good.jsonl", "", None, 7, ["x"]]
    for value in others:
        assert not is_within(value, inside)
    assert not is_within(f"{inside}/x/good.jsonl", None)


# What is private


HIDDEN = "the cook's birthday"


@pytest.mark.parametrize(
    "wrapped",
    [
        f"<private>{HIDDEN}</private>",
        f"<PRIVATE class='x'>{HIDDEN}</Private >",
        f"<private>{HIDDEN}",
        f"<private><private>a</private>{HIDDEN}</private>",
        f"<system-reminder>{HIDDEN}</system-reminder>",
        f"<claude-mem-context>{HIDDEN}</claude-mem-context>",
        f"<persisted-output>{HIDDEN}</persisted-output>",
    ],
)
def test_private_text_is_gone_wherever_it_stands(file: Path, wrapped: str) -> None:
    tale = Tale().prompt(f"Go {wrapped}").agent(f"Yes. {wrapped}")
    tale.bash(f"echo '{wrapped}'", wrapped, stderr=wrapped).failing("x", f"no lamp {wrapped}")
    tale.tool("Grep", {"deep": [{"in": [wrapped]}]}, [text(wrapped)], content=[text(wrapped)])
    tale.edit(f"/home/{wrapped}.py", wrapped, f"x {wrapped}").command("review", wrapped)
    tale.agent("Reviewed.")
    for data in (tale.data(), tale.data().replace(b"\n", b""), tale.data()[:-30]):
        assert HIDDEN not in repr(moments(file, data))


@pytest.mark.parametrize(
    "spelled",
    [rb"\u003cprivate\u003e", rb"\u003Cprivate>", rb"<\u0070rivate>", rb"\\u003cprivate>",
     rb"<private\n>", rb"<PRIV\u0041TE>"],
)  # fmt: skip
def test_private_text_is_gone_however_its_tag_is_spelled(file: Path, spelled: bytes) -> None:
    data = Tale().prompt("Go TAG").agent("Done TAG").bash("x", "TAG").data()
    data = data.replace(b"TAG", spelled + HIDDEN.encode() + rb"<\/private>")
    assert HIDDEN not in repr(moments(file, data))
    assert moments(file, data)[-2].payload["last_assistant_message"] == "Done"


@settings(max_examples=300)
@given(
    st.lists(
        st.sampled_from([b"<", b">", b"/", b"\\", b"\\u003c", b"\\U003C", b"u00", b"private", b"x",
                         b"PRIVATE", b'"', b" ", b"\\u0070rivate", *NAMES]),
        max_size=14,
    ).map(b"".join)
)  # fmt: skip
def test_what_is_looked_for_before_scanning_misses_nothing_that_scanning_finds(line: bytes) -> None:
    assert transcript._without_private(line) == strip_private(line)


@pytest.mark.parametrize("prompt_ids", [True, False])
@pytest.mark.parametrize(
    "content",
    [f"<private>{HIDDEN}</private>", [text(f" <private>{HIDDEN}</private>\n")],
     [image(), text(f"<private>{HIDDEN}")], [image()]],
)  # fmt: skip
def test_a_prompt_that_is_private_as_a_whole_leaves_nothing_of_its_turn(
    file: Path, prompt_ids: bool, content: Any
) -> None:
    tale = Tale(prompt_ids=prompt_ids).prompt("Go").agent("Done.")
    tale.prompt(content).agent("The cake is ordered.").bash("order cake", "ordered")
    tale.failing("pay", "no money for the cake").agent("All about the cake.")
    tale.prompt("Go on").agent("Went on.")
    found, past = sessions(file, tale.data())
    (session,) = found
    assert [(turn.number, turn.prompt) for turn in session.turns] == [
        (1, "Go"), (2, None), (3, "Go on"),
    ]  # fmt: skip
    assert session.turns[1].events == ()
    assert session.turns[1].made is None
    assert "cake" not in repr(found)
    assert HIDDEN not in repr(found)
    assert past.text_chars == len("Go" + "Done." + "Go on" + "Went on.")


def test_a_line_of_results_alone_is_no_private_prompt(file: Path) -> None:
    tale = Tale(prompt_ids=False).prompt("Go").bash("make", "<private>x</private>").agent("Done.")
    assert prompts(file, tale) == ["Go"]

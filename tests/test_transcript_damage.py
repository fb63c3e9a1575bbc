"""Damaged transcripts are read as far as possible, and paths that are no transcript are refused."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claude_mem.errors import BadInput
from claude_mem.intake.transcripts import transcript
from claude_mem.intake.transcripts.import_options import ImportOptions
from claude_mem.intake.transcripts.past_sessions import PastSessionReader
from claude_mem.intake.transcripts.transcript import Transcript, is_within
from claude_mem.types import STATEMENT
from tests.transcripts import (
    OLD,
    SESSION,
    Chat,
    read_conversation,
    read_events,
    read_prompts,
    read_sessions,
    stamp,
    text,
)

PROMPT, STOP = "UserPromptSubmit", "Stop"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / f"{SESSION}.jsonl"


# Damaged lines


def test_two_objects_on_one_line_are_two_lines(file: Path) -> None:
    chat = Chat().prompt("Go").agent("Done.")
    assert read_conversation(file, b"".join(chat.lines)) == [
        (PROMPT, "Go"),
        (STATEMENT, "Done."),
        (STOP, "Done."),
    ]
    assert read_conversation(file, b" , ".join(chat.lines)) == read_conversation(file, chat)


def test_half_a_line_at_the_end_is_counted_and_the_rest_is_told(file: Path) -> None:
    chat = Chat().prompt("Go").agent("Done.").agent("Cut off here.")
    data = chat.data()[:-40]
    assert read_conversation(file, data) == [(PROMPT, "Go"), (STATEMENT, "Done."), (STOP, "Done.")]
    reader = Transcript(file)
    list(reader.events())
    assert reader.unreadable == 1


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
    chat = Chat().prompt("Go").bash("make", "built").agent("Done.")
    assert read_conversation(file, change(chat.data())) == read_conversation(file, chat)


def test_bytes_that_are_no_text_and_half_characters_leave_text_that_can_be_stored(
    file: Path,
) -> None:
    chat = Chat().prompt("Go \ud83d on").agent("caf\xe9 \udc80").bash("x", "\ud83d\ude80 whole")
    data = chat.data().replace(b"Go", b"G\xff\xfeo")
    conversation = read_conversation(file, data)
    json.dumps(conversation, ensure_ascii=False).encode("utf-8")
    assert conversation[0] == (PROMPT, "G\ufffd\ufffdo ? on")
    assert conversation[2][1]["stdout"] == "\U0001f680 whole"
    sessions, _ = read_sessions(file, data)
    assert "\U0001f680" in str(sessions[0].turns[0].events[2].tool_response)


def test_a_value_that_was_redacted_in_the_middle_is_read_as_it_is(file: Path) -> None:
    chat = Chat().prompt("Deploy with REDACTED to stage").agent("Done.", timestamp="REDACTED")
    assert read_prompts(file, chat) == ["Deploy with REDACTED to stage"]
    chat = Chat().prompt("Go", message="REDACTED").prompt("On").agent("x", message={"content": 1})
    assert read_prompts(file, chat) == ["On"]


def test_lines_without_a_time_are_at_the_time_of_the_line_before(file: Path) -> None:
    chat = Chat().prompt("Go").agent("Yes.", timestamp=None).bash("make")
    sessions, _ = read_sessions(file, chat.data())
    assert [event.arrived_ms - OLD for event in sessions[0].turns[0].events] == [
        1000,
        1000,
        4000,
        4000,
    ]


def test_a_session_whose_first_line_has_no_time_begins_with_the_first_that_has(file: Path) -> None:
    chat = Chat().prompt("Go", timestamp=None).agent("Yes.").agent("Done.", timestamp=None)
    sessions, _ = read_sessions(file, chat.data())
    assert sessions[0].started_ms == OLD + 2000
    assert {event.arrived_ms for event in sessions[0].turns[0].events} == {OLD + 2000}


def test_a_session_without_any_time_is_as_old_as_its_file(file: Path) -> None:
    chat = Chat().prompt("Go", timestamp=None).agent("Done.", timestamp=None)
    file.write_bytes(chat.data())
    os.utime(file, (1_650_000_000, 1_650_000_000))
    options = ImportOptions("/nowhere", "", 0)
    (session,) = PastSessionReader(file, options.reader(), 0).sessions()
    assert (session.started_ms, session.ended_ms) == (1_650_000_000_000, 1_650_000_000_000)


@pytest.mark.parametrize(
    "broken", ["", "yesterday", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", 17, {}]
)
def test_a_time_that_cannot_be_is_no_time(file: Path, broken: Any) -> None:
    chat = Chat().prompt("Go").agent("Done.", timestamp=broken)
    assert [event.at_ms for event in read_events(file, chat)][2] is None


def test_a_time_without_a_zone_is_the_clients_own_which_is_utc(file: Path) -> None:
    chat = Chat().prompt("Go", timestamp=stamp(OLD).removesuffix("Z"))
    assert read_events(file, chat)[1].at_ms == OLD


def test_a_line_of_three_megabytes_is_read(file: Path) -> None:
    long = "x" * 3_000_000
    chat = Chat().prompt("Go").bash("cat big", long).agent("It is long.")
    conversation = read_conversation(file, chat)
    assert conversation[1][1]["stdout"] == long
    assert conversation[-1] == (STOP, "It is long.")


def test_a_line_that_is_too_long_is_counted_and_the_rest_is_told(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "LONGEST_LINE", 2000)
    chat = Chat().prompt("Go").bash("cat big", "x" * 9000).agent("Done.")
    chat.agent("y" * 1990)
    assert read_conversation(file, chat) == [(PROMPT, "Go"), (STATEMENT, "Done."), (STOP, "Done.")]
    reader = Transcript(file)
    list(reader.events())
    assert (reader.lines, reader.unreadable) == (3, 2)


def test_a_line_nested_too_deeply_is_counted_and_the_rest_is_told(file: Path) -> None:
    chat = Chat().prompt("Go").raw(b'{"type":"user","message":' + b"[" * 100_000)
    deep = b'{"a":' * 900 + b"1" + b"}" * 900
    chat.tool("Grep", {"pattern": "DEEP"}, "found").agent("Done.")
    data = chat.data().replace(b'"DEEP"', deep)
    sessions, reader = read_sessions(file, data)
    assert reader.transcript.unreadable + reader.unreadable >= 1
    assert [event.kind for event in sessions[0].turns[0].events][-2:] == [STATEMENT, STOP]


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
    tmp_path_factory: pytest.TempPathFactory, name: str, by: Any, number: int
) -> None:
    chat = Chat().prompt([text("Go")]).agent("Yes.").bash("make", "built").failing("x", "no lamp")
    chat.lines[number % len(chat.lines)] = json.dumps(
        replaced(json.loads(chat.lines[number % len(chat.lines)]), name, by)
    ).encode()
    chat.prompt("Is it well?").agent("It is well.")
    file = tmp_path_factory.mktemp("wrong") / "wrong.jsonl"
    sessions, reader = read_sessions(file, chat.data())
    last = [session.turns[-1] for session in sessions if session.session_id == SESSION][-1]
    assert (last.prompt, last.events[-1].text) == ("Is it well?", "It is well.")
    assert reader.transcript.lines == len(chat.lines)
    for session in sessions:
        repr(session).encode("utf-8")


@settings(max_examples=150)
@given(st.data())
def test_damage_anywhere_in_a_file_stops_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    chat = Chat().prompt("Go").agent("Yes.").bash("make", "built").prompt("On").agent("Done.")
    content = chat.data()
    start = data.draw(st.integers(0, len(content)))
    length = data.draw(st.integers(0, 300))
    rubbish = data.draw(st.binary(max_size=40))
    file = tmp_path_factory.mktemp("damaged") / "damaged.jsonl"
    sessions, _ = read_sessions(file, content[:start] + rubbish + content[start + length :])
    for session in sessions:
        repr(session).encode("utf-8")


# Paths that are not transcripts


def test_a_pipe_in_a_transcripts_place_blocks_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(BadInput, match="is not a file"):
        list(Transcript(tmp_path / "pipe.jsonl").events())


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
    invalid: list[Any] = ["good.jsonl", "", None, 7, ["x"]]
    for value in invalid:
        assert not is_within(value, inside)
    assert not is_within(f"{inside}/x/good.jsonl", None)

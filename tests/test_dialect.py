"""Payloads become events: shortened, without secrets, and with a key that depends on content."""

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.errors import BadInput
from claude_mem.hook import spooling
from claude_mem.intake.event_reader import (
    LONGEST_ID,
    OWN_TOOLS,
    EventHeader,
    EventReader,
    content_key,
)
from claude_mem.intake.projects import Projects
from claude_mem.intake.spool import DrainCounts, Intake
from claude_mem.json_objects import SHORT_PAYLOAD, limit_work, shorten_json
from claude_mem.redaction import Redactor
from claude_mem.types import Event, Json
from tests.payloads import (
    PROJECT_DIR,
    SESSION,
    Payload,
    as_bytes,
    common,
    edit,
    failure,
    post_compact,
    prompt,
    session_start,
    stop,
    stop_failure,
    subagent_stop,
    tool,
)
from tests.story import Story

SMALLEST = 256
TOKEN = "ghp" + "_" + "aB3dE5gH7jK9mN1pQ3sT5vW7xY9zA2cD4fG6"
READER = EventReader(Redactor(), Projects(home=None), SMALLEST, frozenset({"TodoWrite"}))


def event_of(payload: Payload, **changes: Any) -> Event:
    header = {"kind": payload.get("hook_event_name", ""), "arrived_ms": 5, **changes}
    return READER.read(EventHeader(**header), payload)


# Shortening

long_text = st.text(max_size=40).map(lambda text: text * 30) | st.text(max_size=400)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | long_text,
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(), inner, max_size=8),
    max_leaves=40,
)
limits = st.integers(SMALLEST, 3000)


@given(value=json_values, limit=limits)
def test_a_value_becomes_json_within_the_limit(value: Json, limit: int) -> None:
    text = shorten_json(value, limit)
    assert len(text) <= limit
    parsed = json.loads(text)
    untruncated = json.dumps(value, ensure_ascii=False)
    if len(untruncated) <= limit:
        assert parsed == value
        assert text == untruncated


@pytest.mark.parametrize(
    "value",
    [
        ["x" * 10] * 10_000,
        [[]] * 10_000,
        list(range(10_000)),
        {f"name {n}": n for n in range(10_000)},
        {"\\" * 9000: '"' * 9000},
        '"' * 10_000,
        "\\" * 10_000,
        "\n" * 10_000,
        "\x00" * 10_000,
        "灯" * 10_000,
        "🗼" * 10_000,
    ],
    ids=lambda value: json.dumps(value)[:20],
)
@pytest.mark.parametrize("limit", [SMALLEST, 1000, 8192])
def test_what_no_shorter_text_makes_small_is_still_json_within_the_limit(
    value: Json, limit: int
) -> None:
    text = shorten_json(value, limit)
    assert len(text) <= limit
    json.loads(text)


def test_long_texts_are_cut_and_the_rest_stays() -> None:
    value: dict[str, Json] = {"stdout": "x" * 100_000, "more": ["short", {"code": 2, "ok": False}]}
    cut_down = json.loads(shorten_json(value, 8192))
    assert cut_down["stdout"].startswith("xxx") and cut_down["stdout"].endswith("xxx")
    assert {**cut_down, "stdout": ""} == {**value, "stdout": ""}


def size_of(value: Json) -> int:
    return len(json.dumps(value, ensure_ascii=False))


@pytest.mark.parametrize(
    "value",
    [
        "to" + "ken=" * 1_000_000,
        ["x" * 100_000] * 100,
        [["x"]] * 1_000_000,
        {f"key{n}": n for n in range(300_000)},
        {"x" * 100_000 + str(n): "" for n in range(20)},
        {"x" * 100_000 + str(n): "" for n in range(10)},
        {f"key{n}": "x" * 100_000 for n in range(10)},
    ],
    ids=["a text", "texts", "items", "members", "names", "few names", "few members"],
)
def test_of_a_field_of_any_size_only_so_much_is_searched(value: Json) -> None:
    payload: dict[str, Json] = {"tool_input": {"x": 1}, "tool_response": value, "note": "short"}
    limited = limit_work(payload)
    assert size_of(limited["tool_response"]) < 900_000
    assert {**limited, "tool_response": value} == payload


@given(value=json_values)
def test_of_what_is_not_large_all_is_searched(value: Json) -> None:
    assert limit_work({"tool_response": value}) == {"tool_response": value}


@pytest.mark.parametrize("item", [1, "", [], {}, "a" * 1000, {"a": 1}])
def test_no_short_payload_needs_a_limit(item: Json) -> None:
    """The densest one: as many items as its bytes can hold."""
    items: list[Json] = [item] * (SHORT_PAYLOAD // (len(json.dumps(item)) + 1) - 20)
    payload: dict[str, Json] = {"tool_response": items}
    assert len(json.dumps(payload, separators=(",", ":"))) <= SHORT_PAYLOAD
    assert limit_work(payload) == payload


@pytest.mark.parametrize("before", [0, 150_000, 196_590, 196_600, 250_000, 262_130, 400_000])
def test_a_secret_of_a_long_text_is_never_stored_in_part(before: int) -> None:
    text = "word " * (before // 5) + TOKEN + " word" * 100_000
    event = event_of(tool(tool_response={"stdout": text}))
    assert TOKEN[:12] not in str(event) and TOKEN[-12:] not in str(event)


# Keys


def key_of(payload: Payload) -> str:
    return content_key(payload["hook_event_name"], payload["session_id"], payload)


EVENTS = [
    session_start(),
    prompt(),
    prompt(prompt_id=None),
    tool(),
    failure(),
    stop(),
    subagent_stop(),
    post_compact(),
]


@pytest.mark.parametrize("payload", EVENTS, ids=lambda payload: payload["hook_event_name"])
def test_the_same_event_has_the_same_key_in_whatever_order_it_is_written(payload: Payload) -> None:
    turned = dict(reversed(payload.items()))
    assert key_of(payload) == key_of(turned) == key_of(json.loads(as_bytes(payload)))


@pytest.mark.parametrize("payload", EVENTS, ids=lambda payload: payload["hook_event_name"])
@pytest.mark.parametrize("name", ["session_id", "hook_event_name", "agent_id"])
def test_another_session_kind_or_agent_is_another_event(payload: Payload, name: str) -> None:
    assert key_of({**payload, name: "another"}) != key_of(payload)


def test_a_tool_is_known_by_its_id_alone() -> None:
    first = tool(tool_use_id="toolu_a")
    again = tool(tool_use_id="toolu_a", duration_ms=99, tool_response="later", prompt_id="other")
    assert key_of(first) == key_of(again)
    assert key_of(first) != key_of({**first, "tool_use_id": "toolu_b"})
    assert key_of(first) != key_of(failure(tool_use_id="toolu_a"))


def test_a_prompt_is_known_by_its_id_alone() -> None:
    assert key_of(prompt("a", prompt_id="p1")) == key_of(prompt("b", prompt_id="p1"))
    assert key_of(prompt("a", prompt_id="p1")) != key_of(prompt("a", prompt_id="p2"))


def test_other_events_are_known_by_all_they_say() -> None:
    assert key_of(stop("a")) != key_of(stop("b"))
    assert key_of(stop("a", prompt_id="p1")) != key_of(stop("a", prompt_id="p2"))
    assert key_of(prompt("a", prompt_id=None)) != key_of(prompt("b", prompt_id=None))


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_every_payload_has_a_key_and_it_says_nothing(payload: dict[str, Json]) -> None:
    named = {**payload, "agent_id": None, "tool_use_id": None, "prompt_id": None}
    key = content_key("Stop", SESSION, named)
    assert key == content_key("Stop", SESSION, json.loads(json.dumps(named)))
    assert len(key) == 32 and set(key) <= set("0123456789abcdef")


def test_half_a_character_has_a_key_too() -> None:
    assert key_of(stop("\ud83d")) != key_of(stop("\ud83e"))


# Invalid payloads


@pytest.mark.parametrize(
    "wrong", [None, "", 7, 1.5, True, [], ["a"], {}, {"id": "a"}, "x" * (LONGEST_ID + 1)]
)
def test_a_session_id_that_is_none_is_refused(wrong: Json) -> None:
    with pytest.raises(BadInput) as caught:
        event_of({**tool(), "session_id": wrong})
    assert caught.value.field == "session_id"


@pytest.mark.parametrize("name", ["prompt_id", "agent_id", "tool_use_id", "tool_name"])
@pytest.mark.parametrize("wrong", [7, True, ["a"], {"id": "a"}, "x" * (LONGEST_ID + 1)])
def test_an_identifier_that_is_no_short_text_is_refused(name: str, wrong: Json) -> None:
    with pytest.raises(BadInput) as caught:
        event_of({**tool(), name: wrong})
    assert caught.value.field == name


def test_a_payload_without_a_session_is_refused() -> None:
    with pytest.raises(BadInput, match="session_id"):
        event_of({"hook_event_name": "Stop"})


def test_a_payload_that_does_not_say_what_it_is_is_refused() -> None:
    with pytest.raises(BadInput) as caught:
        event_of({"session_id": SESSION})
    assert caught.value.field == "hook_event_name"


@pytest.mark.parametrize("name", ["cwd", "transcript_path", "prompt", "last_assistant_message"])
@pytest.mark.parametrize("wrong", [None, 7, ["a"], {"a": 1}])
def test_a_text_that_is_none_counts_as_empty(name: str, wrong: Json) -> None:
    event = event_of({**prompt(), **stop(), "hook_event_name": "UserPromptSubmit", name: wrong})
    expected = {"cwd": "", "transcript_path": "", "prompt": "", "last_assistant_message": None}
    field = "text" if name == "last_assistant_message" else name
    assert getattr(event, field) == expected[name]


def test_the_hook_knows_better_than_the_payload_which_event_and_project_it_is() -> None:
    event = event_of(tool(cwd="/home/dev/harbor/src"), kind="Stop", project_dir="/home/dev/harbor")
    assert (event.kind, event.project_dir, event.cwd) == (
        "Stop",
        "/home/dev/harbor",
        "/home/dev/harbor/src",
    )
    assert event_of(tool(), kind="").kind == "PostToolUse"
    assert event_of(tool(cwd="/home/dev/pier")).project.name == "pier"


# The fields of an event


def test_the_whole_file_before_an_edit_is_not_kept() -> None:
    event = event_of(edit(old="blink(1)", new="blink(2)"))
    assert event.tool_response is not None
    response = json.loads(event.tool_response)
    assert "originalFile" not in event.tool_response
    assert isinstance(response, dict) or "structuredPatch" in response


def test_an_image_is_not_kept() -> None:
    event = event_of(tool("Read", tool_response={"type": "image", "base64": "iVBOR" * 9999}))
    assert json.loads(event.tool_response or "") == {"type": "image", "base64": "[image]"}


def test_what_was_said_is_the_text_of_the_event() -> None:
    assert event_of(stop("Done.")).text == "Done."
    assert event_of(failure(error="broken")).text == "broken"
    assert event_of(stop_failure()).text == "API Error: 400\nunknown"
    summary = event_of(post_compact()).text
    assert summary == "<summary>The light blinks; the fuse was changed.</summary>"
    assert event_of(tool()).text is None


def test_only_a_prompt_has_a_prompt() -> None:
    assert event_of(prompt("Mend it")).prompt == "Mend it"
    assert event_of(common("UserPromptExpansion", prompt="/x")).prompt is None


def test_the_details_of_an_event_are_what_nobody_asked_for_yet() -> None:
    event = event_of(common("AnEventOfNextYear", something=["new"], background_tasks=[1]))
    assert event.detail == {"something": ["new"]}
    assert event_of(session_start("resume")).detail == {"source": "resume"}


def test_long_details_are_cut() -> None:
    event = event_of(common("AnEventOfNextYear", something="x" * 100_000))
    assert set(event.detail) == {"cut"}
    assert len(str(event.detail["cut"])) <= SMALLEST


def test_no_field_is_longer_than_the_limit_and_a_prompt_four_times_that() -> None:
    long = "x" * 100_000
    event = event_of(tool(tool_input={"a": long}, tool_response={"b": long}, error=long))
    for text in (event.tool_input, event.tool_response, event.text):
        assert text is not None and len(text) <= SMALLEST
    assert len(event_of(prompt(long)).prompt or "") == 4 * SMALLEST


@pytest.mark.parametrize(
    ("name", "skipped"),
    [
        ("TodoWrite", True),
        *((f"{own}search", True) for own in OWN_TOOLS),
        ("mcp__lamp__switch", False),
        ("Bash", False),
        (None, False),
        (["TodoWrite"], False),
    ],
)
def test_tools_on_the_skip_list_and_our_own_are_passed_over(name: Json, skipped: bool) -> None:
    assert READER.skips("PostToolUse", {"tool_name": name}) is skipped


# Secrets are redacted before values are shortened


def fragments(text: str, size: int = 10) -> set[str]:
    return {text[at : at + size] for at in range(len(text) - size + 1)}


def stored(event: Event) -> str:
    fields = (event.prompt, event.tool_input, event.tool_response, event.text)
    return "\n".join(text for text in (*fields, json.dumps(event.detail)) if text)


def at_every_place(write: Any) -> Iterator[str]:
    """A long text with the token wherever a cut may fall; fillers are words apart from it."""
    for place in range(0, 6 * SMALLEST, 7):
        yield write("_" * place + " " + TOKEN + " " + "_" * (8 * SMALLEST - place))


@pytest.mark.parametrize("field", ["prompt", "input", "response", "said", "error", "detail"])
def test_a_secret_that_a_cut_would_split_leaves_nothing_behind(field: str) -> None:
    payloads = {
        "prompt": lambda text: prompt(text),
        "input": lambda text: tool(tool_input={"command": text}),
        "response": lambda text: tool(tool_response={"stdout": text}),
        "said": lambda text: stop(text),
        "error": lambda text: failure(error=text),
        "detail": lambda text: common("AnEventOfNextYear", something=[text]),
    }
    leaked = {
        fragment
        for payload in at_every_place(payloads[field])
        for fragment in fragments(TOKEN) & fragments(stored(event_of(payload)))  # type: ignore[arg-type]
    }
    assert leaked == set()


def test_a_secret_is_no_part_of_the_key_that_one_could_read() -> None:
    event = event_of(stop(f"It is {TOKEN}."))
    assert event.text == "It is [redacted:github-token]."
    assert TOKEN not in event.key


# Through the spool


class Spooled(Story):
    """A story whose events come through the spool, as bytes."""

    def put(self, payload: Payload | bytes, project_dir: bytes = PROJECT_DIR.encode()) -> None:
        event = b"" if isinstance(payload, bytes) else payload["hook_event_name"].encode()
        data = payload if isinstance(payload, bytes) else as_bytes(payload)
        header = spooling.header(b"claude", event, time.time_ns(), project_dir)
        spooling.put(os.fsencode(self.layout.root), header, data)

    def drain(self) -> DrainCounts:
        drained = Intake(self.layout, self.store, self.reader).drain()
        assert list(self.layout.spool.glob("*.event")) == []
        return drained

    def rejected(self) -> list[str]:
        return [file.read_text() for file in sorted(self.layout.rejected.iterdir())]


@pytest.fixture
def spooled(tmp_path: Path) -> Iterator[Spooled]:
    with Spooled(tmp_path) as opened:
        yield opened


def test_what_was_spooled_is_stored_in_order_and_once(spooled: Spooled) -> None:
    for payload in (prompt(), tool(), edit(), stop()):
        spooled.put(payload)
        spooled.put(payload)
    assert spooled.drain() == DrainCounts(stored=4, duplicates=4)
    assert spooled.column("SELECT event FROM tool_events ORDER BY id") == [
        "UserPromptSubmit", "PostToolUse", "PostToolUse", "Stop",
    ]  # fmt: skip


def test_half_a_character_becomes_a_whole_one(spooled: Spooled) -> None:
    spooled.put(prompt("a lone \ud83d half"))
    spooled.put(tool(tool_input={"\udc00 name": ["\ud83d", {"x": "\ude00"}]}, tool_use_id="t"))
    spooled.put(stop("a whole \U0001f5fc stays"))
    spooled.put(common("AnEventOfNextYear", something="\ud83d"))
    assert spooled.drain() == DrainCounts(stored=4)
    assert spooled.column("SELECT prompt_text FROM user_prompts") == ["a lone ? half"]
    assert spooled.column("SELECT tool_input FROM tool_events WHERE tool_use_id = 't'") == [
        '{"? name": ["?", {"x": "?"}]}'
    ]
    assert spooled.column("SELECT text FROM tool_events WHERE event = 'Stop'") == [
        "a whole 🗼 stays"
    ]


BAD = {
    "no JSON": b"not json",
    "cut off": b'{"session_id": "a',
    "a list": b"[1, 2]",
    "a text": b'"text"',
    "null": b"null",
    "not UTF-8": b'{"session_id": "\xff"}',
    "no session": b'{"hook_event_name": "Stop"}',
    "a number for a session": b'{"session_id": 7, "hook_event_name": "Stop"}',
    "a list for a session": b'{"session_id": ["a"], "hook_event_name": "Stop"}',
    "too deep": b'{"session_id": "a", "x": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "too long a number": b'{"session_id": "a", "x": ' + b"9" * 9999 + b"}",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_bad_record_is_set_aside_and_stops_nobody(spooled: Spooled, bad: bytes) -> None:
    spooled.put(prompt())
    spooled.put(bad)
    spooled.put(stop())
    assert spooled.drain() == DrainCounts(stored=2, rejected=1)
    assert len(spooled.rejected()) == 1
    assert "moved to spool/rejected" in spooled.trouble()


def test_a_file_that_is_no_record_is_set_aside(spooled: Spooled) -> None:
    (spooled.layout.spool / "00000000000000000001-1.event").write_bytes(b"{}")
    assert spooled.drain() == DrainCounts(rejected=1)


def test_what_is_set_aside_is_free_of_secrets_and_private_parts(spooled: Spooled) -> None:
    spooled.put(f'["{TOKEN}", "<private>whispered</private>", "kept"]'.encode())
    spooled.drain()
    (aside,) = spooled.rejected()
    assert "kept" in aside and "[redacted:github-token]" in aside
    assert TOKEN not in aside and "whispered" not in aside


def test_skipped_tools_leave_no_trace(spooled: Spooled) -> None:
    spooled.put(tool("mcp__claude-mem__search"))
    assert spooled.drain() == DrainCounts(skipped=1)
    assert spooled.column("SELECT count(*) FROM sdk_sessions") == [0]


def escaped(text: str) -> bytes:
    return "".join(f"\\u{ord(character):04x}" for character in text).encode()


@pytest.mark.parametrize(
    "written",
    [
        TOKEN.encode(),
        escaped(TOKEN),
        escaped("ghp_") + TOKEN[4:].encode(),
        TOKEN.replace("_", "\\u005f").encode(),
    ],
    ids=["plain", "escaped", "prefix escaped", "one character escaped"],
)
def test_a_secret_is_found_however_its_json_is_written(spooled: Spooled, written: bytes) -> None:
    payload = as_bytes(tool(tool_input={"command": "TOKEN-HERE"}))
    spooled.put(payload.replace(b"TOKEN-HERE", written))
    assert spooled.drain() == DrainCounts(stored=1)
    (stored_input,) = spooled.column("SELECT tool_input FROM tool_events")
    assert json.loads(stored_input) == {"command": "[redacted:github-token]"}


def test_a_password_in_a_url_is_found_when_its_slashes_are_escaped(spooled: Spooled) -> None:
    url = "postgres://app:" + "hunter22" + "@db/x"
    payload = as_bytes(tool(tool_input={"command": url})).replace(b"://app", b":\\/\\/app")
    spooled.put(payload)
    spooled.drain()
    (stored_input,) = spooled.column("SELECT tool_input FROM tool_events")
    assert "hunter22" not in stored_input


def test_a_directory_whose_name_is_not_utf8_is_remembered_too(spooled: Spooled) -> None:
    spooled.put(prompt(cwd="/home/dev/caf?"), project_dir=b"/home/dev/caf\xe9")
    assert spooled.drain() == DrainCounts(stored=1)


def test_a_store_that_was_closed_leaves_the_events_in_the_spool(spooled: Spooled) -> None:
    """As when the worker is told to stop while it drains."""
    spooled.put(prompt())
    spooled.put(stop())
    spooled.store.close()
    with pytest.raises(sqlite3.Error):
        Intake(spooled.layout, spooled.store, spooled.reader).drain()
    assert len(list(spooled.layout.spool.glob("*.event"))) == 2
    assert spooled.rejected() == []


def test_a_stopped_intake_leaves_the_rest_in_the_spool(spooled: Spooled) -> None:
    spooled.put(prompt())
    intake = Intake(spooled.layout, spooled.store, spooled.reader)
    intake.stop()
    assert intake.drain() == DrainCounts()
    assert spooled.drain() == DrainCounts(stored=1)

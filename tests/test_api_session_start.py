"""The SessionStart hook's request: which context a session gets, also when it is resumed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from claude_mem.hook import spooling
from tests import payloads
from tests.api import SESSION_START, Api, open_api, record_header
from tests.payloads import PROJECT_DIR, SESSION, Payload, as_bytes
from tests.story import transactions_of


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with open_api(tmp_path / "data") as opened:
        yield opened


def context_of(api: Api, payload: Payload, project_dir: str = PROJECT_DIR) -> str:
    answer = api.start_session(payload, project_dir)
    assert answer.status_code == 200, answer.text
    return str(answer.json().get("hookSpecificOutput", {}).get("additionalContext", ""))


def test_a_new_session_is_given_the_memory_of_the_earlier_ones(api: Api) -> None:
    api.add_sessions(1)
    answer = api.start_session(payloads.session_start()).json()
    assert answer["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    context = answer["hookSpecificOutput"]["additionalContext"]
    assert "Said 0." in context
    assert context.encode() == api.get("/api/context/inject", project="harbor").content
    assert answer["systemMessage"].startswith("claude-mem: ")
    assert (answer["continue"], answer["suppressOutput"]) == (True, True)


def test_the_first_session_of_a_project_is_given_nothing(api: Api) -> None:
    api.add_sessions(1, "/home/dev/elsewhere")
    api.start_session(payloads.session_start(session_id="first"), "/home/dev/elsewhere")
    answer = api.start_session(payloads.session_start()).json()
    assert answer == {"continue": True, "suppressOutput": True}


@pytest.mark.parametrize("source", ["resume"])
def test_a_resumed_session_is_given_the_bytes_it_was_given_before(api: Api, source: str) -> None:
    api.add_sessions(2)
    before = context_of(api, payloads.session_start())
    api.add_turn(SESSION, "Blink", "It blinks.")
    api.add_turn("another", "Mend the horn", "The horn sounds")
    assert "The horn sounds" in context_of(api, payloads.session_start(session_id="fresh"))
    assert context_of(api, payloads.session_start(source)) == before != ""


def test_a_session_start_costs_one_transaction(api: Api) -> None:
    api.add_sessions(2)
    api.start_session(payloads.session_start(session_id="first"))  # with the welcome, once
    with transactions_of(api.worker.store) as begun:
        assert context_of(api, payloads.session_start()) != ""
    assert len(begun) == 1


def test_a_start_that_is_given_another_than_the_rendered_context_is_resumed_with_it(
    api: Api,
) -> None:
    api.add_sessions(1)
    for payload in (payloads.prompt(session_id="left"), payloads.stop(session_id="left")):
        head = record_header(api.clock.ms, event=payload["hook_event_name"])
        spooling.put(bytes(api.layout.root), head, as_bytes(payload))
    context = context_of(api, payloads.session_start())
    assert "The light blinks twice now" in context
    api.add_turn("another", "Mend the horn", "The horn sounds")
    assert context_of(api, payloads.session_start("resume")) == context


def test_a_session_that_was_given_nothing_is_given_nothing_when_resumed(api: Api) -> None:
    assert context_of(api, payloads.session_start()) == ""
    api.add_turn("another", "Mend the horn", "The horn sounds")
    assert context_of(api, payloads.session_start("resume")) == ""


def test_a_forked_session_carries_what_its_origin_was_given(api: Api) -> None:
    api.add_turn("another", "Mend the horn", "The horn sounds")
    assert context_of(api, payloads.session_start("fork", session_id="forked")) == ""


@pytest.mark.parametrize("source", ["resume", "startup", "clear", "compact"])
def test_a_session_is_never_given_its_own_memories(api: Api, source: str) -> None:
    api.add_turn("another", "Mend the horn", "The horn sounds", edited=f"{PROJECT_DIR}/horn.py")
    api.add_turn(SESSION, "Blink", "It blinks.", edited=f"{PROJECT_DIR}/light.py")
    context = context_of(api, payloads.session_start(source))
    assert "Mend the horn" in context and "horn.py" in context
    assert "links" not in context and "light.py" not in context and "Blink" not in context


@pytest.mark.parametrize(
    "body",
    [b"", b"\n", b"{}", as_bytes(payloads.session_start()), record_header(1),
     record_header(1).rstrip(b"\n") + as_bytes(payloads.session_start()),
     record_header(1) + b"{", record_header(1) + b"[]", record_header(1) + b"null",
     record_header(1) + b'{"source": "startup"}', record_header(1) + b'{"session_id": 1}',
     record_header(1) + b'{"session_id": "%s"}' % (b"x" * 201),
     record_header(1) + b'\xff\xfe{"session_id": "s"}',
     record_header(1, event="") + b'{"session_id": "s"}',
     record_header(1).replace(b"\t1\t", b"\t2\t", 1) + as_bytes(payloads.session_start()),
     record_header(1).replace(b"\t1\t", b"\t\xff\t", 1) + as_bytes(payloads.session_start()),
     record_header(1).replace(b"\t1000000\t", b"\tnoon\t") + as_bytes(payloads.session_start()),
     record_header(1).replace(b"claude-mem", b"other") + as_bytes(payloads.session_start())],
)  # fmt: skip
def test_a_question_that_is_no_record_is_refused_with_the_reason(api: Api, body: bytes) -> None:
    answer = api.send(SESSION_START, body)
    assert answer.status_code == 400
    assert answer.json()["error"]


@pytest.mark.parametrize(
    "payload",
    [b'{"session_id": "s", "deep": %s}' % (b"[" * 600 + b"]" * 600),
     b'{"session_id": "s", "deep": %s}' % (b"[" * 100_000 + b"]" * 100_000),
     rb'{"session_id": "\ud800", "source": "resume"}', rb'{"session_id": "s", "source": "\ud800"}',
     b'{"session_id": "s", "source": {"a": 1}}', b'{"session_id": "s", "cwd": 1, "n": NaN}'],
)  # fmt: skip
def test_a_strange_question_is_answered_or_refused(api: Api, payload: bytes) -> None:
    api.add_sessions(1)
    answer = api.send(SESSION_START, record_header(1) + payload)
    assert answer.status_code in (200, 400), answer.text


def test_a_directory_whose_name_is_no_utf8_is_answered(api: Api) -> None:
    head = spooling.header(b"claude", b"SessionStart", 1_000_000, b"/home/dev/caf\xe9")
    answer = api.send(SESSION_START, head + as_bytes(payloads.session_start()))
    assert answer.status_code == 200, answer.text

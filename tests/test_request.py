"""The user's own words in a prompt, apart from pastes, logs and the client's additions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.observer.local.evidence import UserRequest, parse_request


def test_plain_words_are_the_users_own() -> None:
    assert parse_request("Make the lamp blink\ntwice") == UserRequest("Make the lamp blink\ntwice")


def test_a_plan_is_known_by_the_clients_words_for_it() -> None:
    prompt = (
        "Implement the following plan:\n\n# Plan: Two lamps\n\nBuy them.\n\n"
        "If you need specific details from before exiting plan mode, read the transcript"
    )
    plan = "# Plan: Two lamps\n\nBuy them."
    assert parse_request(prompt) == UserRequest("", plan, "Plan: Two lamps")


def test_a_document_of_chapters_is_a_plan_too() -> None:
    chapter = "The lamp is dark at night, and the ships cannot see the pier. " * 10
    request = parse_request(f"# Light the pier\n\n## Why\n{chapter}\n## How\nWith two lamps.")
    assert (request.plan_title, request.text) == ("Light the pier", "")
    assert request.plan.endswith("With two lamps.")


def test_what_the_client_added_is_left_out() -> None:
    prompt = (
        "<system-reminder>Be kind.</system-reminder>Light [Image #1] the lamp"
        "<ide_opened_file>lamp.py</ide_opened_file>"
    )
    assert parse_request(prompt).text == "Light  the lamp"


def test_a_tag_that_is_never_closed_stays() -> None:
    assert parse_request("Why <system-reminder> here?").text == "Why <system-reminder> here?"


def test_a_background_task_is_told_by_its_summary() -> None:
    prompt = "<task-notification><id>7</id><summary>Lamp **lit**</summary></task-notification>"
    assert parse_request(prompt).text == "(a background task reported) Lamp lit"


PYTHON = """the import crashes
Traceback (most recent call last):
  File "/srv/lamp.py", line 8, in main
    light(row)
  File "/srv/lamp.py", line 4, in light
    raise NoOil("empty")
harbor.oil.NoOil: empty
please fix it"""
JAVA = """it stops at once
Exception in thread "main" java.lang.IllegalStateException: no lamp
\tat harbor.Lamp.light(Lamp.java:12)
\tat harbor.Main.main(Main.java:5)
Caused by: java.io.FileNotFoundException: lamp.yml
\t... 2 more"""
GO = """panic: lamp is nil

goroutine 1 [running]:
main.light(0x0)
\t/srv/lamp.go:12 +0x1d
any idea?"""
LOG = """why does it restart?
2025-10-09 10:00:01 INFO starting
2025-10-09T10:00:02Z ERROR oil pump failed with code 7
Jan 12 10:00:02 pier1 kubelet[8]: Back-off
[Keeper] going up"""


@pytest.mark.parametrize(
    ("prompt", "words", "error"),
    [
        (PYTHON, "the import crashes\nplease fix it", "harbor.oil.NoOil: empty"),
        (JAVA, "it stops at once", "java.io.FileNotFoundException: lamp.yml"),
        (LOG, "why does it restart?", "ERROR oil pump failed with code 7"),
    ],
)
def test_a_pasted_log_is_not_the_persons_words_but_its_error_is_kept(
    prompt: str, words: str, error: str
) -> None:
    assert parse_request(prompt) == UserRequest(words, error=error)


def test_a_panic_is_an_error() -> None:
    request = parse_request(GO)
    assert request.text.endswith("any idea?")
    assert "goroutine" not in request.text and "0x1d" not in request.text


def test_where_there_is_nothing_but_a_log_its_error_is_what_was_asked() -> None:
    request = parse_request("ERROR lamp.c:4 oil pump failed\nINFO bye")
    assert request.text == request.error == "ERROR lamp.c:4 oil pump failed"


def test_a_log_that_begins_within_a_line_is_cut_off_there() -> None:
    log = " 10:00:01 [Pump] started " * 10
    assert parse_request(f"I got this when I lit the lamp{log}").text == (
        "I got this when I lit the lamp"
    )


def test_a_long_line_of_words_was_dictated_and_stays() -> None:
    spoken = "I think we should light the lamp a little earlier in winter, " * 20
    assert parse_request(spoken).text == spoken.strip()
    assert parse_request("看看这个灯塔的问题，" * 100).text == "看看这个灯塔的问题，" * 100


def test_a_long_line_of_anything_else_is_a_dump() -> None:
    dump = '"a":1,' * 300
    assert parse_request(f"look at this\n{{{dump}}}").text == "look at this"


@given(st.text(max_size=300))
def test_whatever_was_asked_is_understood_the_same_each_time(prompt: str) -> None:
    request = parse_request(prompt)
    assert parse_request(prompt) == request
    assert request.plan or request.text or not prompt.strip() or "[Image" in prompt or "<" in prompt

"""What of a prompt was typed, and what was pasted or written by the client."""

import pytest

from claude_mem.recall.hint_prompt import MAX_TYPED, typed_text


@pytest.mark.parametrize(
    "prompt",
    [
        "/compact",
        "/review 12 with care",
        "<task-notification>\n<task-id>7</task-id>\n</task-notification>",
        "<command-name>/model</command-name>",
        "[Request interrupted by user]",
        "This session is being continued from a previous conversation that ran out of context.",
        "```\nall of it is a fence\n```",
        "> quoted\n> twice",
        "",
    ],
)
def test_nothing_of_commands_messages_and_pasted_prompts_is_typed(prompt: str) -> None:
    assert typed_text(prompt) == ""


def test_a_path_at_the_beginning_is_no_command() -> None:
    assert typed_text("/srv/harbor/light.py blinks twice") == "/srv/harbor/light.py blinks twice"


def test_pasted_parts_are_left_out() -> None:
    prompt = """The relay clicks:
```py
relay.click()
```
2026-03-09 10:00:00 ERROR relay stuck
[Worker] started
    at Relay.click (relay.js:12)
> as the manual says
<log>
first line
second line
</log>
$ make light
Why is that?"""
    assert typed_text(prompt).split("\n") == ["The relay clicks:", "Why is that?"]


def test_a_tag_that_is_never_closed_may_be_typed() -> None:
    assert typed_text("<Relay> clicks\nWhy?") == "<Relay> clicks\nWhy?"


def test_what_follows_a_fence_that_is_closed_on_its_line_is_typed() -> None:
    assert typed_text("```relay```\nThe relay clicks") == "The relay clicks"


def test_of_a_url_its_end_counts() -> None:
    typed = typed_text("See https://code.example/harbor/light/issues/77#note-5, it is back")
    assert typed == "See 77 note-5, it is back"
    assert typed_text("See https://code.example") == "See"


def test_the_frame_of_a_plan_is_left_out() -> None:
    prompt = "Implement the following plan:\n\n# Plan: Dim the light\n\n## Context\n\nIt blinds."
    assert typed_text(prompt).split() == ["Dim", "the", "light", "It", "blinds."]


def test_a_long_prompt_counts_by_its_beginning() -> None:
    assert len(typed_text("relay " * 5000)) <= MAX_TYPED

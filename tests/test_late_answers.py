"""A client that does not send its last message may write it after its last hook."""

from dataclasses import replace

import pytest

from claude_mem.types import Turn
from claude_mem.worker.distil_jobs import awaits_answer
from tests.payloads import bash, prompt, stop
from tests.story import Story

SECOND = 1000


@pytest.fixture
def turn(story: Story) -> Turn:
    """That ended just now, without its last message."""
    story.tell(prompt("Blink twice"), bash("make", "ok"), stop(""))
    _, turn = story.claim()
    return turn


def end_of(turn: Turn) -> int:
    return max(event.at_ms for event in turn.events)


def test_a_turn_that_ended_just_now_without_an_answer_awaits_it(turn: Turn) -> None:
    assert awaits_answer(turn, [], end_of(turn) + SECOND)


def test_a_turn_that_ended_long_ago_awaits_nothing(turn: Turn) -> None:
    assert not awaits_answer(turn, [], end_of(turn) + 3600 * SECOND)


def test_what_was_said_before_the_last_tool_is_no_answer(story: Story, turn: Turn) -> None:
    event = story.event(prompt())
    said = replace(event, kind="Statement", arrived_ms=turn.started_ms - 1)
    assert awaits_answer(turn, [said], end_of(turn))
    said = replace(said, arrived_ms=end_of(turn))
    assert not awaits_answer(turn, [said], end_of(turn))


def test_a_failed_command_is_no_answer(story: Story, turn: Turn) -> None:
    event = story.event(bash("make", "ok"))
    failure = replace(event, kind="PostToolUseFailure", arrived_ms=end_of(turn))
    assert awaits_answer(turn, [failure], end_of(turn))


def test_a_message_that_the_hook_sent_is_the_answer(story: Story) -> None:
    story.tell(prompt("Blink twice"), bash("make", "ok"), stop("It blinks twice."))
    _, turn = story.claim()
    assert not awaits_answer(turn, [], end_of(turn))


def test_a_turn_that_has_not_ended_awaits_nothing(turn: Turn) -> None:
    events = tuple(event for event in turn.events if event.kind != "Stop")
    assert not awaits_answer(replace(turn, events=events), [], end_of(turn))

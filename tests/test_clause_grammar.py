"""Whether a clause says something of its subject, or only names it."""

import pytest

from claude_mem.observer.local.clause_grammar import (
    has_predicate,
    has_vague_subject,
    is_proposal,
    tells_change,
    tells_process,
    tells_work,
)


@pytest.mark.parametrize(
    "clause",
    [
        "The lamp is dark in winter",
        "`Relay` closes the circuit",
        "The harbour light still flickers at night",
        "Buoys require a permit",
        "The lamp blinks because the relay is loose",
        "The crane stopped when the fuse melted",
        "When the tide is low, the ferry waits",
        "`Relay.close` called twice per signal",
        "Replaced the rope by a chain",
    ],
)
def test_a_verb_after_the_subject_is_a_predicate(clause: str) -> None:
    assert has_predicate(clause)


@pytest.mark.parametrize(
    "clause",
    [
        "A lamp that takes a battery",
        "The dedicated harbour package with `Load()` and struct",
        "A map of the pier with notes",
        "Crates moved by crane in the yard",
        "Red paint on the hull",
        "Crane benchmark plus alternated A/B timing",
        "Linked Piers: a section of their own",
        "Slightly less clear where the rope ends",
    ],
)
def test_a_noun_alone_has_no_predicate(clause: str) -> None:
    assert not has_predicate(clause)


def test_a_change_starts_with_what_was_done() -> None:
    assert tells_change("Added a bell to the buoy")
    assert tells_change("Rewrote the tide table")
    assert tells_change("Add a bell to the buoy")
    assert not tells_change("Moved to the pier")
    assert not tells_change("Remove-Buoy is a command")
    assert not tells_change("Stop hook of the crane")
    assert tells_work("Stop the crane at night")


def test_steps_of_the_work_are_no_change() -> None:
    assert tells_process("Reviewed the harbour plan")
    assert not tells_change("Reviewed the harbour plan")
    assert is_proposal("Add a bell to the buoy")
    assert not is_proposal("Added a bell to the buoy")


def test_a_subject_that_stands_for_something_told_before_is_vague() -> None:
    assert has_vague_subject("The failures are all from the old crane")
    assert has_vague_subject("The new value is wrong")
    assert has_vague_subject("Locally the whole suite is fast")
    assert not has_vague_subject("The tide table is wrong")
    assert not has_vague_subject("The function `tide()` is wrong")

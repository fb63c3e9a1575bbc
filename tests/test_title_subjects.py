"""Candidates for a title, and what is put before them."""

from claude_mem.observer.local.observer import distil
from claude_mem.observer.local.titles.candidates import (
    TitleCandidate,
    TitleSource,
    _subject,
    with_subject,
)
from claude_mem.types import Turn
from tests.turns import edited, stopped, turn


def candidate(text: str, source: TitleSource = "final", place: str = "") -> TitleCandidate:
    return TitleCandidate(text, source, "all", 0, 0, False, text, place)


def titles_of(
    text: str,
    source: TitleSource = "final",
    place: str = "",
    subject: str = "",
    has_edits: bool = True,
) -> list[str]:
    choices = with_subject(
        candidate(text, source, place), subject, has_edits=has_edits, is_english=True
    )
    return [title.text for title in choices]


def test_a_lead_in_that_refers_to_something_is_no_place() -> None:
    final = "This opens a page with:\n\n- the harbour lamp now blinks twice per minute"
    of = turn(edited("pier/lamp.py"), stopped(final), prompt="do it")
    assert title_of(of) == "lamp.py: the harbour lamp now blinks twice per minute"


def test_a_symbol_that_an_answer_repeats_stands_before_no_sentence_with_a_name() -> None:
    text = "`Relay` closes twice per signal of the lamp"
    assert titles_of(text, subject="tide_table", has_edits=False) == [text]
    assert titles_of(text, subject="lamp.py") == [text, f"lamp.py: {text}"]


def test_a_change_that_nobody_made_is_called_a_proposal() -> None:
    text = "Add a spare fuse to the `Relay` class"
    assert titles_of(text, has_edits=False) == ["Proposal: add a spare fuse to the `Relay` class"]
    assert text in titles_of(text)


def test_the_place_under_which_it_was_said_comes_before_the_file_of_the_turn() -> None:
    text = "the lamp now blinks twice per minute"
    assert titles_of(text, place="fuse.py", subject="lamp.py") == [f"fuse.py: {text}"]
    assert titles_of(text, subject="lamp.py") == [f"lamp.py: {text}"]


def test_a_subject_that_was_told_before_gets_the_file_or_is_no_title() -> None:
    text = "The writer still exists when `lit()` is false"
    assert titles_of(text, subject="lamp.py") == [f"lamp.py: the{text[3:]}"]
    assert titles_of("The harbour lamp stays open all night long in winter", has_edits=False) != []
    assert titles_of("The writer stays open all night long in winter", has_edits=False) == []


def test_a_document_is_no_subject_of_a_sentence_without_a_name() -> None:
    assert titles_of("the lamp diagram repeated the cycle of the relay", subject="plan.md") == []
    text = "the lamp diagram repeated the cycle of `relay.py`"
    assert f"plan.md: {text}" in titles_of(text, subject="plan.md")


def title_of(of: Turn) -> str | None:
    observations = distil(of).observations
    return observations[0].title if observations else None


def test_a_file_before_a_sentence_is_its_subject_and_not_another_file() -> None:
    final = (
        "The fix:\n\n1. **`pier/horn.svg`** — replaced the shape with the outline of the fog horn"
    )
    of = turn(edited("pier/lamp.py"), stopped(final), prompt="the horn looks wrong")
    assert title_of(of) == "horn.svg: replaced the shape with the outline of the fog horn"


def test_a_bracket_at_the_end_of_a_sentence_stays() -> None:
    final = "The lamp in `pier.py` now blinks twice per minute (once in winter)."
    of = turn(edited("pier.py"), stopped(final), prompt="do it")
    assert title_of(of) == "The lamp in `pier.py` now blinks twice per minute (once in winter)"


def test_what_a_turn_taught_is_kept_where_no_title_is_clear() -> None:
    final = (
        "It closes that first. The other one then sees it closed, since both of these share the"
        " `state`."
    )
    result = distil(turn(stopped(final), prompt="why is it closed?"))
    assert not result.observations
    assert "both of these share" in (result.summary.learned or "")


def test_a_clause_that_addresses_someone_is_no_place_of_another() -> None:
    text = "linear search that starts every lamp"
    place = "I've added a comment that documents"
    assert titles_of(text, place="A comment documents") == [f"A comment documents: {text}"]
    assert titles_of(text, place=place) == []


def test_of_two_labels_the_first_remains() -> None:
    text = "Winter storms: both harbour lamps of `Relay` may burn"
    shown = "Relay tests: both harbour lamps of `Relay` may burn"
    assert titles_of(text, place="Relay tests")[-1] == shown
    assert titles_of(f"Relay tests: {text}")[0] == shown
    subject = "fix(lamp): relay: close it twice per signal"
    assert titles_of(subject, source="commit") == [subject]  # as it was written


def test_a_definite_thing_whose_file_is_named_needs_no_other_subject() -> None:
    text = "The horn failed because rain came in through the lid of horn.py"
    assert titles_of(text, subject="horn.py") == [text]
    assert titles_of("The writer failed through the lid of horn.py", subject="horn.py") == []


def test_the_subject_of_a_fixup_is_that_of_the_commit_it_fixes() -> None:
    candidates = [c.text for c in _subject("fixup! fix(lamp): blink twice", "commit", 0)]
    assert candidates == [c.text for c in _subject("fix(lamp): blink twice", "commit", 0)]

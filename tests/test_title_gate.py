"""Candidates for a title: how clear they are, and what is put before them."""

import pytest

from claude_mem.observer.local.observer import distil
from claude_mem.observer.local.title_gate import completed
from claude_mem.observer.local.title_types import Clarity, TitleCandidate, TitleSource
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
) -> dict[str, Clarity]:
    choices = completed(
        candidate(text, source, place), subject, has_edits=has_edits, is_english=True
    )
    return {title.text: title.clarity for title in choices}


@pytest.mark.parametrize(
    "text",
    [
        "Session B creates a second `Relay`",  # a scenario
        "A `Relay` with a spare fuse for winter nights",  # nothing is said of it
        "Copy the example: `cp lamp.toml lamp.local.toml`",  # an order to the reader
        "Fixed one additional `Relay` issue in winter",
        "Updated both places to use the `Relay` class",
        "`Relay` is set",  # too little
        "Investigate the flickering of `Relay` at night",
        "The verifier of `Relay` is still running, will report back",
        "The tradeoff of `Relay`: it works for simple lamps",
        "Gap 2 of the `Relay` section lists spare lamps",
        "Limit that more to have access to `Relay` only",
        "(harbour) Shows `Relay` as changed at night",
    ],
)
def test_what_needs_the_text_before_it_is_unclear(text: str) -> None:
    assert set(titles_of(text).values()) <= {"unclear"}


@pytest.mark.parametrize(
    "text",
    ["`Relay` could lose its charge at night", "Moving `Relay` breaks the lamp at night"],
)
def test_a_guess_or_an_announcement_is_a_title_only_where_nothing_else_is(text: str) -> None:
    assert titles_of(text) == {text: "passable"}


def test_a_remark_before_the_end_of_the_work_is_a_title_only_if_it_tells_a_result() -> None:
    remark = "`Relay` has a brass contact from the old lamp"
    assert titles_of(remark, "statement")[remark] == "passable"
    assert titles_of(remark, "statement", has_edits=False)[remark] == "clear"
    result = "`Relay` now has a brass contact from the old lamp"
    assert titles_of(result, "statement")[result] == "clear"


def test_a_lead_in_that_refers_to_something_is_no_place() -> None:
    final = "This opens a page with:\n\n- the harbour lamp now blinks twice per minute"
    of = turn(edited("pier/lamp.py"), stopped(final), prompt="do it")
    assert title_of(of) == "lamp.py: the harbour lamp now blinks twice per minute"


def test_a_symbol_that_an_answer_repeats_stands_before_no_sentence_with_a_name() -> None:
    text = "`Relay` closes twice per signal of the lamp"
    assert list(titles_of(text, subject="tide_table", has_edits=False)) == [text]
    assert list(titles_of(text, subject="lamp.py")) == [text, f"lamp.py: {text}"]


def test_a_task_that_only_looks_for_something_is_unclear() -> None:
    assert titles_of("Explore the relay of the lamp", "subagent task") == {
        "Explore the relay of the lamp": "unclear"
    }
    assert titles_of("Add a relay to the lamp", "task") == {"Add a relay to the lamp": "clear"}


def test_a_request_is_a_title_where_it_was_carried_out() -> None:
    text = "Add a spare fuse to the `Relay` class"
    assert titles_of(text, "request")[text] == "clear"
    assert titles_of(text, "request", has_edits=False)[text] == "unclear"
    assert "clear" not in titles_of("Use the polite style", "request", "", "notes.md").values()


def test_a_change_that_nobody_made_is_called_a_proposal() -> None:
    text = "Add a spare fuse to the `Relay` class"
    assert list(titles_of(text, has_edits=False)) == [
        "Proposal: add a spare fuse to the `Relay` class"
    ]
    assert text in titles_of(text)


def test_the_place_under_which_it_was_said_comes_before_the_file_of_the_turn() -> None:
    text = "the lamp now blinks twice per minute"
    assert list(titles_of(text, place="fuse.py", subject="lamp.py")) == [f"fuse.py: {text}"]
    assert list(titles_of(text, subject="lamp.py")) == [f"lamp.py: {text}"]


def title_of(of: Turn) -> str | None:
    observations = distil(of).observations
    return observations[0].title if observations else None


def test_a_file_before_a_sentence_is_its_subject_and_not_another_file() -> None:
    final = "The fix:\n\n1. **`pier/horn.svg`** — now contains the real outline of the fog horn"
    of = turn(edited("pier/lamp.py"), stopped(final), prompt="the horn looks wrong")
    assert title_of(of) == "horn.svg: now contains the real outline of the fog horn"


def test_what_comes_first_is_a_title_unless_it_is_an_order() -> None:
    rule = "`Relay` says why the lamp needs oil first"
    assert titles_of(rule)[rule] == "clear"
    assert set(titles_of("Fix the `Relay` tests of the lamp first", "request").values()) == {
        "unclear"
    }


def test_a_bracket_at_the_end_of_a_sentence_stays() -> None:
    final = "The lamp in `pier.py` now blinks twice per minute (once in winter)."
    of = turn(edited("pier.py"), stopped(final), prompt="do it")
    assert title_of(of) == "The lamp in `pier.py` now blinks twice per minute (once in winter)"


def test_what_a_turn_taught_is_kept_where_no_title_is_clear() -> None:
    final = (
        "Session A closes `Relay` first. Session B then sees it closed, since `Relay` and `Fuse`"
        " share the state of `Pier`."
    )
    result = distil(turn(stopped(final), prompt="why is it closed?"))
    assert not result.observations
    assert "`Fuse` share the state" in (result.summary.learned or "")

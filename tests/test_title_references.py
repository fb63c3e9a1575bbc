"""Titles that refer to something which only the conversation has named."""

import pytest

from claude_mem.observer.local.titles.candidates import TitleCandidate, TitleSource, with_subject
from claude_mem.observer.local.titles.references import refers_to_unnamed


@pytest.mark.parametrize(
    "title",
    [
        "lamp.py: the function returns early, before the relay opens",
        "lamp.py: the error message now starts in lower case",
        "lamp.py: all callers already import the relay directly",
        "The script shells out to `relay` of the harbour",
        "lamp.py: the 12 failures are from the old pier",
        "lamp.py: the rest is dark until the relay opens",
    ],
)
def test_a_thing_that_every_program_has_is_unnamed(title: str) -> None:
    assert refers_to_unnamed(title)


@pytest.mark.parametrize(
    "title",
    [
        "lamp.py: the wrapper functions in `relay.py` are unused",
        "lamp.py: the export commands never reach the pier",
        "lamp_function.py: the function returns early",
        "The `light` function returns early in the fog",
        "lamp.py: the function `light` returns early",
        "Added a function that returns early in the fog",
    ],
)
def test_a_thing_with_a_name_or_a_kind_is_named(title: str) -> None:
    assert not refers_to_unnamed(title)


@pytest.mark.parametrize(
    "title",
    [
        "lamp.css: uses `left: 50%` so it stays in the middle of the pier",
        "If run from the pier, this fails to find `relay.toml`",
        "lamp.py: the burning is now much simpler",
        "`relay.toml` is probably easier (just copy the harbour's)",
        "lamp.py: contrast of the pier matches the harbour's",
        "The lamp rule of `relay.py`, two broken piers, and an open fuse",
        "pier.md: relay quirks, fog traps, the cost of lamps",
        "pier.md: the harbour's lamp + a relay for two + fuse",
        "test_lamp.py: the earlier `FAIL` came from a stale cache",
    ],
)
def test_a_pronoun_a_comparison_or_a_list_needs_what_was_told_before(title: str) -> None:
    assert refers_to_unnamed(title)


@pytest.mark.parametrize(
    "title",
    [
        "lamp.py: verifies that `relay.toml` is made when it does not exist",
        "`relay` is simpler than `fuse` since it has no state",
        "The lamp and the pier share one relay, the fuse has its own",
        "The lamp has two relays: the one of the pier, the one of the harbour",
        "pier.md: relays in series, lamps replaced, fuses of ten amperes",
        "Add a relay, a lamp, a fuse",
        "relay.py: opens the lamp, the pier, the harbour",
    ],
)
def test_a_pronoun_after_its_noun_or_a_whole_clause_is_understood(title: str) -> None:
    assert not refers_to_unnamed(title)


def titles_of(text: str, source: TitleSource, subject: str = "lamp.py") -> list[str]:
    candidate = TitleCandidate(text, source, "all", 0, 0, False, text)
    named = with_subject(candidate, subject, has_edits=True, is_english=True)
    return [title.text for title in named]


def test_what_was_said_of_an_unnamed_thing_makes_no_title() -> None:
    assert titles_of("The function returns early in the fog", "final") == []


def test_what_was_written_as_a_title_is_not_judged_by_its_references() -> None:
    assert titles_of("The script opens the relay of `pier.py`", "commit")


def test_how_it_was_done_needs_the_place_before_it() -> None:
    said = "Used negative margins (`-mx-6`) so that the lamp fills the pier"
    assert titles_of(said, "final") == [
        "lamp.py: used negative margins (`-mx-6`) so that the lamp fills the pier"
    ]


def test_a_place_loses_its_own_colon() -> None:
    said = "Hides the relay when `fog` is set"
    assert titles_of(said, "final", "Harbour level:") == [
        "Harbour level: hides the relay when `fog` is set"
    ]

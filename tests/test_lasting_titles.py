"""Titles that say nothing which is news weeks later."""

import pytest

from claude_mem.observer.local.titles.candidates import TitleCandidate, TitleSource, with_subject
from claude_mem.observer.local.titles.lasting import says_nothing_lasting


@pytest.mark.parametrize(
    "title",
    [
        "lamp.py: the beam still ends at the pier, identical glow to before",
        "lamp.py: without fog, the glow is unchanged",
        "lamp.py: the relay itself is still `Relay`, not `Fuse`",
        "The lamp of the pier preserved exactly, only moved",
        "Left alone: the lamps of the pier (e.g. `dim()`)",
        "The relays of the pier are indeed spare",
        "`fog` burns, the pier shows no lamp errors",
        "lamp.py: `12,40 → 15,44`, as bright at both ends",
        "lamp.py: 2 lamps, 2 relays, 3 fuses",
        "Local `pier` now has 4 commits that diverge from `origin/pier`",
        "Two pier branches are now lying around (`fog`, `dusk`)",
        "The relay in lamp.py is uncommitted on `pier`",
        "Analyze the flicker of lamp.py with a second reader",
        "Review: Relays Across the Pier",
        "hook.sh: start a NEW session in the directory of the pier",
        "Swap the burnt lamp, not the whole relay",
    ],
)
def test_a_task_a_momentary_state_or_no_change_does_not_last(title: str) -> None:
    assert says_nothing_lasting(title, has_edits=False)


@pytest.mark.parametrize(
    "title",
    [
        "lamp.py: no error is raised when the relay burns",
        "lamp.py: the unchanged beams are skipped",
        "`relay` still opens the pier before dawn",
        "`12 V` lamps burn as long as the fuse holds",
        "Check if `fog` is empty before the lamp burns",
        "Verify that the relay of the pier is open",
        "Review: `dim()` closes the relay of the pier",
        "Reviews of the pier are sorted by lamp",
        "Swap the lamp in `relay.py`, not the fuse",
        "3 lamps share the relay of the pier",
        "The relay is already closed by `dim()`",
        "Relay branches are protected by a rule in `pier.yml`",
        "The key is unchanged when only fog differs, so `dim()` skips the relay",
        "`dim()` reports no errors, since the relay is not closed",
        "",
    ],
)
def test_a_finding_or_a_change_lasts(title: str) -> None:
    assert not says_nothing_lasting(title, has_edits=False)


def test_what_was_so_already_is_no_change_unless_it_is_a_reason() -> None:
    assert says_nothing_lasting("lamp.py: `fog` is already imported", has_edits=True)
    title = "Removed `dim()` since the relay is already closed"
    assert not says_nothing_lasting(title, has_edits=True)


@pytest.mark.parametrize(
    ("source", "is_kept"), [("commit", True), ("pull request", True), ("final", False)]
)
def test_only_commits_may_say_so(source: TitleSource, is_kept: bool) -> None:
    text = "Verify the relay of `lamp.py` before dawn"
    candidate = TitleCandidate(text, source, "all", 0, 0, False, text)
    titles = with_subject(candidate, "lamp.py", has_edits=False, is_english=True)
    assert bool(list(titles)) == is_kept

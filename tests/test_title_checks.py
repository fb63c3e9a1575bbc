"""Clauses of a conversation that can be titles, and those that leave out what they are about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.observer.local.observer import distil
from claude_mem.observer.local.title_checks import (
    addresses_someone,
    is_anchored,
    is_draft_title,
    lacks_subject,
    without_label,
)
from claude_mem.types import Turn
from tests.turns import edited, ran, stopped, turn, use


@pytest.mark.parametrize(
    "title",
    [
        "In a dry dock, the lamp stays dark",  # a model may write it, but there are better ones
        "Two lamps on the pier",
        "3 confirmed faults of the lamp",
        "Lamp check of the pier: CONFIRMED",
        "Relay of the lamp verified",
        "`lamp.py`, `relay.py` and `fuse.py`",
        "Blue → green → red",
        "Check whether those lamps burn",
        "The lamp of the pier, which had the same fault",
        '"light the lamp at dusk"',
        "Lamp chart: https://example.com/chart",
        "The lamp […] burns at night",
        "Why did the lamp stop burning?",
        "Root cause found, verified by the keeper",  # says that, and not what
        "The fix would be a new relay in lamp.py",
        "Looks like the lamp of `pier.py` is dark",
        "Need a relay where `fuse` is set",
        "The lamp of the pier is correct",
        "The `fuse` problem",
        "Three things that `lamp.py` got wrong",
        "Pier (this machine): eleven lamps per minute",
        "Lamp angle in: 8 candidates",
        "Breakdown of the relay run",
        "The pattern is now defined in `lamp.py`",  # which one?
        "The other relay burns in `lamp.py`",
        "The branch is ahead of the pier by 30",
        "Test results of the lamp",
        "The Concurrent Lamp Warning Flow",  # names a thing and says nothing of it
        "Writing the patch to /tmp/lamp/pier.patch",  # printed by a program
        "Lamp settings > Fuse > New relay",
        "The lamp burns now!",
        "Relay landed in `2e35bd09`",
        "Gut feeling. Measured at the lamp",
        "Ghost lamps: when the keeper dismisses the relay",
        "Pier: decide: a new lamp or the old one",
        "`var lamp = relay.MustLight(fuse)`",
    ],
)
def test_a_draft_needs_more_than_a_title_that_someone_wrote(title: str) -> None:
    assert not is_draft_title(title)


@pytest.mark.parametrize(
    "title",
    [
        "The lamp flickers because `poll()` runs twice per tick",
        "Retry uploads until the relay is confirmed",
        "Fix the relay, the fuse box and the lamp",
        "Lamp: light it at dusk, not at noon",
    ],
)
def test_a_clause_is_a_draft(title: str) -> None:
    assert is_draft_title(title)


def test_labels_before_a_statement_are_no_part_of_the_title() -> None:
    assert without_label("Suggested fix: turn the relay around") == "turn the relay around"
    assert without_label("1. Severe fault of the relay") == "Severe fault of the relay"
    assert without_label("Relay: turn it around") == "Relay: turn it around"
    assert without_label("Bug 1 — the wedge sits at the start") == "the wedge sits at the start"
    assert without_label("Severe: the relay burns") == "the relay burns"
    assert without_label("## Amendment 4 — the relay waits") == "the relay waits"


def test_a_title_may_address_someone() -> None:
    assert addresses_someone("Root cause of your dark lamp")
    assert addresses_someone("In lamp.py we start the relay")
    assert not addresses_someone("The youngest keeper owes the harbour oil")


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("The `poll_relay` call runs twice", True),
        ("Keep the lamp of pier #12 lit", True),
        ("Move lamp.py next to the relay", True),
        ("The lamp burns in Clink and Nushell only", True),
        ("Empty tanks are skipped", False),
        ("The `true` values are not aligned", False),
        ("The lamp stays blank/instant at night", False),
        ("Concurrent Lamp Warning Flow", False),
    ],
)
def test_a_name_tells_where_a_statement_belongs(title: str, expected: bool) -> None:
    assert is_anchored(title) is expected


def test_a_verb_without_its_noun_lacks_the_subject() -> None:
    assert lacks_subject("Lists all `LampType` constants")
    assert lacks_subject("Now contains the new relay")
    assert lacks_subject("Moved to `lamp_height` so that it follows the pier")
    assert not lacks_subject("Moved the relay to `lamp_height`")


def title_of(of: Turn) -> str | None:
    (observation,) = distil(of).observations
    return observation.title


def test_the_file_is_put_before_a_statement_without_a_name() -> None:
    of = turn(edited("tanks.py"), stopped("Empty tanks are skipped because they have no oil."),
              prompt="the import crashes on empty ones")  # fmt: skip
    assert title_of(of) == "tanks.py: empty tanks are skipped because they have no oil"


def test_a_written_title_stays_as_it_is() -> None:
    of = turn(edited("tanks.py"), ran("git commit -m 'Skip empty tanks'", "[main 1a2b3c4]"),
              stopped("Done."), prompt="the import crashes on empty ones")  # fmt: skip
    assert title_of(of) == "Skip empty tanks"


def test_what_the_agent_announced_is_a_title_where_it_said_nothing_else() -> None:
    announced = use(1, "Statement", text="Now let me add a retry to the oil delivery:")
    of = turn(announced, edited("tanks.py", 2), stopped("Done."), prompt="do it")
    assert title_of(of) == "tanks.py: add a retry to the oil delivery"


_PIECES = (
    "The lamp", "relay", ": when", ": ~3", "fix is small", "on line 7", "works", "is fine",
    "next step", "things", "someone", "anyway", "this machine", "previously staged", "edge cases",
    "/tmp/lamp", "C:\\lamp", "a > b", "$ lamp", "/lamp", "Done. Now", "Hi!", "0a1b2c3d", "PASSED",
    "the branch", "OK", "suggested fix:", "done - lamp", "Step 2: ",
)  # fmt: skip


@given(pieces=st.lists(st.sampled_from(_PIECES), min_size=1, max_size=4))
def test_a_title_is_judged_the_same_with_or_without_a_letter_beyond_ascii(
    pieces: list[str],
) -> None:
    title = " ".join((*pieces, "lamp"))
    assert is_draft_title(title) == is_draft_title(f"{title}é")
    assert without_label(title) == without_label(f"{title}é")[:-1]

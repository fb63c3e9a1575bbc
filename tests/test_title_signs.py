"""What can be told of a title by its words: what it names, says and leaves open."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.observer.local.observer import distil
from claude_mem.observer.local.titles.signs import (
    addresses_someone,
    has_definite_stand_in,
    has_plain_label,
    is_anchored,
    lacks_subject,
    only_labels,
    refers_outside,
    signs_of,
    without_label,
)
from claude_mem.types import Turn
from tests.turns import edited, ran, stopped, turn, use


@pytest.mark.parametrize(
    ("title", "sign"),
    [
        ("In a dry dock, the lamp stays dark", "starts with a preposition"),
        ("Two lamps on the pier", "starts with a count"),
        ("Lamp check of the pier: CONFIRMED", "printed"),
        ("Writing the patch to /tmp/lamp/pier.patch", "printed"),
        ("Lamp settings > Fuse > New relay", "printed"),
        ("The lamp burns now!", "printed"),
        ("Relay landed in `2e35bd09`", "printed"),
        ("`var lamp = relay.MustLight(fuse)`", "printed"),
        ("The branch is ahead of the pier by 30", "printed"),
        ("`lamp.py`, `relay.py` and `fuse.py`", "list of names"),
        ("Blue → green → red", "list of names"),
        ("Check whether those lamps burn", "demonstrative"),
        ("Three things that `lamp.py` got wrong", "untold"),
        ("Lamp angle in: 8 candidates", "untold"),
        ("Ghost lamps: when the keeper dismisses the relay", "untold"),
        ("The other relay burns in `lamp.py`", "words of a scenario"),
        ("Updated both places to use the `Relay` class", "words of a scenario"),
        ("Session B creates a second `Relay`", "scenario"),
        ("`Relay` could lose its charge at night", "supposed"),
        ("Reviewed the harbour plan", "tells a step"),
        ("The failures are all from the old crane", "vague subject"),
        ("Moved to the pier at night", "lacks its subject"),
        ("Add a relay to the lamp of the pier", "tells work"),
        ("The lamp flickers because `poll()` runs twice per tick", "has a predicate"),
        ("The lamp flickers because `poll()` runs twice per tick", "is anchored"),
        ("lamp.py: the failures are all from the old crane", "after a place: vague subject"),
        ("`poll` and `light` in `lamp.py`", "names 3"),
        ("The harbour lamp flickers", "specific words 3"),
    ],
)
def test_a_title_has_signs_of_what_it_names_and_leaves_open(title: str, sign: str) -> None:
    assert f"sign: {sign}" in signs_of(title)


@pytest.mark.parametrize(
    "title",
    [
        "The lamp flickers because `poll()` runs twice per tick",
        "Uploads wait until the relay has oil",
        "Fix the relay, the fuse box and the lamp",
    ],
)
def test_a_plain_statement_has_no_sign_of_what_is_left_open(title: str) -> None:
    left_open = {
        "vague subject", "lacks its subject", "starts with a preposition", "starts with a count",
        "supposed", "scenario", "words of a scenario", "untold", "printed", "demonstrative",
        "list of names",
    }  # fmt: skip
    assert left_open.isdisjoint(sign.removeprefix("sign: ") for sign in signs_of(title))


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
    assert lacks_subject("No longer has a relay of its own")
    assert not lacks_subject("Moved the relay to `lamp_height`")


@pytest.mark.parametrize(
    "title",
    [
        "Task B's relay was wrong",
        "The lamp of session A burns on `-1`",
        "Relay landed in `2e35bd09` on the pier",
        "The lamp fix is folded into `36543426`",
        '"Let the harbour lamp blink"',
        "(lamp): shows the relay as open",
        "After that, `lamp.lit` is set to `true`",
    ],
)
def test_what_only_the_conversation_knows_is_outside_of_a_title(title: str) -> None:
    assert refers_outside(title)


@pytest.mark.parametrize(
    "title", ["React 19 lights the lamp twice", "`light()` exits with status 0", "Add a fuse"]
)
def test_versions_and_figures_are_not_outside(title: str) -> None:
    assert not refers_outside(title)


def test_a_label_and_its_words_are_no_statement() -> None:
    assert only_labels("Spare lamps: rare, and only in winter")
    assert not only_labels("Spare lamps: the relay closes twice in winter")
    assert not only_labels("lamp.py: rare, and only in winter")


def test_a_definite_subject_without_a_name_stands_for_something_told_before() -> None:
    assert has_definite_stand_in("The pattern is now defined once in `lamp.py`")
    assert has_definite_stand_in("The relay is closed when `lit()` is false")
    assert not has_definite_stand_in("The harbour lamp is closed when `lit()` is false")
    assert not has_definite_stand_in("The `Relay` is now defined once in `lamp.py`")
    assert not has_definite_stand_in("Added the relay to `lamp.py`")


@pytest.mark.parametrize(
    ("title", "sign"),
    [
        ("notes.md: the lamp burns at night", "place: document"),
        ("test_lamp.py: added `test_lit`", "place: test"),
        ("lamp.py: added `lit()` to the relay", "change named after file"),
        ("Fog: the lamp burns at night", "place: word"),
        ("`light()` calls `relay.close()` twice", "form: named subject, named rest"),
        ("A signal of round 2, sent by the lamp", "listed thing"),
        ("The other way is cleaner than the relay", "judges"),
        ("The reviewer rebased the lamp", "of the work"),
    ],
)
def test_place_and_form_of_a_title_are_signs(title: str, sign: str) -> None:
    assert f"sign: {sign}" in signs_of(title)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Lighting: the lamp burns at night", True),
        ("Spare lamps: rare, and only in winter", True),
        ("lamp.py: the relay burns at night", False),
        ("`light()`: the relay burns at night", False),
        ("What a keeper does when the lamp at the pier goes out: light another", False),
        ("The lamp burns at night", False),
        ("Lighting: ", False),
    ],
)
def test_a_label_is_plain_if_it_names_nothing(title: str, expected: bool) -> None:
    assert has_plain_label(title) is expected


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
    assert title_of(of) == "Skip empty tanks [files: tanks.py]"


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


def uncounted(title: str) -> list[str]:
    return [sign for sign in signs_of(title) if not sign[-1].isdigit()]


@given(pieces=st.lists(st.sampled_from(_PIECES), min_size=1, max_size=4))
def test_a_title_is_judged_the_same_with_or_without_a_letter_beyond_ascii(
    pieces: list[str],
) -> None:
    title = " ".join((*pieces, "lamp"))
    assert uncounted(title) == uncounted(f"{title}é")
    assert without_label(title) == without_label(f"{title}é")[:-1]

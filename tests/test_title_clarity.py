"""Which titles are understood alone, learned from readers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.observer.local import learned_trees
from claude_mem.observer.local.observer import distil
from claude_mem.observer.local.scoring import DOUBT, RankedTitle, in_order
from claude_mem.observer.local.titles.candidates import TitleCandidate, TitleSource
from claude_mem.observer.local.titles.clarity import Clarity, known_of, shapes_of
from tests.turns import edited, stopped, turn

WORDS = frozenset(("the", "was", "because"))


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("The lamp was dark", "the <word> was <word>"),
        (
            "`poll()` ran twice because `lamp.py` closed",
            "<call> <word> <word> because <path> <-ed>",
        ),
        ("relayBox, RELAY_BOX and #318", "<name> , <name> <word> <issue>"),
        ("Set `a b` to 12% with --dry-run", "<word> <code phrase> <word> <number> <word> <option>"),
        ("src/lamp.go: Horn API", "<path> : <Proper> <CAPITALS>"),
        ("", ""),
    ],
)
def test_a_text_is_a_row_of_shapes(text: str, shapes: str) -> None:
    assert " ".join(shapes_of(text, WORDS)) == shapes


def test_runs_begin_and_end_with_the_text() -> None:
    assert known_of("The lamp", "final", WORDS) == {
        "the", "<word>", "^ the", "the <word>", "<word> $", "^ the <word>", "the <word> $",
        "words 1", "from final", "sign: names 0", "sign: specific words 1",
        "sign: place: nothing", "sign: form: no verb", "sign: no verb after nothing",
        "sign: code 0",
    }  # fmt: skip


def test_the_score_is_the_sum_of_what_is_known() -> None:
    weights = {"^ the": -1000, "from final": 250, "was $": 9000, "sign: has a predicate": 2000}
    clarity = Clarity(base=500, words=WORDS, weights=weights)
    assert clarity.score("The lamp was dark", "final") == 1.75
    assert clarity.score("Lamps", "commit") == 0.5


@pytest.mark.parametrize(
    ("clear", "unclear"),
    [
        ("The lamp flickered because `poll()` ran twice per tick", "It flickered because of that"),
        ("Add a retry with backoff to the upload of `horn.toml`", "Add the other one too"),
        (
            "`relay.py` keeps the contact open because `reset()` runs first",
            "Waiting, then verifying",
        ),
    ],
)
def test_what_names_its_subject_is_clearer(clear: str, unclear: str) -> None:
    learned = learned_trees.current().clarity
    assert learned.score(clear, "final") > 0.3 > -0.5 > learned.score(unclear, "final")


def test_a_clear_title_is_preferred_to_one_that_leaves_its_subject_open() -> None:
    final = (
        "Both places had the same thing, so the other one was wrong as well.\n\n"
        "The harbour lamp flickered because `poll()` ran twice per tick in `lamp.py`."
    )
    (observation,) = distil(turn(edited("lamp.py"), stopped(final), prompt="fix it")).observations
    assert observation.title is not None and "flickered because" in observation.title


@pytest.mark.parametrize(
    ("source", "text", "doubts"),
    [
        ("final", "Lighting: the lamp burns at night", 2),
        ("final", "Lighting: `relay.py` burns at night", 1),
        ("final", "`relay.py` keeps the contact open at night", 0),
        ("final", "Proposal: keep `relay.py` open at night", 0),
        ("commit", "Lighting: the lamp burns at night", 0),
    ],
)
def test_a_clause_that_names_nothing_counts_as_less_clear(
    source: TitleSource, text: str, doubts: int
) -> None:
    ranked = RankedTitle(0.0, 2.0, candidate(source, text))
    assert ranked.cautious_clarity == 2.0 - doubts * DOUBT
    assert ranked.is_surely_clearer_than(1.0) == (not doubts or source == "commit")
    assert ranked.is_clearer_than(1.0)


def test_of_two_clear_titles_the_one_with_a_name_is_taken() -> None:
    plain = RankedTitle(0.2, 3.0, candidate("final", "Lighting: the harbour lamp burns all night"))
    named = RankedTitle(0.1, 2.0, candidate("final", "`relay.py` keeps the harbour lamp lit"))
    assert in_order([plain, named]) == [named, plain]


def candidate(source: TitleSource, text: str) -> TitleCandidate:
    return TitleCandidate(text, source, "all", 0, 0, is_question=False, named_text=text)


@given(st.text(max_size=300), st.sampled_from(["final", "commit", "no such source"]))
def test_any_text_has_a_score(text: str, source: str) -> None:
    assert learned_trees.current().clarity.score(text, source) == pytest.approx(0, abs=100)

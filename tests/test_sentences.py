"""The sentences that say the most about a question."""

from hypothesis import given
from hypothesis import strategies as st

from claude_mem.recall.best_sentences import GAP, best_sentences
from claude_mem.recall.tokens import estimate_tokens

QUESTION = "Why did the lamp flicker, and which setting stopped it?"
NAMED = "Setting `debounce_ms` to 40 in `light.py` stopped it for good."
PLAIN = "The lamp flickered because its relay bounced after each click."
CHATTER = "That was a long day with a lot of rain over the harbour."


def select(*texts: str, budget: int = 100, title: str = "") -> dict[int, str]:
    scores = dict.fromkeys(range(len(texts)), 1.0)
    return best_sentences(dict(enumerate(texts)), scores, QUESTION, budget, title)


def test_a_sentence_that_names_what_the_question_does_not_comes_first() -> None:
    assert select(f"{CHATTER} {PLAIN} {NAMED}", budget=20) == {0: NAMED}


def test_names_of_the_question_do_not_count() -> None:
    text = f"{PLAIN} The `lamp` and the `setting` and the `flicker` were all looked at again."
    assert select(text, budget=20) == {0: PLAIN}


def test_what_a_passage_is_about_counts_first() -> None:
    selected = best_sentences({0: NAMED, 1: PLAIN}, {0: 0.3, 1: 1.0}, QUESTION, 20)
    assert selected == {1: PLAIN}


def test_sentences_stay_in_their_order_and_gaps_are_marked() -> None:
    text = f"{PLAIN} {CHATTER} {NAMED}"
    assert select(text, budget=40) == {0: f"{PLAIN}{GAP}{NAMED}"}
    assert select(text, budget=100) == {0: text}


def test_lines_that_follow_each_other_are_kept_as_lines() -> None:
    text = f"# Cause\n{PLAIN}\n- {NAMED}"
    assert select(text) == {0: text}


def test_a_label_is_kept_with_what_it_labels() -> None:
    assert select(f"Fix:\n{NAMED}", budget=22) == {0: f"Fix:\n{NAMED}"}


def test_what_was_said_before_or_is_the_title_is_left_out() -> None:
    assert select(NAMED, NAMED, PLAIN, title=PLAIN) == {0: NAMED}


def test_nothing_is_selected_if_nothing_fits() -> None:
    assert select(NAMED, budget=5) == {}
    assert select(NAMED, budget=12) == {}
    assert best_sentences({}, {}, QUESTION, 100) == {}


@given(st.lists(st.text(max_size=300), max_size=6), st.integers(0, 120))
def test_any_texts_fit_the_budget_word_for_word(texts: list[str], budget: int) -> None:
    selected = select(*texts, budget=budget)
    assert sum(estimate_tokens(text) for text in selected.values()) <= budget
    for number, text in selected.items():
        assert all(part in texts[number] for part in text.split(GAP))

"""Words are looked up where a pattern would take longer: both must say the same."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.observer.local import cues
from claude_mem.observer.local.content_words import COMMON, content_words
from claude_mem.title_rules import lower_words

CUES = (
    cues.CAUSE, cues.CHANGE, cues.LIMIT, cues.STATUS, cues.NEXT, cues.OFFER, cues.CHOICE,
    cues.FAILURE,
)  # fmt: skip
FRAGMENTS = (
    "Root cause", "due to", "so", "that", "Which means", "turns out", "the issue ", "the fix",
    "now", "instead of", "no longer", "can't", "won", "'t", "doesn't", "don’t", "tests",
    "test pass", "passes", "build succeeds", "working tree", "want me to", "should I", "would you",
    "let me know", "follow-up", "open question", "questions", "still needs", "shall i", "your call",
    "trade-off", "preferably", "crashes", "flaky", "leak", "because", "lamp", "naïve",
    "café", "—", "→", "“wick”", "-", "'", "’", "_", "`lamp.py`", "ΩK", "日本", "²", "\n", ".", "I",
    "We", "You’re", "rather than",
)  # fmt: skip
texts = st.lists(st.sampled_from(FRAGMENTS), max_size=12).flatmap(
    lambda parts: st.sampled_from((" ", "")).map(lambda glue: glue.join(parts))
)


@pytest.mark.parametrize("cue", CUES)
@given(text=texts)
def test_a_cue_is_in_a_text_where_its_pattern_matches(cue: cues.Cue, text: str) -> None:
    words = cues.words(text)
    assert cue.is_in(text.lower(), words) == cue.matches(text)
    assert cue.is_in(text.lower(), words & cues.CUE_WORDS) == cue.matches(text)


@given(text=texts)
def test_persons_are_found_where_their_patterns_match(text: str) -> None:
    assert bool(cues.find_first_person(text)) == bool(cues.FIRST_PERSON.search(text))
    assert bool(cues.find_second_person(text)) == bool(cues.SECOND_PERSON.search(text))


@given(text=texts)
def test_content_words_are_joined_by_apostrophes_and_hyphens(text: str) -> None:
    text = re.sub("[日本]", "", text)  # these count by pairs
    words = re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text.lower())
    assert content_words(text) == frozenset(words) - COMMON


@given(text=texts)
def test_lower_words_consist_of_letters_of_any_script(text: str) -> None:
    plain = text.lower().replace("’", "'")
    assert lower_words(text) == re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", plain)

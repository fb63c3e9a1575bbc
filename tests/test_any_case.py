"""Patterns that ignore case, matched in lower case."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.observer.local.any_case import AnyCase

PATTERN = r"\b(?:lamp|kiss|is) [^s\W]{1,3}|[—é]x$"
LETTERS = st.sampled_from([*"lampLAMPkissKISS é—É x", "\u0130", "\u0131", "\u017f", "\u212a", "ß"])


@given(st.lists(LETTERS, max_size=14).map("".join), st.integers(0, 4))
def test_it_matches_where_a_pattern_that_ignores_case_does(text: str, start: int) -> None:
    expected = re.compile(PATTERN, re.IGNORECASE)
    for found, match in (
        (AnyCase(PATTERN).search(text, start), expected.search(text, start)),
        (AnyCase(PATTERN).match(text), expected.match(text)),
    ):
        assert (found and found.span()) == (match and match.span())


@pytest.mark.parametrize("pattern", ["Lamp", "[A-Z]", "(?-i:lamp)"])
def test_a_pattern_that_regards_case_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="not in lower case"):
        AnyCase(pattern)

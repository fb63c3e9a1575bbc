"""Text made to fit."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.plain_words import without_formats
from claude_mem.text import (
    one_line,
    pluralize,
    shorten,
    shorten_middle,
    spellings,
    without_controls,
)
from claude_mem.word_runs import (
    Checksums,
    RunFinder,
    checksums_of,
    has_run,
    has_run_of,
    hashes_of,
    runs_of,
)


def test_a_text_that_is_too_long_ends_at_a_word() -> None:
    assert shorten("one two three", 9) == "one two…"
    assert shorten("one", 9) == "one"
    assert shorten("one two, three", 11) == "one two…"


def test_a_long_word_is_cut() -> None:
    assert shorten("a bcdefghijkl", 9) == "a bcdefg…"


@given(text=st.text(), limit=st.integers(1, 40))
def test_a_shortened_text_is_within_its_limit(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert len(short) <= limit
    assert short == text.strip() or text.strip().startswith(short[:-1])


@given(
    part=st.text(min_size=64),
    times=st.integers(1, 20),
    limit=st.integers(64, 500),
    head_share=st.sampled_from([0.5, 0.65, 0.75]),
)
def test_a_text_cut_in_the_middle_is_its_head_and_its_tail(
    part: str, times: int, limit: int, head_share: float
) -> None:
    text = part * times
    short = shorten_middle(text, limit, head_share)
    if len(text) <= limit:
        assert short == text
        return
    assert len(short) <= limit
    head, tail = short.split("\n[… ", 1)[0], short.rsplit(" characters cut …]\n", 1)[-1]
    assert text.startswith(head) and text.endswith(tail)


def test_the_note_in_the_middle_counts_what_is_missing() -> None:
    short = shorten_middle("a" * 1000 + "b" * 9000 + "c" * 1000, 2000)
    assert short.startswith("aaa") and short.endswith("ccc")
    assert "\n[… 9000 characters cut …]\n" in short


def test_one_line_has_single_spaces() -> None:
    assert one_line("  a\n\tb  c ") == "a b c"


def test_controls_are_removed_and_lines_stay() -> None:
    assert without_controls("a\x1b[31mb\x07c\x9bd\ud800e\r\n\tf") == "abcde\n\tf"


def test_characters_that_cannot_be_seen_part_no_words_of_a_run() -> None:
    hidden = "Run the ev\u200bil scr\u2060ipt before every com\u00admit"
    assert list(runs_of(hidden)) == list(runs_of("run the evil script before every commit"))


@pytest.mark.parametrize(
    ("text", "is_copied"),
    [("so he ran the lighthouse lamp tonight", True), ("the lamp of that lighthouse", False)],
)
def test_hashes_in_a_text_are_found_as_those_of_a_set(text: str, is_copied: bool) -> None:
    hashes = hashes_of(runs_of("ran the lighthouse lamp, and painted the harbour wall"), 100)
    assert has_run(text, frozenset(hashes)) is has_run_of(text, " ".join(hashes)) is is_copied
    assert not has_run_of(text, "")


@given(text=st.text("abcdé­ 灯台​.", max_size=60), part=st.integers(0, 60))
def test_the_runs_that_a_text_shares_with_another_are_those_of_both(text: str, part: int) -> None:
    text = text.replace("a", "lantern ")
    runs = set(runs_of(f"another text {text[part:]}"))
    assert RunFinder(runs).find(text) == runs & set(runs_of(text))


def test_no_character_without_a_shape_is_part_of_a_word() -> None:
    invisible = [c for c in map(chr, range(sys.maxunicode)) if unicodedata.category(c) == "Cf"]
    assert invisible
    for character in invisible:
        assert list(runs_of(f"the har{character}bour light blinks")) == [
            ("the", "harbour", "light", "blinks")
        ]


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (1, "observation", "1 observation"), (0, "observation", "0 observations"),
        (2, "memory", "2 memories"), (2, "day", "2 days"), (2, "box", "2 boxes"),
        (2, "hook payload", "2 hook payloads"), (1, "more file", "1 more file"),
    ],
)  # fmt: skip
def test_a_noun_agrees_with_its_count(count: int, noun: str, text: str) -> None:
    assert pluralize(count, noun) == text


def test_a_choice_may_be_spelled_in_the_plural() -> None:
    assert spellings(("rule", "discovery", "holds")) == {
        "rule": "rule", "rules": "rule", "discovery": "discovery", "discoveries": "discovery",
        "holds": "holds", "holdses": "holds",
    }  # fmt: skip


SENTENCE = "The keeper winds the clock at dawn"


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[31mThe keeper\x1b[0m winds the clock at dawn",
        "The%20keeper%20winds%20the%20clock%20at%20dawn",
        "The <b>keep</b>er winds<br/>the clock <em>at</em> dawn",
        "&lt;i&gt;The&lt;/i&gt; keeper&nbsp;winds&#32;the clock at dawn",
        '{"a": "The keeper winds", "b c": "the clock at", "d": "dawn"}',
        r"{\"a\": \"The keeper\", \"b\": \"winds the clock\nat dawn\"}",
        r"The keeper\u001b[0m winds\x20the clock at dawn",
        "> The keeper\n> winds the clock\n> at dawn",
        "12| The keeper\n13| winds the clock\n14| at dawn",
        "   1\tThe keeper\n   2\twinds the clock\n   3\tat dawn",
        "docs/day.md:3:The keeper\ndocs/day.md:4:winds the clock at dawn",
        "a: The keeper\nb: winds the clock\nc: at dawn",
    ],
)
def test_formats_between_words_make_no_difference(text: str) -> None:
    assert set(runs_of(SENTENCE)) <= set(runs_of(text))


@given(st.text(alphabet="abcdefgh XYZ .,;()-\u00e9\u4e2d", max_size=200))
def test_a_text_without_formats_stays_as_it_is(text: str) -> None:
    assert without_formats(text) == text


def test_checksums_find_the_runs_of_a_text_that_is_not_kept() -> None:
    checksums = Checksums([checksums_of(["first", f"said: {SENTENCE}"]), b"", b"x"])
    own = set(runs_of("A lamp burns in the tower"))
    copied = set(runs_of(SENTENCE))
    assert checksums.find([*own, *copied]) == copied

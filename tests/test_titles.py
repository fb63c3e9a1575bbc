"""Titles that a person would write: whole, of the thing itself, or none."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.observer.local.titles import wording
from claude_mem.observer.local.titles.candidates import headings
from claude_mem.observer.local.titles.wording import LONGEST_TITLE


@pytest.mark.parametrize(
    ("sentence", "title"),
    [
        ("The lamp blinks twice now.", "The lamp blinks twice now"),
        ("Done! I've added a fuse to `lamp.py`.", "Added a fuse to `lamp.py`"),
        ("Root cause: the fuse was rated for 5 A.", "The fuse was rated for 5 A"),
        ("The fix is simple: swapped the fuse for a new one", "Swapped the fuse for a new one"),
        ("`src/lamp.py` — the lamp blinks twice", "The lamp blinks twice"),
        ("`retries` — defaults to three", "`retries` — defaults to three"),
        ("fuseBox takes two fuses", "fuseBox takes two fuses"),
        ("灯台の点滅を二回に変更しました。", "灯台の点滅を二回に変更しました"),
    ],
)  # fmt: skip
def test_a_sentence_gives_its_clause(sentence: str, title: str) -> None:
    assert wording.from_sentence(sentence) == title


@pytest.mark.parametrize(
    "sentence",
    [
        "This makes it work.",
        "It now blinks twice.",
        "But the fuse was wrong.",
        "Previously this was an error.",
        "Before: the lamp was dark all night",
        "Let me read the file first.",
        "I need to change the fuse box",
        "The fix is simple.",
        "All tests pass and lint is clean.",
        "Commit created successfully.",
        "2 changes",
        "No additional changes were needed",
        "The lamp now includes:",
        "",
        "…",
    ],
)
def test_what_leans_announces_or_says_nothing_gives_none(sentence: str) -> None:
    assert wording.from_sentence(sentence) == ""


LONG = " and the keeper of the light goes up the stairs of the tower every evening to see it"


@pytest.mark.parametrize(
    ("sentence", "title"),
    [
        (f"The lamp blinks twice — this took a while{LONG}", "The lamp blinks twice"),
        (f"The lamp blinks twice, because the relay was moved{LONG}", "The lamp blinks twice"),
        (f'Changed "on — off" to "off — on — always"; the rest stays{LONG}',
         'Changed "on — off" to "off — on — always"'),
        (f"The lamp (a large one, made of brass and glass{LONG}) blinks twice",
         "The lamp blinks twice"),
        (f"When the fuse blows, so the lamp is dark, the keeper must be told{LONG}", ""),
        (f"When the fuse blows the keeper is told — by a bell{LONG}",
         "When the fuse blows the keeper is told"),
        (f"The lamp{LONG}{LONG}", ""),
    ],
)  # fmt: skip
def test_a_long_sentence_is_cut_where_a_clause_ends_or_not_at_all(
    sentence: str, title: str
) -> None:
    assert wording.from_sentence(sentence) == title


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("make the lamp blink twice", "Make the lamp blink twice"),
        ("Can you please add a fuse? The old one blew.", "Add a fuse"),
        ("Great. Also, sort the fuses by size.", "Sort the fuses by size"),
        ("write me a fuse table", "Write a fuse table"),
        ("I want to dim the lamp after sunset.", "Dim the lamp after sunset"),
        ("ok, we'd like you to sort the fuses", "Sort the fuses"),
        ("the lamp is dark, any idea?", "The lamp is dark"),
        ("Kannst du bitte die Lampe reparieren?", "Die Lampe reparieren"),
        ("修复灯塔的闪烁问题", "修复灯塔的闪烁问题"),
        ("add logs", "Add logs"),
    ],
)
def test_a_request_is_its_own_title(words: str, title: str) -> None:
    assert wording.from_request(words) == title


@pytest.mark.parametrize(
    "words",
    ["", "ok", "commit", "no, the other one", "go on", "it still does not work",
     "I've tried it and it fails", "why is the lamp dark?",
     "When I press the button my lamp goes out", "继续", "ja, weiter",
     f"Make the lamp blink{LONG}"],
)  # fmt: skip
def test_a_report_a_question_or_a_nod_is_none(words: str) -> None:
    assert wording.from_request(words) == ""


@pytest.mark.parametrize(
    ("subject", "title"),
    [
        ("fix(lamp)!: blink twice per minute", "Blink twice per minute"),
        ("Lamp: blink twice per minute", "Lamp: blink twice per minute"),
        ("Redesign the lamp: two lenses", "Redesign the lamp: two lenses"),
    ],
)
def test_a_commit_loses_only_its_conventional_prefix(subject: str, title: str) -> None:
    assert wording.from_commit(subject) == title


def test_a_plan_loses_the_word_for_it() -> None:
    assert wording.from_plan("Implementation Plan: Two lamps") == "Two lamps"
    assert wording.from_plan("The lamp plan for winter") == "The lamp plan for winter"


@pytest.mark.parametrize(
    ("words", "is_bare", "commits"),
    [
        ("commit", True, True),
        ("comit", True, True),
        ("then commit and push", True, True),
        ("commit this and update the list", True, True),
        ("continue", True, False),
        ("thanks!", True, False),
        ("提交", True, False),
        ("add a commit hook for the linter to the lamp", False, False),
        ("committee minutes: sort them by day and by speaker, please", False, False),
    ],
)
def test_a_nod_is_known_from_a_request(words: str, is_bare: bool, commits: bool) -> None:
    assert wording.is_bare_request(words) == is_bare
    assert wording.is_commit_request(words) == commits


def test_files_are_named_by_their_last_part() -> None:
    assert wording.from_files(["a/lamp.py"], created=False) == "Changed lamp.py"
    assert wording.from_files(["a/x.py", "b\\y.py"], created=True) == "Created x.py and y.py"
    many = [f"{name}.py" for name in "abcde"]
    assert wording.from_files(many, created=False) == "Changed a.py, b.py and 3 more files"


pieces = st.lists(
    st.sampled_from(["The lamp", "blinks", "(twice)", "— ", "; ", ", because ", ". ", '"', "`x`",
                     "(", "I ", "fix: ", "all night", "灯台。", "when ", "of the", " "])
    | st.text(max_size=8),
    max_size=25,
).map("".join)  # fmt: skip


@given(pieces)
def test_a_title_is_short_whole_and_of_one_line(text: str) -> None:
    for title in (
        wording.from_sentence(text),
        wording.from_request(text),
        wording.from_commit(text),
    ):
        assert len(title) <= LONGEST_TITLE
        assert title == " ".join(title.split())
        assert title.count("`") % 2 == 0 and title.count('"') % 2 == 0
        prose = re.sub("`[^`]*`", "", title)
        assert prose.count("(") <= prose.count(")")
        assert not title.endswith(("…", ",", ":", "("))


def test_a_comment_in_code_is_no_heading() -> None:
    text = "# Lamps blink twice\n```sh\n# restart the relay\n```\n## Wiring of the pier"
    assert headings(text) == ["Lamps blink twice", "Wiring of the pier"]

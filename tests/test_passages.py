"""Markdown split into passages, each with its heading and label."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.observer.local.markdown import (
    LONGEST_PASSAGE,
    MessagePassage,
    as_label,
    heading_of,
    sentences,
    split_passages,
    width,
    without_markup,
)


def texts(markdown: str) -> list[str]:
    return [passage.text for passage in split_passages(markdown)]


def test_a_paragraph_is_its_sentences() -> None:
    assert texts("The lamp is lit. It blinks\ntwice a minute! Why? Nobody knows") == [
        "The lamp is lit.",
        "It blinks twice a minute!",
        "Why?",
        "Nobody knows",
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "Set `a. B` to e.g. Three or i.e. Four.",
        "Version 3.11 of node.js is used, cf. Appendix B.",
        "See J. Smith, approx. Two of them.",
        'It asks "really?" before it deletes.',
        "Call `run(). Then` at once.",
    ],
)
def test_what_only_looks_like_an_end_ends_no_sentence(sentence: str) -> None:
    assert sentences(sentence) == [sentence]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("灯台を直しました。二度点滅します。", 2),
        ("问题已解决！原因是锁。", 2),
        ("تم الإصلاح. أصبح الضوء يعمل؟ نعم.", 3),
        ("Лампа горит. Она мигает.", 2),
        ("Die Lampe brennt. Sie blinkt zweimal.", 2),
        ("हो गया। दीपक जलता है।", 2),
    ],
)
def test_sentences_end_in_every_script(text: str, count: int) -> None:
    passages = sentences(text)
    assert len(passages) == count
    assert "".join(passages).replace(" ", "") == text.replace(" ", "")


def test_an_item_stands_under_its_heading_and_what_the_list_is_about() -> None:
    passages = split_passages(
        "# Changes\n\n1. **`lamp.py`**:\n   - blinks twice\n   - [x] is lit\n"
    )
    assert passages == [
        MessagePassage("blinks twice", "item", "Changes", "`lamp.py`"),
        MessagePassage("is lit", "item", "Changes", "`lamp.py`"),
    ]


def test_a_label_names_what_follows_in_its_paragraph() -> None:
    passages = split_passages("**Why**: The lamp was dark. Nobody saw it.\n\nIt is lit.")
    assert [(p.text, p.label, p.own_label) for p in passages] == [
        ("Why: The lamp was dark.", "Why", True),
        ("Nobody saw it.", "Why", False),
        ("It is lit.", "", False),
    ]


def test_a_row_of_many_columns_names_each_of_them() -> None:
    table = "| Engine | p50 | p99 |\n|:--|--:|---|\n| Diesel | 2 ms | — |\n| Steam | 9 ms | 40 ms |"
    assert texts(table) == ["Diesel: p50 2 ms", "Steam: p50 9 ms; p99 40 ms"]


def test_a_row_of_two_columns_is_a_name_and_what_it_is() -> None:
    assert texts("| Key | Value |\n|---|---|\n| `port` | 8080 |") == ["`port`: 8080"]


def test_short_code_is_a_passage_and_long_code_is_left_out() -> None:
    long = "\n".join(f"line {number}" for number in range(9))
    text = f"Run:\n\n```bash\nmake lamp\n\nmake pier\n```\n\n~~~\n{long}\n~~~\nDone so far."
    assert texts(text) == ["Run:", "`make lamp; make pier`", "Done so far."]


def test_code_that_is_never_closed_is_no_text() -> None:
    assert texts("First.\n```python\nprint(1)") == ["First."]


def test_rules_and_empty_lines_say_nothing() -> None:
    assert texts("One.\n\n---\n\n***\n\n=====\n\nTwo.") == ["One.", "Two."]


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("# The lamp", "The lamp"),
        ("### **Bold** `code` ###", "Bold `code`"),
        ("#hashtag", ""),
        ("####### seven", ""),
        ("no heading", ""),
        ("#", ""),
    ],
)
def test_a_heading_is_hashes_and_words(line: str, heading: str) -> None:
    assert heading_of(line) == heading


def test_a_label_has_neither_number_nor_colon() -> None:
    assert as_label("2. **Wire the lamp**:") == "Wire the lamp"


@pytest.mark.parametrize(
    ("marked", "unmarked"),
    [
        ("**bold** and *slanted* words", "bold and slanted words"),
        ("✅ Done [here](http://a/b_(c)) <br/>", "Done here"),
        ("`**kept**` and `<b>`", "`**kept**` and `<b>`"),
        ("globs src/*.ts, **/*.md and *.js, lib/**", "globs src/*.ts, **/*.md and *.js, lib/**"),
        ("__init__ stays __name__", "__init__ stays __name__"),
        ("a * b * c", "a * b * c"),
    ],
)
def test_marks_go_and_code_stays(marked: str, unmarked: str) -> None:
    assert without_markup(marked) == unmarked


def test_a_script_without_spaces_says_more_with_each_sign() -> None:
    assert width("lamp") == 4
    assert width("灯台") == 6


markdown = st.lists(
    st.sampled_from(
        ["# h", "- i", "  - n", "1. o", "| a | b |", "|--|--|", "```", "**l**:", "x. Y z", "`",
         "\n", "---", "灯。", "(", "*a*", "A b: c", "\t", "> q"]
    )
    | st.text(max_size=12),
    max_size=30,
).map("\n".join)  # fmt: skip


@given(markdown)
def test_whatever_is_cut_gives_passages_of_one_line_and_bounded_length(text: str) -> None:
    passages = split_passages(text)
    assert split_passages(text) == passages
    for passage in passages:
        assert passage.text == " ".join(passage.text.split()) != ""
        assert len(passage.text) <= LONGEST_PASSAGE


@given(st.text(max_size=200))
def test_sentences_lose_nothing_but_spaces(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())

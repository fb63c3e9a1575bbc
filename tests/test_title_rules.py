"""Titles that can be understood alone, and those that cannot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.title_rules import (
    is_complete,
    is_english_text,
    lower_words,
    names_subject,
    stands_alone,
)


@pytest.mark.parametrize(
    "title",
    [
        "The lamp flickers because `poll()` runs twice per tick",
        "Harbour light: blink twice per minute",
        "Sessions expire after 30 minutes in Redis",
        "lamp.py: fix the failing test",
        "When the fuse blows, the keeper is told",
        "Retry uploads with exponential backoff",
        "PR #42 renames the relay",
        "Replace the old relay by a new one",
        "The keeper checks lamps, fuses, relays, wicks and oil before the lamp is lit",
        "Relay: close at night, open at dawn, test at noon, log each change, tell the keeper",
    ],
)
def test_a_clause_with_its_subject_stands_alone(title: str) -> None:
    assert stands_alone(title)


@pytest.mark.parametrize(
    ("title", "why"),
    [
        ("/clear", "a command"),
        ("/review 42", "a command"),
        ("yes, do it", "a reply"),
        ("ok, go ahead", "a reply"),
        ("Should I continue?", "a question without its subject"),
        ("Want me to fix it?", "a question without its subject"),
        ("It now blinks twice", "a pronoun without its noun"),
        ("This makes the lamp blink", "a pronoun without its noun"),
        ("Write that down for the next keeper", "a pronoun without its noun"),
        ("lamp.py: the index of lamps never renders one", "a pronoun without its noun"),
        ("lamp.py: the six slow ones and the lamps of `pier/*`", "a pronoun without its noun"),
        ("because the relay was moved", "a cut clause"),
        ("To run the lamp test", "a cut clause"),
        ("Option 1: ask the keeper", "a choice of a list"),
        ("3 of 4 lamps landed", "a count"),
        ("`make lamp --twice`", "code alone"),
        ('Quotes: `# Last lamp: "admin" light`', "code alone"),
        ("Backticks: `` # Lamp: `blink twice` ``", "code alone"),
        ("The lamp now includes", "a cut clause"),
        ("Moved the relay to the", "a cut clause"),
        ("The lamp (a large one", "a cut clause"),
        ("The lamp in the harbour…", "a cut clause"),
        ("12 files changed", "a count"),
        ("3 issues", "a count"),
        ("All 42 tests pass", "a status"),
        ("Solved and committed (`94eab83f`)", "a status"),
        ("Done", "a status"),
        ("Propose a fix", "no subject"),
        ("Delegate, make it continue", "no subject"),
        ("Fix the bug", "no subject"),
        ("I added a fuse to the lamp", "told by the agent of itself"),
        ("Let me read the lamp's code", "an announcement"),
        ("(a background task reported) Agent finished", "of the client"),
        ("<task-notification>", "of the client"),
        ("read-only, workspace-write]", "a bracket that nothing opens"),
        ("The lamps [large and small", "a cut clause"),
        ("The lamp takes {oil, wick", "a cut clause"),
        ("In the lamp of the pier", "a part of a sentence"),
        ("From the keeper's log", "a part of a sentence"),
        ("Which lamp should be lit first", "a question"),
        ("How does the relay close at night", "a question"),
        ("When the lamp burns, if the fuse holds", "no main clause"),
        ("Waiting on the two lamps of the pier", "a status"),
        ("Ack, the lamp is lit", "a reply"),
        ("The chart is ready: chart.md", "a status"),
        ("Line 76 of lamp.py", "a place"),
        ("Lamps, fuses, relays, spare wicks, `pier.py`, oil", "a list"),
        ("Parts moved: lamps, fuses (old and new), relays, wicks, oil", "a list"),
    ],
)
def test_anything_else_does_not(title: str, why: str) -> None:
    assert not stands_alone(title), why


@pytest.mark.parametrize(
    "title",
    ["Die Lampe im Hafen blinkt jetzt zweimal", "La lámpara del puerto parpadea dos veces",
     "Лампа в порту мигает дважды", "灯台の点滅を二回に変更しました", "修复灯塔的闪烁问题",
     "Fehler in `lamp.py` behoben"],
)  # fmt: skip
def test_other_languages_are_judged_by_their_shape(title: str) -> None:
    assert stands_alone(title, is_english=False)


@pytest.mark.parametrize("title", ["灯", "/clear", "Лампа (в порту", "42 / 17", "", "是的。"])
def test_what_has_no_shape_of_a_title_is_none_in_any_language(title: str) -> None:
    assert not stands_alone(title, is_english=False)


def test_words_of_english_do_not_count_in_another_language() -> None:
    title = "No is, all done"  # as if these were words of another language
    assert not stands_alone(title, is_english=True)
    assert stands_alone(title, is_english=False)


def test_brackets_in_code_need_not_close() -> None:
    assert stands_alone("The lamp prints `[` before each name")
    assert not stands_alone("The lamp prints ] before each name")


def test_notes_without_articles_are_english() -> None:
    assert is_english_text("Task B verified, all good. Still waiting on two remaining tests.")
    assert not is_english_text("Alle Tests laufen durch, commit und push folgen noch heute.")


def test_the_language_is_told_by_the_commonest_words() -> None:
    assert is_english_text("The lamp is dark, and the keeper was not told of it.")
    assert not is_english_text("Die Lampe ist dunkel, und der Wärter wusste nichts davon.")
    assert not is_english_text("La lámpara está oscura y nadie avisó al guardián del faro.")
    assert not is_english_text("Лампа не горит, и смотритель об этом не знал.")
    assert not is_english_text("灯台が暗いことを番人は知らなかった。")
    assert not is_english_text("")


@given(st.text(max_size=200))
def test_any_text_is_judged_the_same_each_time(text: str) -> None:
    verdict = stands_alone(text)
    assert verdict == stands_alone(text)
    english = text.isascii()
    assert verdict == (
        is_complete(text, is_english=english) and names_subject(text, is_english=english)
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't 'quote' the LAMP's relay_2nd", ["don't", "quote", "the", "lamp's", "relay", "nd"]),
        ("rock'n'roll ''lamps'' 7'", ["rock'n", "roll", "lamps"]),
        ("the relay’s Prüfung — done", ["the", "relay's", "prüfung", "done"]),
    ],
)
def test_words_are_letters_with_one_apostrophe_inside(text: str, words: list[str]) -> None:
    assert lower_words(text) == words


@given(text=st.text("aB'’_1 é-", max_size=30))
def test_words_of_ascii_are_those_of_any_text(text: str) -> None:
    assert lower_words(f"{text} ß") == [*lower_words(text), "ß"]

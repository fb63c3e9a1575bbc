"""What a turn was about, in brackets after a title that may not be understood without it."""

from dataclasses import replace

import pytest

from claude_mem.observer.local.evidence import parse_request
from claude_mem.observer.local.observer import distil
from claude_mem.observer.local.turn_topic import topic_of
from claude_mem.store.forgetting import Selection
from claude_mem.title_rules import Topic, with_topic, without_topic
from claude_mem.types import BRANCH, Turn
from tests.payloads import edit, prompt, stop
from tests.story import Story
from tests.turns import turn, turn_from, use

TITLE = "Nothing in the pier turns it off before dawn"
QUESTION = "Why does the harbour lamp burn all day?"


def topic(of: Turn, title: str = TITLE) -> Topic | None:
    return topic_of(of, parse_request(of.prompt or ""), title)


def test_the_question_of_the_turn_comes_before_its_branch() -> None:
    asked = turn(use(1, BRANCH, text="warm-pier-light"), prompt=QUESTION)
    assert topic(asked) == Topic("asked", QUESTION)
    assert topic(replace(asked, prompt="Go on")) == Topic("branch", "warm pier light")


@pytest.mark.parametrize(
    "request_text",
    [
        "Can you do this?", "yes?", "And what about that one?", "Go on", "", "/review the lamp?",
        "Look at https://harbour.example/7?", "is it done?",
        "why is the lamp, " + "or the relay or the fuse of the pier, " * 3 + "still dark?",
    ],
)  # fmt: skip
def test_a_question_that_says_nothing_alone_is_not_told(request_text: str) -> None:
    assert topic(turn(prompt=request_text)) is None


def test_a_message_of_the_client_asks_nothing() -> None:
    assert topic(turn(prompt=QUESTION, is_client_message=True)) is None


@pytest.mark.parametrize(
    ("branch", "words"),
    [
        ("ana/warm-pier-light", "warm pier light"),
        ("har-12-warm_light", "warm light"),
        ("20251115-warm-light", "warm light"),
        ("feature/light", None),
        ("dependabot/npm/warm-light", None),
        ("claude/brave-otter-3fa901", None),
        ("tmp-warm-light", None),
        ("backup-of-the-light", "backup of the light"),
        ("warm-facade", "warm facade"),
        ("ignore.all.that.was.said.before.and.paint-it", None),
    ],
)
def test_a_branch_tells_its_words_unless_a_program_made_it_up(
    branch: str, words: str | None
) -> None:
    told = topic(turn(use(1, BRANCH, text=branch), prompt="Go on"))
    assert told == (Topic("branch", words) if words else None)


def test_a_turn_with_a_plan_is_about_the_plan() -> None:
    plan = "Implement the following plan:\n\n# Plan: Dim the harbour lamp\n\nLess light."
    assert topic(turn(prompt=plan)) == Topic("plan", "Dim the harbour lamp")


def test_what_the_title_says_already_is_not_told_again() -> None:
    assert topic(turn(prompt="Is the pier dark before dawn?")) is None


def test_a_topic_has_no_brackets_of_its_own() -> None:
    told = topic(turn(prompt="Why is `lamp[7]` of the harbour brighter than others?"))
    assert told == Topic("asked", "Why is `lamp(7)` of the harbour brighter than others?")


@pytest.mark.parametrize("title", ["Dim the lamp", "Dim the lamp [skip ci]", "`a[0]` [PIER-7]"])
def test_only_a_topic_is_removed_from_a_title(title: str) -> None:
    assert without_topic(title) == title
    assert with_topic(title, None) == title
    shown = with_topic(title, Topic("asked", QUESTION))
    assert shown == f"{title} [asked: {QUESTION}]"
    assert without_topic(shown) == title


# What only the edits tell needs a topic.
ANSWER = "Done."
EDITED = "light.py: `blink(1)` became `blink(2)`"


def titles_of(of: Turn) -> list[str | None]:
    return [observation.title for observation in distil(of).observations]


def test_a_doubtful_title_gets_a_topic_and_a_repeated_one_is_still_known() -> None:
    of = turn_from(edit(), stop(ANSWER), prompt=QUESTION)
    assert titles_of(of) == [f"{EDITED} [asked: {QUESTION}]"]
    assert titles_of(replace(of, recent_memories=(f"{EDITED} [branch: warm light]",))) == []


def test_a_topic_is_forgotten_with_its_turn_and_no_other_turn_has_it(story: Story) -> None:
    asked = "Why does the violin of the queen sound so dull?"
    for number, text in enumerate((asked, "Go on")):
        of = {"prompt_id": f"p{number}", "session_id": "one"}
        story.tell(prompt(text, **of), edit(new=f"blink({number + 2})", **of), stop(ANSWER, **of))
        story.distil()
    titles = story.column("SELECT title FROM observations ORDER BY id")
    assert [asked in title for title in titles] == [True, False]
    (first, _) = story.column("SELECT id FROM observations ORDER BY id")
    selection = Selection(observations=(first,))
    token = story.store.preview_forgetting(selection).token
    story.store.forget(selection, token).result()
    assert story.column("SELECT title FROM observations") == titles[1:]

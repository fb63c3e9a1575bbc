"""What a turn was about, in brackets after a title that may not be understood without it."""

from dataclasses import replace
from pathlib import Path

import pytest

from claude_mem.observer.local.evidence import parse_request
from claude_mem.observer.local.observer import distil
from claude_mem.observer.local.turn_topic import topic_of, topic_of_session
from claude_mem.store.forgetting import Selection
from claude_mem.title_rules import Topic, with_topic, without_topic
from claude_mem.types import BRANCH, SessionTitle, Turn
from tests.importing import ImportTarget
from tests.payloads import PROJECT_DIR, Payload, edit, prompt, stop
from tests.story import Story
from tests.test_session_titles import by_model
from tests.transcripts import SESSION, Chat
from tests.turns import stopped, turn, turn_from, use

TITLE = "Nothing in the pier turns it off before dawn"
QUESTION = "Why does the harbour lamp burn all day?"
SUBJECT = "Warm light for the pier"
LAMP = f"{PROJECT_DIR}/src/lamp.py"


def topic(of: Turn, title: str = TITLE) -> Topic | None:
    return topic_of(of, parse_request(of.prompt or ""), title)


def test_the_question_of_the_turn_comes_before_what_the_session_is_about() -> None:
    asked = turn(prompt=QUESTION, session_title=SUBJECT)
    assert topic(asked) == Topic("asked", QUESTION)
    assert topic(replace(asked, prompt="Go on")) == Topic("session", SUBJECT)
    request = parse_request(QUESTION)
    assert topic_of_session(asked, request, TITLE) == Topic("session", SUBJECT)


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
    ],
)
def test_a_branch_tells_its_words_unless_a_program_made_it_up(
    branch: str, words: str | None
) -> None:
    told = topic(turn(use(1, BRANCH, text=branch), prompt="Go on"))
    assert told == (Topic("branch", words) if words else None)


def test_a_later_turn_is_about_the_plan_or_the_question_that_the_session_began_with() -> None:
    assert topic(turn(prompt="Go on", session_prompt=QUESTION)) == Topic("session", QUESTION)
    plan = "Implement the following plan:\n\n# Plan: Dim the harbour lamp\n\nLess light."
    told = Topic("plan", "Dim the harbour lamp")
    assert topic(turn(prompt="Go on", session_prompt=plan)) == told
    assert topic(turn(prompt=plan, session_prompt=plan)) == told
    assert topic(turn(prompt="Go on", session_prompt="Go on")) is None


def test_what_the_title_says_already_is_not_told_again() -> None:
    assert topic(turn(session_title="The pier before dawn", prompt="Go on")) is None


def test_a_topic_has_no_brackets_of_its_own_and_one_line() -> None:
    told = topic(turn(session_title="Lamps [old\nand new]", prompt="Go on"))
    assert told == Topic("session", "Lamps (old and new)")


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


def test_a_rule_of_the_user_tells_its_session() -> None:
    rule = "From now on always run the linter before you commit"
    of = turn(stopped("Understood."), prompt=f"{rule}.", session_title=SUBJECT)
    assert f"{rule} [session: {SUBJECT}]" in {t.replace(".", "") for t in titles_of(of) if t}


def _turn(story: Story, session: str, number: int, text: str, *work: Payload) -> None:
    of = {"prompt_id": f"{session}-{number}", "session_id": session}
    story.tell(prompt(text, **of), *(payload | of for payload in work), stop(ANSWER, **of))
    story.distil()


def _forget(story: Story, *, hard: bool = False, **selected: tuple[int, ...]) -> str:
    selection = Selection(**selected)  # type: ignore[arg-type]
    token = story.store.preview_forgetting(selection, hard=hard).token
    story.store.forget(selection, token, hard=hard).result()
    return token


def test_a_forgotten_first_prompt_leaves_the_titles_of_later_turns(story: Story) -> None:
    _turn(story, "one", 1, "Why does the violin of the queen sound so dull?")
    _turn(story, "one", 2, "Go on", edit())
    (title,) = story.column("SELECT title FROM observations")
    assert "violin" in title
    (first, _) = story.column("SELECT id FROM user_prompts ORDER BY id")
    token = _forget(story, prompts=(first,))
    assert story.column("SELECT title FROM observations") == [without_topic(title)]
    story.store.undo_forgetting(token).result()
    assert story.column("SELECT title FROM observations") == [title]


def test_a_live_turn_and_an_imported_one_have_the_same_topic(story: Story, tmp_path: Path) -> None:
    chat = Chat().prompt("Go on").edit(LAMP).agent(ANSWER).raw(by_model(SUBJECT))
    target = ImportTarget(tmp_path / "target")
    target.run(chat.save(tmp_path / f"{SESSION}.jsonl"))
    story.tell(prompt("Go on", prompt_id="p1", session_id=SESSION))
    title = SessionTitle(SUBJECT)
    assert story.store.set_client_title(story.session_db_id(SESSION), title).result()
    of = {"prompt_id": "p1", "session_id": SESSION}
    story.tell(edit(LAMP, **of), stop(ANSWER, **of))
    story.distil()
    (live,) = story.column("SELECT title FROM observations")
    assert live.endswith(f" [session: {SUBJECT}]")
    assert live in str(target.contents)

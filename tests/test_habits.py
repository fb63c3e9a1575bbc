"""What the user asks for again and again, in a context."""

import pytest

from claude_mem.recall.handover.what_holds import habits
from claude_mem.store.memory_rows import ShortPrompt
from tests.payloads import prompt, stop
from tests.story import Story
from tests.test_handover import section


def lines(*texts: str) -> list[str]:
    """Returns the lines of prompts of one session each."""
    prompts = [ShortPrompt(number, text) for number, text in enumerate(texts)]
    return [line.text for line in habits(prompts)]


def test_what_is_asked_in_four_sessions_is_a_habit_in_the_latest_words() -> None:
    texts = ("oil it and polish the brass", "Polish the brass, and oil it", "oil, polish brass!",
             "then polish all brass")  # fmt: skip
    assert lines(*texts[:3]) == []
    assert lines(*texts) == [f'- The user asked this in 4 sessions: "{texts[0]}"']


def test_of_requests_that_contain_each_other_the_longer_is_told() -> None:
    texts = ("polish the brass", "polish the brass and count lamps") * 4
    (line,) = lines(*texts)
    assert line == '- The user asked this in 4 sessions: "polish the brass and count lamps"'


@pytest.mark.parametrize(
    "text",
    [
        "yes, please go ahead",
        "polish",
        "which brass should I polish?",
        "commit and push the changes",
    ],
)
def test_consent_single_words_questions_and_routine_are_no_habits(text: str) -> None:
    assert lines(*[text] * 5) == []


def test_the_same_session_counts_once_and_a_first_prompt_not_at_all(story: Story) -> None:
    for number in range(4):
        for text in ("Trim the wick now", "Polish the brass", "Polish the brass"):
            ids = {"session_id": f"s{number}", "prompt_id": f"p{story.now}"}
            story.now += 1000
            story.tell(prompt(text, **ids), stop(**ids))
            story.distil()
        expected = ['- The user asked this in 4 sessions: "Polish the brass"']
        holds = section(story, "What holds here")
        assert [line for line in holds if "sessions" in line] == (expected if number == 3 else [])

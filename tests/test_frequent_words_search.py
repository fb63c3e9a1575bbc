"""Search by words in a memory so large that not all matches are read."""

import random
from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.index.text import frequent_words_search
from claude_mem.index.text.filters import Filters
from claude_mem.index.text.frequent_words_search import CountedWord
from claude_mem.types import Observation, Project
from tests.remembering import remember, remember_turns, titles
from tests.story import Story

MAX_MATCHES = 5  # matches of a word


@pytest.fixture(autouse=True)
def large_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "LARGE": 0,
        "MAX_SCORED": 0,
        "MAX_MATCHES_PER_WORD": MAX_MATCHES,
        "MIN_READ": 2,
    }.items():
        monkeypatch.setattr(frequent_words_search, name, value)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("useEvaluationApi returns a new object", "evaluation api"),
        ("useEvaluationApi returns a new object", "useEvaluationApi"),
        ("mended src/store/queue.py", "src/store/queue.py"),
        ("needs version 2.14.1 or later", "2.14.1"),
        ("the lamps were blinking", "blink lamp"),
        ("the lamps were blinking", '"lamps were"'),
        ("the lamps were blinking", 'blink "lamps were"'),
        ("数据库连接失败", "连接"),
        ("数据库连接失败", "为什么数据库会失败"),
    ],
)
def test_a_memory_is_found_by_what_it_says(story: Story, text: str, query: str) -> None:
    remember(story, Observation("discovery", title="A thing", narrative=text), session="a")
    remember(story, Observation("discovery", title="Other", narrative="nothing"), session="b")
    assert titles(story, query) == ["A thing"]


def test_of_a_common_word_the_newest_matches_are_found(story: Story) -> None:
    remember_turns(story, *(f"Lamp {number}" for number in range(20)))
    assert titles(story, "lamp") == [f"Lamp {number}" for number in range(19, 19 - MAX_MATCHES, -1)]


def test_an_old_memory_is_found_by_two_common_words(story: Story) -> None:
    remember_turns(story, "The relay of the lamp")
    remember_turns(story, *(f"Lamp {number}" for number in range(20)))
    remember_turns(story, *(f"Relay {number}" for number in range(20)))
    assert titles(story, "lamp relay")[0] == "The relay of the lamp"


def test_of_two_words_that_are_often_together_the_newest_matches_are_found(story: Story) -> None:
    remember_turns(story, *(f"Lamp relay {number}" for number in range(20)))
    newest = [f"Lamp relay {number}" for number in range(19, 19 - MAX_MATCHES, -1)]
    assert titles(story, "lamp relay") == newest


def test_an_old_memory_is_found_by_two_of_three_common_words(story: Story) -> None:
    remember_turns(story, "The relay of the lamp")
    for word in ("Lamp", "Relay", "Crane"):
        remember_turns(story, *(f"{word} {number}" for number in range(20)))
    assert "The relay of the lamp" in titles(story, "lamp relay crane")


def test_a_rare_word_counts_more_than_a_common_one(story: Story) -> None:
    remember_turns(story, "The crane of the lamp")
    remember_turns(story, *(f"Lamp {number}" for number in range(20)))
    assert titles(story, "lamp crane")[0] == "The crane of the lamp"


def test_each_project_has_its_newest_matches(story: Story) -> None:
    remember_turns(story, *(f"Lamp {number}" for number in range(20)), session="a")
    remember_turns(story, "Lamp of the quay", session="b", project=Project("quay", "quay"))
    assert "Lamp of the quay" in titles(story, "lamp")
    quay = story.store.project_by_key("quay")
    assert titles(story, "lamp", Filters(project_id=quay)) == ["Lamp of the quay"]


def test_the_newest_matches_pass_the_filters(story: Story) -> None:
    remember(story, Observation("bugfix", title="The lamp blinked"))
    remember_turns(story, *(f"Lamp {number}" for number in range(20)))
    assert titles(story, "lamp", Filters(types=("bugfix",))) == ["The lamp blinked"]


def test_of_a_phrase_in_many_memories_the_newest_are_found(story: Story) -> None:
    remember_turns(story, *(f"The blinking lamp {number}" for number in range(20)))
    assert titles(story, '"blinking lamp"')[0] == "The blinking lamp 19"


def test_all_matches_of_a_rare_word_are_found_and_common_words_count_for_them(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frequent_words_search, "MAX_SCORED", 12)
    lamps = "the lamp of the relay, once more the lamp, and the relay"
    remember_turns(story, Observation("discovery", title="Seen", narrative=f"The crane, {lamps}"))
    for number in range(10):
        seen = Observation("discovery", title="Seen too", narrative=f"The crane, {number} ships")
        remember(story, seen, session=f"crane-{number}")
    for number in range(20):
        seen = Observation("discovery", title="Lit", narrative=f"{number}: {lamps}")
        remember(story, seen, session=f"lamp-{number}")
    assert titles(story, "lamp relay crane")[:11] == ["Seen", *["Seen too"] * 10]


def test_where_a_rare_word_has_few_matches_those_of_common_words_are_found(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frequent_words_search, "MAX_SCORED", 12)
    remember_turns(story, "The crane", *(f"Lamp {number}" for number in range(20)))
    assert titles(story, "lamp crane")[:2] == ["The crane", "Lamp 19"]


@pytest.mark.parametrize(
    ("query", "count"),
    [("lamp", 0), ('"lamp relay"', 0), ('"lamp relay" crane', 1), ("lamp crane", 1)],
)
def test_passages_are_looked_through_only_for_words_that_they_may_hold_as_well(
    story: Story, query: str, count: int
) -> None:
    remember_turns(story, *(f"Lamp relay {number}" for number in range(20)), "Crane")
    statements: list[str] = []
    with story.store._readers.connection() as reader:
        reader.set_trace_callback(statements.append)
    assert titles(story, query)
    reader.set_trace_callback(None)
    assert sum("SELECT p.id, terms" in statement for statement in statements) == count


@given(st.integers(0, 1 << 32), st.integers(1, 40))
def test_passages_that_are_not_looked_through_are_not_among_the_best(seed: int, count: int) -> None:
    rng = random.Random(seed)
    words = [CountedWord(stem, 10, stem) for stem in ("lamp", "relay", "crane")]
    rows = rng.sample(range(1 << 12), 60)
    scored = {row: rng.random() for row in rows if rng.random() < 0.3}
    values = {word: [rng.random() / (1 + length) for length in range(128)] for word in words}
    holding = {word: {row for row in rows if rng.random() < 0.5} for word in words}
    matches = {word: {r for r in holding[word] if rng.random() < 0.5} for word in words}
    likely = frequent_words_search._best(scored, matches, values, 50)
    rising = frequent_words_search._rising(likely, matches, values, count)

    def best(looked_through: Collection[int]) -> list[tuple[int, float]]:
        completed = {
            word: matches[word] | holding[word].intersection(looked_through) for word in words
        }
        ranked = frequent_words_search._best(
            {row: scored[row] for row in likely if row in scored},
            {word: of_word.intersection(likely) for word, of_word in completed.items()},
            values,
            count,
        )
        return list(ranked.items())

    assert best(rising) == best(likely)

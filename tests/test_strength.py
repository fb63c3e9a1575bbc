"""Strong or weak: the figures behind it do not depend on how much else is remembered."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from claude_mem.index.text.filters import Filters
from claude_mem.recall.parsed_query import parse_query
from claude_mem.recall.ranking import Evidence, RankedTurn, rank
from claude_mem.recall.strength import Strength
from tests.api import Api, open_api

NOW = datetime(2026, 3, 9, tzinfo=UTC)
FEW, MANY = 4, 40
PROMPT = "Why is the foghorn on the north quay silent since the storm?"
REPLY = "The foghorn is silent because its compressor lost the pressure valve in the storm."
OTHERS = ("crane", "ferry", "lock gate", "slipway", "tide gauge", "warehouse", "dredger", "buoy")

SPECIFIC = (
    "What broke in the compressor of the foghorn on the north quay, so that it has been silent"
    " since the storm, and which valve was lost?"
)
VAGUE = "Was anything wrong with the foghorn lately?"
KEYWORDS, HALF_KNOWN = "foghorn compressor", "foghorn zeppelin"
FOREIGN = (
    "北埠頭の compressor はなぜ故障したのか、いつ修理されたのか"  # no passage has its other words
)
MANY_KEYWORDS = "foghorn silent compressor pressure valve"
PHRASE, OTHER_PHRASE = '"pressure valve"', '"foghorn" zeppelin'


def fill(api: Api, turns: int) -> None:
    """Sessions about other things, some of which share words with the questions."""
    for number in range(turns):
        thing = OTHERS[number % len(OTHERS)]
        api.add_turn(
            f"other-{number}",
            f"Look after the {thing} number {number}",
            f"The {thing} was checked after the storm: bolt {number} is new, and the quay is dry.",
        )


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Api]]:
    """The same turn among few others, and among ten times as many."""
    directory: Path = tmp_path_factory.mktemp("strength")
    with open_api(directory / "small") as small, open_api(directory / "large") as large:
        for api, turns in ((small, FEW), (large, MANY)):
            api.add_turn("foghorn", PROMPT, REPLY)
            fill(api, turns)
        yield small, large


def results_of(api: Api, question: str) -> tuple[list[RankedTurn], Strength]:
    parsed = parse_query(question, NOW)
    index = api.worker.semantic_index
    assert index is not None
    loaded = index.load()
    ranked = api.worker.store.read(lambda c: rank(c, parsed, Filters(), 8, loaded=loaded))
    return ranked, Strength.of(parsed)


def result_of(api: Api, question: str) -> tuple[RankedTurn, Strength]:
    """The turn about the foghorn as a result."""
    ranked, judge = results_of(api, question)
    (result,) = (r for r in ranked if "foghorn" in r.turn.title)
    return result, judge


def is_strong(api: Api, question: str) -> bool:
    result, judge = result_of(api, question)
    return judge.is_strong(result)


@pytest.mark.parametrize(
    ("question", "strong"),
    [
        (SPECIFIC, True),
        (VAGUE, False),
        (KEYWORDS, True),
        (HALF_KNOWN, False),
        (FOREIGN, False),
        (MANY_KEYWORDS, True),
        (PHRASE, True),
        (OTHER_PHRASE, False),
    ],
)
def test_the_flag_does_not_depend_on_the_size_of_the_memory(
    stores: tuple[Api, Api], question: str, strong: bool
) -> None:
    assert [is_strong(api, question) for api in stores] == [strong, strong]


@pytest.mark.parametrize("question", [SPECIFIC, VAGUE])
def test_no_figure_depends_on_the_size_of_the_memory(
    stores: tuple[Api, Api], question: str
) -> None:
    (small, small_judge), (large, large_judge) = (result_of(api, question) for api in stores)
    assert small_judge.length == large_judge.length
    assert small.evidence.cosine == pytest.approx(large.evidence.cosine, abs=1e-6)
    # Words are weighted by how rare they are, which more turns change a little.
    assert small.evidence.soft_coverage == pytest.approx(large.evidence.soft_coverage, abs=0.1)
    assert abs(small_judge.logit(small) - large_judge.logit(large)) < 0.25


def test_a_longer_question_is_not_strong_by_its_length_alone(stores: tuple[Api, Api]) -> None:
    unrelated = "Which sourdough recipe did the bakery settle on for its rye loaves, and why? " * 3
    for api in stores:
        ranked, judge = results_of(api, unrelated)
        assert not any(judge.is_strong(result) for result in ranked)


def is_strong_with(api: Api, characters: int, cosine: float, soft_coverage: float) -> bool:
    """A question of this length, of which a passage does not hold every word."""
    result, _ = result_of(api, SPECIFIC)
    evidence = Evidence(cosine=cosine, soft_coverage=soft_coverage)
    question = f"{'Did the pilot see a foghorn'.ljust(characters - 1, 't')}?"
    judge = Strength.of(parse_query(question, NOW))
    assert judge.is_sentence
    return judge.is_strong(result._replace(evidence=evidence))


@pytest.mark.parametrize(("more", "strong"), [(0.95, True), (0.90, False)])
def test_nearness_and_coverage_count_the_same(
    stores: tuple[Api, Api], more: float, strong: bool
) -> None:
    assert is_strong_with(stores[0], 80, more, 0.3) is strong
    assert is_strong_with(stores[0], 80, 0.3, more) is strong


@pytest.mark.parametrize(("characters", "strong"), [(30, False), (54, False), (56, True)])
def test_a_short_question_is_only_answered_by_a_passage_with_all_of_its_words(
    stores: tuple[Api, Api], characters: int, strong: bool
) -> None:
    assert is_strong_with(stores[0], characters, 1.0, 1.0) is strong

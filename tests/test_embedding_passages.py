"""How a memory is split into passages for an embedder."""

from claude_mem.index.text.documents import load
from claude_mem.index.vectors.embedding_texts import MAX_PASSAGES, passages
from claude_mem.types import Observation
from tests.remembering import remember
from tests.story import Story


def read(story: Story, observation: Observation) -> list[str]:
    (memory,) = remember(story, observation)
    (document,) = story.store.read(lambda c: load(c, [memory * 4]))
    return passages(document)


def test_a_title_that_says_something_is_also_read_by_itself(story: Story) -> None:
    title = "The lamp went out at night"
    parts = read(story, Observation("change", title, narrative="The oil was frozen."))
    assert parts == [f"{title}\nThe oil was frozen.", title]


def test_a_name_and_a_title_without_more_are_read_once(story: Story) -> None:
    assert read(story, Observation("change", "Relay", narrative="It clicks.")) == [
        "Relay\nIt clicks."
    ]
    assert read(story, Observation("change", "The lamp went out at night")) == [
        "The lamp went out at night"
    ]


def test_a_long_body_is_cut_at_its_sentences_and_facts_stand_apart(story: Story) -> None:
    sentence = "The keeper walked up the stairs and down again without a lamp. "
    parts = read(
        story, Observation("change", "Stairs", narrative=sentence * 20, facts=("There are 92.",))
    )
    assert len(parts) > 2 and parts[-1] == "There are 92."
    assert all(part.rstrip().endswith(".") for part in parts)


def test_of_a_huge_memory_only_some_passages_are_read(story: Story) -> None:
    parts = read(story, Observation("change", "Stairs", narrative="One step. " * 50_000))
    assert len(parts) == MAX_PASSAGES


def test_a_text_without_an_end_of_a_sentence_is_one_passage(story: Story) -> None:
    assert len(read(story, Observation("change", "x", narrative="step " * 5_000))) == 1

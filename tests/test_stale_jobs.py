"""What happens to a turn while a job for it runs decides whether the job's result is stored."""

from typing import Any

import pytest

from claude_mem.store.forgetting import Selection
from claude_mem.types import Distillate, Observation, Summary
from tests.payloads import edit, prompt, stop
from tests.story import Story

REVISED = Distillate(
    Summary(completed="revised"), (Observation("change", title="revised"),), observer="model"
)
SELECTIONS = {
    "its memories": Selection(observations=(1,), summaries=(1,)),
    "its prompt": Selection(prompts=(1,)),
    "its session": Selection(session=1),
    "its project": Selection(project=1),
}


@pytest.fixture
def drafted(story: Story) -> Story:
    """A turn with a draft that waits for a model."""
    story.tell(prompt(), edit(), stop())
    job, turn = story.claim()
    draft = Distillate(Summary(completed="draft"), (Observation("change", title="draft"),))
    assert story.store.finish_job(job, turn, draft, is_draft=True).result()
    return story


def forget(story: Story, selection: Selection) -> None:
    preview = story.store.preview_forgetting(selection)
    assert not preview.is_empty
    story.store.forget(selection, preview.token).result()


def memories(story: Story) -> list[Any]:
    return story.column(
        "SELECT title FROM observations UNION ALL SELECT completed FROM session_summaries"
    )


@pytest.mark.parametrize("selection", SELECTIONS.values(), ids=SELECTIONS.keys())
def test_a_turn_that_is_forgotten_while_it_is_distilled_gets_no_new_memories(
    drafted: Story, selection: Selection
) -> None:
    drafted.tell(edit("/srv/late.py", tool_use_id="late"))
    job, turn = drafted.claim()
    forget(drafted, selection)
    before = memories(drafted)
    assert drafted.store.finish_job(job, turn, REVISED).result() is False
    assert memories(drafted) == before
    assert drafted.queue() == {}


@pytest.mark.parametrize("selection", SELECTIONS.values(), ids=SELECTIONS.keys())
def test_a_turn_that_is_forgotten_while_a_model_revises_it_gets_no_new_memories(
    drafted: Story, selection: Selection
) -> None:
    claimed = drafted.store.claim_refinement().result()
    assert claimed is not None
    job, turn = claimed
    assert turn is not None
    forget(drafted, selection)
    before = memories(drafted)
    assert drafted.store.finish_refinement(job, turn, REVISED).result() is False
    assert memories(drafted) == before
    assert drafted.count("refinements") == 0


def test_a_turn_that_is_retired_while_a_model_revises_it_keeps_its_draft(drafted: Story) -> None:
    claimed = drafted.store.claim_refinement().result()
    assert claimed is not None
    job, turn = claimed
    assert turn is not None
    drafted.store.retire_raw_events(drafted.now + 1, 10**9).result()
    assert drafted.store.finish_refinement(job, turn, REVISED).result() is False
    assert memories(drafted) == ["draft", "draft"]


def test_a_turn_that_is_retired_before_a_model_is_asked_is_not_given_to_it(drafted: Story) -> None:
    drafted.store.retire_raw_events(drafted.now + 1, 10**9).result()
    claimed = drafted.store.claim_refinement().result()
    assert claimed is not None and claimed[1] is None

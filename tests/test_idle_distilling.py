"""Turns of an older observer, distilled again in the background."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claude_mem.observer.local.version import VERSION
from claude_mem.store import facts
from claude_mem.types import Distillate, Observation, ProposedFact, Summary
from claude_mem.worker.distil_jobs import TranscriptAdditions
from claude_mem.worker.idle_distilling import IdleDistilling
from tests.importing import ImportTarget
from tests.payloads import bash, edit, prompt, stop
from tests.story import Story
from tests.transcripts import Chat

OLD = "Old title of an old observer"
WORK = "Fixed the fuse of `light.py` because it was bent."
OTHER_WORK = {"p2": "Moved the relay into `box.py`, since rain came in through the door."}


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    with Story(tmp_path) as story:
        yield story


def tell(story: Story, prompt_id: str, session_id: str = "one") -> None:
    of = {"prompt_id": prompt_id, "session_id": session_id}
    story.tell(prompt(f"Light the lamp of {prompt_id}", **of), edit(**of),
               bash("make test", "3 passed", **of),
               stop(OTHER_WORK.get(prompt_id, WORK), **of))  # fmt: skip


def age(story: Story, condition: str = "1") -> None:
    """Ages the turns as if an older version had distilled them."""
    statements = (
        f"UPDATE user_prompts SET observer_version = 0 WHERE {condition}",
        f"UPDATE observations SET title = '{OLD}'",
        f"UPDATE session_summaries SET completed = '{OLD}'",
        "DELETE FROM fact_sources",
    )
    for statement in statements:
        story.store.write(lambda c, s=statement: c.execute(s)).result()  # type: ignore[misc]


def idle_distilling(story: Story, **changes: Any) -> IdleDistilling:
    transcript_additions = TranscriptAdditions(story.store, story.reader)
    return IdleDistilling(story.store, story.reader, transcript_additions, story.contexts,
                        lambda: story.now, **changes)  # fmt: skip


def completed(story: Story) -> list[str]:
    return story.column("SELECT completed FROM session_summaries ORDER BY turn_id")


def versions(story: Story) -> list[int]:
    return story.column("SELECT observer_version FROM user_prompts ORDER BY id")


def test_a_turn_of_this_version_is_not_distilled_again(story: Story) -> None:
    tell(story, "p1")
    story.distil()
    assert versions(story) == [VERSION]
    assert not story.store.is_any_outdated(VERSION)
    assert asyncio.run(idle_distilling(story).run()) == 0


def test_turns_of_an_older_version_get_new_memories_and_facts(story: Story) -> None:
    tell(story, "p1")
    tell(story, "p2")
    story.distil()
    ids = story.column("SELECT id FROM observations ORDER BY id")
    before = completed(story)
    age(story)
    assert OLD in completed(story)
    assert asyncio.run(idle_distilling(story).run()) == 2
    assert completed(story) == before
    assert versions(story) == [VERSION, VERSION]
    assert story.column("SELECT id FROM observations ORDER BY id") == ids
    assert [fact.count for fact in story.store.facts(1, ["command"])] == [2]
    assert not story.store.is_any_outdated(VERSION)


def test_the_most_recent_turn_comes_first_and_a_stopped_run_continues(story: Story) -> None:
    for prompt_id in ("p1", "p2", "p3"):
        tell(story, prompt_id)
    story.distil()
    age(story)

    async def one_turn() -> None:
        task = asyncio.create_task(idle_distilling(story).run(pause=3600))
        while sum(versions(story)) == 0:
            await asyncio.sleep(0)
        task.cancel()

    asyncio.run(one_turn())
    assert versions(story) == [0, 0, VERSION]
    assert asyncio.run(idle_distilling(story).run()) == 2
    assert OLD not in completed(story)


def test_it_waits_while_a_turn_is_due(story: Story) -> None:
    tell(story, "p1")
    story.distil()
    age(story)
    tell(story, "p2")
    assert asyncio.run(idle_distilling(story).run()) == 0
    assert versions(story)[0] == 0


def test_what_a_model_wrote_stays_and_gets_facts(story: Story) -> None:
    tell(story, "p1")
    story.distil()
    age(story)
    story.store.write(
        lambda c: c.execute("UPDATE session_summaries SET observer = 'claude', model = 'm'")
    ).result()
    assert asyncio.run(idle_distilling(story).run()) == 1
    assert completed(story) == [OLD]
    assert [fact.value for fact in story.store.facts(1, ["command"])] == ["make test"]


def test_what_the_user_wrote_stays(story: Story) -> None:
    tell(story, "p1")
    story.distil()
    age(story)
    story.store.write(lambda c: c.execute("UPDATE observations SET observer = 'user'")).result()
    assert asyncio.run(idle_distilling(story).run()) == 0
    assert completed(story) == [OLD]
    assert versions(story) == [VERSION]  # it is not looked at again


def test_a_pinned_fact_stays(story: Story) -> None:
    tell(story, "p1")
    story.distil()
    kept = Distillate(Summary(), facts=(ProposedFact("place", "server", "port 80"),))
    story.store.write(lambda c: facts.save_proposals(c, 1, kept)).result()
    story.store.write(lambda c: c.execute("UPDATE facts SET pinned = 1")).result()
    story.store.write(lambda c: c.execute("UPDATE user_prompts SET observer_version = 0")).result()
    asyncio.run(idle_distilling(story).run())
    assert [fact.value for fact in story.store.facts(1, ["place"])] == ["port 80"]


def test_saved_memories_and_forgotten_turns_are_left_alone(story: Story) -> None:
    tell(story, "p1")
    story.distil()
    saved = Observation("decision", title="Use oil")
    project = story.store.project(1)
    story.store.save_memory(project, "/home/dev/harbor", saved, "user").result()
    age(story)
    story.store.write(lambda c: c.execute("UPDATE user_prompts SET sealed = 1")).result()
    assert asyncio.run(idle_distilling(story).run()) == 0
    assert not story.store.is_any_outdated(VERSION)


def test_no_refinement_is_queued(story: Story) -> None:
    tell(story, "p1")
    story.distil()
    age(story)
    asyncio.run(idle_distilling(story).run())
    assert story.count("refinements") == 0


def test_a_turn_whose_events_are_gone_is_read_from_its_transcript(tmp_path: Path) -> None:
    chat = Chat().prompt("Light the lamp").edit("/home/dev/harbor/lamp.py")
    chat.agent("Fixed the fuse of `lamp.py` because it was bent.")
    chat.prompt("Paint the door").agent("Painted the door of `door.py` green.")
    file = tmp_path / f"{chat.session}.jsonl"
    file.write_bytes(chat.data())
    target = ImportTarget(tmp_path / "data")
    target.run(file)
    with Story(tmp_path) as story:
        before = completed(story)
        assert story.column("SELECT retired FROM user_prompts") == [1, 1]
        age(story)
        story.store.write(lambda c: c.execute("DELETE FROM user_prompts WHERE id = 2")).result()
        assert asyncio.run(idle_distilling(story).run()) == 1
        assert completed(story) == before[:1]  # and the turn that is not stored is not added
        assert story.column("SELECT sum(bytes) FROM tool_events") == [0]
        file.unlink()
        age(story)
        assert asyncio.run(idle_distilling(story).run()) == 0
        assert completed(story) == [OLD]
        assert not story.store.is_any_outdated(VERSION)


def test_the_record_stays_as_it_is(story: Story) -> None:
    tell(story, "p1")
    story.distil()
    age(story)
    story.store.write(lambda c: c.execute("UPDATE tool_events SET words = NULL")).result()
    (before,) = story.column("SELECT parts FROM turn_records")
    asyncio.run(idle_distilling(story).run())
    assert story.column("SELECT parts FROM turn_records") == [before]


def test_at_the_end_removed_work_trees_are_joined_with_their_repository(story: Story) -> None:
    tell(story, "p1")
    story.distil()
    age(story)
    place = "/nowhere/lamp/.worktrees/fix"
    story.store.write(
        lambda c: c.execute("UPDATE projects SET key = ?, name = 'fix'", (place,))
    ).result()
    asyncio.run(idle_distilling(story).run())
    assert [project["key"] for project in story.store.projects()] == ["/nowhere/lamp"]

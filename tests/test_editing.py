"""Edited, pinned and wrong memories: what observers and imports leave alone, what is shown."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claude_mem.errors import BadInput, NotFound
from claude_mem.recall.context import build_context
from claude_mem.recall.handover import what_holds
from claude_mem.store.facts import save_proposals
from claude_mem.store.forgetting import Selection, preview
from claude_mem.store.memories import save_memories
from claude_mem.types import Distillate, Observation, ProposedFact, Summary
from claude_mem.worker.distil_jobs import TranscriptAdditions
from claude_mem.worker.idle_distilling import IdleDistilling
from tests.exports import dump, restored
from tests.importing import ImportTarget, forked
from tests.payloads import bash, edit, prompt, stop
from tests.remembering import remember
from tests.story import Story
from tests.transcripts import Chat

EDITED = "The relay needs five volts"


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    with Story(tmp_path / "story") as story:
        yield story


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Story]:
    with Story(tmp_path / "other") as story:
        yield story


def tell(story: Story, prompt_id: str = "p1", text: str = "Light the lamp") -> None:
    of = {"prompt_id": prompt_id}
    story.tell(prompt(text, **of), edit(**of), bash("make test", "3 passed", **of),
               stop("Fixed the fuse of `light.py` because it was bent.", **of))  # fmt: skip
    story.distil()


def change(story: Story, kind: str, number: int = 1, **values: Any) -> None:
    story.store.edit_memory(kind, number, values, "person").result()


def titles(story: Story) -> list[str]:
    return story.column("SELECT title FROM observations ORDER BY id")


def distil_with_newer_observer(story: Story) -> int:
    """Distils as after an upgrade of the local observer."""
    story.store.write(lambda c: c.execute("UPDATE user_prompts SET observer_version = 0")).result()
    transcript_additions = TranscriptAdditions(story.store, story.reader)
    idle_distilling = IdleDistilling(
        story.store, story.reader, transcript_additions, story.contexts, lambda: story.now
    )
    return asyncio.run(idle_distilling.run())


def by_model(story: Story, *observations: Observation) -> None:
    """What a model made of the first turn."""
    distillate = Distillate(
        Summary(completed="By the model"), observations, observer="anthropic", model="m"
    )
    story.store.write(lambda c: save_memories(c, 1, 1, 1, distillate)).result()


# Observers leave changed memories alone


def test_an_edited_observation_survives_distilling_again(story: Story) -> None:
    tell(story)
    before = titles(story)
    change(story, "observation", title=EDITED)
    assert distil_with_newer_observer(story) == 1
    assert titles(story) == [EDITED, *before[1:]]


@pytest.mark.parametrize("action", ["pin", "wrong"])
def test_a_pinned_or_wrong_observation_survives_a_model(story: Story, action: str) -> None:
    tell(story)
    (title,) = titles(story)
    mark = story.store.pin_memory if action == "pin" else story.store.mark_wrong
    mark("observation", 1, True, "person").result()
    by_model(story, Observation("change", "By the model"), Observation("change", "And another"))
    assert titles(story) == [title, "And another"]
    mark("observation", 1, False, "person").result()
    by_model(story, Observation("change", "By the model"))
    assert titles(story) == ["By the model"]


def test_an_edited_summary_survives_a_model_and_later_events(story: Story) -> None:
    tell(story)
    change(story, "summary", completed=EDITED, next_steps=None)
    by_model(story)
    story.tell(edit("/srv/late.py", prompt_id="p1"), stop("Also fixed late.py.", prompt_id="p1"))
    story.distil()
    assert story.column("SELECT completed FROM session_summaries") == [EDITED]


def test_an_edited_observation_stays_when_the_turn_has_fewer_now(story: Story) -> None:
    tell(story)
    by_model(story, Observation("change", "First"), Observation("change", "Second"))
    second = max(story.column("SELECT id FROM observations"))
    change(story, "observation", second, narrative=EDITED)
    by_model(story)
    assert story.column("SELECT narrative FROM observations") == [EDITED]


def test_an_import_does_not_replace_an_edited_memory(tmp_path: Path) -> None:
    chat = Chat("one").prompt("Light the lamp").agent("Fixed the bent fuse.")
    target = ImportTarget(tmp_path / "data")
    target.run(chat.save(tmp_path / "one.jsonl"))
    with Story(tmp_path) as story:
        change(story, "summary", completed=EDITED)
    chat.agent("It also needed a new relay, since the old one was wet.")
    target.run(chat.save(tmp_path / "one.jsonl"))
    with Story(tmp_path) as story:
        assert story.column("SELECT completed FROM session_summaries") == [EDITED]


def test_an_edited_turn_of_a_fork_stays_where_it_is(tmp_path: Path) -> None:
    chat = Chat("b-origin").prompt("Light the lamp").agent("Fixed the bent fuse.")
    fork = forked(chat, "c-fork")
    target = ImportTarget(tmp_path / "data")
    target.run(fork.save(tmp_path / "c-fork.jsonl"))
    with Story(tmp_path) as story:
        change(story, "summary", completed=EDITED)
    target.run(chat.save(tmp_path / "b-origin.jsonl"))
    with Story(tmp_path) as story:
        assert EDITED in story.column("SELECT completed FROM session_summaries")


# Facts


def rules(story: Story) -> list[tuple[str, str, int]]:
    return [(f.value, f.status, f.count) for f in story.store.facts(1, ["rule"])]


def test_an_edited_fact_is_what_its_turns_reveal_from_then_on(story: Story) -> None:
    tell(story, text="Never push to main.")
    (rule,) = story.store.facts(1, ["rule"])
    change(story, "fact", rule.id, value="Never push to main on Fridays.")
    assert distil_with_newer_observer(story) == 1
    tell(story, "p2", text="Never push to main.")
    assert rules(story) == [("Never push to main on Fridays.", "holds", 2)]
    assert "Fridays" in build_context(story.store, 1, 1_000)


def test_an_edited_fact_stays_without_its_turns_but_not_if_they_are_forgotten(
    story: Story,
) -> None:
    tell(story, text="Never push to main.")
    (rule,) = story.store.facts(1, ["rule"])
    change(story, "fact", rule.id, value=EDITED)
    empty = Distillate(Summary())
    story.store.write(lambda c: save_proposals(c, 1, empty)).result()
    assert rules(story) == [(EDITED, "holds", 0)]
    story.store.write(
        lambda c: save_proposals(c, 1, Distillate(Summary(), facts=(
            ProposedFact("rule", "", "Never push to main.", origin="person"),
        )))
    ).result()  # fmt: skip
    forget(story, Selection(prompts=(1,)))
    assert rules(story) == []


def test_two_facts_cannot_become_the_same(story: Story) -> None:
    tell(story, text="Never push to main.")
    tell(story, "p2", text="Always write tests.")
    with pytest.raises(BadInput, match="has this fact already"):
        change(story, "fact", fact_id(story, "Never push to main."), value="Always write tests.")


def fact_id(story: Story, value: str) -> int:
    return next(fact.id for fact in story.store.facts(1) if fact.value == value)


def test_a_wrong_rule_stays_wrong_when_it_is_stated_again(story: Story) -> None:
    tell(story, text="Never push to main.")
    story.store.mark_wrong("fact", fact_id(story, "Never push to main."), True, "person").result()
    tell(story, "p2", text="Never push to main.")
    tell(story, "p3", text="Paint the door")
    assert rules(story) == [("Never push to main.", "wrong", 2)]
    assert "Never push" not in build_context(story.store, 1, 1_000)


def test_a_pinned_fact_is_not_replaced(story: Story) -> None:
    tell(story, text="Never push to main.")
    story.store.pin_memory("fact", fact_id(story, "Never push to main."), True, "person").result()
    tell(story, "p2", text="You may push to main again.")
    assert ("Never push to main.", "holds", 1) in rules(story)


# What an agent cannot change


def test_an_agent_cannot_touch_a_rule_or_what_the_user_changed(story: Story) -> None:
    tell(story, text="Never push to main.")
    rule = fact_id(story, "Never push to main.")
    change(story, "summary", completed=EDITED)
    store = story.store
    (decision,) = story.column("SELECT id FROM observations WHERE origin = 'person'")
    for attempt in (
        store.edit_memory("observation", decision, {"title": "Always push"}, "agent"),
        store.mark_wrong("observation", decision, True, "agent"),
        store.edit_memory("fact", rule, {"value": "Always push"}, "agent"),
        store.pin_memory("fact", rule, True, "agent"),
        store.mark_wrong("fact", rule, True, "agent"),
        store.confirm_fact(rule, "agent"),
        store.edit_memory("summary", 1, {"completed": "x"}, "agent"),
        store.mark_wrong("summary", 1, True, "agent"),
        store.pin_memory("prompt", 1, True, "agent"),
        store.mark_wrong("prompt", 1, True, "agent"),
    ):
        with pytest.raises(BadInput, match="only the user"):
            attempt.result()
    store.edit_memory("observation", 1, {"title": "By the agent"}, "agent").result()
    assert titles(story)[0] == "By the agent"
    assert story.column("SELECT changed_by FROM observations")[0] == "agent"


def test_an_agent_makes_no_command_of_the_project(story: Story) -> None:
    tell(story)
    command = fact_id(story, "make test")
    for attempt in (
        story.store.edit_memory("fact", command, {"value": "make evil"}, "agent"),
        story.store.pin_memory("fact", command, True, "agent"),
    ):
        with pytest.raises(BadInput, match="only the user"):
            attempt.result()
    (fact,) = story.store.facts(1, ["command"])
    assert (fact.value, fact.is_pinned) == ("make test", False)
    story.store.mark_wrong("fact", command, True, "agent").result()
    assert story.column("SELECT status FROM facts WHERE kind = 'command'") == ["wrong"]


def test_what_an_agent_pinned_is_a_note_of_the_agent(story: Story) -> None:
    tell(story)
    story.store.edit_memory("observation", 1, {"title": "By the agent"}, "agent").result()
    story.store.pin_memory("observation", 1, True, "agent").result()
    (line,) = what_holds.pinned(story.store.pinned(1))
    assert line.text == "- The agent noted: By the agent #1"
    story.store.pin_memory("observation", 1, True, "person").result()
    (line,) = what_holds.pinned(story.store.pinned(1))
    assert line.text == "- By the agent #1"


# Invalid changes


@pytest.mark.parametrize(
    ("kind", "number", "values"),
    [
        ("observation", 1, {}),
        ("observation", 1, {"completed": "x"}),
        ("observation", 1, {"title": None, "narrative": None, "subtitle": None}),
        ("prompt", 1, {"prompt_text": "x"}),
        ("prompt", 1, {}),
        ("fact", 1, {"value": None}),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(
    story: Story, kind: str, number: int, values: dict[str, Any]
) -> None:
    tell(story)
    with pytest.raises(BadInput):
        story.store.edit_memory(kind, number, values, "person").result()


@pytest.mark.parametrize("kind", ["observation", "summary", "prompt", "fact"])
def test_what_does_not_exist_cannot_be_changed(story: Story, kind: str) -> None:
    tell(story)
    with pytest.raises(NotFound):
        story.store.pin_memory(kind, 99, True, "person").result()


# Contexts


def test_the_context_leaves_wrong_memories_out_until_that_is_undone(story: Story) -> None:
    summary = Summary(request="Wire it", completed="Wired the relay to five volts.")
    remember(story, Observation("decision", "Relays must keep five volts"), summary=summary)
    remember(story, "Painted the door green because it was rusty")
    context = build_context(story.store, 1, 1_000)
    assert "five volts" in context
    story.store.mark_wrong("observation", 1, True, "person").result()
    assert "five volts" not in build_context(story.store, 1, 1_000)
    story.store.mark_wrong("observation", 1, False, "person").result()
    assert build_context(story.store, 1, 1_000) == context


def test_a_pinned_memory_is_in_the_context_however_old(story: Story) -> None:
    remember(story, "The lamp oil is kept in the north store", prompt="Where is the oil?")
    for number in range(130):
        remember(story, f"Painted door {number} green because it was rusty")
    assert "north store" not in build_context(story.store, 1, 1_000)
    story.store.pin_memory("observation", 1, True, "person").result()
    assert "- The lamp oil is kept in the north store #1" in build_context(story.store, 1, 1_000)
    story.store.pin_memory("observation", 1, False, "person").result()
    assert "north store" not in build_context(story.store, 1, 1_000)


@pytest.mark.parametrize(
    ("fact", "line"),
    [
        (ProposedFact("place", "staging host", "stage.example.com"),
         "- staging host: stage.example.com"),
        (ProposedFact("fault", "pip install", "uv pip install"),
         "- `pip install` fails here; `uv pip install` works"),
        (ProposedFact("command", "test", "make -C web test"), "- Tests: `make -C web test`"),
        (ProposedFact("command", "build", "make all", scope="web"), "- build: make all in web"),
        (ProposedFact("decision", "Push now?", "Yes", origin="person"), "Push now? Yes"),
    ],
)  # fmt: skip
def test_a_pinned_fact_is_in_the_context_whatever_it_is(
    story: Story, fact: ProposedFact, line: str
) -> None:
    remember(story, "Painted the door green because it was rusty")
    distillate = Distillate(Summary(), facts=(fact,))
    story.store.write(lambda c: save_proposals(c, 1, distillate)).result()
    assert line not in build_context(story.store, 1, 1_000)
    story.store.pin_memory("fact", fact_id(story, fact.value), True, "person").result()
    assert build_context(story.store, 1, 1_000).count(line) == 1


def test_pinned_summaries_and_prompts_are_in_the_context(story: Story) -> None:
    tell(story)
    tell(story, "p2", text="Please keep the lamp warm over night")
    change(story, "summary", completed=EDITED)
    story.store.pin_memory("summary", 1, True, "person").result()
    story.store.pin_memory("prompt", 2, True, "person").result()
    context = build_context(story.store, 1, 1_000)
    assert '"Please keep the lamp warm over night" P2' in context
    assert f"- {EDITED} S1" in context


# Export, restore, forget


def test_changes_are_exported_and_restored(story: Story, other: Story) -> None:
    tell(story, text="Never push to main.")
    change(story, "observation", title=EDITED)
    change(story, "fact", fact_id(story, "Never push to main."), value="Never push to trunk.")
    story.store.mark_wrong("summary", 1, True, "person").result()
    story.store.pin_memory("prompt", 1, True, "person").result()
    data = dump(story.store)
    restored(other, data)
    assert dump(other.store) == data
    assert distil_with_newer_observer(other) == 1
    assert titles(other)[0] == EDITED
    assert rules(other) == [("Never push to trunk.", "holds", 1)]


def test_an_old_export_does_not_bring_a_forgotten_pinned_fact_back(story: Story) -> None:
    tell(story, text="Never push to main.")
    story.store.pin_memory("fact", fact_id(story, "Never push to main."), True, "person").result()
    data = dump(story.store)
    forget(story, Selection(prompts=(1,)))
    assert rules(story) == []
    restored(story, data)
    assert rules(story) == []


def test_undo_of_forgetting_restores_the_edit(story: Story) -> None:
    tell(story)
    change(story, "observation", title=EDITED)
    token = forget(story, Selection(observations=(1,)))
    assert titles(story) == []
    story.store.undo_forgetting(token).result()
    assert story.rows("SELECT title, edited, changed_by FROM observations") == [
        {"title": EDITED, "edited": 1, "changed_by": "person"}
    ]


def forget(story: Story, selection: Selection) -> str:
    token = story.store.read(lambda c: preview(c, selection)).token
    return story.store.forget(selection, token).result().token

"""The outbox of a machine that shares projects, without a server: what is to be sent, and when."""

import pytest

from claude_mem.redaction import Redactor
from claude_mem.store.forgetting import Selection
from claude_mem.team.client import outbox
from claude_mem.team.client.outbox import Pending, PushAnswer, SharedProject
from claude_mem.team.wire import Tombstone, TurnItem
from tests import payloads
from tests.story import Story

REDACTOR = Redactor()


def share(story: Story, *, record: bool = False, with_past: bool = True) -> None:
    key = str(story.store.projects()[0]["key"])
    project = SharedProject(key, 77, record)
    story.store.write(lambda c: outbox.share(c, project, with_past=with_past)).result()


def claim(story: Story) -> list[Pending]:
    return story.store.write(lambda c: outbox.claim(c, REDACTOR, 100, story.now)).result()


def answer(story: Story, pending: list[Pending], outcome: str = "stored") -> None:
    answers = [PushAnswer(entry, outcome) for entry in pending]
    story.store.write(lambda c: outbox.acknowledge(c, answers)).result()


def tell_turn(story: Story, text: str = "Make the light blink", number: int = 1) -> None:
    at = {"session_id": "s", "prompt_id": f"p{number}"}
    asked = payloads.prompt(text, **at) if text else payloads.private_prompt(**at)
    story.tell(asked, payloads.edit(**at),
               payloads.common("Stop", last_assistant_message="It blinks.", **at))  # fmt: skip
    story.distil()


@pytest.fixture
def shared(story: Story) -> Story:
    tell_turn(story)
    share(story)
    return story


def test_who_shares_nothing_has_an_empty_outbox(story: Story) -> None:
    tell_turn(story)
    assert story.count("team_outbox") == 0


def test_sharing_a_project_sends_its_past_and_what_follows(shared: Story) -> None:
    (first,) = claim(shared)
    assert isinstance(first.item, TurnItem) and first.team_id == 77
    answer(shared, [first])
    assert claim(shared) == []
    tell_turn(shared, number=2)
    (second,) = claim(shared)
    assert isinstance(second.item, TurnItem) and second.item.uid != first.item.uid


def test_a_turn_is_sent_only_when_it_was_distilled(shared: Story) -> None:
    answer(shared, claim(shared))
    at = {"session_id": "s", "prompt_id": "p2"}
    shared.tell(payloads.prompt("Later", **at), payloads.edit(**at))
    assert claim(shared) == []
    shared.tell(payloads.common("Stop", last_assistant_message="Done.", **at))
    assert claim(shared) == []
    shared.distil()
    assert len(claim(shared)) == 1


def test_nothing_of_this_machine_is_sent(shared: Story) -> None:
    (entry,) = claim(shared)
    text = str(entry.item.as_json())
    assert payloads.PROJECT_DIR not in text.replace("light.py", "")
    assert ".jsonl" not in text and "memory_session_id" not in text


def test_a_change_while_a_turn_is_being_sent_is_sent_next(shared: Story) -> None:
    pending = claim(shared)
    shared.store.edit_memory("observation", 1, {"title": "Changed"}, "person").result()
    answer(shared, pending)
    (entry,) = claim(shared)
    assert "Changed" in str(entry.item.as_json())


def test_what_was_not_answered_is_sent_again_unchanged(shared: Story) -> None:
    assert claim(shared) == claim(shared) != []


@pytest.mark.parametrize("was_answered", [True, False])
def test_a_forgotten_turn_is_deleted_on_the_server(shared: Story, was_answered: bool) -> None:
    """Also if the process died before it knew that the server has it."""
    pending = claim(shared)
    if was_answered:
        answer(shared, pending)
    selection = Selection(session=shared.session_db_id("s"))
    token = shared.store.preview_forgetting(selection).token
    shared.store.forget(selection, token).result()
    (entry,) = claim(shared)
    assert entry.item == Tombstone(pending[0].item.uid, shared.now)
    answer(shared, [entry])
    shared.store.undo_forgetting(token).result()
    (entry,) = claim(shared)
    assert isinstance(entry.item, TurnItem) and entry.item.is_restored


def test_a_turn_that_was_never_sent_needs_no_tombstone(shared: Story) -> None:
    selection = Selection(session=shared.session_db_id("s"))
    token = shared.store.preview_forgetting(selection).token
    shared.store.forget(selection, token).result()
    assert claim(shared) == [] and shared.count("team_outbox") == 0


def test_private_and_wrong_memories_are_not_sent(story: Story) -> None:
    tell_turn(story, "")  # as the hook leaves a prompt that is private as a whole
    tell_turn(story, "Make the light blink", number=2)
    share(story)
    (observation,) = story.column("SELECT id FROM observations WHERE turn_id = 2")
    story.store.mark_wrong("observation", observation, True, "person").result()
    (entry,) = claim(story)
    assert isinstance(entry.item, TurnItem)
    tables = [row["table"] for row in entry.item.rows]
    assert "observations" not in tables and "user_prompts" in tables


def test_the_record_is_sent_only_where_it_is_shared(story: Story) -> None:
    tell_turn(story)
    for shares in (False, True):
        share(story, record=shares)
        (entry,) = claim(story)
        assert isinstance(entry.item, TurnItem)
        has_record = any(row["table"] == "turn_records" for row in entry.item.rows)
        assert has_record is shares


def test_a_turn_that_moves_to_another_project_leaves_the_first(shared: Story) -> None:
    pending = claim(shared)
    answer(shared, pending)
    shared.store.write(
        lambda c: c.execute("INSERT INTO projects (key, name) VALUES ('other', 'other')")
    ).result()
    move = "UPDATE user_prompts SET project_id = (SELECT id FROM projects WHERE key = 'other')"
    shared.store.write(lambda c: c.execute(move)).result()
    (entry,) = claim(shared)
    assert entry.item == Tombstone(pending[0].item.uid, shared.now) and entry.team_id == 77


def test_leaving_forgets_the_team(shared: Story) -> None:
    claim(shared)
    shared.store.write(outbox.leave).result()
    tell_turn(shared, number=2)
    for table in ("team_projects", "team_outbox", "team_turns"):
        assert shared.count(table) == 0

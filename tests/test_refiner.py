"""Drafts and their revision: once, in place, from the stored draft."""

import asyncio
import threading

import pytest

from claude_mem.config import CaptureSettings
from claude_mem.observer.models.prompts import PROMPT_VERSION
from claude_mem.store.queue import LEASE_MS
from claude_mem.types import Distillate, Observation, Summary, Turn
from claude_mem.worker import refiner as refiner_module
from claude_mem.worker.distil_jobs import JobRunner
from claude_mem.worker.refiner import Refiner
from tests.fake_api import Reply
from tests.observed import (
    LATER_EVENTS,
    TURN,
    Observed,
    answer,
    by_topic,
    last_message,
    says,
    until,
)
from tests.payloads import edit, private_prompt, prompt, stop, tool


def test_a_draft_is_there_at_once_and_the_model_revises_it_in_place(observed: Observed) -> None:
    observed.api.say(says(answer("The lamp blinks twice")))
    observed.tell(*TURN)
    assert observed.observers() == ["local"]
    ids = observed.rows("SELECT id FROM observations")
    observed.refine()
    assert observed.observers() == [observed.kind]
    assert observed.titles() == ["The lamp blinks twice"]
    assert observed.rows("SELECT id FROM observations") == ids
    assert observed.rows("SELECT * FROM refinements") == []
    assert observed.asked() == 1
    assert [(news["type"], news["prompt_number"]) for news in observed.announced] == [("memory", 1)]


class Marked:
    """A drafter whose drafts nobody else would make."""

    name = "marked"

    async def __call__(self, turn: Turn) -> Distillate:
        summary = Summary(learned="Herons sleep on `boom_7`.", notes="Mind the herons.")
        return Distillate(summary, (Observation("discovery", title="Herons"),), observer=self.name)


def test_the_model_is_sent_the_stored_draft_and_revises_that(simple: Observed) -> None:
    story = simple.story
    story.tell(*TURN)
    jobs = JobRunner(story.layout, story.store, story.announcer, story.contexts,
                     draft=Marked())  # fmt: skip
    jobs.queues_refinements = True
    asyncio.run(jobs.run_due())
    simple.api.say(says("<summary><notes>Mind the gulls.</notes></summary>"))
    simple.refine()
    draft = last_message(simple.api.requests[-1]).partition("Collected by the program:")[2]
    assert "discovery" in draft and "boom_7" in draft
    assert "Herons" not in draft  # names, not sentences
    _, revised = simple.memory()
    assert revised.observer == "anthropic"
    assert (revised.summary.learned, revised.summary.notes) == (
        "Herons sleep on `boom_7`.",
        "Mind the gulls.",
    )
    assert [observation.title for observation in revised.observations] == ["Herons"]


def test_a_draft_that_is_claimed_while_the_model_is_closed_waits_for_the_next(
    simple: Observed,
) -> None:
    simple.api.otherwise = by_topic
    simple.tell(*TURN)

    async def close(refiner: Refiner) -> None:
        starting = asyncio.create_task(refiner.start_due())
        await asyncio.sleep(0)  # it waits for the store now
        await refiner.close()
        assert await starting == 0

    simple.with_refiner(close)
    assert simple.asked() == 0
    (row,) = simple.rows("SELECT status, attempts, lease FROM refinements")
    assert row == {"status": "pending", "attempts": 0, "lease": None}
    simple.refine()
    assert simple.observers() == ["anthropic"]


def test_a_memory_says_who_made_it_with_which_model_and_prompts(observed: Observed) -> None:
    observed.api.say(says(answer("The lamp blinks twice")))
    observed.tell(*TURN)
    observed.refine()
    for table in ("observations", "session_summaries"):
        (row,) = observed.rows(f"SELECT observer, model, prompt_version FROM {table}")
        assert row == {"observer": observed.kind, "model": "claude-haiku-4-5",
                       "prompt_version": PROMPT_VERSION}  # fmt: skip


def test_one_request_is_made_for_a_turn_of_many_tools(simple: Observed) -> None:
    simple.api.otherwise = by_topic
    simple.tell(prompt("topic-many"), *(tool() for _ in range(30)), stop())
    simple.refine()
    assert simple.asked() == 1
    assert simple.titles() == ["About topic-many"]


def test_what_a_model_made_stands_until_it_revises_a_turn_that_went_on(observed: Observed) -> None:
    observed.api.say(says(answer("The lamp blinks twice")), says(answer("And the relay is warm")))
    observed.tell(*TURN)
    observed.refine()
    observed.tell(*LATER_EVENTS)
    assert observed.observers() == [observed.kind]
    first, *late = observed.rows("SELECT title, narrative, observer FROM observations ORDER BY id")
    assert (first["title"], first["observer"]) == ("The lamp blinks twice", observed.kind)
    assert {row["observer"] for row in late} == {"local"}
    assert "relay in late.py" in str(late)  # there at once, under its own name
    observed.refine()
    assert observed.asked() == 2
    text = last_message(observed.api.requests[-1])
    assert "You wrote this turn down before" in text
    draft = text.partition("What you wrote:")[2]
    assert "The lamp blinks twice" in draft and "relay in late.py" in draft
    assert observed.titles() == ["And the relay is warm"]
    assert observed.observers() == [observed.kind]
    linked = observed.rows("SELECT event_id FROM observation_events")
    (last,) = observed.rows("SELECT max(id) AS id FROM tool_events")
    assert last["id"] in [row["event_id"] for row in linked]


def test_a_model_that_fails_at_a_turn_that_went_on_takes_nothing_away(simple: Observed) -> None:
    simple.api.say(says("Well: " + answer("The lamp blinks twice")))
    simple.tell(*TURN)
    simple.refine()
    simple.api.otherwise = lambda body: Reply("no", status=400)
    for _ in range(2):  # also when it goes on once more
        simple.tell(*LATER_EVENTS)
        simple.refine_all()
    first, *late = simple.rows("SELECT title, narrative, observer FROM observations ORDER BY id")
    assert (first["title"], first["observer"]) == ("The lamp blinks twice", "anthropic")
    assert "relay in late.py" in str(late)
    assert len(late) == len({row["narrative"] for row in late})
    (row,) = simple.kept()
    assert row["last_error"] and row["reply"].startswith("Well: ")


def test_a_turn_that_goes_on_without_its_model_keeps_what_that_made(simple: Observed) -> None:
    simple.api.say(says(answer("The lamp blinks twice")))
    simple.tell(*TURN)
    simple.refine()
    simple.story.tell(*LATER_EVENTS)
    simple.story.distil()  # the local observer is used now
    assert simple.titles()[0] == "The lamp blinks twice"
    assert simple.observers() == ["anthropic"]
    assert "relay in late.py" in str(simple.rows("SELECT * FROM observations"))


def test_last_words_that_came_late_are_kept_though_no_observation_tells_them(
    simple: Observed,
) -> None:
    simple.api.say(says("<no_observation/>" + answer("x").partition("</observation>")[2]))
    simple.tell(*TURN)
    simple.refine()
    assert simple.titles() == []
    simple.tell(stop("Switched off."))
    added = simple.titles()
    assert added[-1] == "Switched off."
    simple.api.say(says("<no_observation/>"))
    simple.refine()
    assert simple.observers() == ["anthropic"]
    assert simple.titles() == added  # nothing came to what is there


def test_what_was_said_of_an_older_draft_does_not_replace_a_newer_one(simple: Observed) -> None:
    hold = threading.Event()
    simple.api.say(says(answer("Of the old draft"), hold=hold), says(answer("Of the new draft")))
    simple.tell(*TURN)

    async def meanwhile(refiner: Refiner) -> None:
        await refiner.start_due()
        await until(lambda: simple.asked() == 1)
        simple.story.tell(edit("/srv/late.py"))
        await asyncio.to_thread(simple.draft)
        hold.set()
        await refiner.run_due()

    simple.with_refiner(meanwhile)
    assert simple.titles() == ["Of the new draft"]
    assert simple.rows("SELECT * FROM refinements") == []


def test_a_lease_is_renewed_while_the_model_thinks(
    simple: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refiner_module, "RENEW_SECONDS", 0.01)
    hold = threading.Event()
    simple.api.say(says(answer("At last"), hold=hold))
    simple.tell(*TURN)

    def is_renewed() -> bool:
        (row,) = simple.waiting()
        return bool(row["lease_until_epoch"] == simple.story.now + LEASE_MS)

    async def long(refiner: Refiner) -> None:
        await refiner.start_due()
        for _ in range(3):
            simple.story.now += LEASE_MS - 1
            await until(is_renewed)
        assert await refiner.start_due() == 0
        hold.set()
        await refiner.run_due()

    simple.with_refiner(long)
    assert simple.titles() == ["At last"]
    assert simple.asked() == 1


def test_a_lost_lease_changes_nothing_and_ends_the_call(
    simple: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refiner_module, "RENEW_SECONDS", 0.01)
    hold = threading.Event()
    simple.api.say(says(answer("Too late"), hold=hold))
    simple.tell(*TURN)
    before = simple.titles()

    async def lose(refiner: Refiner) -> None:
        await refiner.start_due()
        await until(lambda: simple.asked() == 1)
        simple.story.store.stop_session(simple.story.session_db_id()).result()
        await refiner.run_due()

    simple.with_refiner(lose)
    hold.set()
    assert simple.titles() == before
    assert simple.rows("SELECT status FROM refinements") == [{"status": "held"}]


def test_a_late_acknowledgement_of_a_lost_lease_changes_nothing(simple: Observed) -> None:
    simple.tell(*TURN)
    store = simple.story.store
    first = store.claim_refinement().result()
    assert first is not None and first[1] is not None
    simple.story.now += LEASE_MS
    second = store.claim_refinement().result()
    assert second is not None and second[0].attempts == 2
    before = simple.rows("SELECT * FROM refinements")
    distillate = Distillate(Summary(request="late"), observer="claude")
    assert store.finish_refinement(first[0], first[1], distillate).result() is False
    store.give_up_refinement(first[0], "late").result()
    store.put_back_refinement(first[0], "late", 0).result()
    assert not store.renew_refinement(first[0]).result()
    assert simple.rows("SELECT * FROM refinements") == before
    assert simple.observers() == ["local"]


def test_a_stopped_session_is_revised_only_when_it_goes_on(simple: Observed) -> None:
    simple.api.otherwise = by_topic
    simple.tell(*TURN)
    simple.story.store.stop_session(simple.story.session_db_id()).result()
    simple.refine()
    assert simple.asked() == 0
    simple.tell(prompt("Go on with topic-two", prompt_id="p2"))
    simple.refine()
    assert simple.observers() == ["anthropic"]


def test_a_turn_that_turns_out_private_is_not_sent(simple: Observed) -> None:
    late = {**private_prompt(), "prompt_id": "p9"}
    simple.tell({**tool(), "prompt_id": "p9"}, {**stop(), "prompt_id": "p9"})
    simple.tell(late)
    simple.refine()
    assert simple.asked() == 0
    assert simple.rows("SELECT * FROM refinements") == []


def test_a_turn_whose_raw_events_are_gone_keeps_its_draft(simple: Observed) -> None:
    simple.tell(*TURN)
    simple.story.store.retire_raw_events(simple.story.now + 1, 10**9).result()
    simple.refine()
    assert simple.asked() == 0
    assert simple.observers() == ["local"]
    assert simple.rows("SELECT * FROM refinements") == []


def test_a_turn_whose_raw_events_went_while_the_model_thought_keeps_its_draft(
    simple: Observed,
) -> None:
    hold = threading.Event()
    simple.api.say(says(answer("Too late"), hold=hold))
    simple.tell(*TURN)
    drafted = simple.memory()

    async def retire(refiner: Refiner) -> None:
        await refiner.start_due()
        await until(lambda: simple.asked() == 1)
        simple.story.store.retire_raw_events(simple.story.now + 1, 10**9).result()
        hold.set()
        await refiner.run_due()

    simple.with_refiner(retire)
    assert simple.memory()[1].summary.text == drafted[1].summary.text
    assert simple.observers() == ["local"]
    assert simple.asked() == 1
    assert simple.rows("SELECT * FROM refinements") == []
    assert simple.announced == []


def test_a_secret_in_a_reply_is_redacted_as_the_settings_say(simple: Observed) -> None:
    token = "ghp_" + "Ab1Cd2Ef3Gh4" * 3
    simple.api.otherwise = lambda body: Reply(answer(f"Uses {token}"))
    simple.tell(*TURN)
    simple.refine()
    assert token not in str(simple.memory())
    simple.story.reader.use(CaptureSettings(redact_allow=(token,)))
    simple.tell(*LATER_EVENTS)
    simple.refine()
    assert simple.titles() == [f"Uses {token}"]

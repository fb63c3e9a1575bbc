"""Jobs: leased, tried again, never lost, and one bad turn stops nobody."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from claude_mem.store.queue import LARGEST_ERROR, LEASE_MS
from claude_mem.types import Distillate, Job, Json, Observation, Project, Summary, Turn
from claude_mem.worker.distil_jobs import (
    CLAIMS,
    TRIES,
    Drafter,
    JobRunner,
    exponential_backoff,
)
from tests.payloads import PROJECT_DIR, SESSION, edit, private_prompt, prompt, session_start, stop
from tests.story import MINUTE, SECOND, Story, transactions_of

OTHER = "b7e1a9c0-1111-4222-8333-444455556666"
WAIT = 10 * SECOND


class Failing:
    """Cannot, so many times."""

    name = "failing"

    def __init__(self, times: int = 10**9, reason: str = "the model is out") -> None:
        self.left, self.reason = times, reason
        self.asked: list[int] = []

    async def __call__(self, turn: Turn) -> Distillate:
        self.asked.append(turn.id)
        if self.left > 0:
            self.left -= 1
            raise RuntimeError(self.reason)
        return Distillate(Summary(completed="at last"), observer=self.name)


class FailingFor:
    """Cannot for one session; others get their due."""

    name = "choosy"

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id

    async def __call__(self, turn: Turn) -> Distillate:
        if turn.content_session_id == self.session_id:
            raise RuntimeError("not this one")
        return Distillate(Summary(completed="fine"), observer=self.name)


class Dangling:
    """Makes what the store must refuse: a memory of an event that is not there."""

    name = "dangling"

    async def __call__(self, turn: Turn) -> Distillate:
        lost = Observation("change", title="from nowhere", sources=(10**9,))
        return Distillate(Summary(completed="half"), (lost,), observer=self.name)


class Busy:
    """Never ends on its own."""

    name = "busy"

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.cancelled = False

    async def __call__(self, turn: Turn) -> Distillate:
        self.started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        raise AssertionError("nobody wakes it")


class Gated:
    """Goes on when it is told to."""

    name = "gated"

    def __init__(self) -> None:
        self.started, self.opened = asyncio.Event(), asyncio.Event()

    async def __call__(self, turn: Turn) -> Distillate:
        self.started.set()
        await self.opened.wait()
        return Distillate(Summary(completed="in the end"), observer=self.name)


class Interrupted:
    """Something happens to the turn while it is being distilled."""

    name = "interrupted"

    def __init__(self, story: Story, *happens: dict[str, Any], fails: bool = False) -> None:
        self.story, self.happens, self.fails = story, list(happens), fails

    async def __call__(self, turn: Turn) -> Distillate:
        if self.happens:
            self.story.tell(self.happens.pop(0), after=1)
            if self.fails:
                raise RuntimeError("too late")
        return Distillate(Summary(completed=f"of {len(turn.events)} events"), observer=self.name)


@pytest.fixture
def waiting(story: Story) -> Story:
    """One turn waits."""
    story.tell(prompt(), stop())
    return story


def runner(story: Story, drafter: Drafter | None = None, wait: int = WAIT) -> JobRunner:
    return JobRunner(story.layout, story.store, story.announcer, story.contexts,
                     draft=drafter, backoff=lambda _: wait)  # fmt: skip


def run(work: Coroutine[Any, Any, int]) -> int:
    return asyncio.run(work)


def work_off(story: Story, drafter: Drafter) -> None:
    """Works off the queue as time passes, until nothing is due any more."""
    jobs = runner(story, drafter)
    while (due := story.store.next_due()) is not None:
        story.now = max(story.now, due)
        run(jobs.run_due())


def message(story: Story) -> dict[str, Any]:
    (row,) = story.rows("SELECT * FROM pending_messages")
    return row


def summaries(story: Story) -> list[tuple[str, str]]:
    rows = story.rows("SELECT observer, completed FROM session_summaries ORDER BY id")
    return [(row["observer"], row["completed"]) for row in rows]


RESULT = Distillate(Summary(completed="made"), observer="test")


# Claim and lease


def test_nothing_is_claimed_when_nothing_waits(story: Story) -> None:
    story.tell(prompt())
    assert story.store.claim_job().result() is None
    assert story.store.next_due() is None


def test_looking_for_work_where_there_is_none_begins_no_transaction(waiting: Story) -> None:
    with transactions_of(waiting.store) as begun:
        waiting.claim()
        assert len(begun) == 1
        assert waiting.store.claim_job().result() is None
        assert waiting.distil() == 0
    assert len(begun) == 1


def test_the_oldest_message_is_claimed_first(story: Story) -> None:
    for name in ("a", "b", "c"):
        story.tell(prompt(session_id=name), stop(session_id=name))
    assert [story.claim()[1].content_session_id for _ in range(3)] == ["a", "b", "c"]
    assert story.store.claim_job().result() is None


def test_a_claimed_turn_comes_with_its_prompt_and_events(waiting: Story) -> None:
    job, turn = waiting.claim()
    assert (job.turn_id, job.attempts) == (turn.id, 1)
    assert turn.prompt == "Make the harbour light blink twice"
    assert [event.kind for event in turn.events] == ["UserPromptSubmit", "Stop"]


def test_only_messages_of_the_project_asked_for_are_claimed(story: Story) -> None:
    story.tell(prompt(session_id="a"), stop(session_id="a"), project_dir="/home/dev/pier")
    story.tell(prompt(), stop())
    harbor = story.store.find_project("harbor")
    claimed = story.store.claim_job(harbor).result()
    assert claimed is not None and claimed[1] is not None
    assert claimed[1].content_session_id == SESSION
    assert story.store.claim_job(harbor).result() is None
    assert story.queue() == {"pending": 1, "processing": 1}


def test_a_leased_message_is_nobody_elses_until_the_lease_runs_out(waiting: Story) -> None:
    first, _ = waiting.claim()
    waiting.now += LEASE_MS - 1
    assert waiting.store.claim_job().result() is None
    assert waiting.store.next_due() == waiting.now + 1
    waiting.now += 1
    second, _ = waiting.claim()
    assert (second.id, second.attempts) == (first.id, 2)
    assert second.lease != first.lease


def test_a_new_worker_takes_over_what_a_dead_one_held(waiting: Story) -> None:
    waiting.claim()
    waiting.store.free_all_leases().result()
    job, _ = waiting.claim()
    assert job.attempts == 2


def test_a_finished_job_is_gone_and_its_memory_there(waiting: Story) -> None:
    job, turn = waiting.claim()
    assert waiting.store.finish_job(job, turn, RESULT).result() is True
    assert waiting.queue() == {}
    assert summaries(waiting) == [("test", "made")]


@pytest.fixture
def lost(waiting: Story) -> tuple[Job, Turn]:
    """A job whose lease another holds by now."""
    job, turn = waiting.claim()
    waiting.now += LEASE_MS
    waiting.claim()
    return job, turn


def test_finishing_on_a_lost_lease_changes_nothing(waiting: Story, lost: tuple[Job, Turn]) -> None:
    before = message(waiting)
    assert waiting.store.finish_job(*lost, RESULT).result() is False
    assert message(waiting) == before
    assert summaries(waiting) == []
    assert waiting.session()["memory_session_id"] is None


@pytest.mark.parametrize("late", ["retry", "set aside", "drop"])
def test_no_late_word_on_a_lost_lease_changes_anything(
    waiting: Story, lost: tuple[Job, Turn], late: str
) -> None:
    before = message(waiting)
    if late == "retry":
        waiting.store.retry_job(lost[0], "late", 0).result()
    elif late == "set aside":
        waiting.store.set_job_aside(lost[0], "late").result()
    else:
        waiting.store.drop_job(lost[0]).result()
    assert message(waiting) == before


def test_a_job_is_finished_once(waiting: Story) -> None:
    job, turn = waiting.claim()
    assert waiting.store.finish_job(job, turn, RESULT).result() is True
    again = Distillate(Summary(completed="again"))
    assert waiting.store.finish_job(job, turn, again).result() is False
    assert summaries(waiting) == [("test", "made")]


def test_result_and_acknowledgement_are_stored_together_or_not_at_all(waiting: Story) -> None:
    job, turn = waiting.claim()
    distillate = asyncio.run(Dangling()(turn))
    assert waiting.store.finish_job(job, turn, distillate).exception() is not None
    assert waiting.queue() == {"processing": 1}
    assert summaries(waiting) == []
    assert waiting.session()["memory_session_id"] is None


def test_a_job_of_a_session_that_was_deleted_meanwhile_stores_nothing(waiting: Story) -> None:
    job, turn = waiting.claim()
    waiting.delete_session(turn.session_db_id)
    assert waiting.store.finish_job(job, turn, RESULT).result() is False
    assert summaries(waiting) == []


def test_a_turn_that_turned_out_private_meanwhile_is_not_remembered(story: Story) -> None:
    story.tell(edit(), stop())
    job, turn = story.claim()
    story.tell(private_prompt())
    assert story.store.finish_job(job, turn, RESULT).result() is False
    assert summaries(story) == []


# Revision


def test_a_turn_that_changed_while_it_was_distilled_is_distilled_again(waiting: Story) -> None:
    observer = Interrupted(waiting, edit())
    assert run(runner(waiting, observer).run_due()) == 2
    assert summaries(waiting) == [("interrupted", "of 3 events")]
    assert waiting.queue() == {}


def test_a_message_that_was_put_back_for_a_change_has_all_its_tries(waiting: Story) -> None:
    job, turn = waiting.claim()
    waiting.tell(edit())
    assert waiting.store.finish_job(job, turn, RESULT).result() is True
    assert summaries(waiting) == [("test", "made")]
    assert (message(waiting)["status"], message(waiting)["attempts"]) == ("pending", 0)


def test_a_change_while_it_waits_is_still_one_message(waiting: Story) -> None:
    waiting.tell(edit(), edit(), stop("Second thoughts."))
    assert waiting.queue() == {"pending": 1}
    assert waiting.distil() == 1


def test_a_revision_with_fewer_observations_removes_the_rest(waiting: Story) -> None:
    for titles in (("one", "two", "three"), ("uno",)):
        job, turn = waiting.claim()
        distillate = Distillate(Summary(), tuple(Observation("change", title=t) for t in titles))
        waiting.store.finish_job(job, turn, distillate).result()
        waiting.tell(edit())
    assert waiting.column("SELECT title FROM observations") == ["uno"]


# Failure


def test_the_waits_between_tries_grow() -> None:
    assert [exponential_backoff(attempt) for attempt in (1, 2)] == [2 * SECOND, 10 * SECOND]


def test_a_failed_try_is_put_back_until_its_wait_is_over(waiting: Story) -> None:
    observer = Failing(times=1)
    jobs = runner(waiting, observer)
    run(jobs.run_due())
    assert message(waiting)["status"] == "pending"
    assert message(waiting)["last_error"] == "RuntimeError: the model is out"
    assert waiting.store.next_due() == waiting.now + WAIT
    waiting.now += WAIT - 1
    assert run(jobs.run_due()) == 0
    waiting.now += 1
    assert run(jobs.run_due()) == 1
    assert summaries(waiting) == [("failing", "at last")]


def test_after_three_tries_the_letter_is_dead_kept_and_reported(waiting: Story) -> None:
    drafter = Failing()
    work_off(waiting, drafter)
    assert len(drafter.asked) == TRIES == 3
    assert waiting.queue() == {"dead": 1}
    (letter,) = waiting.store.dead_letters()
    assert (letter["content_session_id"], letter["prompt_number"]) == (SESSION, 1)
    error = "RuntimeError: the model is out"
    assert letter["last_error"] == error
    assert error in waiting.trouble()
    assert summaries(waiting) == []


def test_a_dead_letter_is_not_tried_again_by_itself(waiting: Story) -> None:
    work_off(waiting, Failing())
    waiting.now += 1000 * MINUTE
    assert waiting.distil() == 0
    waiting.store.free_all_leases().result()
    assert waiting.distil() == 0
    assert waiting.queue() == {"dead": 1}


def test_a_dead_letter_is_revived_when_its_turn_changes(waiting: Story) -> None:
    work_off(waiting, Failing())
    waiting.tell(edit())
    assert waiting.queue() == {"pending": 1}
    again = Failing(times=TRIES - 1)
    work_off(waiting, again)
    assert summaries(waiting) == [("failing", "at last")]


def test_a_turn_that_changed_during_its_last_try_is_not_buried(waiting: Story) -> None:
    jobs = runner(waiting, Failing())
    for _ in range(TRIES - 1):
        run(jobs.run_due())
        waiting.now += WAIT
    observer = Interrupted(waiting, edit(), fails=True)
    run(runner(waiting, observer).run_due())
    work_off(waiting, observer)
    assert waiting.queue() == {}
    assert summaries(waiting) == [("interrupted", "of 3 events")]


def test_a_long_error_is_cut(waiting: Story) -> None:
    run(runner(waiting, Failing(times=1, reason="x" * 10_000)).run_due())
    assert len(message(waiting)["last_error"]) == LARGEST_ERROR


def two_sessions(story: Story) -> None:
    for name in (SESSION, OTHER):
        story.tell(prompt(session_id=name), stop(session_id=name))


def test_one_bad_turn_does_not_stop_the_others(story: Story) -> None:
    two_sessions(story)
    observer = FailingFor(SESSION)
    assert run(runner(story, observer).run_due()) == 2
    assert summaries(story) == [("choosy", "fine")]
    assert story.queue() == {"pending": 1}


def test_a_result_that_the_store_refuses_counts_as_a_failed_try(waiting: Story) -> None:
    run(runner(waiting, Dangling()).run_due())
    assert waiting.queue() == {"pending": 1}
    assert waiting.store.next_due() == waiting.now + WAIT
    work_off(waiting, Dangling())
    assert waiting.queue() == {"dead": 1}
    assert summaries(waiting) == []


def test_a_result_that_the_store_refuses_does_not_stop_the_others(story: Story) -> None:
    two_sessions(story)
    run(runner(story, Dangling()).run_due())
    assert story.column("SELECT attempts FROM pending_messages") == [1, 1]


def test_a_turn_that_kills_its_worker_each_time_is_buried_unasked(waiting: Story) -> None:
    for _ in range(CLAIMS):
        waiting.claim()
        waiting.store.free_all_leases().result()
    observer = Failing(times=0)
    run(runner(waiting, observer).run_due())
    assert observer.asked == []
    assert waiting.queue() == {"dead": 1}
    assert "claimed too often" in waiting.trouble()


def test_a_turn_whose_workers_died_a_few_times_is_still_tried(waiting: Story) -> None:
    for _ in range(CLAIMS - 1):
        waiting.claim()
        waiting.store.free_all_leases().result()
    run(runner(waiting, Failing(times=0)).run_due())
    assert summaries(waiting) == [("failing", "at last")]


def test_whoever_waits_for_memories_hears_of_those_that_were_stored(waiting: Story) -> None:
    jobs = runner(waiting, Failing(times=1))

    async def announced() -> list[tuple[Json, Json]]:
        with waiting.announcer.live_events.subscribe() as subscription:
            await jobs.run_due()
            await asyncio.sleep(0)  # a listener is told in the next round of the loop
            news = subscription.take_all()
        return [(m["type"], m["prompt_number"]) for m in news if m["type"] != "processing"]

    assert asyncio.run(announced()) == []
    assert waiting.contexts.stale == set()
    waiting.now += MINUTE
    assert asyncio.run(announced()) == [("memory", 1)]
    assert waiting.contexts.stale == {PROJECT_DIR}


def test_a_person_may_have_dead_letters_tried_again_with_all_their_tries(waiting: Story) -> None:
    work_off(waiting, Failing())
    assert waiting.queue() == {"dead": 1}
    assert waiting.store.revive_dead_jobs().result() == 1
    assert waiting.store.next_due() == waiting.now
    assert (message(waiting)["attempts"], message(waiting)["last_error"]) == (0, None)
    observer = Failing(times=TRIES - 1)
    work_off(waiting, observer)
    assert len(observer.asked) == TRIES
    assert summaries(waiting) == [("failing", "at last")]


def test_trying_dead_letters_again_leaves_what_is_alive_alone(story: Story) -> None:
    two_sessions(story)
    stopped = story.session_db_id(OTHER)
    story.store.stop_session(stopped).result()
    job, turn = story.claim()
    before = story.rows("SELECT * FROM pending_messages")
    assert story.store.revive_dead_jobs().result() == 0
    assert story.rows("SELECT * FROM pending_messages") == before
    assert story.store.finish_job(job, turn, RESULT).result() is True


# Sessions that are stopped


def test_a_held_session_is_not_claimed_until_it_goes_on(waiting: Story) -> None:
    waiting.store.stop_session(waiting.session_db_id()).result()
    waiting.now += 10 * LEASE_MS
    assert waiting.distil() == 0
    assert waiting.store.next_due() is None
    waiting.tell(session_start("resume"))
    assert waiting.queue() == {"pending": 1}
    assert waiting.distil() == 1


def test_a_late_event_of_a_held_session_leaves_it_held(waiting: Story) -> None:
    waiting.store.stop_session(waiting.session_db_id()).result()
    waiting.tell(edit())
    assert waiting.queue() == {"held": 1}


def test_holding_a_session_takes_its_lease_away(waiting: Story) -> None:
    job, turn = waiting.claim()
    assert waiting.store.stop_session(turn.session_db_id).result() == 1
    assert waiting.store.finish_job(job, turn, RESULT).result() is False
    assert waiting.queue() == {"held": 1}


def test_holding_one_session_leaves_another_alone(story: Story) -> None:
    two_sessions(story)
    story.store.stop_session(story.session_db_id(SESSION)).result()
    assert story.store.queue_state(story.session_db_id(OTHER))["pending"] == 1
    assert story.distil() == 1


def test_a_cancelled_sessions_work_ends_and_nothing_of_it_is_stored(waiting: Story) -> None:
    async def scenario() -> int:
        observer = Busy()
        jobs = runner(waiting, observer)
        running = asyncio.create_task(jobs.run_due())
        await observer.started.wait()
        await jobs.cancel_session(waiting.session_db_id(), seconds=30)
        return await running

    assert run(scenario()) == 1
    assert summaries(waiting) == []
    assert waiting.store.stop_session(waiting.session_db_id()).result() == 1
    waiting.tell(session_start("resume"))
    waiting.distil()
    assert summaries(waiting) == [("local", "The light blinks twice now.")]


def test_cancelling_one_session_leaves_another_at_work(waiting: Story) -> None:
    async def scenario() -> bool:
        observer = Busy()
        jobs = runner(waiting, observer)
        running = asyncio.create_task(jobs.run_due())
        await observer.started.wait()
        await jobs.cancel_session(waiting.session_db_id() + 1, seconds=30)
        at_work = not observer.cancelled
        await jobs.cancel_session(waiting.session_db_id(), seconds=30)
        await running
        return at_work

    assert asyncio.run(scenario())


def test_cancelling_a_session_that_does_nothing_is_fine(waiting: Story) -> None:
    jobs = runner(waiting)
    asyncio.run(jobs.cancel_session(waiting.session_db_id(), seconds=30))
    assert run(jobs.run_due()) == 1


def test_settling_waits_for_what_is_being_distilled_of_the_project(waiting: Story) -> None:
    async def scenario() -> tuple[bool, list[tuple[str, str]]]:
        observer = Gated()
        jobs = runner(waiting, observer)
        running = asyncio.create_task(jobs.run_due())
        await observer.started.wait()
        await jobs.wait_for_project(Project("/home/dev/pier", "pier"))
        settling = asyncio.create_task(jobs.wait_for_project(Project(PROJECT_DIR, "harbor")))
        await asyncio.sleep(0)
        waited = not settling.done()
        observer.opened.set()
        await settling
        there = summaries(waiting)
        await running
        return waited, there

    assert asyncio.run(scenario()) == (True, [("gated", "in the end")])


def test_the_oldest_waiting_message_is_known_by_its_time(story: Story) -> None:
    assert story.store.oldest_waiting() is None
    story.tell(prompt(), stop())
    first = story.now
    story.tell(prompt(session_id=OTHER), stop(session_id=OTHER))
    assert story.store.oldest_waiting() == first

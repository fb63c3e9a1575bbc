"""When a model is asked again, and what it may cost."""

import asyncio
import itertools
import logging
import threading

import pytest

from claude_mem.observer.models.prompts import MAX_REPLY_TOKENS
from claude_mem.store.spending import Caps
from claude_mem.worker.refiner import TRIES, Refiner, exponential_with_jitter
from tests.fake_api import FakeApi, Reply
from tests.observed import (
    TURN,
    Observed,
    answer,
    by_topic,
    client_pids,
    draft_sessions,
    last_message,
    policy,
    says,
    until,
)
from tests.payloads import SESSION, prompt, stop
from tests.real_client import needs_client
from tests.story import DAY, HOUR, MINUTE, Story


def test_a_failure_is_tried_again_a_few_times_and_then_the_draft_stands(simple: Observed) -> None:
    simple.api.otherwise = lambda body: Reply("oh no", status=500)
    simple.tell(*TURN)
    simple.refine_all()
    assert simple.asked() == TRIES
    (row,) = simple.kept()
    assert "HTTP 500" in row["last_error"]


def test_retry_after_is_waited_for(simple: Observed) -> None:
    slow = says("slow down", status=429, headers=(("Retry-After", "300"),))
    simple.api.otherwise = by_topic
    simple.api.say(slow)
    simple.tell(*TURN)
    simple.refine()
    simple.story.now += 5 * MINUTE - 1
    simple.refine()
    assert simple.asked() == 1
    simple.story.now += 1
    simple.refine()
    assert simple.observers() == ["anthropic"]


def test_pauses_grow_and_are_never_the_same_for_all() -> None:
    pauses = [[exponential_with_jitter(n) for _ in range(50)] for n in range(8)]
    assert all(len(set(some)) > 1 for some in pauses)
    assert all(max(a) <= 2 * max(b) for a, b in itertools.pairwise(pauses))
    assert max(pauses[-1]) <= HOUR


def test_a_breaker_opens_after_failures_and_one_probe_decides(simple: Observed) -> None:
    simple.policy = policy(backoff=lambda failures: MINUTE, max_concurrent=1)
    simple.api.otherwise = lambda body: Reply("oh no", status=500)
    draft_sessions(simple, "a", "b", "c", "d", "e", "f")
    simple.refine()
    assert simple.asked() == 3
    assert simple.story.store.breaker_state("anthropic", simple.story.now)["state"] == "open"
    simple.story.now += MINUTE
    simple.refine()
    assert simple.asked() == 4  # one probe, which failed
    simple.api.otherwise = by_topic
    simple.story.now += MINUTE
    simple.refine()
    assert simple.story.store.breaker_state("anthropic", simple.story.now) == {"state": "closed"}
    simple.refine_all()
    assert simple.observers() == ["anthropic"] * 6


def test_a_breaker_outlives_the_worker(simple: Observed) -> None:
    simple.api.say(says("slow down", status=429))
    simple.policy = policy(backoff=lambda failures: HOUR, max_concurrent=1)
    draft_sessions(simple, "a", "b")
    simple.refine()
    simple.story.store.free_all_leases().result()  # as a new worker does
    simple.refine()
    assert simple.asked() == 1


@pytest.mark.parametrize(
    "reply",
    [says("model: claude-hiaku-9", status=404), says("hiaku is not a valid model ID", status=400)],
    ids=["404", "400"],
)
def test_a_model_that_the_provider_does_not_have_is_reported_once(
    simple: Observed, reply: Reply, caplog: pytest.LogCaptureFixture
) -> None:
    simple.policy = policy(max_concurrent=1)
    simple.api.otherwise = lambda body: reply
    draft_sessions(simple, "a", "b")
    simple.refine()
    assert simple.asked() == 1  # the other turn is not sent
    report = simple.story.trouble()
    assert "hiaku" in report and "claude-mem observer" in report
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1 and "hiaku" in errors[0].message


def test_the_log_names_the_session_at_each_step_of_a_refinement(
    simple: Observed, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "claude_mem")
    simple.api.say(
        says("oh no", status=500), says(answer("Done") + '<skip_summary reason="brief"/>')
    )
    simple.tell(*TURN)
    simple.refine_all()
    mark = f"session {SESSION}: "
    lines = [record.message for record in caplog.records if record.name.startswith("claude_mem")]
    lines = [line.removeprefix(mark) for line in lines if line.startswith(mark)]
    for step in ("refining with", "try 1, ", "replied with", "turn 1, no summary: brief",
                 "summary S1 stored"):  # fmt: skip
        assert any(step in line for line in lines), step


def test_a_refused_key_stops_all_requests_and_is_told_once(simple: Observed) -> None:
    simple.policy = policy(max_concurrent=1)
    simple.api.otherwise = lambda body: Reply("invalid x-api-key", status=401)
    draft_sessions(simple, "a", "b", "c")
    simple.refine_all()
    assert simple.asked() == 1
    assert simple.observers() == ["local"] * 3
    assert len(simple.kept()) == 3
    assert "claude-mem observer" in simple.story.trouble()


def test_drafts_wait_for_a_valid_login_where_the_setting_says_so(simple: Observed) -> None:
    simple.policy = policy(upgrade_drafts=True, max_concurrent=1)
    simple.api.otherwise = by_topic
    simple.api.say(says("invalid x-api-key", status=401))
    draft_sessions(simple, "a", "b", "c")
    simple.refine()
    assert simple.asked() == 1 and simple.kept() == []
    simple.story.now += HOUR
    simple.refine_all()
    assert simple.observers() == ["anthropic"] * 3


# Cost


def test_the_daily_cap_on_requests_holds_and_the_drafts_stand(simple: Observed) -> None:
    simple.policy = policy(caps=Caps(2, 10**9))
    simple.api.otherwise = by_topic
    draft_sessions(simple, "a", "b", "c", "d")
    simple.refine_all()
    assert simple.asked() == 2
    assert sorted(simple.observers()) == ["anthropic"] * 2 + ["local"] * 2
    assert {row["last_error"] for row in simple.kept()} == {
        "the daily cap of 2 requests is reached"
    }


def test_a_request_that_would_go_over_the_cap_of_tokens_is_not_made(simple: Observed) -> None:
    simple.policy = policy(caps=Caps(100, 3000))
    draft_sessions(simple, "a")
    simple.refine()
    assert simple.asked() == 0
    assert "3000 tokens" in simple.kept()[0]["last_error"]


def test_drafts_are_upgraded_on_the_next_day_where_the_setting_says_so(simple: Observed) -> None:
    simple.policy = policy(caps=Caps(1, 10**9), upgrade_drafts=True)
    simple.api.otherwise = by_topic
    draft_sessions(simple, "a", "b")
    simple.refine()
    simple.story.now += DAY
    simple.refine()
    assert simple.asked() == 2
    assert simple.observers() == ["anthropic"] * 2


def test_a_request_is_charged_before_it_is_made_and_corrected_after_it(simple: Observed) -> None:
    hold = threading.Event()
    simple.api.say(says(answer("Paid"), hold=hold))
    draft_sessions(simple, "a")
    spent: list[dict[str, int]] = []

    async def look(refiner: Refiner) -> None:
        await refiner.start_due()
        await until(lambda: simple.asked() == 1)
        spent.append(simple.story.store.spent_today(simple.story.now))
        hold.set()
        await refiner.run_due()

    simple.with_refiner(look)
    assert spent[0]["requests"] == 1 and spent[0]["tokens"] > 4096
    assert simple.story.store.spent_today(simple.story.now) == {"requests": 1, "tokens": 60}
    assert simple.story.store.spent_today(simple.story.now + DAY)["requests"] == 0


@needs_client
def test_a_conversation_is_charged_with_what_it_sends_again(story: Story, api: FakeApi) -> None:
    observed = Observed(story, api, "claude")
    observed.options["idle_seconds"] = 0.0
    api.otherwise = by_topic

    async def extra_charge(refiner: Refiner) -> int:
        """How much the call that runs is charged with, beyond what it says itself."""
        before = story.store.spent_today(story.now)["tokens"]
        previous, hold = observed.asked(), threading.Event()
        api.say(says(answer("Held"), hold=hold))
        await refiner.start_due()
        await until(lambda: observed.asked() == previous + 1)
        charged = story.store.spent_today(story.now)["tokens"] - before
        hold.set()
        await refiner.run_due()
        await until(lambda: client_pids(observed.directory) == [])
        body = api.requests[-1]
        text = str(body["system"][-1]["text"]) + last_message(body)
        return charged - len(text) // 4 - MAX_REPLY_TOKENS

    async def two_turns(refiner: Refiner) -> list[int]:
        charges = []
        for number in (1, 2):
            turn = [prompt(f"topic-x{number}", prompt_id=f"p{number}"),
                    stop("Done.", prompt_id=f"p{number}")]  # fmt: skip
            await asyncio.to_thread(observed.tell, *turn)
            charges.append(await extra_charge(refiner))
        return charges

    first, resumed = observed.with_refiner(two_turns)
    assert abs(first) < 500 < resumed  # its transcript
    assert story.store.spent_today(story.now) == {"requests": 2, "tokens": 120}


@needs_client
def test_what_a_client_asks_for_by_itself_is_counted(story: Story, api: FakeApi) -> None:
    observed = Observed(story, api, "claude")
    begun, ended = answer("In two pieces").split("two ", 1)
    api.say(says(f"{begun}two ", is_full=True), says(ended))
    observed.tell(*TURN)
    observed.refine()
    assert observed.titles() == ["In two pieces"]
    assert observed.asked() == 2
    assert story.store.spent_today(story.now) == {"requests": 2, "tokens": 120}


def test_an_answer_that_never_ends_is_stored_as_far_as_it_goes(observed: Observed) -> None:
    observed.api.otherwise = lambda body: Reply("<observation><title>Cut</title>", is_full=True)
    observed.tell(*TURN)
    observed.refine()
    assert observed.observers() == [observed.kind]
    assert set(observed.titles()) == {"Cut"}
    spent = observed.story.store.spent_today(observed.story.now)
    assert spent["requests"] == observed.asked() <= 4


@needs_client
def test_a_client_is_told_to_answer_briefly_and_not_to_think(story: Story, api: FakeApi) -> None:
    """Most of a reply of up to 32,000 tokens would be thinking, at the user's cost."""
    observed = Observed(story, api, "claude")
    api.otherwise = by_topic
    observed.tell(*TURN)
    observed.refine()
    (body,) = api.requests
    assert body["max_tokens"] == MAX_REPLY_TOKENS
    assert body.get("thinking", {"type": "disabled"}) == {"type": "disabled"}
    assert body["tools"] == []


def test_failed_requests_count_too(simple: Observed) -> None:
    simple.policy = policy(caps=Caps(2, 10**9))
    simple.api.otherwise = lambda body: Reply("oh no", status=500)
    draft_sessions(simple, "a")
    simple.refine()
    simple.story.now += MINUTE
    simple.refine()
    simple.story.now += MINUTE
    simple.refine()
    assert simple.asked() == 2

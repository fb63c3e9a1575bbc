"""Drafts and their revision: once, in place, paid for beforehand, whatever goes wrong."""

import asyncio
import itertools
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from claude_mem.config import CaptureSettings
from claude_mem.observer.models import claude as claude_module
from claude_mem.observer.models.prompts import MAX_REPLY_TOKENS, PROMPT_VERSION
from claude_mem.store.queue import LEASE_MS
from claude_mem.store.spending import Caps
from claude_mem.worker import refinement as refinement_module
from claude_mem.worker.refinement import TRIES, exponential_with_jitter
from claude_mem.worker.refiner import Refiner
from tests.fake_api import Body, FakeApi, Reply
from tests.observed import (
    KINDS,
    Observed,
    answer,
    by_topic,
    children,
    client_pids,
    for_observer,
    is_alive,
    last_message,
    policy,
    says,
)
from tests.payloads import SESSION, edit, prompt, session_end, stop, tool
from tests.real_client import needs_client, where_there_is_a_client
from tests.story import DAY, HOUR, MINUTE, Story

ONE_TURN = [prompt(), tool(), edit(), stop("The light blinks twice now, since topic-one.")]


@pytest.fixture(params=where_there_is_a_client(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def observed(story: Story, api: FakeApi, kind: str) -> Iterator[Observed]:
    yield Observed(story, api, kind)
    assert children() == []


@pytest.fixture
def simple(story: Story, api: FakeApi) -> Observed:
    """Where it does not matter which model it is."""
    return Observed(story, api, "anthropic")


# The way it should go


def test_a_draft_is_there_at_once_and_the_model_revises_it_in_place(observed: Observed) -> None:
    observed.api.say(says(answer("The lamp blinks twice")))
    observed.tell(*ONE_TURN)
    assert observed.observers() == ["local"]
    ids = observed.rows("SELECT id FROM observations")
    observed.refine()
    assert observed.observers() == [observed.kind]
    assert observed.titles() == ["The lamp blinks twice"]
    assert observed.rows("SELECT id FROM observations") == ids
    assert observed.rows("SELECT * FROM refinements") == []
    assert observed.asked() == 1
    assert [(news["type"], news["prompt_number"]) for news in observed.announced] == [("memory", 1)]


def test_a_memory_says_who_made_it_with_which_model_and_prompts(observed: Observed) -> None:
    observed.api.say(says(answer("The lamp blinks twice")))
    observed.tell(*ONE_TURN)
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


LATE = [edit("/srv/late.py"), stop("The cause was a relay in late.py that stuck when it was cold.")]


def test_what_a_model_made_stands_until_it_revises_a_turn_that_went_on(observed: Observed) -> None:
    observed.api.say(says(answer("The lamp blinks twice")), says(answer("And the relay is warm")))
    observed.tell(*ONE_TURN)
    observed.refine()
    observed.tell(*LATE)
    assert observed.observers() == [observed.kind]
    first, *late = observed.rows("SELECT title, narrative, observer FROM observations ORDER BY id")
    assert (first["title"], first["observer"]) == ("The lamp blinks twice", observed.kind)
    assert {row["observer"] for row in late} == {"local"}
    assert "relay in late.py" in str(late)  # there at once, under its own name
    observed.refine()
    assert observed.asked() == 2
    said = last_message(observed.api.requests[-1])
    assert "You wrote this turn down before" in said
    draft = said.partition("The draft:")[2]
    assert "The lamp blinks twice" in draft and "relay in late.py" in draft
    assert observed.titles() == ["And the relay is warm"]
    assert observed.observers() == [observed.kind]
    linked = observed.rows("SELECT event_id FROM observation_events")
    (last,) = observed.rows("SELECT max(id) AS id FROM tool_events")
    assert last["id"] in [row["event_id"] for row in linked]


def test_a_model_that_fails_at_a_turn_that_went_on_takes_nothing_away(simple: Observed) -> None:
    simple.api.say(says("Well: " + answer("The lamp blinks twice")))
    simple.tell(*ONE_TURN)
    simple.refine()
    simple.api.otherwise = lambda body: Reply("no", status=400)
    for _ in range(2):  # also when it goes on once more
        simple.tell(*LATE)
        simple.refine_all()
    first, *late = simple.rows("SELECT title, narrative, observer FROM observations ORDER BY id")
    assert (first["title"], first["observer"]) == ("The lamp blinks twice", "anthropic")
    assert "relay in late.py" in str(late)
    assert len(late) == len({row["narrative"] for row in late})
    (kept,) = simple.kept()
    assert kept["last_error"] and kept["reply"].startswith("Well: ")


def test_a_turn_that_goes_on_without_its_model_keeps_what_that_made(simple: Observed) -> None:
    simple.api.say(says(answer("The lamp blinks twice")))
    simple.tell(*ONE_TURN)
    simple.refine()
    simple.story.tell(*LATE)
    simple.story.distil()  # the local observer is used now
    assert simple.titles()[0] == "The lamp blinks twice"
    assert simple.observers() == ["anthropic"]
    assert "relay in late.py" in str(simple.rows("SELECT * FROM observations"))


def test_last_words_that_came_late_are_kept_though_no_observation_tells_them(
    simple: Observed,
) -> None:
    simple.api.say(says("<no_observation/>" + answer("x").partition("</observation>")[2]))
    simple.tell(*ONE_TURN)
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
    simple.tell(*ONE_TURN)

    async def meanwhile(refiner: Refiner) -> None:
        await refiner.start_due()
        await _until(lambda: simple.asked() == 1)
        simple.story.tell(edit("/srv/late.py"))
        await asyncio.to_thread(simple.draft)
        hold.set()
        await refiner.run_due()

    simple.with_refiner(meanwhile)
    assert simple.titles() == ["Of the new draft"]
    assert simple.rows("SELECT * FROM refinements") == []


async def _until(happened: Any) -> None:
    async with asyncio.timeout(30):
        while not happened():
            await asyncio.sleep(0.005)


def test_a_lease_is_renewed_while_the_model_thinks(
    simple: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refinement_module, "RENEW_SECONDS", 0.01)
    hold = threading.Event()
    simple.api.say(says(answer("At last"), hold=hold))
    simple.tell(*ONE_TURN)

    async def long(refiner: Refiner) -> None:
        await refiner.start_due()
        for _ in range(3):
            simple.story.now += LEASE_MS - 1
            now = simple.story.now
            await _until(lambda now=now: simple.waiting()[0]["lease_until_epoch"] == now + LEASE_MS)
        assert await refiner.start_due() == 0
        hold.set()
        await refiner.run_due()

    simple.with_refiner(long)
    assert simple.titles() == ["At last"]
    assert simple.asked() == 1


def test_a_lost_lease_changes_nothing_and_ends_the_call(
    simple: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refinement_module, "RENEW_SECONDS", 0.01)
    hold = threading.Event()
    simple.api.say(says(answer("Too late"), hold=hold))
    simple.tell(*ONE_TURN)
    before = simple.titles()

    async def lose(refiner: Refiner) -> None:
        await refiner.start_due()
        await _until(lambda: simple.asked() == 1)
        simple.story.store.stop_session(simple.story.session_db_id()).result()
        await refiner.run_due()

    simple.with_refiner(lose)
    hold.set()
    assert simple.titles() == before
    assert simple.rows("SELECT status FROM refinements") == [{"status": "held"}]


def test_a_late_acknowledgement_of_a_lost_lease_changes_nothing(simple: Observed) -> None:
    simple.tell(*ONE_TURN)
    store = simple.story.store
    first = store.claim_refinement().result()
    assert first is not None and first[1] is not None
    simple.story.now += LEASE_MS
    second = store.claim_refinement().result()
    assert second is not None and second[0].attempts == 2
    before = simple.rows("SELECT * FROM refinements")
    made = refiner_made()
    assert store.finish_refinement(first[0], first[1], made).result() is False
    store.keep_draft(first[0], "late").result()
    store.put_back_refinement(first[0], "late", 0).result()
    assert not store.renew_refinement(first[0]).result()
    assert simple.rows("SELECT * FROM refinements") == before
    assert simple.observers() == ["local"]


def refiner_made() -> Any:
    from claude_mem.types import Distillate, Summary

    return Distillate(Summary(request="late"), observer="claude")


def test_a_stopped_session_is_revised_only_when_it_goes_on(simple: Observed) -> None:
    simple.api.otherwise = by_topic
    simple.tell(*ONE_TURN)
    simple.story.store.stop_session(simple.story.session_db_id()).result()
    simple.refine()
    assert simple.asked() == 0
    simple.tell(prompt("Go on with topic-two", prompt_id="p2"))
    simple.refine()
    assert simple.observers() == ["anthropic"]


def test_a_turn_that_turns_out_private_is_not_sent(simple: Observed) -> None:
    late = {**prompt(""), "prompt_id": "p9"}
    simple.tell({**tool(), "prompt_id": "p9"}, {**stop(), "prompt_id": "p9"})
    simple.tell(late)
    simple.refine()
    assert simple.asked() == 0
    assert simple.rows("SELECT * FROM refinements") == []


def test_a_turn_whose_raw_events_are_gone_keeps_its_draft(simple: Observed) -> None:
    simple.tell(*ONE_TURN)
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
    simple.tell(*ONE_TURN)
    drafted = simple.memory()

    async def retire(refiner: Refiner) -> None:
        await refiner.start_due()
        await _until(lambda: simple.asked() == 1)
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
    simple.tell(*ONE_TURN)
    simple.refine()
    assert token not in str(simple.memory())
    simple.story.reader.use(CaptureSettings(redact_allow=(token,)))
    simple.tell(*LATE)
    simple.refine()
    assert simple.titles() == [f"Uses {token}"]


# What may go wrong


@dataclass(frozen=True)
class Fault:
    name: str
    replies: tuple[Reply, ...]
    ends_as: str  # "model" or "draft"
    client_mends: bool = False  # Claude Code asks a second time by itself


FAULTS = [
    Fault("401", (says("invalid x-api-key", status=401),), "draft"),
    Fault("403", (says("forbidden", status=403),), "draft"),
    Fault("429", (says("slow down", status=429),), "model"),
    Fault("429 with Retry-After", (says("slow down", status=429, headers=(("retry-after", "7"),)),),
          "model"),
    Fault("429 of a quota", (says("You exceeded your current quota", status=429),), "draft"),
    Fault("500", (says("oh no", status=500),), "model"),
    Fault("529", (says("overloaded", status=529),), "model"),
    Fault("a cut stream", (says(answer("Cut off"), cut=True),), "model"),
    Fault("not XML", (says("I have nothing to say in the form you want."),), "draft"),
    Fault("empty", (says(""),), "draft", client_mends=True),
    Fault("context overflow", (says("prompt is too long: 250000 tokens", status=400),), "model"),
    Fault("context overflow twice", tuple(says("prompt is too long", status=400)
                                          for _ in range(2)), "draft"),
    Fault("a bad request", (says("tools.0: no such field", status=400),), "draft",
          client_mends=True),
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_whatever_the_api_answers_each_turn_ends_with_one_result(
    observed: Observed, fault: Fault
) -> None:
    observed.api.otherwise = by_topic
    observed.api.say(*fault.replies)
    observed.tell(*ONE_TURN)
    drafted = observed.titles()
    observed.refine()
    assert len(observed.observers()) == 1
    observed.refine_all()
    mended = fault.client_mends and observed.kind == "claude"
    if fault.ends_as == "model" or mended:
        assert observed.observers() == [observed.kind]
        assert observed.titles() == ["About topic-one"]
        assert observed.kept() == []
    else:
        assert observed.observers() == ["local"]
        assert observed.titles() == drafted
        (kept,) = observed.kept()
        assert kept["last_error"].startswith(observed.kind)
    assert len(observed.rows("SELECT * FROM session_summaries")) == 1


def test_a_hanging_api_is_given_up_and_asked_again(observed: Observed) -> None:
    hold = threading.Event()
    observed.options["seconds"] = 4.0 if observed.kind == "claude" else 0.2
    observed.api.otherwise = by_topic
    observed.api.say(says("never", hold=hold))
    observed.tell(*ONE_TURN)
    observed.refine()
    assert observed.observers() == ["local"]
    observed.options["seconds"] = 60.0
    observed.refine_all()
    hold.set()
    assert observed.observers() == [observed.kind]


def test_an_answer_of_five_megabytes_is_kept_whole(observed: Observed) -> None:
    words = " ".join(f"w{number}" for number in range(700_000))
    assert len(words) > 5_000_000
    long = f"<observation><title>Long</title><narrative>{words}</narrative></observation>"
    for number, said in enumerate((long, words)):
        observed.api.say(says(said))
        observed.tell(prompt(prompt_id=f"p{number}"), stop(prompt_id=f"p{number}"))
        observed.refine()
    read, unread = observed.rows("SELECT * FROM refinements ORDER BY turn_id")
    assert (read["status"], read["last_error"], read["reply"]) == ("kept", None, long)
    assert (unread["status"], unread["reply"]) == ("kept", words)
    assert observed.observers() == [observed.kind, "local"]
    assert (
        observed.story.store.refinement_state()["kept"] == 1
    )  # of the other there is no draft left


def test_kept_answers_go_with_the_raw_events_or_beyond_a_size(simple: Observed) -> None:
    simple.api.otherwise = lambda body: Reply("Said before. " + answer("Read"))
    sessions_told(simple, "a", "b", "c")
    simple.refine()
    store, now = simple.story.store, simple.story.now
    size = len(simple.kept()[0]["reply"])
    store.retire_raw_events(0, 2 * size).result()
    assert len(simple.kept()) == 2  # the newest two; nothing says more of the third
    store.retire_raw_events(now + 1, 10**9).result()
    assert simple.kept() == []
    assert simple.observers() == ["anthropic"] * 3


@needs_client
def test_a_killed_client_is_replaced_and_its_turn_is_revised(story: Story, api: FakeApi) -> None:
    observed = Observed(story, api, "claude")
    hold = threading.Event()
    api.otherwise = by_topic
    api.say(says("never", hold=hold))
    observed.tell(*ONE_TURN)

    async def kill(refiner: Refiner) -> None:
        await refiner.start_due()
        await _until(lambda: observed.asked() == 1)
        (pid,) = client_pids(observed.directory)
        os.kill(pid, signal.SIGKILL)
        await refiner.run_due()
        assert observed.observers() == ["local"]
        story.now += HOUR
        await refiner.run_due()

    observed.with_refiner(kill)
    hold.set()
    assert observed.observers() == ["claude"]
    assert client_pids(observed.directory) == []
    assert children() == []


def test_deleting_a_session_ends_its_call_at_once(observed: Observed) -> None:
    hold = threading.Event()
    observed.api.say(says("never", hold=hold))
    observed.tell(*ONE_TURN)
    session = observed.story.session_db_id()

    async def delete(refiner: Refiner) -> None:
        await refiner.start_due()
        await _until(lambda: observed.asked() == 1)
        await asyncio.wrap_future(observed.story.store.stop_session(session))
        await refiner.cancel_session(session, 5.0)
        assert not refiner._running

    observed.with_refiner(delete)
    hold.set()
    assert observed.observers() == ["local"]
    assert observed.rows("SELECT status FROM refinements") == [{"status": "held"}]


@needs_client
@pytest.mark.parametrize("moment", ["at once", "when its client runs", "when it is asked"])
def test_a_call_that_is_cancelled_at_any_moment_leaves_nothing_running(
    story: Story, api: FakeApi, moment: str
) -> None:
    observed = Observed(story, api, "claude")
    hold = threading.Event()
    api.say(says("never", hold=hold))
    observed.tell(*ONE_TURN)
    happened = {
        "at once": lambda: True,
        "when its client runs": lambda: client_pids(observed.directory),
        "when it is asked": lambda: observed.asked() == 1,
    }[moment]

    async def cancel(refiner: Refiner) -> None:
        await refiner.start_due()
        await _until(happened)
        await refiner.cancel_session(story.session_db_id(), 30.0)
        assert not refiner._running
        await _until(lambda: client_pids(observed.directory) == [])

    observed.with_refiner(cancel)
    hold.set()
    assert children() == []
    assert observed.observers() == ["local"]


@needs_client
def test_who_deletes_a_session_does_not_wait_for_a_client_that_hangs(
    story: Story, api: FakeApi
) -> None:
    observed = Observed(story, api, "claude")
    api.otherwise = by_topic
    observed.tell(*ONE_TURN)

    async def delete(refiner: Refiner) -> None:
        await refiner.run_due()
        (pid,) = client_pids(observed.directory)
        os.kill(pid, signal.SIGSTOP)  # deaf, but not to the last signal
        await refiner.cancel_session(story.session_db_id(), 0.0)
        assert is_alive(pid)
        await _until(lambda: not is_alive(pid))

    observed.with_refiner(delete)
    assert children() == []


# How often, and when


def test_a_failure_is_tried_again_a_few_times_and_then_the_draft_stands(simple: Observed) -> None:
    simple.api.otherwise = lambda body: Reply("oh no", status=500)
    simple.tell(*ONE_TURN)
    simple.refine_all()
    assert simple.asked() == TRIES
    (kept,) = simple.kept()
    assert "HTTP 500" in kept["last_error"]


def test_retry_after_is_waited_for(simple: Observed) -> None:
    slow = says("slow down", status=429, headers=(("Retry-After", "300"),))
    simple.api.otherwise = by_topic
    simple.api.say(slow)
    simple.tell(*ONE_TURN)
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


def sessions_told(observed: Observed, *names: str) -> None:
    for name in names:
        observed.tell(prompt(f"Work on topic-{name}", session_id=name),
                      stop(f"topic-{name} is done.", session_id=name))  # fmt: skip


def test_a_breaker_opens_after_failures_and_one_probe_decides(simple: Observed) -> None:
    simple.policy = policy(backoff=lambda failures: MINUTE, max_concurrent=1)
    simple.api.otherwise = lambda body: Reply("oh no", status=500)
    sessions_told(simple, "a", "b", "c", "d", "e", "f")
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
    sessions_told(simple, "a", "b")
    simple.refine()
    simple.story.store.free_all_leases().result()  # as a new worker does
    simple.refine()
    assert simple.asked() == 1


def test_a_refused_key_stops_all_requests_and_is_told_once(simple: Observed) -> None:
    simple.policy = policy(max_concurrent=1)
    simple.api.otherwise = lambda body: Reply("invalid x-api-key", status=401)
    sessions_told(simple, "a", "b", "c")
    simple.refine_all()
    assert simple.asked() == 1
    assert simple.observers() == ["local"] * 3
    assert len(simple.kept()) == 3
    assert "claude-mem observer" in simple.story.trouble()


def test_drafts_wait_for_a_mended_login_where_the_setting_says_so(simple: Observed) -> None:
    simple.policy = policy(upgrade_drafts=True, max_concurrent=1)
    simple.api.otherwise = by_topic
    simple.api.say(says("invalid x-api-key", status=401))
    sessions_told(simple, "a", "b", "c")
    simple.refine()
    assert simple.asked() == 1 and simple.kept() == []
    simple.story.now += HOUR
    simple.refine_all()
    assert simple.observers() == ["anthropic"] * 3


# What it may cost


def test_the_daily_cap_on_requests_holds_and_the_drafts_stand(simple: Observed) -> None:
    simple.policy = policy(caps=Caps(2, 10**9))
    simple.api.otherwise = by_topic
    sessions_told(simple, "a", "b", "c", "d")
    simple.refine_all()
    assert simple.asked() == 2
    assert sorted(simple.observers()) == ["anthropic"] * 2 + ["local"] * 2
    assert {row["last_error"] for row in simple.kept()} == {
        "the daily cap of 2 requests is reached"
    }


def test_a_request_that_would_go_over_the_cap_of_tokens_is_not_made(simple: Observed) -> None:
    simple.policy = policy(caps=Caps(100, 3000))
    sessions_told(simple, "a")
    simple.refine()
    assert simple.asked() == 0
    assert "3000 tokens" in simple.kept()[0]["last_error"]


def test_drafts_are_upgraded_on_the_next_day_where_the_setting_says_so(simple: Observed) -> None:
    simple.policy = policy(caps=Caps(1, 10**9), upgrade_drafts=True)
    simple.api.otherwise = by_topic
    sessions_told(simple, "a", "b")
    simple.refine()
    simple.story.now += DAY
    simple.refine()
    assert simple.asked() == 2
    assert simple.observers() == ["anthropic"] * 2


def test_a_request_is_charged_before_it_is_made_and_corrected_after_it(simple: Observed) -> None:
    hold = threading.Event()
    simple.api.say(says(answer("Paid"), hold=hold))
    sessions_told(simple, "a")
    spent: list[dict[str, int]] = []

    async def look(refiner: Refiner) -> None:
        await refiner.start_due()
        await _until(lambda: simple.asked() == 1)
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
    api.otherwise = by_topic

    async def look(refiner: Refiner) -> int:
        """How much the call that runs is charged with, beyond what it says itself."""
        before = story.store.spent_today(story.now)["tokens"]
        asked, hold = observed.asked(), threading.Event()
        api.say(says(answer("Held"), hold=hold))
        await refiner.start_due()
        await _until(lambda: observed.asked() == asked + 1)
        charged = story.store.spent_today(story.now)["tokens"] - before
        hold.set()
        await refiner.run_due()
        body = api.requests[-1]
        said = str(body["system"][-1]["text"]) + last_message(body)
        return charged - len(said) // 4 - MAX_REPLY_TOKENS

    observed.tell(prompt("topic-x1", prompt_id="p1"), stop("Done.", prompt_id="p1"))
    assert abs(observed.with_refiner(look)) < 500
    observed.tell(prompt("topic-x2", prompt_id="p2"), stop("Done.", prompt_id="p2"))
    assert observed.with_refiner(look) > 500  # resumed: its transcript
    assert story.store.spent_today(story.now) == {"requests": 2, "tokens": 120}


@needs_client
def test_what_a_client_asks_for_by_itself_is_counted(story: Story, api: FakeApi) -> None:
    observed = Observed(story, api, "claude")
    begun, ended = answer("In two pieces").split("two ", 1)
    api.say(says(f"{begun}two ", is_full=True), says(ended))
    observed.tell(*ONE_TURN)
    observed.refine()
    assert observed.titles() == ["In two pieces"]
    assert observed.asked() == 2
    assert story.store.spent_today(story.now) == {"requests": 2, "tokens": 120}


def test_an_answer_that_never_ends_is_stored_as_far_as_it_goes(observed: Observed) -> None:
    observed.api.otherwise = lambda body: Reply("<observation><title>Cut</title>", is_full=True)
    observed.tell(*ONE_TURN)
    observed.refine()
    assert observed.observers() == [observed.kind]
    assert set(observed.titles()) == {"Cut"}
    spent = observed.story.store.spent_today(observed.story.now)
    assert spent["requests"] == observed.asked() <= 4


@needs_client
def test_a_client_is_told_to_answer_briefly_and_not_to_think(story: Story, api: FakeApi) -> None:
    """Of an answer that may be 32,000 tokens long, most would be thought, at the person's cost."""
    observed = Observed(story, api, "claude")
    api.otherwise = by_topic
    observed.tell(*ONE_TURN)
    observed.refine()
    (body,) = api.requests
    assert body["max_tokens"] == MAX_REPLY_TOKENS
    assert body.get("thinking", {"type": "disabled"}) == {"type": "disabled"}
    assert body["tools"] == []


def test_failed_requests_count_too(simple: Observed) -> None:
    simple.policy = policy(caps=Caps(2, 10**9))
    simple.api.otherwise = lambda body: Reply("oh no", status=500)
    sessions_told(simple, "a")
    simple.refine()
    simple.story.now += MINUTE
    simple.refine()
    simple.story.now += MINUTE
    simple.refine()
    assert simple.asked() == 2


# Sessions


def test_four_sessions_with_interleaved_turns_stay_apart(observed: Observed) -> None:
    observed.api.otherwise = by_topic
    names = ["ada", "bob", "cyd", "dan"]
    for number in (1, 2, 3):
        for name in names:
            words = f"Work on topic-{name}{number}"
            observed.story.tell(prompt(words, session_id=name, prompt_id=f"{name}-{number}"),
                                stop("Done.", session_id=name, prompt_id=f"{name}-{number}"),
                                )  # fmt: skip
        observed.draft()
    observed.refine_all()
    found = observed.rows(
        "SELECT s.content_session_id AS session, o.prompt_number AS number, o.title, o.observer"
        " FROM observations o JOIN sdk_sessions s ON s.memory_session_id = o.memory_session_id"
        " ORDER BY session, number"
    )
    assert [(row["session"], row["number"], row["title"]) for row in found] == [
        (name, number, f"About topic-{name}{number}") for name in names for number in (1, 2, 3)
    ]
    assert {row["observer"] for row in found} == {observed.kind}
    for body in filter(for_observer, observed.api.requests):
        said = str(body["messages"])
        assert len([name for name in names if f"topic-{name}" in said]) == 1
    ids = [row["provider_session_id"] for row in
           observed.rows("SELECT provider_session_id FROM sdk_sessions")]  # fmt: skip
    assert len(set(ids)) == (4 if observed.kind == "claude" else 1)
    assert not {*ids} & {*names}


@needs_client
def test_observers_can_be_switched_in_the_middle_of_a_session(story: Story, api: FakeApi) -> None:
    api.otherwise = by_topic
    for number, kind in enumerate(["local", "claude", "openai", "claude", "local", "claude"], 1):
        observed = Observed(story, api, "claude" if kind == "local" else kind)
        turn = [prompt(f"topic-n{number}", prompt_id=f"p{number}"),
                stop("Done.", prompt_id=f"p{number}")]  # fmt: skip
        if kind == "local":
            story.tell(*turn)
            story.distil()
        else:
            observed.tell(*turn)
            observed.refine_all()
    found = observed.rows("SELECT observer, request FROM session_summaries ORDER BY turn_id")
    assert [row["observer"] for row in found] == [
        "local", "claude", "openai", "claude", "local", "claude"
    ]  # fmt: skip
    bodies = [body for body in api.requests if for_observer(body)]
    # After another provider had its turn, the conversation begins anew; not after the local one.
    assert "topic-n2" not in str(bodies[2]["messages"][:-1])
    assert "topic-n4" in str(bodies[3]["messages"][:-1])
    row = observed.rows("SELECT provider_session_id, content_session_id FROM sdk_sessions")[0]
    assert row["provider_session_id"] != row["content_session_id"] == SESSION


@needs_client
def test_a_conversation_whose_transcript_is_gone_begins_anew(story: Story, api: FakeApi) -> None:
    observed = Observed(story, api, "claude")
    api.otherwise = by_topic
    observed.tell(prompt("topic-x1", prompt_id="p1"), stop("Done.", prompt_id="p1"))
    observed.refine()
    (first,) = [row["provider_session_id"] for row in observed.rows("SELECT * FROM sdk_sessions")]
    (transcript,) = observed.directory.rglob(f"{first}.jsonl")
    transcript.unlink()
    observed.tell(prompt("topic-x2", prompt_id="p2"), stop("Done.", prompt_id="p2"))
    observed.refine()
    (second,) = [row["provider_session_id"] for row in observed.rows("SELECT * FROM sdk_sessions")]
    assert second not in (None, first)
    assert observed.titles() == ["About topic-x1", "About topic-x2"]
    assert observed.observers() == ["claude", "claude"]


@needs_client
def test_a_session_goes_on_in_the_conversation_that_it_had(story: Story, api: FakeApi) -> None:
    observed = Observed(story, api, "claude")
    api.otherwise = by_topic
    for number in (1, 2):  # each with a refiner of its own: closed and resumed
        observed.tell(prompt(f"topic-y{number}", prompt_id=f"p{number}"),
                      stop("Done.", prompt_id=f"p{number}"))  # fmt: skip
        observed.refine()
    last = [body for body in api.requests if for_observer(body)][-1]
    assert "topic-y1" in str(last["messages"][:-1])
    assert "The same session goes on" in str(last["messages"][-1])


@needs_client
def test_transcripts_of_the_observer_are_deleted_with_the_session(
    story: Story, api: FakeApi
) -> None:
    observed = Observed(story, api, "claude")
    api.otherwise = by_topic
    observed.tell(*ONE_TURN)
    observed.refine()
    assert list(observed.directory.rglob("client/.claude/projects/*/*.jsonl"))
    observed.tell(session_end())
    observed.with_refiner(lambda refiner: refiner.clean_up())
    assert not list(observed.directory.rglob("client/.claude/projects/*/*.jsonl"))
    (row,) = observed.rows("SELECT provider, provider_session_id FROM sdk_sessions")
    assert row == {"provider": None, "provider_session_id": None}


@needs_client
def test_a_conversation_that_grew_long_is_ended_and_the_next_is_told_what_is_remembered(
    story: Story, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claude_module, "MAX_CONVERSATION_TOKENS", 59)  # each answer takes 60
    observed = Observed(story, api, "claude")
    api.otherwise = by_topic

    async def two_turns(refiner: Refiner) -> None:
        for number in (1, 2):
            await asyncio.to_thread(
                observed.tell, prompt(f"topic-z{number}", prompt_id=f"p{number}"),
                stop("Done.", prompt_id=f"p{number}"),
            )  # fmt: skip
            await refiner.run_due()
            await refiner.clean_up()
            assert transcripts_of(observed) == []

    observed.with_refiner(two_turns)
    assert observed.titles() == ["About topic-z1", "About topic-z2"]
    last = [body for body in api.requests if for_observer(body)][-1]
    assert len(last["messages"]) == 1
    assert "About topic-z1" in last_message(last).partition("The turn:")[0]


def transcripts_of(observed: Observed) -> list[str]:
    return [path.stem for path in observed.directory.rglob("client/.claude/projects/*/*.jsonl")]


@needs_client
@pytest.mark.parametrize("fault", ["a refused call", "a fresh start"])
def test_a_conversation_that_is_given_up_leaves_no_transcript(
    story: Story, api: FakeApi, fault: str
) -> None:
    observed = Observed(story, api, "claude")
    api.otherwise = by_topic
    if fault == "a refused call":
        api.say(says("invalid x-api-key", status=401))
    else:
        api.say(says("prompt is too long", status=400))
    observed.tell(*ONE_TURN)

    async def tidy(refiner: Refiner) -> None:
        await refiner.run_due()
        await refiner.clean_up()  # as the worker does when it has nothing else to do

    observed.with_refiner(tidy)
    known = [row["provider_session_id"] for row in observed.rows("SELECT * FROM sdk_sessions")]
    assert transcripts_of(observed) == ([] if fault == "a refused call" else known)


@needs_client
@pytest.mark.parametrize("after", ["local", "openai"])
def test_transcripts_are_deleted_also_where_another_observer_is_used_by_then(
    story: Story, api: FakeApi, after: str
) -> None:
    observed = Observed(story, api, "claude")
    api.otherwise = by_topic
    observed.tell(*ONE_TURN)
    observed.refine()
    assert len(transcripts_of(observed)) == 1
    if after == "openai":  # a conversation is dropped with its provider
        observed.kind = after
        observed.refine()
        assert transcripts_of(observed) == []
        return

    async def local(refiner: Refiner) -> None:
        await refiner.use(None, observed.policy)
        assert len(transcripts_of(observed)) == 1  # it may be gone on with
        story.tell(session_end())
        await asyncio.to_thread(observed.draft)
        await refiner.clean_up()

    observed.with_refiner(local)
    assert transcripts_of(observed) == []


@needs_client
def test_few_clients_are_open_at_once_and_none_when_idle(story: Story, api: FakeApi) -> None:
    observed = Observed(story, api, "claude")
    api.otherwise = by_topic
    sessions_told(observed, "a", "b", "c", "d", "e")
    most: list[int] = []

    def count(body: Body) -> Reply:
        most.append(len(client_pids(observed.directory)))
        return by_topic(body)

    api.otherwise = count

    async def idle(refiner: Refiner) -> None:
        await refiner.run_due()
        await _until(lambda: client_pids(observed.directory) == [])

    observed.options["idle_seconds"] = 0.0
    observed.with_refiner(idle)
    assert observed.observers() == ["claude"] * 5
    assert max(most) <= 2
    assert children() == []

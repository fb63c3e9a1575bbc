"""Whatever a model, its API or its client does: one result, and nothing left running."""

import asyncio
import os
import signal
import threading
from dataclasses import dataclass

import pytest

from claude_mem.worker.refiner import Refiner
from tests.fake_api import FakeApi, Reply
from tests.observed import (
    KINDS,
    TURN,
    Observed,
    answer,
    by_topic,
    children,
    client_pids,
    draft_sessions,
    is_alive,
    says,
    until,
)
from tests.payloads import prompt, stop
from tests.real_client import needs_client, skip_without_client
from tests.story import HOUR, Story
from tests.variants import mostly_extra


@dataclass(frozen=True)
class Fault:
    name: str
    replies: tuple[Reply, ...]
    ends_as: str  # "model" or "draft"
    client_retries: bool = False  # Claude Code sends a second request by itself


FAULTS = [
    Fault("401", (says("invalid x-api-key", status=401),), "draft"),
    Fault("403", (says("forbidden", status=403),), "draft"),
    Fault("404", (says("model: claude-hiaku-9", status=404),), "draft", client_retries=True),
    Fault("429", (says("slow down", status=429),), "model"),
    Fault("429 with Retry-After", (says("slow down", status=429, headers=(("retry-after", "7"),)),),
          "model"),
    Fault("429 of a quota", (says("You exceeded your current quota", status=429),), "draft"),
    Fault("500", (says("oh no", status=500),), "model"),
    Fault("529", (says("overloaded", status=529),), "model"),
    Fault("a cut stream", (says(answer("Cut off"), cut=True),), "model"),
    Fault("not XML", (says("I have nothing to say in the form you want."),), "draft"),
    Fault("empty", (says(""),), "draft", client_retries=True),
    Fault("context overflow", (says("prompt is too long: 250000 tokens", status=400),), "model"),
    Fault("context overflow twice", tuple(says("prompt is too long", status=400)
                                          for _ in range(2)), "draft"),
    Fault("a bad request", (says("tools.0: no such field", status=400),), "draft",
          client_retries=True),
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_whatever_the_api_answers_each_turn_ends_with_one_result(
    observed: Observed, fault: Fault
) -> None:
    observed.api.otherwise = by_topic
    observed.api.say(*fault.replies)
    observed.tell(*TURN)
    drafted = observed.titles()
    observed.refine()
    assert len(observed.observers()) == 1
    observed.refine_all()
    is_retried = fault.client_retries and observed.kind == "claude"
    if fault.ends_as == "model" or is_retried:
        assert observed.observers() == [observed.kind]
        assert observed.titles() == ["About topic-one"]
        assert observed.kept() == []
    else:
        assert observed.observers() == ["local"]
        assert observed.titles() == drafted
        (row,) = observed.kept()
        assert row["last_error"].startswith(observed.kind)
    assert len(observed.rows("SELECT * FROM session_summaries")) == 1


def test_a_hanging_api_is_given_up_and_asked_again(observed: Observed) -> None:
    hold = threading.Event()
    observed.options["seconds"] = 4.0 if observed.kind == "claude" else 0.2
    observed.api.otherwise = by_topic
    observed.api.say(says("never", hold=hold))
    observed.tell(*TURN)
    observed.refine()
    assert observed.observers() == ["local"]
    observed.options["seconds"] = 60.0
    observed.refine_all()
    hold.set()
    assert observed.observers() == [observed.kind]


@pytest.mark.parametrize("observed", mostly_extra(skip_without_client(KINDS)), indirect=True)
def test_an_answer_of_five_megabytes_is_kept_whole(observed: Observed) -> None:
    words = " ".join(f"w{number}" for number in range(700_000))
    assert len(words) > 5_000_000
    long = f"<observation><title>Long</title><narrative>{words}</narrative></observation>"
    for number, reply in enumerate((long, words)):
        observed.api.say(says(reply))
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
    draft_sessions(simple, "a", "b", "c")
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
    observed.tell(*TURN)

    async def kill(refiner: Refiner) -> None:
        await refiner.start_due()
        await until(lambda: observed.asked() == 1)
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
    observed.tell(*TURN)
    session = observed.story.session_db_id()

    async def delete(refiner: Refiner) -> None:
        await refiner.start_due()
        await until(lambda: observed.asked() == 1)
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
    observed.tell(*TURN)
    happened = {
        "at once": lambda: True,
        "when its client runs": lambda: client_pids(observed.directory),
        "when it is asked": lambda: observed.asked() == 1,
    }[moment]

    async def cancel(refiner: Refiner) -> None:
        await refiner.start_due()
        await until(happened)
        await refiner.cancel_session(story.session_db_id(), 30.0)
        assert not refiner._running
        await until(lambda: client_pids(observed.directory) == [])

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
    observed.tell(*TURN)

    async def delete(refiner: Refiner) -> None:
        await refiner.run_due()
        (pid,) = client_pids(observed.directory)
        os.kill(pid, signal.SIGSTOP)  # deaf, but not to the last signal
        await refiner.cancel_session(story.session_db_id(), 0.0)
        assert is_alive(pid)
        await until(lambda: not is_alive(pid))

    observed.with_refiner(delete)
    assert children() == []

"""Sessions and the conversations that a provider keeps for them."""

import asyncio

import pytest

from claude_mem.observer.models import claude as claude_module
from claude_mem.worker.refiner import Refiner
from tests.fake_api import Body, FakeApi, Reply
from tests.live_files import paths_below
from tests.observed import (
    TURN,
    Observed,
    by_topic,
    children,
    client_pids,
    draft_sessions,
    for_observer,
    last_message,
    says,
    until,
)
from tests.payloads import SESSION, prompt, session_end, stop
from tests.real_client import needs_client
from tests.story import Story


def test_four_sessions_with_interleaved_turns_stay_apart(observed: Observed) -> None:
    observed.api.otherwise = by_topic
    names = ["ada", "bob", "cyd", "dan"]
    for number in (1, 2):
        for name in names:
            words = f"Work on topic-{name}{number}"
            observed.story.tell(prompt(words, session_id=name, prompt_id=f"{name}-{number}"),
                                stop("Done.", session_id=name, prompt_id=f"{name}-{number}"),
                                )  # fmt: skip
        observed.draft()
    observed.refine_all()
    rows = observed.rows(
        "SELECT s.content_session_id AS session, o.prompt_number AS number, o.title, o.observer"
        " FROM observations o JOIN sdk_sessions s ON s.memory_session_id = o.memory_session_id"
        " ORDER BY session, number"
    )
    assert [(row["session"], row["number"], row["title"]) for row in rows] == [
        (name, number, f"About topic-{name}{number}") for name in names for number in (1, 2)
    ]
    assert {row["observer"] for row in rows} == {observed.kind}
    for body in filter(for_observer, observed.api.requests):
        text = str(body["messages"])
        assert len([name for name in names if f"topic-{name}" in text]) == 1
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
    rows = observed.rows("SELECT observer, request FROM session_summaries ORDER BY turn_id")
    assert [row["observer"] for row in rows] == [
        "local", "claude", "openai", "claude", "local", "claude"
    ]  # fmt: skip
    bodies = [body for body in api.requests if for_observer(body)]
    assert [len(body["messages"]) for body in bodies if "system" in body] == [1, 1, 1]
    row = observed.rows("SELECT provider_session_id, content_session_id FROM sdk_sessions")[0]
    assert row["provider_session_id"] != row["content_session_id"] == SESSION


@needs_client
def test_a_conversation_whose_transcript_is_gone_begins_anew(story: Story, api: FakeApi) -> None:
    observed = Observed(story, api, "claude")
    observed.options["idle_seconds"] = 0.0
    api.otherwise = by_topic

    async def lose_the_transcript(refiner: Refiner) -> None:
        first = await refined_turn(observed, refiner, "topic-x1")
        (transcript,) = paths_below(observed.directory, f"{first}.jsonl")
        transcript.unlink()
        assert await refined_turn(observed, refiner, "topic-x2") not in (None, first)

    observed.with_refiner(lose_the_transcript)
    assert observed.titles() == ["About topic-x1", "About topic-x2"]
    assert observed.observers() == ["claude", "claude"]


async def refined_turn(observed: Observed, refiner: Refiner, topic: str) -> str | None:
    """Refine one turn and wait until its client was closed; returns the conversation's id."""
    turn = [prompt(topic, prompt_id=topic), stop("Done.", prompt_id=topic)]
    await asyncio.to_thread(observed.tell, *turn)
    await refiner.run_due()
    await until(lambda: client_pids(observed.directory) == [])
    rows = await asyncio.to_thread(observed.rows, "SELECT provider_session_id FROM sdk_sessions")
    (row,) = rows
    identity: str | None = row["provider_session_id"]
    return identity


@needs_client
def test_a_session_goes_on_in_the_conversation_that_it_had(story: Story, api: FakeApi) -> None:
    observed = Observed(story, api, "claude")
    observed.options["idle_seconds"] = 0.0  # its client is closed, and resumed
    api.otherwise = by_topic

    async def two_turns(refiner: Refiner) -> None:
        for topic in ("topic-y1", "topic-y2"):
            await refined_turn(observed, refiner, topic)

    observed.with_refiner(two_turns)
    last = [body for body in api.requests if for_observer(body)][-1]
    assert "topic-y1" in str(last["messages"][:-1])
    assert "The same session goes on" in str(last["messages"][-1])


@needs_client
def test_a_conversation_is_never_resumed_by_another_worker(story: Story, api: FakeApi) -> None:
    observed = Observed(story, api, "claude")
    api.otherwise = by_topic
    for number in (1, 2):  # each with a refiner of its own, as after a restart
        observed.tell(prompt(f"topic-v{number}", prompt_id=f"p{number}"),
                      stop("Done.", prompt_id=f"p{number}"))  # fmt: skip
        observed.refine()
        assert len(transcripts_of(observed)) == 1  # that of the conversation before is deleted
    last = [body for body in api.requests if for_observer(body)][-1]
    assert len(last["messages"]) == 1
    assert "The same session goes on" not in last_message(last)
    assert "About topic-v1" in last_message(last).partition("The turn:")[0]


@needs_client
def test_transcripts_of_the_observer_are_deleted_with_the_session(
    story: Story, api: FakeApi
) -> None:
    observed = Observed(story, api, "claude")
    api.otherwise = by_topic
    observed.tell(*TURN)
    observed.refine()
    assert transcripts_of(observed)
    observed.tell(session_end())
    observed.with_refiner(lambda refiner: refiner.clean_up_conversations())
    assert not transcripts_of(observed)
    (row,) = observed.rows("SELECT provider, provider_session_id FROM sdk_sessions")
    assert row == {"provider": None, "provider_session_id": None}


@needs_client
def test_the_client_of_a_finished_session_is_closed(story: Story, api: FakeApi) -> None:
    observed = Observed(story, api, "claude")
    api.otherwise = by_topic
    observed.tell(*TURN)

    async def finish(refiner: Refiner) -> None:
        await refiner.run_due()
        await refiner.clean_up_conversations()
        assert len(client_pids(observed.directory)) == 1  # its session may continue
        await asyncio.to_thread(observed.tell, session_end())
        await refiner.run_due()
        await refiner.clean_up_conversations()
        assert client_pids(observed.directory) == []
        assert transcripts_of(observed) == []

    observed.with_refiner(finish)


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
            await refiner.clean_up_conversations()
            assert transcripts_of(observed) == []

    observed.with_refiner(two_turns)
    assert observed.titles() == ["About topic-z1", "About topic-z2"]
    last = [body for body in api.requests if for_observer(body)][-1]
    assert len(last["messages"]) == 1
    assert "About topic-z1" in last_message(last).partition("The turn:")[0]


def transcripts_of(observed: Observed) -> list[str]:
    paths = paths_below(observed.directory, "*.jsonl")
    return [path.stem for path in paths if path.match("client/.claude/projects/*/*.jsonl")]


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
    observed.tell(*TURN)

    async def tidy(refiner: Refiner) -> None:
        await refiner.run_due()
        await refiner.clean_up_conversations()  # as the worker does when it has nothing else to do

    observed.with_refiner(tidy)
    recorded = [row["provider_session_id"] for row in observed.rows("SELECT * FROM sdk_sessions")]
    assert transcripts_of(observed) == ([] if fault == "a refused call" else recorded)


@needs_client
@pytest.mark.parametrize("after", ["local", "openai"])
def test_transcripts_are_deleted_also_where_another_observer_is_used_by_then(
    story: Story, api: FakeApi, after: str
) -> None:
    observed = Observed(story, api, "claude")
    api.otherwise = by_topic
    observed.tell(*TURN)
    observed.refine()
    assert len(transcripts_of(observed)) == 1
    if after == "openai":
        observed.kind = after
        observed.refine()
    else:
        observed.with_refiner(lambda refiner: refiner.use(None, observed.policy))
    assert transcripts_of(observed) == []


@needs_client
def test_few_clients_are_open_at_once_and_none_when_idle(story: Story, api: FakeApi) -> None:
    observed = Observed(story, api, "claude")
    api.otherwise = by_topic
    draft_sessions(observed, "a", "b", "c", "d", "e")
    most: list[int] = []

    def count(body: Body) -> Reply:
        most.append(len(client_pids(observed.directory)))
        return by_topic(body)

    api.otherwise = count

    async def idle(refiner: Refiner) -> None:
        await refiner.run_due()
        await until(lambda: client_pids(observed.directory) == [])

    observed.options["idle_seconds"] = 0.0
    observed.with_refiner(idle)
    assert observed.observers() == ["claude"] * 5
    assert max(most) <= 2
    assert children() == []

"""Turns: what arrived is recorded once, in its turn, and a turn that changes is distilled again."""

import pytest

from claude_mem.types import Event
from tests.payloads import (
    PROJECT_DIR,
    SESSION,
    Payload,
    common,
    edit,
    one_of_each,
    post_compact,
    pre_compact,
    private_prompt,
    prompt,
    session_end,
    session_start,
    stop,
    stop_failure,
    subagent_stop,
    tool,
    write,
)
from tests.story import DAY, HOUR, MINUTE, Story

OTHER = "b7e1a9c0-1111-4222-8333-444455556666"


def events_of(story: Story, prompt_number: int) -> list[str]:
    return story.column(
        "SELECT e.event FROM tool_events e JOIN user_prompts t ON t.id = e.turn_id"
        " WHERE t.prompt_number = ? ORDER BY e.id",
        prompt_number,
    )


def turns(story: Story) -> list[tuple[int, str | None]]:
    rows = story.rows("SELECT prompt_number, prompt_text FROM user_prompts ORDER BY id")
    return [(row["prompt_number"], row["prompt_text"]) for row in rows]


def completed(story: Story) -> list[str | None]:
    """The summaries' words, in the order of their turns."""
    return story.column("SELECT completed FROM session_summaries ORDER BY prompt_number")


def finish(story: Story, number: int) -> None:
    """A turn that was stopped and remembered."""
    fields = {"prompt_id": f"p{number}"}
    story.tell(prompt(f"Ask {number}", **fields), tool(**fields), stop(f"Said {number}.", **fields))
    story.distil()


# Once


def arrivals(story: Story, payloads: list[Payload]) -> list[Event]:
    events = []
    for payload in payloads:
        story.now += 10
        events.append(story.event(payload))
    return events


def test_a_batch_that_is_read_again_after_a_crash_is_stored_once(story: Story) -> None:
    events = arrivals(story, one_of_each())
    story.store.record_events(events).result()
    before = story.column("SELECT event_key FROM tool_events ORDER BY id")
    again = story.store.record_events(events).result()
    assert {recorded.outcome for recorded in again} == {"duplicate"}
    assert story.column("SELECT event_key FROM tool_events ORDER BY id") == before
    assert len(before) == len(set(before)) > 30


def test_the_same_event_by_two_hooks_is_one_event(story: Story) -> None:
    for payload in (prompt(), tool(), subagent_stop(), stop()):
        assert story.tell(payload).outcome == "stored"
        assert story.tell(payload, after=3).outcome == "duplicate"
    assert events_of(story, 1) == ["UserPromptSubmit", "PostToolUse", "SubagentStop", "Stop"]


def test_a_duplicate_asks_for_no_more_work(story: Story) -> None:
    finish(story, 1)
    assert story.tell(stop("Said 1.", prompt_id="p1")).outcome == "duplicate"
    assert story.queue() == {}


def test_the_same_words_of_two_tools_are_two_events(story: Story) -> None:
    story.tell(prompt(), tool(tool_use_id="toolu_a"), tool(tool_use_id="toolu_b"))
    assert events_of(story, 1) == ["UserPromptSubmit", "PostToolUse", "PostToolUse"]


def test_the_same_tool_in_two_sessions_is_two_events(story: Story) -> None:
    story.tell(tool(tool_use_id="toolu_a"), tool(tool_use_id="toolu_a", session_id=OTHER))
    assert story.column("SELECT count(*) FROM tool_events") == [2]


# Turns by prompt id


def test_each_prompt_id_is_a_turn_with_the_next_number(story: Story) -> None:
    numbers = [story.tell(prompt(text, prompt_id=text)).prompt_number for text in ("a", "b", "c")]
    assert numbers == [1, 2, 3]
    assert turns(story) == [(1, "a"), (2, "b"), (3, "c")]


def test_an_event_belongs_to_the_turn_of_its_prompt_id_whenever_it_comes(story: Story) -> None:
    story.tell(prompt(prompt_id="p1"), prompt(prompt_id="p2"))
    assert story.tell(tool(prompt_id="p1")).prompt_number == 1
    assert story.tell(stop(prompt_id="p2")).prompt_number == 2
    assert events_of(story, 1) == ["UserPromptSubmit", "PostToolUse"]
    assert events_of(story, 2) == ["UserPromptSubmit", "Stop"]


def test_the_same_prompt_id_in_two_sessions_is_two_turns(story: Story) -> None:
    story.tell(prompt("mine", prompt_id="p1"), prompt("yours", prompt_id="p1", session_id=OTHER))
    assert turns(story) == [(1, "mine"), (1, "yours")]


def test_the_same_words_under_two_prompt_ids_are_two_turns(story: Story) -> None:
    story.tell(prompt("go on", prompt_id="p1"), prompt("go on", prompt_id="p2"), after=1)
    assert turns(story) == [(1, "go on"), (2, "go on")]


@pytest.mark.parametrize("payload", [tool(), subagent_stop(), pre_compact(), stop()])
def test_an_event_whose_prompt_was_never_seen_makes_its_turn(
    story: Story, payload: Payload
) -> None:
    assert story.tell(payload).prompt_number == 1
    assert turns(story) == [(1, None)]


def test_a_prompt_that_comes_after_its_events_completes_their_turn(story: Story) -> None:
    story.tell(tool(), prompt("Mend the light"))
    assert turns(story) == [(1, "Mend the light")]
    assert story.session()["user_prompt"] == "Mend the light"


def test_a_prompt_that_comes_after_its_stop_revises_the_turn(story: Story) -> None:
    story.tell(tool(), stop())
    story.distil()
    story.tell(prompt("Mend the light"))
    story.distil()
    assert story.column("SELECT request FROM session_summaries") == ["Mend the light"]


def test_the_first_prompt_is_what_the_session_was_asked(story: Story) -> None:
    story.tell(prompt("first", prompt_id="p1"), prompt("second", prompt_id="p2"))
    assert story.session()["user_prompt"] == "first"


# Clients without prompt ids


def anonymous(text: str) -> Payload:
    return prompt(text, prompt_id=None)


def test_an_event_without_prompt_id_belongs_to_the_turn_it_came_in(story: Story) -> None:
    story.tell(anonymous("a"))
    late = story.event(tool(prompt_id=None))
    story.tell(anonymous("b"), stop(prompt_id=None))
    story.store.record_events([late]).result()
    assert events_of(story, 1) == ["UserPromptSubmit", "PostToolUse"]
    assert events_of(story, 2) == ["UserPromptSubmit", "Stop"]


def test_the_same_words_in_another_turn_are_another_event(story: Story) -> None:
    for _ in range(2):
        story.tell(anonymous("yes"), after=MINUTE)
        assert story.tell(stop("Done.", prompt_id=None)).outcome == "stored"
    assert turns(story) == [(1, "yes"), (2, "yes")]
    assert events_of(story, 1) == events_of(story, 2) == ["UserPromptSubmit", "Stop"]


def test_the_same_prompt_told_twice_within_two_seconds_is_one(story: Story) -> None:
    story.tell(anonymous("yes"))
    assert story.tell(anonymous("yes"), after=1999).outcome == "duplicate"
    assert turns(story) == [(1, "yes")]


def test_the_same_prompt_told_two_seconds_later_is_another(story: Story) -> None:
    story.tell(anonymous("yes"))
    assert story.tell(anonymous("yes"), after=2000).outcome == "stored"
    assert turns(story) == [(1, "yes"), (2, "yes")]


def test_other_words_are_another_prompt_however_fast_they_come(story: Story) -> None:
    story.tell(anonymous("yes"), anonymous("no"), after=1)
    assert turns(story) == [(1, "yes"), (2, "no")]


# Private prompts

PRIVATE = ["", " \n\t "]


@pytest.mark.parametrize("nothing", PRIVATE)
@pytest.mark.parametrize("prompt_id", ["p1", None])
def test_nothing_of_a_private_turn_is_kept_but_its_number(
    story: Story, nothing: str, prompt_id: str | None
) -> None:
    fields: Payload = {"prompt_id": prompt_id}
    for payload in (
        private_prompt(nothing, **fields),
        tool(**fields),
        edit(**fields),
        subagent_stop(**fields),
        post_compact(**fields),
        stop(**fields),
        stop("Second thoughts.", **fields),
    ):
        recorded = story.tell(payload)
        assert (recorded.outcome, recorded.prompt_number) == ("private", 1)
    assert story.distil() == 0
    assert turns(story) == [(1, None)]
    for table in ("tool_events", "observations", "session_summaries", "pending_messages"):
        assert story.rows(f"SELECT * FROM {table}") == []


def test_the_prompt_after_a_private_one_is_remembered(story: Story) -> None:
    story.tell(private_prompt(prompt_id="p1"), stop("whispered", prompt_id="p1"))
    finish(story, 2)
    assert turns(story) == [(1, None), (2, "Ask 2")]
    assert completed(story) == ["Said 2."]


@pytest.mark.parametrize("nothing", PRIVATE)
def test_a_turn_that_turns_out_private_is_forgotten_with_its_memories(
    story: Story, nothing: str
) -> None:
    story.tell(edit(), stop("whispered"))
    story.distil()
    story.tell(tool())
    assert completed(story) == ["whispered"] and story.queue() == {"pending": 1}
    assert "whispered" in story.column("SELECT parts FROM turn_records")[0]
    assert story.tell(private_prompt(nothing)).outcome == "private"
    assert story.tell(tool()).outcome == "private"
    tables = ("tool_events", "observations", "session_summaries", "pending_messages")
    for table in (*tables, "turn_records", "passages"):
        assert story.rows(f"SELECT * FROM {table}") == []


def test_a_private_turn_of_a_client_without_prompt_ids_takes_its_earlier_events(
    story: Story,
) -> None:
    story.tell(tool(prompt_id=None))
    assert story.tell(private_prompt(prompt_id=None)).outcome == "private"
    assert story.rows("SELECT * FROM tool_events") == []


def test_a_private_prompt_is_listed_nowhere(story: Story) -> None:
    story.tell(private_prompt(prompt_id="p1"), prompt("open", prompt_id="p2"))
    prompts = story.store.memories_of_session(story.session_db_id())["prompts"]
    assert isinstance(prompts, list)
    assert [
        prompt_record["prompt_text"] for prompt_record in prompts if isinstance(prompt_record, dict)
    ] == ["open"]


# When a turn is over


def closed(story: Story) -> list[int]:
    return story.column("SELECT closed FROM user_prompts ORDER BY id")


def test_a_turn_is_distilled_when_it_stops_and_not_before(story: Story) -> None:
    story.tell(session_start(), prompt(), tool())
    assert story.queue() == {}
    story.tell(stop())
    assert story.queue() == {"pending": 1}


def test_a_turn_that_an_api_error_ended_is_distilled(story: Story) -> None:
    story.tell(prompt(), stop_failure())
    story.distil()
    assert story.column("SELECT notes FROM session_summaries") == [
        "Ended by an error: API Error: 400\nunknown"
    ]


@pytest.mark.parametrize(
    "late", [edit(), subagent_stop(), post_compact(), stop("Second thoughts.")]
)
def test_an_event_that_comes_after_stop_revises_its_turn(story: Story, late: Payload) -> None:
    story.tell(prompt(), stop())
    story.distil()
    before = story.column("SELECT id FROM session_summaries")
    story.tell(late)
    assert story.queue() == {"pending": 1}
    assert story.distil() == 1
    assert story.column("SELECT id FROM session_summaries") == before


def test_a_second_stop_gives_the_turn_its_last_words(story: Story) -> None:
    story.tell(prompt(), stop("First thoughts."), stop("Second thoughts.", stop_hook_active=True))
    story.distil()
    assert completed(story) == ["Second thoughts."]


def test_a_late_edit_adds_to_what_is_remembered_and_changes_no_id(story: Story) -> None:
    story.tell(prompt(), edit(f"{PROJECT_DIR}/a.py"), stop())
    story.distil()
    before = story.column("SELECT id FROM observations")
    story.tell(edit(f"{PROJECT_DIR}/b.py"))
    story.distil()
    rows = story.rows("SELECT id, files_modified FROM observations ORDER BY ordinal")
    assert [row["files_modified"] for row in rows] == ['["a.py", "b.py"]']
    assert [rows[0]["id"]] == before


def test_the_next_prompt_closes_the_turn_before(story: Story) -> None:
    story.tell(prompt(prompt_id="p1"), tool(prompt_id="p1"), prompt(prompt_id="p2"))
    assert closed(story) == [1, 0]
    assert story.queue() == {"pending": 1}


def test_a_private_prompt_closes_the_turn_before_too(story: Story) -> None:
    story.tell(prompt(prompt_id="p1"), tool(prompt_id="p1"), private_prompt(prompt_id="p2"))
    assert story.queue() == {"pending": 1}


def test_a_private_turn_that_is_closed_is_not_distilled(story: Story) -> None:
    story.tell(private_prompt(prompt_id="p1"), prompt(prompt_id="p2"))
    assert closed(story) == [1, 0]
    assert story.queue() == {}


def test_a_prompt_closes_no_turn_of_another_session(story: Story) -> None:
    story.tell(prompt(session_id=OTHER), prompt())
    assert closed(story) == [0, 0]


@pytest.mark.parametrize("source", ["startup", "resume", "fork", "clear"])
def test_a_session_start_closes_what_was_left_open_in_its_project(
    story: Story, source: str
) -> None:
    story.tell(prompt(session_id=OTHER))
    story.tell(prompt(session_id="elsewhere"), project_dir="/home/dev/pier")
    story.tell(session_start(source))
    assert closed(story) == [1, 0]
    assert story.queue() == {"pending": 1}


def test_a_session_start_after_compaction_closes_nothing(story: Story) -> None:
    story.tell(prompt(), session_start("compact"))
    assert closed(story) == [0]


def test_a_session_start_after_a_private_prompt_closes_what_was_left_open(story: Story) -> None:
    story.tell(private_prompt(prompt_id="p1"), prompt(session_id=OTHER), session_start("resume"))
    assert closed(story) == [1, 1]
    assert story.queue() == {"pending": 1}


def test_a_turn_that_was_closed_for_a_dead_client_goes_on_if_it_lives(story: Story) -> None:
    story.tell(prompt(session_id=OTHER), session_start())
    story.distil()
    story.tell(stop("Still here.", session_id=OTHER))
    story.distil()
    assert completed(story) == ["Still here."]


def test_session_end_closes_the_turns_of_its_session(story: Story) -> None:
    story.tell(prompt(session_id=OTHER), prompt(), session_end())
    assert closed(story) == [0, 1]


def test_an_idle_turn_is_closed_and_one_with_recent_events_is_not(story: Story) -> None:
    story.tell(prompt(), prompt(session_id=OTHER))
    story.tell(tool(session_id=OTHER), after=HOUR)
    assert story.store.close_idle_turns(story.now - 30 * MINUTE).result() == 1
    assert closed(story) == [1, 0]
    assert story.queue() == {"pending": 1}
    assert story.store.close_idle_turns(story.now - 30 * MINUTE).result() == 0


# Events that mean nothing to us yet

UNKNOWN = [
    common("Notification", message="Waiting", notification_type="idle_prompt"),
    common("PostToolBatch", tool_calls=[{"tool_name": "Bash", "tool_input": {}}]),
    common("AnEventOfNextYear", something=["new", {"deep": [1, 2.5, None, True]}]),
]


@pytest.mark.parametrize("payload", UNKNOWN)
def test_an_unknown_event_is_kept_and_asks_for_no_work(story: Story, payload: Payload) -> None:
    finish(story, 1)
    event = {**payload, "prompt_id": "p1"}
    assert story.tell(event).outcome == "stored"
    assert story.queue() == {}
    assert events_of(story, 1)[-1] == payload["hook_event_name"]


def test_an_unknown_event_outside_of_any_turn_makes_none(story: Story) -> None:
    assert story.tell(UNKNOWN[2]).prompt_number is None
    assert turns(story) == []
    assert story.column("SELECT turn_id FROM tool_events") == [None]


# Raw events past their day


def with_raw_input(story: Story) -> list[str]:
    """The tools whose raw input is still there."""
    return story.column(
        "SELECT tool_use_id FROM tool_events WHERE tool_input IS NOT NULL ORDER BY id"
    )


def tell_tool(story: Story, name: str, **changes: str) -> None:
    story.tell(tool(tool_use_id=name, tool_input={"command": "x" * 986}, tool_response=None,
                    **changes))  # fmt: skip


@pytest.fixture
def worked(story: Story) -> Story:
    """A remembered turn with three tools of 1,001 characters, a day apart."""
    story.tell(prompt())
    for name in ("one", "two", "three"):
        tell_tool(story, name)
        story.now += DAY
    story.tell(stop("ok"))
    story.distil()
    return story


def test_raw_events_are_retired_by_age_and_their_rows_stay(worked: Story) -> None:
    day_of_two = worked.now - 2 * DAY - 30 * MINUTE
    assert worked.store.retire_raw_events(day_of_two, 10**9).result() == 1
    assert with_raw_input(worked) == ["two", "three"]
    assert worked.store.retire_raw_events(worked.now + 1, 10**9).result() == 3
    assert with_raw_input(worked) == []
    assert size(worked) == 0
    assert worked.column("SELECT text FROM tool_events WHERE event = 'Stop'") == [None]
    assert events_of(worked, 1) == ["UserPromptSubmit", *["PostToolUse"] * 3, "Stop"]


def size(story: Story, since_ms: int = 0) -> int:
    query = "SELECT sum(bytes) FROM tool_events WHERE created_at_epoch >= ?"
    return int(story.column(query, since_ms)[0])


def test_the_oldest_raw_events_beyond_a_size_are_retired(worked: Story) -> None:
    assert 3000 < size(worked) < 3200
    assert worked.store.retire_raw_events(0, size(worked)).result() == 0
    assert worked.store.retire_raw_events(0, size(worked) - 1).result() == 1
    assert with_raw_input(worked) == ["two", "three"]
    assert worked.store.retire_raw_events(0, size(worked) - 500).result() == 1
    assert with_raw_input(worked) == ["three"]


def test_what_is_retired_by_age_does_not_count_for_the_size(worked: Story) -> None:
    day_of_two = worked.now - 2 * DAY - 30 * MINUTE
    assert worked.store.retire_raw_events(day_of_two, size(worked, day_of_two)).result() == 1
    assert with_raw_input(worked) == ["two", "three"]


def test_memories_and_their_sources_outlive_the_raw_events(story: Story) -> None:
    story.tell(prompt(), write(), stop())
    story.distil()
    story.store.retire_raw_events(story.now + 1, 10**9).result()
    (observation,) = story.column("SELECT id FROM observations")
    sources = story.store.sources("observation", observation)
    assert [source["event"] for source in sources] == ["PostToolUse", "Stop"]
    assert turns(story) == [(1, "Make the harbour light blink twice")]


def test_a_late_event_does_not_undo_a_memory_whose_raw_events_are_gone(story: Story) -> None:
    story.tell(prompt(), edit(), stop("It blinks."))
    story.distil()
    story.store.retire_raw_events(story.now + 1, 10**9).result()
    assert story.tell(subagent_stop()).outcome == "stored"
    story.distil()
    assert completed(story) == ["It blinks."]
    assert story.column("SELECT files_modified FROM observations") == ['["light.py"]']


@pytest.mark.parametrize("how", ["by age", "by size"])
@pytest.mark.parametrize("state", ["pending", "processing", "held", "dead"])
def test_a_turn_that_waits_for_its_observer_keeps_its_raw_events(
    worked: Story, how: str, state: str
) -> None:
    worked.tell(prompt(prompt_id="p2"))
    tell_tool(worked, "four", prompt_id="p2")
    worked.tell(stop("ok", prompt_id="p2"))
    if state in ("processing", "dead"):
        job, _ = worked.claim()
    if state == "held":
        worked.store.stop_session(worked.session_db_id()).result()
    if state == "dead":
        worked.store.set_job_aside(job, "broken").result()
    assert worked.queue() == {state: 1}
    before_ms, keep_bytes = (worked.now + 1, 10**9) if how == "by age" else (0, 0)
    worked.store.retire_raw_events(before_ms, keep_bytes).result()
    assert with_raw_input(worked) == ["four"]


def test_a_turn_that_is_still_open_keeps_its_raw_events(worked: Story) -> None:
    worked.tell(prompt(prompt_id="p2"))
    tell_tool(worked, "four", prompt_id="p2")
    worked.store.retire_raw_events(0, 0).result()
    assert with_raw_input(worked) == ["four"]


def test_what_unknown_events_brought_is_retired_too(story: Story) -> None:
    calls = [{"tool_name": "Bash", "tool_response": "x" * 1000}]
    story.tell(common("PostToolBatch", prompt_id=None, tool_calls=calls))
    assert story.column("SELECT detail FROM tool_events") != [None]
    story.store.retire_raw_events(story.now + 1, 10**9).result()
    assert story.column("SELECT detail FROM tool_events") == [None]


def test_sessions_do_not_share_turns(story: Story) -> None:
    story.tell(prompt(prompt_id="p1"), prompt(session_id=OTHER, prompt_id="p1"))
    story.tell(tool(session_id=OTHER, prompt_id="p1"))
    assert story.column(
        "SELECT s.content_session_id FROM tool_events e JOIN user_prompts t ON t.id = e.turn_id"
        " JOIN sdk_sessions s ON s.id = t.session_id AND s.id = e.session_id ORDER BY e.id"
    ) == [SESSION, OTHER, OTHER]

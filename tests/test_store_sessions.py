"""Sessions: two ids that never mix, a status that follows the person, and nothing left behind."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from claude_mem.errors import AmbiguousProject, NotFound
from claude_mem.store.database import connect
from claude_mem.types import Distillate, Project, SessionStatus, Summary
from tests.payloads import (
    PROJECT_DIR,
    SESSION,
    Payload,
    common,
    edit,
    private_prompt,
    prompt,
    session_end,
    session_start,
    stop,
    tool,
)
from tests.remembering import words_of_memories
from tests.story import DAY, HOUR, START, Story

OTHER = "b7e1a9c0-1111-4222-8333-444455556666"
ENDED: list[SessionStatus] = ["completed", "failed", "interrupted"]


def tell_a_turn(story: Story, session_id: str = SESSION, word: str = "light") -> int:
    """A whole turn, remembered; the session's database id."""
    ids = {"session_id": session_id, "prompt_id": f"prompt-of-{word}"}
    story.tell(
        prompt(f"Mend the {word}", **ids),
        edit(f"{PROJECT_DIR}/{word}.py", **ids),
        stop(f"The {word} is mended.", **ids),
    )
    story.distil()
    return story.session_db_id(session_id)


# Two ids


def test_a_session_has_no_memory_id_until_its_memory_begins(story: Story) -> None:
    story.tell(prompt(), edit(), stop())
    assert story.session()["memory_session_id"] is None
    story.distil()
    assert story.session()["memory_session_id"]


def test_a_made_up_memory_id_is_not_the_agents_and_not_another_sessions(story: Story) -> None:
    tell_a_turn(story, SESSION)
    tell_a_turn(story, OTHER)
    ids = [str(story.session(each)["memory_session_id"]) for each in (SESSION, OTHER)]
    assert len({*ids, SESSION, OTHER}) == 4


def test_memories_reference_the_id_that_was_captured(story: Story) -> None:
    story.tell(prompt(), edit(), stop())
    session_db_id = story.session_db_id()
    assert story.register_memory_session(session_db_id, "sdk-abc") == "sdk-abc"
    story.distil()
    assert story.column("SELECT memory_session_id FROM observations") == ["sdk-abc"]
    assert story.column("SELECT memory_session_id FROM session_summaries") == ["sdk-abc"]


@pytest.mark.parametrize("first", [None, "sdk-abc"])
def test_a_memory_id_is_stable_once_it_is_registered(story: Story, first: str | None) -> None:
    story.tell(prompt())
    session_db_id = story.session_db_id()
    registered = story.register_memory_session(session_db_id, first)
    assert story.register_memory_session(session_db_id, "sdk-later") == registered
    assert story.register_memory_session(session_db_id) == registered
    assert story.session()["memory_session_id"] == registered


def test_later_turns_keep_the_memory_id_of_the_first(story: Story) -> None:
    tell_a_turn(story, word="light")
    before = story.session()["memory_session_id"]
    tell_a_turn(story, word="lamp")
    assert story.session()["memory_session_id"] == before
    assert set(story.column("SELECT memory_session_id FROM observations")) == {before}


def test_a_memory_id_for_a_session_that_is_not_there_is_refused(story: Story) -> None:
    with pytest.raises(NotFound):
        story.register_memory_session(404)


@pytest.mark.parametrize("memory_session_id", ["never-registered", SESSION, None])
@pytest.mark.parametrize(
    "insert",
    [
        "INSERT INTO observations (memory_session_id, project_id, turn_id, ordinal, prompt_number,"
        " type, observer, created_at, created_at_epoch)"
        " SELECT ?, project_id, id, 0, 1, 'change', 'local', '', 0 FROM user_prompts",
        "INSERT INTO session_summaries (memory_session_id, project_id, turn_id, prompt_number,"
        " observer, created_at, created_at_epoch)"
        " SELECT ?, project_id, id, 1, 'local', '', 0 FROM user_prompts",
    ],
    ids=["observations", "session_summaries"],
)
def test_nothing_is_stored_before_its_memory_id_is_registered(
    story: Story, insert: str, memory_session_id: str | None
) -> None:
    story.tell(prompt())
    with (
        closing(connect(story.layout.database)) as connection,
        pytest.raises(sqlite3.IntegrityError),
    ):
        connection.execute(insert, (memory_session_id,))


def test_two_sessions_cannot_register_the_same_memory_id(story: Story) -> None:
    story.tell(prompt(), prompt(session_id=OTHER))
    story.register_memory_session(story.session_db_id(SESSION), "sdk-abc")
    with pytest.raises(sqlite3.IntegrityError):
        story.register_memory_session(story.session_db_id(OTHER), "sdk-abc")
    assert story.session(OTHER)["memory_session_id"] is None


def test_sessions_told_at_the_same_time_never_mix(story: Story) -> None:
    final = "The harbour lamp flickered because `poll()` ran twice per tick."
    for payload in (prompt("Mend it"), edit(), stop(final)):
        for session_id in (SESSION, OTHER):
            path = f"{PROJECT_DIR}/{session_id}.py"
            changes = {"tool_input": {"file_path": path}, "tool_use_id": f"toolu_{session_id}"}
            is_tool = "tool_name" in payload
            story.tell({**payload, **(changes if is_tool else {}), "session_id": session_id})
    story.distil()
    for session_id in (SESSION, OTHER):
        memories = story.store.memories_of_session(story.session_db_id(session_id))
        observations, summaries = memories["observations"], memories["summaries"]
        assert isinstance(observations, list) and isinstance(summaries, list)
        assert [o["files_modified"] for o in observations if isinstance(o, dict)] == [
            [f"{session_id}.py"]
        ]
        assert [s["content_session_id"] for s in summaries if isinstance(s, dict)] == [session_id]


def test_every_memory_leads_back_to_its_session(story: Story) -> None:
    tell_a_turn(story, SESSION)
    tell_a_turn(story, OTHER)
    for table in ("observations", "session_summaries"):
        assert story.rows(
            f"SELECT s.content_session_id FROM {table} m JOIN user_prompts t ON t.id = m.turn_id"
            " JOIN sdk_sessions s ON s.id = t.session_id"
            " AND s.memory_session_id = m.memory_session_id ORDER BY m.id"
        ) == [{"content_session_id": SESSION}, {"content_session_id": OTHER}]


def test_a_content_session_is_one_session_wherever_it_goes(story: Story) -> None:
    story.tell(session_start(), prompt())
    story.tell(tool(cwd="/elsewhere"), project_dir="/elsewhere")
    assert story.column("SELECT count(*) FROM sdk_sessions") == [1]
    assert story.session()["project_key"] == PROJECT_DIR
    assert story.column("SELECT DISTINCT project_id FROM user_prompts") == [
        story.store.find_project(PROJECT_DIR)
    ]


# What a provider needs to go on


def test_a_provider_session_is_resumed_on_a_continuation_prompt_only(story: Story) -> None:
    story.tell(prompt(prompt_id="p1"))
    session_db_id = story.session_db_id()
    story.store.remember_conversation(session_db_id, "claude", "sdk-abc").result()
    assert story.store.conversation_to_resume(session_db_id, "claude") is None
    story.tell(prompt(prompt_id="p2"))
    assert story.store.conversation_to_resume(session_db_id, "claude") == "sdk-abc"


@pytest.fixture
def continued(story: Story) -> int:
    """A session at its second prompt."""
    story.tell(prompt(prompt_id="p1"), prompt(prompt_id="p2"))
    return story.session_db_id()


def test_the_agents_own_id_is_never_resumed(story: Story, continued: int) -> None:
    story.store.remember_conversation(continued, "claude", SESSION).result()
    assert story.store.conversation_to_resume(continued, "claude") is None


def test_the_agents_own_id_does_not_displace_what_is_known(story: Story, continued: int) -> None:
    story.store.remember_conversation(continued, "claude", "sdk-abc").result()
    story.store.remember_conversation(continued, "claude", SESSION).result()
    assert story.store.conversation_to_resume(continued, "claude") == "sdk-abc"


def test_a_made_up_memory_id_is_never_resumed(story: Story, continued: int) -> None:
    story.register_memory_session(continued)
    assert story.store.conversation_to_resume(continued, "claude") is None


def test_what_one_provider_gave_is_not_resumed_by_another(story: Story, continued: int) -> None:
    story.store.remember_conversation(continued, "claude", "sdk-abc").result()
    assert story.store.conversation_to_resume(continued, "openai") is None
    story.store.remember_conversation(continued, "openai", "thread-1").result()
    assert story.store.conversation_to_resume(continued, "claude") is None
    assert story.store.conversation_to_resume(continued, "openai") == "thread-1"


def test_a_provider_session_is_dropped_on_request_and_memory_stays(
    story: Story, continued: int
) -> None:
    registered = story.register_memory_session(continued)
    story.store.remember_conversation(continued, "claude", "sdk-abc").result()
    story.store.drop_conversation(continued).result()
    assert story.store.conversation_to_resume(continued, "claude") is None
    assert story.session()["memory_session_id"] == registered


def test_a_provider_session_is_of_one_session_only(story: Story, continued: int) -> None:
    story.tell(prompt(session_id=OTHER, prompt_id="p1"), prompt(session_id=OTHER, prompt_id="p2"))
    story.store.remember_conversation(continued, "claude", "sdk-abc").result()
    assert story.store.conversation_to_resume(story.session_db_id(OTHER), "claude") is None


# Status


def end(story: Story, status: SessionStatus) -> None:
    if status == "completed":
        story.tell(session_end())
    elif status == "failed":
        story.store.stop_session(story.session_db_id()).result()
    else:
        story.now += DAY
        story.store.interrupt_stale(story.now).result()
    assert story.session()["status"] == status


def test_a_session_is_active_from_its_first_event_on(story: Story) -> None:
    story.tell(session_start())
    assert story.session()["status"] == "active"
    assert story.session()["started_at"] == "2025-10-09T08:53:21.000Z"
    assert story.session()["completed_at"] is None


def test_session_end_completes_a_session_with_its_own_time(story: Story) -> None:
    story.tell(prompt(), session_end())
    session = story.session()
    assert (session["status"], session["completed_at_epoch"]) == ("completed", story.now)


def test_a_session_without_an_event_for_a_day_is_interrupted_as_of_its_last_one(
    story: Story,
) -> None:
    story.tell(prompt())
    last = story.now
    story.tell(prompt(session_id=OTHER), after=2 * HOUR)
    interrupted = story.store.interrupt_stale(last + HOUR).result()
    assert interrupted == [story.session_db_id()]
    assert story.session()["status"] == "interrupted"
    assert story.session()["completed_at_epoch"] == last
    assert story.session(OTHER)["status"] == "active"


def test_a_session_that_has_ended_is_not_interrupted_later(story: Story) -> None:
    story.tell(prompt(), session_end())
    assert story.store.interrupt_stale(story.now + DAY).result() == []
    assert story.session()["status"] == "completed"


def test_a_stopped_session_is_failed_and_keeps_its_messages(story: Story) -> None:
    story.tell(prompt(), stop())
    assert story.store.stop_session(story.session_db_id()).result() == 1
    assert story.session()["status"] == "failed"
    assert story.queue() == {"held": 1}


@pytest.mark.parametrize("status", ENDED)
@pytest.mark.parametrize(
    "again", [prompt(prompt_id="p2"), session_start("resume")], ids=["prompt", "SessionStart"]
)
def test_whoever_goes_on_makes_an_ended_session_active_again(
    story: Story, status: SessionStatus, again: Payload
) -> None:
    story.tell(prompt(prompt_id="p1"), stop(prompt_id="p1"))
    end(story, status)
    story.tell(again)
    session = story.session()
    assert (session["status"], session["completed_at"], session["completed_at_epoch"]) == (
        "active",
        None,
        None,
    )


@pytest.mark.parametrize("status", ENDED)
@pytest.mark.parametrize(
    "late",
    [tool(), stop("Second thoughts."), common("Notification", message="Waiting")],
    ids=["tool", "stop", "notification"],
)
def test_a_straggler_does_not_revive_a_session(
    story: Story, status: SessionStatus, late: Payload
) -> None:
    story.tell(prompt(), stop())
    end(story, status)
    assert story.tell(late).outcome == "stored"
    assert story.session()["status"] == status


def test_a_prompt_from_before_the_end_does_not_revive_a_session(story: Story) -> None:
    story.tell(prompt(prompt_id="p1"))
    late = story.event(prompt(prompt_id="p2"))
    story.tell(session_end())
    story.store.record_events([late]).result()
    assert story.session()["status"] == "completed"


def test_a_resumed_session_is_completed_again_even_if_nothing_was_asked(story: Story) -> None:
    story.tell(prompt(), stop(), session_end())
    story.tell(session_start("resume"))
    assert story.session()["status"] == "active"
    story.tell(session_end())
    assert story.session()["status"] == "completed"


def test_a_session_that_is_resumed_a_second_time_is_active_again(story: Story) -> None:
    for number in (1, 2):
        ids = {"prompt_id": f"p{number}"}
        story.tell(prompt(**ids), stop(**ids), session_end(**ids))
        story.tell(session_start("resume"))
        assert story.session()["status"] == "active"


@pytest.mark.parametrize("prompt_id", ["p2", None])
def test_a_private_prompt_makes_an_ended_session_active_again(
    story: Story, prompt_id: str | None
) -> None:
    story.tell(prompt(prompt_id="p1"), stop(prompt_id="p1"), session_end(prompt_id="p1"))
    story.tell(private_prompt(prompt_id=prompt_id))
    assert story.session()["status"] == "active"


def test_session_end_told_by_two_hooks_is_one_end(story: Story) -> None:
    story.tell(prompt(), session_end())
    assert story.tell(session_end(), after=3).outcome == "duplicate"
    assert story.session()["status"] == "completed"
    assert story.column("SELECT count(*) FROM tool_events WHERE event = 'SessionEnd'") == [1]


@pytest.mark.parametrize("last", [private_prompt(prompt_id="p2"), private_prompt(prompt_id=None)])
def test_a_session_whose_last_prompt_was_private_is_completed(story: Story, last: Payload) -> None:
    prompt_id = last.get("prompt_id")
    story.tell(prompt(prompt_id="p1"), last, session_end(prompt_id=prompt_id))
    assert story.session()["status"] == "completed"
    assert story.queue() == {"pending": 1}


def test_an_event_moves_the_time_of_its_session_forward_and_never_back(story: Story) -> None:
    early = story.event(prompt())
    story.tell(tool())
    story.store.record_events([early]).result()
    assert story.session()["updated_at_epoch"] == story.now
    assert story.session()["started_at_epoch"] == START + 1000


# The end of a session's memory

OF_A_SESSION = (
    "sdk_sessions", "user_prompts", "tool_events", "observations", "session_summaries",
    "turn_records", "observation_events", "summary_events", "pending_messages", "documents",
    "memory_text", "passages", "passage_text", "indexed_turns", "vectors",
)  # fmt: skip


def everything(story: Story) -> dict[str, int]:
    tables = story.column(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        " AND name NOT LIKE 'memory_text_%' AND name NOT LIKE 'passage_text_%'"  # FTS5's own
        " AND name <> 'vector_losses'"  # the list of documents whose vectors were removed
    )
    counted = {table: story.column(f"SELECT count(*) FROM {table}")[0]
               for table in tables if table not in ("passage_text", "memory_text")}  # fmt: skip
    # They have no lists of their rows: their words are counted.
    counted["passage_text"] = story.column("SELECT total(cnt) FROM passage_terms")[0]
    counted["memory_text"] = len(words_of_memories(story))
    return {table: count for table, count in counted.items() if count}


def test_deleting_a_session_takes_all_that_is_of_it_and_no_more(story: Story) -> None:
    for session_id in (SESSION, OTHER):
        tell_a_turn(story, session_id)
    for session_id in (SESSION, OTHER):
        ids = {"session_id": session_id, "prompt_id": "p2"}
        story.tell(prompt(**ids), stop(**ids))
    before = everything(story)
    assert set(OF_A_SESSION) < set(before)
    story.delete_session(story.session_db_id(SESSION))
    assert everything(story) == {
        table: count // 2 if table in OF_A_SESSION else count for table, count in before.items()
    }
    assert story.rows("PRAGMA foreign_key_check") == []
    assert story.store.session_by_content_id(SESSION) is None
    assert story.session(OTHER)["status"] == "active"


# Titles


def title(story: Story, number: int, first: str | None, second: str | None) -> None:
    ids = {"prompt_id": f"p{number}"}
    story.tell(prompt(**ids), stop(**ids))
    job, turn = story.claim()
    distillate = Distillate(Summary(), title=first, subtitle=second)
    assert story.store.finish_job(job, turn, distillate).result()


def titles(story: Story) -> tuple[object, object]:
    session = story.session()
    return session["title"], session["subtitle"]


def test_the_first_title_stays_and_the_subtitle_follows(story: Story) -> None:
    title(story, 1, "Mend the light", "It blinks")
    title(story, 2, "Paint the door", "It is blue")
    assert titles(story) == ("Mend the light", "It is blue")


def test_a_turn_without_titles_leaves_them_to_others(story: Story) -> None:
    title(story, 1, None, None)
    assert titles(story) == (None, None)
    title(story, 2, "Paint the door", "It is blue")
    title(story, 3, None, None)
    assert titles(story) == ("Paint the door", "It is blue")


# Projects by name


@pytest.fixture
def harbors(story: Story) -> Story:
    for session_id, directory in ((SESSION, "/a/harbor"), (OTHER, "/b/harbor"), ("x", "/c/pier")):
        story.tell(prompt(session_id=session_id), project_dir=directory)
    return story


def test_a_name_that_one_project_has_finds_it(harbors: Story) -> None:
    project_id = harbors.store.find_project("pier")
    assert harbors.store.project(project_id).name == "pier"
    assert project_id == harbors.store.find_project("/c/pier")


def test_an_ambiguous_name_is_an_error_that_lists_the_choices(harbors: Story) -> None:
    with pytest.raises(AmbiguousProject) as caught:
        harbors.store.find_project("harbor")
    assert (caught.value.name, caught.value.choices) == ("harbor", ["/a/harbor", "/b/harbor"])
    assert "/a/harbor, /b/harbor" in str(caught.value)


def test_a_key_settles_what_a_name_leaves_open(harbors: Story) -> None:
    assert harbors.store.find_project("/a/harbor") != harbors.store.find_project("/b/harbor")


def test_a_key_wins_over_a_name(harbors: Story) -> None:
    event = harbors.event(prompt(session_id="y"))
    harbors.store.record_events(
        [replace(event, project=Project(key="pier", name="a key"))]
    ).result()
    assert harbors.store.project(harbors.store.find_project("pier")).name == "a key"


def test_a_project_that_is_not_there_is_not_found(harbors: Story) -> None:
    with pytest.raises(NotFound):
        harbors.store.find_project("dock")

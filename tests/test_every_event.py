"""Every payload that the client sends ends in the database, once, and none is refused."""

import json
from collections import Counter

from tests.conftest import Home, wait_until
from tests.payloads import (
    PROMPT_ID,
    SESSION,
    Payload,
    one_of_each,
    prompt,
    stop,
    subagent_stop,
    tool,
)


def test_each_is_stored_once_however_often_it_is_told(home: Home) -> None:
    payloads = one_of_each()
    home.start_worker()
    for payload in payloads:
        for _ in range(2):  # at once: later, the same start or end is a new one
            assert home.hook(payload).returncode == 0
    for payload in payloads:
        if payload["hook_event_name"] not in ("SessionStart", "SessionEnd"):
            assert home.hook(payload).returncode == 0
    home.wait_settled()
    assert list(home.layout.rejected.iterdir()) == []
    stored = Counter(row["event"] for row in home.rows("SELECT event FROM tool_events"))
    assert stored == Counter(payload["hook_event_name"] for payload in payloads)
    assert home.rows("SELECT content_session_id AS s FROM sdk_sessions") == [{"s": SESSION}]
    assert home.rows("SELECT prompt_id AS p FROM user_prompts") == [{"p": PROMPT_ID}]
    assert len(home.rows("SELECT * FROM session_summaries")) == 1


def test_tools_on_the_skip_list_and_our_own_are_not_recorded(home: Home) -> None:
    home.start_worker()
    names = ["TodoWrite", "AskUserQuestion", "Skill", "SlashCommand", "ListMcpResourcesTool",
             "mcp__plugin_claudemem_memory__search", "Bash"]  # fmt: skip
    for name in names:
        home.hook(tool(name))
    home.wait_settled()
    assert [row["tool_name"] for row in home.rows("SELECT tool_name FROM tool_events")] == ["Bash"]


def test_of_questions_and_tasks_only_the_words_are_recorded(home: Home) -> None:
    home.start_worker()
    for payload in (prompt(), *asked_and_planned(), stop()):
        home.hook(payload)
    home.wait_settled()
    rows = home.rows(
        "SELECT tool_name, tool_input, tool_response FROM tool_events WHERE tool_name IS NOT NULL"
    )
    assert rows == [
        {"tool_name": "AskUserQuestion",
         "tool_input": '{"questions": [{"question": "Which lamp?"}]}',
         "tool_response": '{"answers": {"Which lamp?": "The green one"}}'},
        {"tool_name": "TodoWrite", "tool_input": None, "tool_response": None},
    ]  # fmt: skip
    (record,) = home.rows("SELECT parts FROM turn_records")
    parts = json.loads(record["parts"])
    assert ["question", "user", "Which lamp?\nAnswer: The green one"] in parts
    assert ["task", "agent", "Paint the lamp"] in parts


def test_a_tool_that_the_user_names_is_not_recorded_at_all(home: Home) -> None:
    home.environment["CLAUDE_MEM_SKIP_TOOLS"] = "AskUserQuestion,TodoWrite"
    home.start_worker()
    for payload in (prompt(), *asked_and_planned(), stop()):
        home.hook(payload)
    home.wait_settled()
    rows = home.rows("SELECT count(*) AS n FROM tool_events WHERE tool_name IS NOT NULL")
    assert rows == [{"n": 0}]
    assert not [path for path, content in home.files().items() if b"green one" in content]


def asked_and_planned() -> list[Payload]:
    question = {"question": "Which lamp?", "options": [{"label": "The green one"}]}
    return [
        tool("AskUserQuestion", tool_use_id="t1", tool_input={"questions": [question]},
             tool_response={"answers": {"Which lamp?": "The green one"}}),
        tool("TodoWrite", tool_use_id="t2", tool_response={"oldTodos": []},
             tool_input={"todos": [{"content": "Paint the lamp", "status": "pending"}]}),
    ]  # fmt: skip


def test_events_after_the_stop_revise_their_turn(home: Home) -> None:
    home.start_worker()
    for payload in (prompt(), tool(), stop("First answer.")):
        home.hook(payload)
    home.wait_settled()
    (before,) = home.rows("SELECT id, completed FROM session_summaries")
    home.hook(subagent_stop())
    home.hook(stop("Second answer.", stop_hook_active=True))
    home.wait_settled()
    (after,) = home.rows("SELECT id, completed FROM session_summaries")
    assert (before["completed"], after["completed"]) == ("First answer.", "Second answer.")
    assert after["id"] == before["id"]


def test_a_session_whose_client_died_is_finished_at_the_next_start(home: Home) -> None:
    from tests.payloads import edit, session_start

    home.start_worker()
    for payload in (prompt("Mend the lamp", session_id="dead"), edit(session_id="dead")):
        home.hook(payload)
    home.wait_settled()
    assert home.rows("SELECT * FROM session_summaries") == []
    assert "Mend the lamp" in home.context(session_start(session_id="next", prompt_id=None))
    assert len(home.rows("SELECT * FROM session_summaries")) == 1


def test_the_activity_flag_follows_the_turns(home: Home) -> None:
    home.start_worker()
    home.hook(prompt())
    wait_until(lambda: flag(home).get("active"), "activity")
    assert flag(home)["project"] == "harbor"
    home.hook(prompt(session_id="another", prompt_id="p"))
    home.wait_settled()
    home.hook(stop())
    home.wait_settled()
    assert flag(home)["active"] is True  # the other one is still at work
    home.hook(stop(session_id="another", prompt_id="p"))
    wait_until(lambda: not flag(home)["active"], "rest")


def test_a_flag_that_a_killed_worker_left_is_taken_down(home: Home) -> None:
    home.start_worker()
    home.hook(prompt())
    wait_until(lambda: flag(home).get("active"), "activity")
    home.kill_worker()
    home.start_worker()
    wait_until(lambda: not flag(home)["active"], "rest")


def flag(home: Home) -> dict[str, object]:
    try:
        content: dict[str, object] = json.loads(home.layout.activity_flag.read_text())
    except FileNotFoundError:
        return {}
    return content

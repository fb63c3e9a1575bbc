"""UserPromptSubmit with hints: what it prints, what is stored of it, and that it never waits."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claude_mem.hook.response import HINT_SECONDS
from claude_mem.store.given_hints import KEEP_MS, KEEP_ROWS, GivenLine
from tests import payloads
from tests.api import Api, open_api
from tests.conftest import Home, wait_until

ASKED = "Why is the foghorn on the north quay silent since the storm?"
REPLY = (
    "The foghorn on the north quay is silent because its compressor lost the pressure valve in the"
    " storm. I replaced valve-7 and set the pressure of the horn to 4."
)
QUESTION = (
    "What made the foghorn on the north quay fall silent after the storm, and which part of its"
    " compressor was replaced?"
)
PLAIN = {"continue": True, "suppressOutput": True}


def fill(api: Api) -> None:
    api.add_turn("foghorn", ASKED, REPLY)
    for number, thing in enumerate(("crane", "ferry", "slipway", "dredger", "buoy")):
        api.add_turn(f"other-{number}", f"Look after the {thing}", f"The {thing} is painted.")
    api.get_json("/api/search", query="foghorn")  # loads the model: a hook does not wait for it


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with open_api(tmp_path / "data") as opened:
        fill(opened)
        yield opened


def answer(api: Api, text: str = QUESTION, **changes: Any) -> dict[str, Any]:
    response = api.submit_prompt(payloads.prompt(text, **changes))
    assert response.status_code == 200, response.text
    api.worker.store.write(lambda _: None).result()  # what was given is stored after the answer
    body: dict[str, Any] = response.json()
    return body


def hint_of(body: dict[str, Any]) -> str:
    return str(body.get("hookSpecificOutput", {}).get("additionalContext", ""))


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loaded machine may need longer than a hook waits."""
    monkeypatch.setattr("claude_mem.worker.hints.HINT_SECONDS", 60.0)


pytestmark = pytest.mark.usefixtures("patient")


def test_a_prompt_is_answered_with_a_hint(api: Api) -> None:
    body = answer(api)
    assert "valve-7" in hint_of(body)
    assert body == {
        **PLAIN,
        "hookSpecificOutput": {
            "hookEventName": "UserPromptSubmit",
            "additionalContext": hint_of(body),
        },
    }


def test_a_prompt_without_a_match_is_answered_with_the_plain_line(api: Api) -> None:
    assert answer(api, "Please mow the lawn behind the chapel before the guests arrive") == PLAIN


def test_a_project_without_memories_is_answered_with_the_plain_line(api: Api) -> None:
    payload = payloads.prompt(QUESTION, cwd="/home/dev/chapel")
    assert api.submit_prompt(payload, "/home/dev/chapel").json() == PLAIN


def test_a_record_that_cannot_be_read_is_refused(api: Api) -> None:
    assert api.send("/hook/prompt", b"no record").status_code == 400


def test_the_prompt_is_stored_once_by_its_spool_file_alone(api: Api) -> None:
    before = api.rows("SELECT count(*) AS n FROM user_prompts")[0]["n"]
    assert hint_of(answer(api, session_id="asking"))
    assert api.rows("SELECT count(*) AS n FROM user_prompts")[0]["n"] == before
    api.catch_up()
    assert api.rows("SELECT count(*) AS n FROM user_prompts")[0]["n"] == before + 1


def test_a_session_is_given_nothing_twice(api: Api) -> None:
    assert hint_of(answer(api, session_id="asking", prompt_id="p1"))
    api.catch_up()
    assert answer(api, session_id="asking", prompt_id="p2") == PLAIN
    assert hint_of(answer(api, session_id="another", prompt_id="p3"))


def test_a_session_is_given_nothing_of_its_own(api: Api) -> None:
    assert answer(api, session_id="foghorn", prompt_id="p9") == PLAIN


def test_a_session_is_given_nothing_that_its_context_held(api: Api) -> None:
    api.add_turn("latest", f"{ASKED} Once more.", REPLY)
    started = api.start_session(payloads.session_start(session_id="asking")).json()
    assert REPLY.partition(".")[0] in hint_of(started)
    assert answer(api, session_id="asking") == PLAIN


def test_private_text_of_a_prompt_is_not_looked_up(api: Api) -> None:
    api.catch_up()
    body = answer(api, "")  # the hook has removed it
    assert body == PLAIN


def test_with_hints_off_nothing_is_given_and_the_hook_does_not_ask(tmp_path: Path) -> None:
    with open_api(tmp_path / "data", CLAUDE_MEM_HINTS="no") as api:
        fill(api)
        assert answer(api) == PLAIN
        api.layout.mark_hints(True)
        api.runner.run(api.worker.apply_settings(api.worker.settings))
        assert not api.layout.hints_flag.exists()


def test_a_hint_that_came_too_late_was_not_given(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claude_mem.worker.hints.HINT_SECONDS", 0.0)
    assert answer(api) == PLAIN
    assert api.get_json("/api/hints")["hints"] == []


# What is kept of it


def test_what_was_given_and_why_can_be_seen(api: Api) -> None:
    hint_of(answer(api, session_id="asking"))
    shown = api.get_json("/api/hints")
    (row,) = shown["hints"]
    assert shown["on"] is True
    assert "valve-7" in row["text"] and row["content_session_id"] == "asking"
    assert "compressor" in row["words"] and row["score"] > 0.75
    assert row["project"] == "harbor"
    assert api.get_json("/api/hints", project="harbor", limit=1)["hints"] == [row]
    assert api.get("/api/hints", project="nowhere").status_code == 404
    assert api.get("/api/hints", colour="red").status_code == 400


def forget(api: Api, **selection: Any) -> None:
    preview = api.post_json("/api/forget", **selection)
    api.post_json("/api/forget", **selection, confirm=preview["confirm"])


def test_forgetting_a_memory_removes_the_hints_that_show_it(api: Api) -> None:
    answer(api, session_id="asking")
    (row,) = api.get_json("/api/hints")["hints"]
    forget(api, ids=[row["memory"]])
    assert api.get_json("/api/hints")["hints"] == []
    assert api.rows("SELECT * FROM hints") == []


@pytest.mark.parametrize("session", ["foghorn", "asking"])
def test_forgetting_a_session_removes_its_hints_and_those_that_show_it(
    api: Api, session: str
) -> None:
    answer(api, session_id="asking")
    api.catch_up()
    assert api.rows("SELECT * FROM hints")
    forget(api, session=session)
    assert api.rows("SELECT * FROM hints") == []


def test_hints_are_kept_for_a_while_and_not_without_limit(api: Api) -> None:
    (turn,) = api.rows("SELECT id, project_id FROM user_prompts ORDER BY id LIMIT 1")
    line = GivenLine(turn["id"], "1", "#1 a line", ("foghorn",), 1.0)
    api.worker.store.save_hint("old", turn["project_id"], [line]).result()
    api.clock.ms += KEEP_MS + 1
    api.worker.store.save_hint("many", turn["project_id"], [line] * (KEEP_ROWS + 3)).result()
    api.worker.housekeeping.tick(api.clock.ms)
    rows = api.rows("SELECT content_session_id AS session FROM hints")
    assert len(rows) == KEEP_ROWS
    assert {row["session"] for row in rows} == {"many"}


# The hook


def hook_line(home: Home, session: str) -> dict[str, Any]:
    payload = payloads.prompt(QUESTION, session_id=session, prompt_id=f"{session}-1")
    line: dict[str, Any] = json.loads(home.hook(payload).stdout)
    return line


def live(home: Home) -> None:
    about = {"session_id": "foghorn", "prompt_id": "foghorn-1"}
    for payload in (
        payloads.prompt(ASKED, **about),
        payloads.stop(REPLY, **about),
        payloads.session_end(**about),
    ):
        home.hook(payload)
    home.wait_settled()


def test_the_hook_prints_the_hint_and_spools_the_prompt_once(home: Home) -> None:
    home.start_worker()
    live(home)

    def hinted() -> str:
        """Returns a session that got a hint; none does in time until the model is loaded."""
        session = str(uuid.uuid4())
        return session if hint_of(hook_line(home, session)) else ""

    session = wait_until(hinted, "a hint")
    home.wait_settled()
    prompts = home.rows(
        "SELECT prompt_text FROM user_prompts t JOIN sdk_sessions s ON s.id = t.session_id"
        " WHERE s.content_session_id = ?", session,
    )  # fmt: skip
    assert [row["prompt_text"] for row in prompts] == [QUESTION]
    done = home.command("hints")
    assert "valve-7" in done.stdout and "score " in done.stdout and "compressor" in done.stdout
    assert json.loads(home.command("hints", "--json").stdout)["hints"]


def test_without_a_worker_the_hook_prints_its_plain_line_and_starts_one(home: Home) -> None:
    home.start_worker()
    live(home)
    home.kill_worker()
    assert home.layout.hints_flag.exists()
    assert hook_line(home, "later") == PLAIN
    wait_until(home.worker_pid, "the worker's start")
    home.wait_settled()
    assert len(home.rows("SELECT id FROM user_prompts")) == 2


def test_the_hook_waits_no_longer_than_it_may() -> None:
    assert HINT_SECONDS <= 0.15


def test_the_command_says_that_hints_are_off(home: Home) -> None:
    assert "CLAUDE_MEM_HINTS yes" in home.command("hints", CLAUDE_MEM_HINTS="no").stdout

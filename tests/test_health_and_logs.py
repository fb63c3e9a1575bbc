"""What the worker says about itself: /health, its log, and the way of an event through it."""

import logging
import re
from contextlib import closing
from pathlib import Path

import pytest

from claude_mem.store.database import connect
from claude_mem.worker.queue_warning import WARN_TURNS, queue_warning
from tests.api import open_api
from tests.conftest import Home, wait_until
from tests.payloads import PROJECT_DIR, SESSION, edit, prompt, session_end, stop
from tests.seed_worker import running_worker
from tests.session_requests import INIT, SUMMARIZE, begin, example_body

# /health


def test_without_the_token_it_only_says_that_it_is_alive(tmp_path: Path) -> None:
    with open_api(tmp_path / "data", token="x" * 40) as api:
        assert api.get("/health").json() == {"status": "ok"}
        wrong = api.request("GET", "/health", headers={"Authorization": "Bearer wrong"})
        assert wrong.json() == {"status": "ok"}


def test_with_the_token_it_tells_how_it_is(tmp_path: Path) -> None:
    with running_worker(tmp_path) as worker:
        worker.post(INIT, {"contentSessionId": "s", "prompt": "Blink", "project": "harbor"})
        health = worker.get("/health").json()
        pid = worker.worker_pid()
    assert (health["status"], health["pid"], health["port"]) == ("ok", pid, worker.port)
    assert health["uptime"] > 0
    assert health["activeSessions"] == 1
    assert 10_000_000 < health["memory"]["rss"] < 10**9
    assert health["queue"] == {
        "depth": 0,
        "oldestSeconds": None,
        "dead": 0,
        "warning": None,
    }
    assert (health["observer"], health["lastError"]) == ("local", None)


def test_the_queue_is_told_with_its_age(tmp_path: Path) -> None:
    with open_api(tmp_path / "data") as api:
        begin(api)
        api.post_json(SUMMARIZE, **example_body(SUMMARIZE))
        api.clock.ms += 90_000
        queue = api.get_json("/health")["queue"]
        assert queue == {"depth": 1, "oldestSeconds": 90.0, "dead": 0, "warning": None}
        api.clock.ms += 2 * 3_600_000
        warning = api.get_json("/health")["queue"]["warning"]
        assert warning == "1 turn waiting to be summarised, the oldest for 2 hours"


def test_a_long_queue_is_a_warning_before_it_is_old() -> None:
    assert queue_warning(WARN_TURNS - 1, 10.0) == ""
    assert queue_warning(WARN_TURNS, 10.0) == f"{WARN_TURNS} turns waiting to be summarised"


def test_the_last_error_is_told(tmp_path: Path) -> None:
    with open_api(tmp_path / "data") as api:
        logger = logging.getLogger("claude_mem")
        logger.addHandler(api.worker.last_error)
        try:
            with closing(connect(api.layout.database)) as other:
                other.execute("DROP TABLE tool_events")
            assert api.post(INIT, **example_body(INIT)).status_code == 500
        finally:
            logger.removeHandler(api.worker.last_error)
        error = api.get_json("/health")["lastError"]
    assert error["message"].startswith(f"POST {INIT} failed: OperationalError: ")
    assert "tool_events" in error["message"] and error["at"].startswith("20")


# The log


def test_the_log_tells_the_way_of_an_event_from_its_hook_to_its_memories(home: Home) -> None:
    home.environment["CLAUDE_MEM_LOG_LEVEL"] = "DEBUG"
    home.hook(prompt())
    home.hook(edit())
    home.hook(stop(last_assistant_message="The light blinks twice: the relay was too slow."))
    home.hook(session_end())
    home.wait_settled()
    ended = re.compile(r"session 1 completed after \d+ s with 1 prompt$", re.MULTILINE)
    wait_until(lambda: ended.search(home.layout.worker_log.read_text()), "the end in the log")
    shown = home.command("worker", "logs", "--session", "1").stdout
    assert ended.search(shown)
    by_agent_id = home.command("worker", "logs", "--session", SESSION).stdout
    assert shown == by_agent_id
    lines = shown.splitlines()
    assert all(f"session {SESSION}: " in line for line in lines)
    (captured,) = (line for line in lines if "PostToolUse Edit captured" in line)
    found = re.search(r"event=(\w+) ", captured)
    assert found and "stored, prompt 1, turn 1" in captured
    steps = [line.split(": ", 3)[-1] for line in lines if found[1] in line]
    assert len(steps) == 3 and steps[1].startswith("distilling") and "stored as S1" in steps[2]
    assert lines.index(captured) < next(i for i, line in enumerate(lines) if "stored as" in line)


def test_each_stored_observation_is_a_line_of_the_log(home: Home) -> None:
    home.start_worker()
    home.command("remember", "The relay is slow", "--title", "Slow relay")
    home.hook(prompt("Fix the relay, it fails when it rains"))
    home.hook(edit())
    home.hook(stop(last_assistant_message="Fixed: the relay failed in rain because of a leak."))
    home.wait_settled()
    stored = home.rows("SELECT id, type, title FROM observations")
    log = home.layout.worker_log.read_text()
    for row in stored:
        assert f"observation #{row['id']} stored ({row['type']}): {row['title']}" in log
    assert stored


def test_the_shown_log_has_no_control_codes(home: Home) -> None:
    home.layout.create()
    home.layout.worker_log.write_text("a title\x1b[31m in red\x1b]0;window\x07 \x9b2J\u202e end\n")
    home.layout.hook_log.write_text("\x1b[2Jcleared\n")
    shown = home.command("worker", "logs").stdout
    assert shown == "hooks: cleared\nworker: a title in red]0;window 2J end\n"
    home.layout.worker_log.write_text("session s: \x1b[31mred\n")
    assert home.command("worker", "logs", "--session", "s").stdout == "session s: red\n"


def test_the_log_has_nothing_about_an_unknown_session(home: Home) -> None:
    missing = home.command("worker", "logs", "--session", "nobody")
    assert "CLAUDE_MEM_LOG_LEVEL DEBUG" in missing.stdout
    home.hook(prompt())
    home.wait_settled()
    unknown = home.command("worker", "logs", "--session", "nobody")
    assert unknown.returncode != 0 and "no session" in unknown.stderr


def test_a_line_break_in_a_session_id_does_not_forge_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_api(tmp_path / "data") as api, caplog.at_level(logging.DEBUG, "claude_mem.events"):
        body = {"contentSessionId": "s\n2026 forged", "prompt": "x", "project_dir": PROJECT_DIR}
        api.post_json(INIT, **body)
    assert len(caplog.messages) == 1 and "\n" not in caplog.messages[0]

"""Settings that change under a running worker: every part of it follows."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claude_mem.config import change_setting, find_setting
from claude_mem.server import client
from claude_mem.store.clock import iso
from claude_mem.worker.contexts import rendered_context
from tests.api import Api, open_api
from tests.conftest import Home
from tests.payloads import PROJECT_DIR

HOUR, DAY = 3_600_000, 86_400_000
RELOAD = "/api/settings/reload"
TOKEN = "ghp_" + "Zx9Y" * 10
LONG_ANSWER = """\
The lamp blinks twice because `lamp_timer` is started by `light()` and again by `on_wake()`.
`lamp_timer` has no guard against a second start, so both calls toggle the relay.
The relay driver debounces for 20 ms only, while the two starts are 80 ms apart.
Since the firmware of `relay_driver` 2.1 the debounce time can be set with `RELAY_DEBOUNCE_MS`.
"""


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with open_api(tmp_path / "data") as api:
        api.runner.run(api.worker.apply_settings(api.worker.settings))  # as the worker's start does
        api.add_turn("one", "Repair the lamp", "The lamp had a bent fuse.")
        yield api


def change(api: Api, name: str, value: str, route: str = RELOAD) -> dict[str, Any]:
    change_setting(api.layout.settings, find_setting(name), value)
    return api.post_json(route)


def forget(api: Api, **selection: Any) -> dict[str, Any]:
    preview = api.post_json("/api/forget", **selection)
    return api.post_json("/api/forget", confirm=preview["confirm"], **selection)


@pytest.mark.parametrize("route", [RELOAD, "/api/observer"])
def test_the_promised_time_to_undo_is_the_time_after_which_it_is_gone(api: Api, route: str) -> None:
    forget(api, session="one")
    change(api, "undo_hours", "2", route)
    (entry,) = api.get_json("/api/forgotten")["forgotten"]
    until = api.clock.ms + 2 * HOUR
    assert entry["until"] == iso(until)
    api.worker.housekeeping.tick(until)
    assert api.get_json("/api/forgotten")["forgotten"]
    api.worker.housekeeping.tick(until + 1)
    assert api.get_json("/api/forgotten")["forgotten"] == []


def test_raw_events_are_kept_for_the_new_number_of_days(api: Api) -> None:
    about = {"contentSessionId": "one", "tool_name": "Bash", "tool_input": {"command": "ls"}}
    api.post_json("/api/sessions/observations", **about)
    api.post_json("/api/sessions/summarize", contentSessionId="one")
    api.catch_up()
    raw = "SELECT tool_input FROM tool_events WHERE tool_name = 'Bash'"
    api.worker.housekeeping.tick(api.clock.ms + 2 * DAY)
    assert api.rows(raw)[0]["tool_input"] is not None
    change(api, "raw_days", "1")
    api.worker.housekeeping.tick(api.clock.ms + 2 * DAY)
    assert api.rows(raw)[0]["tool_input"] is None


def test_idle_turns_are_closed_after_the_new_time(api: Api) -> None:
    api.post_json("/api/sessions/init", contentSessionId="two", prompt="Wind the clock")
    assert api.worker.housekeeping.tick(api.clock.ms + 5 * 60_000) == 0
    change(api, "idle_minutes", "1")
    assert api.worker.housekeeping.tick(api.clock.ms + 5 * 60_000) == 1


def test_tools_of_the_new_skip_list_are_not_recorded(api: Api) -> None:
    about = {"contentSessionId": "one", "tool_name": "Lamp"}
    assert api.post_json("/api/sessions/observations", **about)["status"] == "queued"
    change(api, "skip_tools", "Lamp")
    assert api.post_json("/api/sessions/observations", **about)["status"] == "skipped"


def test_turns_are_distilled_with_the_new_verbosity(api: Api) -> None:
    def characters(session: str) -> int:
        before = len(narratives())
        api.add_turn(session, "Why does the lamp blink twice?", LONG_ANSWER)
        return len(narratives()) - before

    def narratives() -> str:
        return "".join(row["narrative"] or "" for row in api.rows("SELECT * FROM observations"))

    before = characters("two")
    change(api, "verbosity", "minimal")
    assert characters("three") < before


def test_a_text_that_is_allowed_now_is_not_redacted(api: Api) -> None:
    def prompts() -> str:
        return " ".join(row["prompt_text"] for row in api.rows("SELECT * FROM user_prompts"))

    api.post_json("/api/sessions/init", contentSessionId="two", prompt=f"Look up {TOKEN}")
    assert TOKEN not in prompts()
    change(api, "redact_allow", TOKEN)
    api.post_json("/api/sessions/init", contentSessionId="three", prompt=f"Look up {TOKEN}")
    assert TOKEN in prompts()


def test_the_context_has_the_new_size_also_where_it_was_rendered_ahead(api: Api) -> None:
    def injected() -> str:
        return api.get("/api/context/inject", project_dir=PROJECT_DIR).text

    assert "lamp" in injected()
    assert "lamp" in rendered_context(api.layout, PROJECT_DIR)
    change(api, "context_tokens", "0")
    assert rendered_context(api.layout, PROJECT_DIR) == ""
    assert injected() == ""
    change(api, "context_tokens", "1800")
    api.catch_up()
    assert "lamp" in injected()
    assert "lamp" in rendered_context(api.layout, PROJECT_DIR)


def test_another_embedder_is_used_at_once_and_the_same_stays_loaded(api: Api) -> None:
    before = api.worker.semantic_index
    change(api, "raw_days", "7")
    assert api.worker.semantic_index is before is not None
    change(api, "embedder", "none")
    assert api.worker.semantic_index is None
    assert api.get_json("/api/stats")["meaning"] is None
    change(api, "embedder", "static")
    assert api.get_json("/api/stats")["meaning"]["embedder"] == before.id


def test_the_observer_is_restarted_when_its_own_settings_change(api: Api) -> None:
    api.post_json("/api/observer")
    before = api.worker.observer
    change(api, "raw_days", "7")
    assert api.worker.observer is before  # its running work is not put back
    change(api, "daily_requests", "3")
    assert api.worker.observer is not before
    assert api.get_json("/api/observer")["today"]["requests_cap"] == 3


def test_a_value_that_cannot_be_used_is_named_and_replaced_by_the_default(api: Api) -> None:
    change(api, "raw_days", "7")
    api.layout.settings.write_text(json.dumps({"CLAUDE_MEM_RAW_DAYS": "soon"}))
    (problem,) = api.post_json(RELOAD)["problems"]
    assert problem.startswith("CLAUDE_MEM_RAW_DAYS='soon' (settings.json)")
    assert api.worker.settings.retention.raw_days == 30
    assert "CLAUDE_MEM_RAW_DAYS" in (api.layout.root / "trouble").read_text()


def test_the_environment_of_the_worker_still_wins_over_the_file(tmp_path: Path) -> None:
    with open_api(tmp_path / "data", CLAUDE_MEM_RAW_DAYS="5") as api:
        change(api, "raw_days", "7")
        assert api.worker.settings.retention.raw_days == 5


def shown(home: Home, name: str) -> str:
    answer = client.ask_worker(home.layout, "/api/settings")
    assert isinstance(answer, dict)
    settings: Any = answer["settings"]
    return next(str(row["value"]) for row in settings if row["name"] == name)


def test_the_command_makes_a_running_worker_follow(home: Home) -> None:
    home.start_worker()
    assert shown(home, "CLAUDE_MEM_UNDO_HOURS") == "24"
    changed = home.command("settings", "undo_hours", "2")
    assert (changed.returncode, changed.stdout) == (0, "CLAUDE_MEM_UNDO_HOURS = 2\n")
    assert shown(home, "CLAUDE_MEM_UNDO_HOURS") == "2"
    home.command("settings", "undo_hours", "--unset")
    assert shown(home, "CLAUDE_MEM_UNDO_HOURS") == "24"


def test_the_command_says_when_a_worker_must_be_restarted(home: Home) -> None:
    restart = "claude-mem worker restart"
    assert restart not in home.command("settings", "log_level", "DEBUG").stdout
    home.start_worker()
    assert restart in home.command("settings", "log_level", "INFO").stdout

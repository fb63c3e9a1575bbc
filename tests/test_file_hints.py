"""PreToolUse: what is known of a file before it is read or edited, if that is set."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claude_mem.agents.claude import FILE_HINTS
from claude_mem.install.hooks import EVENTS, events_for, hooked_events, hooks_in
from claude_mem.install.plugin import write_plugin
from claude_mem.install.settings_files import apply
from claude_mem.recall.file_hints import find_file_hint
from claude_mem.store.file_gotchas import Gotcha
from claude_mem.types import Distillate, Observation, Project, Summary
from tests import payloads
from tests.api import Api, open_api, record_header
from tests.conftest import Home
from tests.story import Story
from tests.test_hook_modules import CAPTURING, HINTING, loaded

PLAIN = {"continue": True, "suppressOutput": True}
LAMP = f"{payloads.PROJECT_DIR}/src/lamp.py"
NOTE = "moor() in lamp.py never waits for the tide: call tide.wait() before it"


def save(api: Api, text: str, observer: str = "person") -> None:
    project = Project(payloads.PROJECT_DIR, "harbor")
    note = Observation("discovery", title=text)
    api.worker.store.save_memory(project, payloads.PROJECT_DIR, note, observer).result()


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    monkeypatch.setattr("claude_mem.worker.hints.HINT_SECONDS", 60.0)
    with open_api(tmp_path / "data", CLAUDE_MEM_FILE_HINTS="yes") as opened:
        opened.add_turn("first", "Paint the boat of the pilot", "The boat is green.")
        save(opened, NOTE)
        yield opened


def before(api: Api, path: str = LAMP, session: str = "reading", name: str = "Read") -> Any:
    payload = payloads.tool(name, tool_input={"file_path": path}, session_id=session)
    payload = {**payload, "hook_event_name": "PreToolUse"}
    head = record_header(api.clock.ms, payloads.PROJECT_DIR, "PreToolUse")
    response = api.send("/hook/tool", head + payloads.as_bytes(payload))
    assert response.status_code == 200, response.text
    api.worker.store.write(lambda _: None).result()  # what was given is stored after the answer
    return response.json()


@pytest.mark.parametrize("name", ["Read", "Edit"])
def test_a_file_with_a_trap_is_announced_once_in_a_session(api: Api, name: str) -> None:
    body = before(api, name=name)
    assert body["hookSpecificOutput"]["hookEventName"] == "PreToolUse"
    text = body["hookSpecificOutput"]["additionalContext"]
    assert text.startswith("<claude-mem-context>\nKnown of src/lamp.py") and NOTE in text
    assert "permissionDecision" not in str(body)
    assert before(api) == PLAIN
    assert before(api, session="another") != PLAIN
    (first, _) = api.get_json("/api/hints")["hints"]
    assert first["words"] == ["lamp.py"]


def test_other_files_and_other_tools_get_nothing(api: Api) -> None:
    assert before(api, f"{payloads.PROJECT_DIR}/src/boat.py") == PLAIN
    assert before(api, "") == PLAIN
    assert api.send("/hook/tool", b"no record").status_code == 400


def test_what_the_context_held_or_is_replaced_is_not_told(api: Api) -> None:
    api.start_session(payloads.session_start(session_id="told"))
    api.catch_up()
    assert before(api, session="told") == PLAIN
    save(api, "moor() in lamp.py waits for the tide since May: do not call tide.wait() before it")
    text = before(api, session="later")["hookSpecificOutput"]["additionalContext"]
    assert "since May" in text and NOTE not in text


def test_traps_are_compared_without_what_their_turns_were_about() -> None:
    topic = "[asked: does the northern lamp burn bright at dusk, dawn and noon?; files: lamp.py]"
    traps = [
        Gotcha(2, 2, f"The relay needs oil {topic}", "", 0),
        Gotcha(1, 1, f"Fog hides gulls {topic}", "", 0),
    ]
    hint = find_file_hint("src/lamp.py", traps, f"- Swap fuses {topic}", frozenset())
    assert hint is not None
    assert [line.text.partition(" [")[0][14:] for line in hint.lines] == [
        "The relay needs oil", "Fog hides gulls",
    ]  # fmt: skip


def test_with_the_setting_off_nothing_is_given(tmp_path: Path) -> None:
    with open_api(tmp_path / "data") as api:
        save(api, NOTE)
        assert before(api) == PLAIN
        assert not api.layout.file_hints_flag.exists()


def test_a_draft_tells_no_trap_and_a_model_does(story: Story) -> None:
    trap = Observation(
        "discovery",
        title="moor() never waits",
        concepts=("gotcha",),
        files_modified=("lamp.py",),
    )
    other = Observation("change", title="Paint the boat", files_modified=("lamp.py",))
    for observer, expected in (("local", []), ("claude", ["moor() never waits"])):
        ids = {"session_id": observer, "prompt_id": f"p-{observer}"}
        story.tell(payloads.prompt(**ids), payloads.stop(**ids))
        job, turn = story.claim()
        distillate = Distillate(Summary(), (trap, other), observer=observer)
        assert story.store.finish_job(job, turn, distillate).result()
        project = story.store.find_project("harbor")
        rows = story.store.gotchas_of_file(project, "lamp.py")
        assert [row.title for row in rows] == expected
    assert story.store.gotchas_of_file(project, "boat.py") == []


# The hook


def test_the_hook_is_installed_only_with_the_setting(tmp_path: Path) -> None:
    path, launcher = tmp_path / "settings.json", tmp_path / "hook"
    path.write_text('{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x"}]}]}}')
    before_install = json.loads(path.read_text())
    apply(hooks_in(path, launcher, events_for(file_hints=False)).with_ours())
    assert FILE_HINTS.name not in hooked_events(path, launcher)
    apply(hooks_in(path, launcher, events_for(file_hints=True)).with_ours())
    assert set(hooked_events(path, launcher)) == {event.name for event in (*EVENTS, FILE_HINTS)}
    entry = json.loads(path.read_text())["hooks"]["PreToolUse"][-1]
    assert set(entry["matcher"].split("|")) >= {"Read", "Edit"}
    apply(hooks_in(path, launcher, events_for(file_hints=False)).with_ours())
    hooks = json.loads(path.read_text())["hooks"]
    assert hooks["PreToolUse"] == before_install["hooks"]["PreToolUse"]


def test_the_plugin_has_the_hook_only_with_the_setting(home: Home) -> None:
    home.layout.create()
    for file_hints in (True, False):
        directory = write_plugin(home.layout, events_for(file_hints=file_hints))
        (file,) = directory.rglob("hooks.json")
        assert ("PreToolUse" in json.loads(file.read_text())["hooks"]) is file_hints


def test_the_hook_spools_nothing_and_asks_only_while_it_is_set(home: Home) -> None:
    payload = {
        **payloads.tool("Read", tool_input={"file_path": LAMP}),
        "hook_event_name": "PreToolUse",
    }
    home.layout.create()
    home.layout.mark_hints(True, of_files=True)
    assert loaded(home, payload) == CAPTURING  # without a worker
    assert not [path for path in home.layout.spool.rglob("*") if path.is_file()]
    assert json.loads(home.hook(payload).stdout) == PLAIN
    assert "claude_mem.hook.response" in HINTING

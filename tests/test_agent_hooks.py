"""The hook as other agents run it: captured in their dialect, answered in their format."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claude_mem.worker.contexts import rendered_path
from claude_mem.worker.lock import WorkerLock
from tests import agent_payloads
from tests.conftest import Home, temporary_home, wait_until
from tests.payloads import PROJECT_DIR, prompt, session_start, stop
from tests.test_hook_modules import CAPTURING, loaded


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home with a worker and a memory of Claude Code."""
    with temporary_home(tmp_path_factory.mktemp("agents")) as home:
        for payload in (session_start(), prompt(), stop("The lamp needed a new fuse.")):
            home.hook(payload)
        home.wait_settled()
        wait_until(lambda: rendered_path(home.layout, PROJECT_DIR).exists(), "the rendered context")
        yield home


def run_hook(home: Home, dialect: str, kind: str, payload: Any, **environment: str) -> Any:
    done = subprocess.run(
        [home.layout.launcher, dialect, kind],
        input=json.dumps(payload).encode(),
        capture_output=True,
        env=home.env(**environment),
        timeout=60,
    )
    assert done.returncode == 0
    return json.loads(done.stdout)


def text_of(answer: dict[str, Any]) -> str:
    """The text that the answer gives the agent, in whatever format."""
    nested = answer.get("hookSpecificOutput", {})
    return str({**nested, **answer}.get("additionalContext") or answer.get("additional_context"))


@pytest.mark.parametrize("name", ["codex", "gemini", "qwen", "copilot", "opencode", "cursor"])
def test_what_claude_code_did_the_next_agent_is_told(shared: Home, name: str) -> None:
    kind, payload = agent_payloads.STORIES[name]()[0]
    answer = run_hook(shared, name, kind, payload)
    assert "The lamp needed a new fuse" in text_of(answer)
    assert ("<" in text_of(answer)) == (name != "gemini")


@pytest.mark.parametrize("name", ["codex", "gemini", "copilot", "cursor"])
def test_an_agent_is_told_without_a_worker_too(shared: Home, tmp_path: Path, name: str) -> None:
    with temporary_home(tmp_path) as home:
        source = rendered_path(shared.layout, PROJECT_DIR)
        rendered_path(home.layout, PROJECT_DIR).write_bytes(source.read_bytes())
        lock = WorkerLock.acquire(home.layout)  # no worker can start
        assert lock is not None
        try:
            kind, payload = agent_payloads.STORIES[name]()[0]
            cold = run_hook(home, name, kind, payload)
        finally:
            lock.release()
    assert "The lamp needed a new fuse" in text_of(cold)
    warm = run_hook(shared, name, kind, payload)
    warm.pop("systemMessage", None)
    assert cold == warm


def test_an_agent_that_runs_the_hook_of_claude_code_is_captured_under_its_name(
    shared: Home,
) -> None:
    story = agent_payloads.copilot("snake")
    answers = [
        run_hook(shared, "claude", kind, payload, COPILOT_CLI="1") for kind, payload in story
    ]
    assert answers == [{}] * len(story)  # Copilot's own hook gives it the context
    shared.wait_settled()
    (session,) = shared.rows(
        "SELECT * FROM sdk_sessions WHERE content_session_id = ?", story[0][1]["session_id"]
    )
    assert session["dialect"] == "copilot"


def test_hooks_of_other_agents_load_one_module_more(shared: Home) -> None:
    payload = {**agent_payloads.codex()[2][1], "session_id": "modules"}
    assert loaded(shared, payload, "codex") == CAPTURING | {"claude_mem.hook.other_agents"}


def test_a_payload_that_cannot_be_read_is_no_error_for_the_agent(shared: Home) -> None:
    done = subprocess.run(
        [shared.layout.launcher, "gemini", "Stop"],
        input=b"",
        capture_output=True,
        env=shared.env(),
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, b"{}\n")

"""What install asks: which observer to use, and whether to import past sessions."""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from claude_mem.agents import all_agents
from claude_mem.cli.observer_recommendation import recommendation
from claude_mem.config import Settings, load_settings
from tests.conftest import Home, wait_until
from tests.terminal import Terminal


@pytest.fixture
def used(home: Home) -> Home:
    """A home in which Claude Code was used before, with one session in its transcripts."""
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    lines = [
        line("user", "u1", "Make the harbour light blink twice"),
        line("assistant", "a1", [{"type": "text", "text": "The lamp was wired to relay_2."}]),
    ]
    file = home.path / ".claude" / "projects" / "-home-dev-harbor" / "past.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return home


def line(kind: str, uuid: str, content: object) -> dict[str, object]:
    return {
        "type": kind,
        "uuid": uuid,
        "sessionId": "past",
        "cwd": "/home/dev/harbor",
        "timestamp": "2026-01-05T10:00:00.000Z",
        "message": {"role": kind, "id": uuid, "content": content},
    }


def remembered(home: Home) -> int:
    return len(home.rows("SELECT * FROM session_summaries"))


BY_NAME = {agent.name: agent for agent in all_agents()}
HOOK_FILES = {"codex": ".codex/hooks.json", "gemini": ".gemini/settings.json"}
LAUNCHER = ".claude-mem/hook"


@pytest.fixture
def terminal(used: Home, request: pytest.FixtureRequest) -> Iterator[Terminal]:
    if "agents" in request.fixturenames:
        for name in HOOK_FILES:
            (used.path / BY_NAME[name].home).mkdir()
    command = [sys.executable, "-m", "claude_mem", "install", "--scope", "user"]
    opened = Terminal(command, used.path, used.env())
    yield opened
    opened.close()


def answer(terminal: Terminal, question: str, keys: str) -> None:
    wait_until(lambda: terminal.shows(question))
    terminal.press(keys)


@pytest.mark.parametrize(("keys", "sessions"), [("\n", 1), ("y\n", 1), ("n\n", 0)])
def test_a_user_is_asked_whether_to_import_past_sessions(
    used: Home, terminal: Terminal, keys: str, sessions: int
) -> None:
    answer(terminal, "settings.json?", "\n")
    answer(terminal, "Store it?", "\n")
    answer(terminal, "Import 1 past session of Claude Code", keys)
    answer(terminal, "Which observer should summarise sessions?", "\n")
    wait_until(lambda: terminal.process.poll() is not None)
    assert terminal.process.returncode == 0
    assert remembered(used) == sessions


@pytest.mark.parametrize(("keys", "records"), [("\n", 1), ("n\n", 0)])
def test_the_user_is_asked_whether_to_store_the_record(
    used: Home, terminal: Terminal, keys: str, records: int
) -> None:
    answer(terminal, "settings.json?", "\n")
    answer(terminal, "The text that you and the agent write in each turn", keys)
    answer(terminal, "Import 1 past session of Claude Code", "y\n")
    answer(terminal, "Which observer should summarise sessions?", "\n")
    wait_until(lambda: terminal.process.poll() is not None)
    assert terminal.process.returncode == 0
    assert remembered(used) == 1
    assert len(used.rows("SELECT * FROM turn_records")) == records
    value = "0" if records == 0 else "forever"
    assert f"RECORD_DAYS={value}" in used.command("settings", "RECORD_DAYS").stdout


@pytest.mark.parametrize(
    ("keys", "agents"), [(("\n", "\n"), "codex gemini"), (("n\n", "y\n"), "gemini")]
)
def test_the_user_is_offered_the_agents_that_are_there(
    used: Home, terminal: Terminal, keys: tuple[str, str], agents: str
) -> None:
    answer(terminal, "settings.json?", "\n")
    for title, key in zip(("Codex", "Gemini CLI"), keys, strict=True):
        answer(terminal, f"Add it to {title} as well?", key)
    answer(terminal, "Store it?", "\n")
    answer(terminal, "Import 1 past session of Claude Code", "n\n")
    answer(terminal, "Which observer should summarise sessions?", "\n")
    wait_until(lambda: terminal.process.poll() is not None)
    assert terminal.process.returncode == 0
    attached = [name for name, file in HOOK_FILES.items() if LAUNCHER in text_of(used, file)]
    assert attached == agents.split()


def text_of(home: Home, name: str) -> str:
    path = home.path / name
    return path.read_text() if path.exists() else ""


def test_claude_is_recommended_with_its_cost_where_the_user_is_logged_in(used: Home) -> None:
    pytest.importorskip("claude_agent_sdk", reason="without it claude cannot be used")
    assert used.command("install", "--scope", "user", "--yes", "--import").returncode == 0
    command = used.path / "claude"
    command.write_text("#!/bin/sh\nexit 0\n")
    command.chmod(0o700)
    used.environment["CLAUDE_CODE_PATH"] = str(command)
    settings = load_settings(used.env())
    assert recommendation(settings, used.env()) == ""
    (used.path / ".claude.json").write_text('{"oauthAccount": {"emailAddress": "dev@localhost"}}')
    advice = recommendation(settings, used.env())
    assert advice.startswith("Recommended: claude.")
    assert re.search(r"about \d,000 tokens on a day with sessions \(1 turns?\), \$0\.0\d", advice)
    assert recommendation(replace_observer(settings), used.env()) == ""


def replace_observer(settings: Settings) -> Settings:
    return replace(settings, observer=replace(settings.observer, kind="claude"))


def test_a_script_gets_the_command_that_turns_the_record_off(used: Home) -> None:
    done = used.command("install", "--scope", "user", "--yes", "--import")
    assert "The text that you and the agent write in each turn" in done.stdout
    assert "claude-mem settings RECORD_DAYS 0" in done.stdout
    assert len(used.rows("SELECT * FROM turn_records")) == 1


def test_a_script_is_not_asked_and_gets_the_command(used: Home) -> None:
    done = used.command("install", "--scope", "user", "--yes")
    assert "To import 1 past session: claude-mem import" in done.stdout
    assert remembered(used) == 0


def test_a_script_can_import_past_sessions(used: Home) -> None:
    done = used.command("install", "--scope", "user", "--yes", "--import")
    assert "Imported 1 turn of 1 session" in done.stdout
    assert remembered(used) == 1


def test_without_past_sessions_they_are_not_mentioned(home: Home) -> None:
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    done = home.command("install", "--scope", "user", "--yes")
    assert done.returncode == 0 and "past session" not in done.stdout


def test_a_dry_run_imports_nothing(used: Home) -> None:
    done = used.command("install", "--scope", "user", "--dry-run", "--import")
    assert done.returncode == 0
    assert not Path(used.layout.database).exists()


def test_an_unknown_observer_is_refused(used: Home) -> None:
    done = used.command("install", "--scope", "user", "--yes", "--observer", "oracle")
    assert done.returncode == 2 and "oracle" in done.stderr


def test_the_chosen_observer_is_stored_in_the_settings(used: Home) -> None:
    done = used.command("install", "--scope", "user", "--yes", "--observer", "local")
    assert done.returncode == 0
    shown = used.command("settings", "OBSERVER")
    assert "local" in shown.stdout


def test_without_claude_code_install_names_the_agents_that_are_there(home: Home) -> None:
    home.environment |= {"CLAUDE_CODE_PATH": "/no/such/claude", "PATH": "/usr/bin:/bin"}
    done = home.command("install", "--yes")
    assert done.returncode == 1 and "was found:" not in done.stderr
    (home.path / ".codex").mkdir()
    done = home.command("install", "--yes")
    assert done.returncode == 1
    assert "Codex was found: claude-mem install --agent codex" in done.stderr

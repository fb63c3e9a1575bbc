"""What install offers beside attaching: the memory of past sessions, and who distils."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

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


@pytest.fixture
def terminal(used: Home) -> Iterator[Terminal]:
    command = [sys.executable, "-m", "claude_mem", "install", "--scope", "user"]
    opened = Terminal(command, used.path, used.env())
    yield opened
    opened.close()


def answer(terminal: Terminal, question: str, keys: str) -> None:
    wait_until(lambda: terminal.shows(question))
    terminal.press(keys)


@pytest.mark.parametrize(("keys", "sessions"), [("\n", 1), ("y\n", 1), ("n\n", 0)])
def test_a_person_is_asked_whether_to_remember_the_past(
    used: Home, terminal: Terminal, keys: str, sessions: int
) -> None:
    answer(terminal, "settings.json?", "\n")
    answer(terminal, "Who shall distil", "\n")
    answer(terminal, "1 past session of Claude Code", keys)
    wait_until(lambda: terminal.process.poll() is not None)
    assert terminal.process.returncode == 0
    assert remembered(used) == sessions


def test_a_script_is_not_asked_and_told_how(used: Home) -> None:
    done = used.command("install", "--scope", "user", "--yes")
    assert "1 past session can be remembered: claude-mem import" in done.stdout
    assert remembered(used) == 0


def test_a_script_can_ask_for_the_past(used: Home) -> None:
    done = used.command("install", "--scope", "user", "--yes", "--import")
    assert "Imported 1 turn of 1 session" in done.stdout
    assert remembered(used) == 1


def test_where_there_is_no_past_nothing_is_said_of_it(home: Home) -> None:
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    done = home.command("install", "--scope", "user", "--yes")
    assert done.returncode == 0 and "past session" not in done.stdout


def test_a_dry_run_imports_nothing(used: Home) -> None:
    done = used.command("install", "--scope", "user", "--dry-run", "--import")
    assert done.returncode == 0
    assert not Path(used.layout.database).exists()


def test_an_observer_that_there_is_not_is_refused(used: Home) -> None:
    done = used.command("install", "--scope", "user", "--yes", "--observer", "oracle")
    assert done.returncode == 2 and "oracle" in done.stderr


def test_the_observer_that_is_chosen_is_kept_in_the_settings(used: Home) -> None:
    done = used.command("install", "--scope", "user", "--yes", "--observer", "local")
    assert done.returncode == 0
    shown = used.command("settings", "OBSERVER")
    assert "local" in shown.stdout

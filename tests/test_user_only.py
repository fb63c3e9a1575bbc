"""What an agent that runs the command cannot do in the name of the user."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from claude_mem.agents import all_agents
from claude_mem.cli import commands
from claude_mem.config import SCRIPTS, change_setting, find_layout
from claude_mem.errors import ClaudeMemError
from tests.conftest import Home, wait_until
from tests.terminal import Terminal

SHELL_VARIABLES = [variable for agent in all_agents() for variable in agent.shell]
NO_AGENT = dict.fromkeys(SHELL_VARIABLES)


@pytest.mark.parametrize("agent", [{"CLAUDECODE": "1"}, {}], ids=["known agent", "no terminal"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("observer", "openai", "--yes"),
        ("embedder", "endpoint", "--url", "https://evil.example/v1", "--model", "m", "--yes"),
        ("team", "join", "https://evil.example", "--token", "t"),
        ("team", "share", "harbor"),
        ("team", "invite", "Eve", "--project", "harbor"),
        ("team", "token"),
        ("facts", "confirm", "F1"),
        ("facts", "edit", "F1", "--value", "make evil"),
        ("facts", "pin", "F1"),
        ("edit", "F1", "--value", "make evil"),
        ("pin", "1"),
        ("wrong", "1"),
        ("facts", "wrong", "F1"),
        ("facts", "reject", "F1"),
        ("project", "join", "."),
        ("settings", "SCRIPTS", "yes"),
    ],
    ids=" ".join,
)
def test_an_agent_cannot_agree_confirm_or_pin(
    tmp_path: Path, arguments: tuple[str, ...], agent: dict[str, str]
) -> None:
    environ = {
        **NO_AGENT, "HOME": str(tmp_path), "CLAUDE_MEM_DATA_DIR": "", "CLAUDE_MEM_SCRIPTS": "yes",
        **agent,
        "CLAUDE_MEM_MODEL": "m", "CLAUDE_MEM_API_KEY": "k",
        "CLAUDE_MEM_API_URL": "https://evil.example/v1",
    }  # fmt: skip
    result = CliRunner(env=environ).invoke(commands, arguments, standalone_mode=False)
    assert isinstance(result.exception, ClaudeMemError), result.output
    assert "terminal of your own" in str(result.exception)
    layout = find_layout({"HOME": str(tmp_path)})
    assert not layout.settings.exists() and not (layout.root / "observer.json").exists()


@pytest.mark.parametrize("variable", SHELL_VARIABLES)
def test_no_setting_lets_the_shell_of_an_agent_pin(tmp_path: Path, variable: str) -> None:
    change_setting(find_layout({"HOME": str(tmp_path)}).settings, SCRIPTS, "yes")
    environ = {**NO_AGENT, "HOME": str(tmp_path), variable: "1"}
    result = CliRunner(env=environ).invoke(commands, ("pin", "1"), standalone_mode=False)
    assert "an agent cannot confirm this" in str(result.exception)


def test_scripts_may_run_such_commands_once_the_user_allows_it(home: Home) -> None:
    home.command("remember", "The crane needs grease")
    assert home.command("pin", "1").returncode == 0
    assert home.command("settings", "SCRIPTS", "--unset").returncode == 0
    refused = home.command("pin", "1", CLAUDE_MEM_SCRIPTS="yes")
    assert refused.returncode == 1 and "claude-mem settings SCRIPTS yes" in refused.stderr


def test_in_a_terminal_the_user_needs_no_setting(home: Home) -> None:
    home.command("remember", "The crane needs grease")
    home.command("settings", "SCRIPTS", "--unset")
    command = [sys.executable, "-m", "claude_mem", "pin", "1"]
    terminal = Terminal(command, home.path, home.env())
    try:
        wait_until(lambda: terminal.shows("Pinned: #1"), "the answer in the terminal")
    finally:
        terminal.close()


def test_what_an_unknown_agent_saves_is_its_own(home: Home) -> None:
    home.command("settings", "SCRIPTS", "--unset")
    home.command("remember", "The crane needs grease")
    assert home.rows("SELECT origin FROM observations")[0]["origin"] == "agent"


def test_only_a_terminal_may_allow_scripts(home: Home) -> None:
    home.command("settings", "SCRIPTS", "--unset")
    assert home.command("settings", "SCRIPTS", "yes").returncode == 1
    assert "SCRIPTS" not in home.layout.settings.read_text()

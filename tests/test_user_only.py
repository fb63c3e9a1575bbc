"""What an agent that runs the command cannot do in the name of the user."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from claude_mem.cli import commands
from claude_mem.config import find_layout
from claude_mem.errors import ClaudeMemError


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
    ],
    ids=" ".join,
)
def test_an_agent_cannot_agree_confirm_or_pin(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    environ = {
        "HOME": str(tmp_path), "CLAUDECODE": "1", "CLAUDE_MEM_DATA_DIR": "",
        "CLAUDE_MEM_MODEL": "m", "CLAUDE_MEM_API_KEY": "k",
        "CLAUDE_MEM_API_URL": "https://evil.example/v1",
    }  # fmt: skip
    result = CliRunner(env=environ).invoke(commands, arguments, standalone_mode=False)
    assert isinstance(result.exception, ClaudeMemError), result.output
    assert "terminal of your own" in str(result.exception)
    layout = find_layout({"HOME": str(tmp_path)})
    assert not layout.settings.exists() and not (layout.root / "observer.json").exists()

"""claude-mem doctor finds other installations of claude-mem, and does not change them."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.conftest import Home


def others(home: Home, **environment: str) -> list[tuple[str, str | None]]:
    """What doctor reports about other installations, and the remedies."""
    rows = json.loads(home.command("doctor", "--json", **environment).stdout)
    checks = [row for row in rows if row["check"] == "another claude-mem"]
    assert {row["verdict"] for row in checks} <= {"warning"}
    return [(row["found"], row["mend"]) for row in checks]


def script(path: Path, first_line: str) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(f"{first_line}\n")
    path.chmod(0o755)
    return path


def on_path(home: Home, *commands: Path) -> str:
    return os.pathsep.join([*(str(c.parent) for c in commands), home.environment["PATH"]])


def test_a_command_of_another_claude_mem_is_found_with_what_removes_it(installed: Home) -> None:
    module = script(installed.path / "lib/node_modules/claude-mem/cli.js", "#!/usr/bin/env node")
    link = installed.path / "npm" / "claude-mem"
    link.parent.mkdir()
    link.symlink_to(module)
    snake = script(installed.path / "bin" / "claude-mem", "#!/opt/other/bin/python3.12")
    ours = script(
        installed.path / "venv" / "claude-mem",
        "#!/opt/x/bin/python3\nimport sys\nfrom claude_mem.__main__ import main",
    )
    strange = script(installed.path / "strange" / "claude-mem", "#!/bin/sh")
    assert others(installed, PATH=on_path(installed, link, snake, ours, strange)) == [
        (f"{link} is another program and comes first on the PATH",
         "npm uninstall --global claude-mem"),
        (f"{snake} is another program", "/opt/other/bin/python3.12 -m pip uninstall claude-mem"),
        (f"{ours} is another claude-mem", "/opt/x/bin/python3 -m pip uninstall claudemem"),
        (f"{strange} is another program",
         f"export PATH={Path(sys.executable).parent}:$PATH"),
    ]  # fmt: skip


def test_our_own_command_is_no_other_wherever_it_lies_or_is_linked(installed: Home) -> None:
    ours = Path(sys.executable).parent / "claude-mem"
    assert ours.exists()
    link = installed.path / "linked" / "claude-mem"
    link.parent.mkdir()
    link.symlink_to(ours)
    copied = script(installed.path / "copied" / "claude-mem", f"#!{sys.executable}")
    shim = script(installed.path / "shims" / "claude-mem", "#!/usr/bin/env bash")
    assert others(installed, PATH=on_path(installed, ours, link, copied, shim)) == []


@pytest.mark.parametrize("moved", [False, True], ids=["~/.claude", "CLAUDE_CONFIG_DIR"])
def test_a_plugin_of_another_claude_mem_is_found(installed: Home, moved: bool) -> None:
    directory = installed.path / ("elsewhere" if moved else ".claude")
    environment = {"CLAUDE_CONFIG_DIR": str(directory)} if moved else {}
    names = ("claude-mem@thedotmack", "claudemem@claudemem", "memo@claude-mem")
    plugins = directory / "plugins" / "installed_plugins.json"
    plugins.parent.mkdir(parents=True)
    plugins.write_text(json.dumps({"version": 2, "plugins": {name: [] for name in names}}))
    assert others(installed, **environment) == [
        ("the plugin claude-mem@thedotmack is another claude-mem",
         "claude plugin uninstall claude-mem@thedotmack")
    ]  # fmt: skip
    settings = directory / "settings.json"
    content = json.loads(settings.read_text()) if settings.exists() else {}
    settings.write_text(json.dumps(content | {"enabledPlugins": {"claude-mem@thedotmack": False}}))
    assert others(installed, **environment) == []
    plugins.unlink()
    settings.write_text(json.dumps(content | {"enabledPlugins": {"claude-mem@fork": True}}))
    assert [remedy for _, remedy in others(installed, **environment)] == [
        "claude plugin uninstall claude-mem@fork"
    ]


def test_hooks_of_another_claude_mem_are_found_and_ours_and_the_persons_are_not(
    installed: Home,
) -> None:
    path = installed.path / ".claude" / "settings.json"
    content = json.loads(path.read_text())
    assert others(installed) == []
    root = "/home/dev/.claude/plugins/marketplaces/thedotmack/claude-mem"
    for event, command in (
        ("Stop", {"command": f"bun {root}/plugin/scripts/worker-service.cjs hook summarize"}),
        ("PreToolUse", {"command": "node", "args": [f"{root}/plugin/scripts/save-hook.js"]}),
        ("Notification", {"command": "cat ~/claude-mem-notes.txt"}),
        ("Notification", {"command": "node /home/dev/tools/plugin/scripts/notify.js"}),
        ("Stop", {"command": "node /home/dev/claude-mem/tools/lint-hook.js"}),
    ):
        content["hooks"].setdefault(event, []).append({"hooks": [{"type": "command", **command}]})
    path.write_text("// mine\n" + json.dumps(content))
    ((detail, remedy),) = others(installed)
    assert detail.startswith(f"2 hooks in {path} run another claude-mem: bun {root}")
    assert remedy == f"delete them from {path}"


def test_a_list_of_plugins_that_makes_no_sense_names_nobody(installed: Home) -> None:
    path = installed.path / ".claude" / "plugins" / "installed_plugins.json"
    path.parent.mkdir()
    for text in ("{broken", "[]", '{"plugins": 3}', '{"plugins": {"x": 1}}', ""):
        path.write_text(text)
        assert others(installed) == []

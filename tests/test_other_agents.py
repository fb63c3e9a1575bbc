"""claude-mem install --agent, uninstall and doctor over settings of every kind, without clients."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from claude_mem.agents import installable_agents
from claude_mem.agents.agent import Agent, AgentEvent
from claude_mem.config import Layout
from claude_mem.errors import SettingsError
from claude_mem.install import changed_files, jsonc, other_agents
from claude_mem.install.agent_files import agent_files
from claude_mem.install.launcher import write_launcher
from claude_mem.install.other_agents import Attachment
from claude_mem.install.settings_files import SettingsFile
from claude_mem.install.toml_table import TomlTable
from tests.conftest import Home, temporary_home
from tests.rights import drop_file_privileges

INSTALLABLE = installable_agents()
NAMES = [agent.name for agent in INSTALLABLE]
OTHER = {"hooks": [{"type": "command", "command": "notify-send done"}]}
JSON_TEXTS = {
    "empty": "",
    "an empty object": "{}",
    "on one line": '{"theme": "dark", "hooks": {}}',
    "others' hooks": json.dumps(
        {"version": 1, "hooks": {"Stop": [OTHER], "stop": [{"command": "notify-send done"}],
                                 "AfterAgent": [OTHER], "post_run_command": [{"command": "x"}]},
         "mcpServers": {"other": {"command": "x"}}, "mcp": {"other": {"command": ["x"]}}},
        indent=2,
    ),
    "unknown keys": json.dumps({"x": {"y": [1, {"z": None}]}}, indent=4) + "\n",
    "comments": '// mine\n{\n  // why\n  "hooks": {\n    "Stop": [ // keep\n      '
    '{"hooks": [{"type": "command", "command": "x"}]} // last\n    ]\n  } /* end */\n}\n',
    "windows line ends": '{\r\n  "theme": "dark"\r\n}\r\n',
}  # fmt: skip
TOML_TEXTS = {
    "empty": "",
    "settings": 'model = "a"\n# mine\n[mcp_servers.other]\ncommand = "x"\n',
    "no line end": '[profiles.x]\nmodel = "b" # why',
}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "data")
    layout.create()
    write_launcher(layout)
    return layout


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "PATH": ""}


def attachment(
    agent: Agent, layout: Layout, environ: dict[str, str], scope: str = "user"
) -> Attachment:
    return Attachment(agent, scope, layout, environ, Path(environ["HOME"]) / "project")


def texts_for(file: SettingsFile) -> dict[str, str]:
    if file.content is not None:
        return {}
    return TOML_TEXTS if file.table is not None else JSON_TEXTS


def cases() -> Iterator[Any]:
    root = Layout(Path("/data"))
    for agent in INSTALLABLE:
        for number, file in enumerate(agent_files(agent, "user", root, {}, Path("/p"))):
            for name in texts_for(file):
                yield pytest.param(agent, number, name, id=f"{agent.name}-{file.path.name}-{name}")


@pytest.mark.parametrize(("agent", "number", "name"), list(cases()))
def test_our_entries_come_and_go_and_everything_else_stays(
    agent: Agent, number: int, name: str, layout: Layout, environ: dict[str, str]
) -> None:
    attached = attachment(agent, layout, environ)
    file = attached.files[number]
    text = texts_for(file)[name]
    file.path.parent.mkdir(parents=True, exist_ok=True)
    file.path.write_bytes(text.encode())
    assert not file.has_any()

    attached.install()
    after = file.path.read_bytes().decode()
    assert attached.missing() == []
    assert contained(values(file, text), values(file, after))
    assert attached.changes() == []  # installing again changes nothing
    assert [line for line in comments(text) if line not in after] == []

    # After another change only our entries go: nothing of the user's is restored or lost.
    file.path.write_bytes(after.encode() + b"\n")
    other_agents.detach_agent(agent, layout, environ)
    assert values(file, file.path.read_text()) == values(file, text or "")
    assert [line for line in comments(text) if line not in file.path.read_text()] == []
    assert not attached.is_attached()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scope", ["user", "project"])
def test_files_that_were_not_there_are_gone_again(
    name: str, scope: str, layout: Layout, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (agent,) = (agent for agent in INSTALLABLE if agent.name == name)
    project = Path(environ["HOME"]) / "project"
    project.mkdir(parents=True)
    monkeypatch.chdir(project)
    attached = attachment(agent, layout, environ, scope)
    attached.install()
    paths = [file.path for file in attached.files]
    assert all(path.exists() for path in paths)
    assert scope == "user" or all(path.is_relative_to(project) for path in paths)
    monkeypatch.chdir("/")  # install recorded where they are
    other_agents.detach_agent(agent, layout, environ)
    assert not any(path.exists() for path in paths)
    assert changed_files.read_records(layout) == []


def values(file: SettingsFile, text: str) -> Any:
    if file.table is not None:
        return tomllib.loads(text)
    value = jsonc.parse(text if text.strip() else "{}").value
    assert isinstance(value, dict)
    # What install adds where it is missing stays: the client needs it.
    return {name: inner for name, inner in value.items() if name != "version"}


def contained(before: Any, after: Any) -> bool:
    if isinstance(before, dict):
        return all(name in after and contained(before[name], after[name]) for name in before)
    if isinstance(before, list):
        return all(contained(a, b) for a, b in zip(before, after, strict=False))
    return bool(before == after)


def comments(text: str) -> list[str]:
    return re.findall(r"//.*|/\*.*?\*/|#.*", text)


def test_a_file_that_cannot_be_parsed_is_not_changed(
    layout: Layout, environ: dict[str, str]
) -> None:
    for agent in INSTALLABLE:
        attached = attachment(agent, layout, environ)
        for file in attached.files:
            if file.content is not None:
                continue
            file.path.parent.mkdir(parents=True, exist_ok=True)
            file.path.write_text("{ this is [ neither")
            with pytest.raises(SettingsError, match="not changed"):
                attached.install()
            assert file.path.read_text() == "{ this is [ neither"
            file.path.unlink()


def test_a_server_of_the_same_name_that_is_not_ours_stays(
    layout: Layout, environ: dict[str, str]
) -> None:
    (codex,) = (agent for agent in INSTALLABLE if agent.name == "codex")
    attached = attachment(codex, layout, environ)
    config = attached.files[1].path
    config.parent.mkdir(parents=True)
    config.write_text('[mcp_servers.claude-mem]\ncommand = "another"\n')
    with pytest.raises(SettingsError, match="has another"):
        attached.install()
    other_agents.detach_agent(codex, layout, environ)
    assert config.read_text() == '[mcp_servers.claude-mem]\ncommand = "another"\n'


def test_a_command_that_the_user_added_to_our_entry_stays(
    layout: Layout, environ: dict[str, str]
) -> None:
    (codex,) = (agent for agent in INSTALLABLE if agent.name == "codex")
    attached = attachment(codex, layout, environ)
    attached.install()
    hooks = attached.files[0].path
    content = json.loads(hooks.read_text())
    own = {"type": "command", "command": "notify-send done"}
    content["hooks"]["Stop"][0]["hooks"].append(own)
    hooks.write_text(json.dumps(content, indent=2))
    assert attached.changes() == []
    other_agents.detach_agent(codex, layout, environ)
    assert json.loads(hooks.read_text()) == {"hooks": {"Stop": [{"hooks": [own]}]}}


def test_entries_of_an_older_version_are_refreshed(layout: Layout, environ: dict[str, str]) -> None:
    for name in ("gemini", "opencode"):
        (agent,) = (agent for agent in INSTALLABLE if agent.name == name)
        attached = attachment(agent, layout, environ)
        attached.install()
        path = attached.files[0].path
        current = path.read_text()
        older = current.replace("UserPromptSubmit", "OldKind")
        path.write_text(older)
        assert other_agents.refresh(layout, environ) == [path]
        assert path.read_text() == current
        assert other_agents.refresh(layout, environ) == []


def test_entries_that_the_user_removed_are_not_brought_back(
    layout: Layout, environ: dict[str, str]
) -> None:
    (gemini,) = (agent for agent in INSTALLABLE if agent.name == "gemini")
    attached = attachment(gemini, layout, environ)
    attached.install()
    attached.files[0].path.write_text("{}")
    assert other_agents.refresh(layout, environ) == []
    assert attached.files[0].path.read_text() == "{}"


def test_hooks_for_events_that_are_not_used_any_more_are_removed(
    layout: Layout, environ: dict[str, str]
) -> None:
    (gemini,) = (agent for agent in INSTALLABLE if agent.name == "gemini")
    older = replace(gemini, events=(*gemini.events, AgentEvent("PreCompress", "PreCompact")))
    attachment(older, layout, environ).install()
    attached = attachment(gemini, layout, environ)
    path = attached.files[0].path
    assert "PreCompress" in json.loads(path.read_text())["hooks"]
    assert other_agents.refresh(layout, environ) == [path]
    assert "PreCompress" not in json.loads(path.read_text())["hooks"]
    assert attached.missing() == [] and attached.changes() == []


def test_what_the_user_changed_between_two_installs_outlives_the_uninstall(
    layout: Layout, environ: dict[str, str]
) -> None:
    (qwen,) = (agent for agent in INSTALLABLE if agent.name == "qwen")
    attached = attachment(qwen, layout, environ)
    path = attached.files[0].path
    path.parent.mkdir(parents=True)
    path.write_text('{"theme": "light"}')
    attached.install()
    content = json.loads(path.read_text())
    del content["hooks"]["Stop"]
    path.write_text(json.dumps({**content, "theme": "dark"}))
    attached.install()
    other_agents.detach_agent(qwen, layout, environ)
    assert json.loads(path.read_text()) == {"theme": "dark"}


@pytest.mark.parametrize(
    ("command", "is_ours"),
    [
        ("timeout 5 {launcher} gemini Stop", True),
        ("'{launcher}' gemini Stop", True),
        ("{launcher}", True),
        ("{launcher}-of-mine", False),
        ("{launcher}/other", False),
        ("/elsewhere{launcher}", False),
    ],
)
def test_a_hook_is_ours_if_it_runs_the_launcher(
    command: str, is_ours: bool, layout: Layout, environ: dict[str, str]
) -> None:
    (gemini,) = (agent for agent in INSTALLABLE if agent.name == "gemini")
    attached = attachment(gemini, layout, environ)
    path = attached.files[0].path
    path.parent.mkdir(parents=True)
    hook = {"hooks": [{"type": "command", "command": command.format(launcher=layout.launcher)}]}
    path.write_text(json.dumps({"hooks": {"SessionEnd": [hook]}}))
    assert attached.is_attached() is is_ours
    other_agents.detach_agent(gemini, layout, environ)
    assert (command.format(launcher=layout.launcher) in path.read_text()) is not is_ours


def test_a_broken_file_is_a_failure_of_the_uninstall_only_if_it_names_the_launcher(
    layout: Layout, environ: dict[str, str]
) -> None:
    (cursor,) = (agent for agent in INSTALLABLE if agent.name == "cursor")
    path = attachment(cursor, layout, environ).files[0].path
    path.parent.mkdir(parents=True)
    path.write_text("{ broken")
    assert other_agents.detach_agent(cursor, layout, environ) == []
    path.write_text(f"{{ broken {layout.launcher}")
    (outcome,) = other_agents.detach_agent(cursor, layout, environ)
    assert outcome.failed and str(path) in outcome.text


def test_a_rules_file_is_written_only_on_request(layout: Layout, environ: dict[str, str]) -> None:
    (windsurf,) = (agent for agent in INSTALLABLE if agent.rules)
    plain = attachment(windsurf, layout, environ)
    plain.install()
    rules = plain.project / windsurf.rules
    assert not rules.exists()
    asked = Attachment(windsurf, "user", layout, environ, plain.project, with_rules=True)
    asked.install()
    assert "claude-mem" in rules.read_text()
    other_agents.detach_agent(windsurf, layout, environ)
    assert not rules.exists()


def test_a_table_is_removed_with_its_values_and_nothing_else() -> None:
    table = TomlTable(Path("c"), "mcp_servers", "claude-mem", Path("/data/mcp"))
    before = 'model = "a"\n\n[mcp_servers.other]\ncommand = "x"\n'
    after = table.with_table(before) + "\n# mine\n[profiles.x]\nmodel = 'b'\n"
    assert table.without_table(after) == before + "\n# mine\n[profiles.x]\nmodel = 'b'\n"
    with_env = table.with_table(before) + '[mcp_servers.claude-mem.env]\nA = "b"\n'
    assert table.without_table(with_env) == before


# The commands


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A user of Codex and Gemini CLI, without Claude Code."""
    with temporary_home(tmp_path_factory.mktemp("machine")) as home:
        home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
        home.environment["PATH"] = "/usr/bin:/bin"
        for name in (".codex", ".gemini"):
            (home.path / name).mkdir()
        yield home


def test_the_commands_attach_check_and_detach_what_is_there(machine: Home) -> None:
    hooks = machine.path / ".codex" / "hooks.json"
    planned = machine.command("install", "--agent", "all", "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert f"+++ {hooks}" in planned.stdout and ".gemini/settings.json" in planned.stdout
    assert ".cursor" not in planned.stdout and not hooks.exists()

    done = machine.command("install", "--agent", "all", "--yes")
    assert done.returncode == 0, done.stderr
    assert "Codex asks you to review new hooks" in done.stdout
    assert "trust" not in hooks.read_text() + (machine.path / ".codex" / "config.toml").read_text()

    checks = {row["check"]: row for row in json.loads(machine.command("doctor", "--json").stdout)}
    assert checks["Codex"]["verdict"] == checks["Gemini CLI"]["verdict"] == "ok"
    assert checks["hooks"]["verdict"] == "ok"
    content = json.loads(hooks.read_text())
    del content["hooks"]["Stop"]
    hooks.write_text(json.dumps(content))
    (check,) = (
        row
        for row in json.loads(machine.command("doctor", "--json").stdout)
        if row["check"] == "Codex"
    )
    assert check["verdict"] == "wrong" and "Stop" in check["found"]
    assert check["mend"] == "claude-mem install --agent codex --scope user"

    one = machine.command("uninstall", "--agent", "codex")
    assert one.returncode == 0 and not json.loads(hooks.read_text())
    assert "claude-mem" in (machine.path / ".gemini" / "settings.json").read_text()
    assert machine.worker_pid() is not None  # the other agent goes on
    assert machine.command("uninstall").returncode == 0
    assert not (machine.path / ".gemini" / "settings.json").exists()


def test_read_only_settings_are_reported_and_the_other_agents_attached(machine: Home) -> None:
    hooks = machine.path / ".codex" / "hooks.json"
    hooks.write_text("{}")
    hooks.chmod(0o400)
    done = subprocess.run(
        [sys.executable, "-m", "claude_mem", "install", "--agent", "codex", "--agent", "qwen"],
        env=machine.env(),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        preexec_fn=drop_file_privileges,
    )
    assert done.returncode == 1
    assert f"Codex: {hooks} cannot be written" in done.stderr
    assert hooks.read_text() == "{}"
    assert (machine.path / ".qwen" / "settings.json").exists()
    assert machine.command("uninstall").returncode == 0

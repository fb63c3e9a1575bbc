"""The ways to install into the real client, and what is found wrong with them."""

import json
import subprocess
from typing import Any

import pytest

from claude_mem.install import hooks
from claude_mem.install.plugin import ID, REPOSITORY
from claude_mem.install.settings_files import apply
from tests.fake_api import Reply, tool_call
from tests.real_client import TOOL, Client, events, needs_client, working_session

pytestmark = needs_client


@pytest.mark.extra
def test_plugin_and_settings_hooks_at_once_are_one_event_each(attached: Client) -> None:
    home, api = attached.home, attached.api
    settings = home.path / ".claude" / "settings.json"
    apply(hooks.hooks_in(settings, home.layout.launcher).with_ours())
    checks = {check["check"]: check for check in json.loads(doctor(attached).stdout)}
    assert checks["hooks"]["verdict"] == "warning" and "twice" in checks["hooks"]["found"]
    api.say(*working_session(attached))
    attached.ask("Make the light blink twice")
    home.wait_settled()
    assert events(home).count("PostToolUse") == 3
    assert events(home).count("Stop") == 1
    assert len(home.rows("SELECT * FROM session_summaries")) == 1


def doctor(client: Client, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return client.claude_mem("doctor", "--json", *arguments)


def servers(client: Client) -> dict[str, Any]:
    """What `claude mcp add-json` wrote down."""
    state = json.loads((client.home.path / ".claude.json").read_text())
    servers = state.get("mcpServers") or {}
    for project in (state.get("projects") or {}).values():
        servers |= project.get("mcpServers") or {}
    return dict(servers)


def tools_offered(client: Client) -> list[str]:
    client.api.forget()
    client.ask("Hello")
    return [
        tool["name"]
        for body in client.api.requests
        for tool in body.get("tools") or []
        if tool["name"].endswith("__get_observations")
    ]


def hooks_in(client: Client) -> dict[str, Any]:
    path = client.home.path / ".claude" / "settings.json"
    settings = json.loads(path.read_text()) if path.exists() else {}
    return dict(settings.get("hooks") or {})


@pytest.mark.extra
def test_one_way_of_installing_takes_the_place_of_the_other(client: Client) -> None:
    other = {"type": "stdio", "command": "/bin/true"}
    client.mcp("add-json", "--scope", "user", "other", json.dumps(other))
    for _ in range(2):
        done = client.claude_mem("install", "--scope", "user", "--yes")
        assert "Added the MCP server" in done.stdout, done.stderr + done.stdout
        assert set(servers(client)) == {"other", "claude-mem"} and hooks_in(client)
        assert "claudemem" not in client.plugin("list").stdout
        assert tools_offered(client) == ["mcp__claude-mem__get_observations"]

        foreseen = client.claude_mem("install", "--dry-run").stdout
        assert "mcp remove --scope user claude-mem" in foreseen
        assert "Would remove our hooks from" in foreseen and set(servers(client)) > {"other"}

        done = client.claude_mem("install", "--yes")
        assert "Removed the MCP server." in done.stdout and "Removed our hooks" in done.stdout
        assert set(servers(client)) == {"other"} and not hooks_in(client)
        assert tools_offered(client) == [f"{TOOL}get_observations"]
        assert doctor(client).returncode == 0


@pytest.mark.extra
def test_a_project_that_the_plugin_attaches_is_not_attached_again(attached: Client) -> None:
    done = attached.claude_mem("install", "--scope", "project", "--yes")
    assert done.returncode == 1
    assert "claude-mem uninstall, then claude-mem install --scope project" in done.stderr


@pytest.mark.extra
def test_a_server_that_is_there_twice_is_found_and_mended(attached: Client) -> None:
    entry = json.dumps({
        "type": "stdio",
        "command": str(attached.home.layout.mcp_launcher),
        "alwaysLoad": True,
    })  # fmt: skip
    attached.mcp("add-json", "--scope", "user", "claude-mem", entry)
    (tools,) = (c for c in json.loads(doctor(attached).stdout) if c["check"] == "tools")
    assert (tools["verdict"], tools["mend"]) == (
        "warning",
        "claude mcp remove --scope user claude-mem",
    )
    (tools,) = (c for c in json.loads(doctor(attached, "--fix").stdout) if c["check"] == "tools")
    assert tools["verdict"] == "ok" and servers(attached) == {}

    attached.mcp("add-json", "--scope", "user", "claude-mem", entry)
    assert "Removed the MCP server." in attached.claude_mem("uninstall").stdout
    assert servers(attached) == {} and tools_offered(attached) == []


@pytest.mark.extra
def test_a_server_of_the_same_name_that_is_not_ours_stays(client: Client) -> None:
    entry = {"type": "stdio", "command": "/bin/true"}
    client.mcp("add-json", "--scope", "user", "claude-mem", json.dumps(entry))
    done = client.claude_mem("install", "--scope", "user", "--yes")
    assert done.returncode == 0 and "already exists" in done.stdout
    client.claude_mem("uninstall")
    assert servers(client)["claude-mem"]["command"] == "/bin/true"


@pytest.mark.extra
def test_the_plugin_of_the_wheel_passes_the_clients_own_check(client: Client) -> None:
    from claude_mem.install.plugin import NAME, SHIPPED

    for directory in (SHIPPED, SHIPPED / NAME):
        done = client.plugin("validate", str(directory))
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.extra
def test_the_plugin_of_the_wheel_works_as_it_is(client: Client) -> None:
    from claude_mem.install.plugin import SHIPPED

    assert client.plugin("marketplace", "add", str(SHIPPED)).returncode == 0
    assert client.plugin("install", ID).returncode == 0
    client.api.say(tool_call("Bash", command="echo hi"), Reply("Hello to you."))
    client.ask("Say hello")
    client.home.wait_settled()
    assert events(client.home) == [
        "SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd",
    ]  # fmt: skip


@pytest.mark.extra
def test_uninstall_takes_the_plugin_out_again(attached: Client) -> None:
    assert "claudemem@claudemem" in attached.plugin("list").stdout
    done = attached.claude_mem("uninstall")
    assert done.returncode == 0, done.stderr
    assert "claudemem" not in attached.plugin("list").stdout
    assert "claudemem" not in attached.plugin("marketplace", "list").stdout
    attached.api.say(Reply("Nothing to see."))
    assert "Nothing to see." in attached.ask("Hello").stdout
    assert attached.home.worker_pid() is None


@pytest.mark.extra
def test_doctor_finds_nothing_wrong_after_an_install(attached: Client) -> None:
    done = attached.claude_mem("doctor", "--json")
    verdicts = {row["check"]: row["verdict"] for row in json.loads(done.stdout)}
    assert set(verdicts.values()) == {"ok"}, verdicts


@pytest.mark.extra
def test_a_disabled_plugin_is_found_and_can_be_enabled_or_installed_again(
    attached: Client,
) -> None:
    for remedy in ("enable", "install"):  # our own path says "disabled" here, which is no state
        attached.plugin("disable", "claudemem@claudemem")
        checks = {check["check"]: check for check in json.loads(doctor(attached).stdout)}
        assert checks["hooks"]["found"] == "the plugin is disabled in Claude Code"
        assert checks["hooks"]["mend"] == "claude plugin enable claudemem@claudemem"
        if remedy == "enable":
            attached.plugin("enable", "claudemem@claudemem")
        else:
            attached.claude_mem("install", "--yes")
        done = doctor(attached)
        assert done.returncode == 0, done.stdout


@pytest.mark.extra
def test_install_twice_is_install_once(attached: Client) -> None:
    done = attached.claude_mem("install", "--yes")
    assert done.returncode == 0, done.stderr + done.stdout
    assert attached.plugin("list").stdout.count("claudemem@claudemem") == 1
    attached.api.say(tool_call("Bash", command="echo hi"), Reply("Done."))
    attached.ask("Go")
    attached.home.wait_settled()
    assert events(attached.home).count("PostToolUse") == 1


@pytest.mark.extra
def test_the_repository_is_a_marketplace_and_install_takes_its_place(client: Client) -> None:
    added = client.plugin("marketplace", "add", str(REPOSITORY))
    assert added.returncode == 0, added.stderr + added.stdout
    assert client.plugin("install", ID).returncode == 0
    checks = {check["check"]: check for check in json.loads(doctor(client).stdout)}
    assert checks["hooks"]["found"] == "the plugin"
    client.api.say(*working_session(client))
    client.ask("Make the light blink twice")
    client.home.wait_settled()
    assert events(client.home).count("PostToolUse") == 3
    assert tools_offered(client) == [f"{TOOL}get_observations"]
    done = client.claude_mem("install", "--yes")
    assert done.returncode == 0, done.stderr + done.stdout
    listed = client.plugin("marketplace", "list").stdout
    assert str(client.home.layout.root / "plugin") in listed and str(REPOSITORY) not in listed
    assert tools_offered(client) == [f"{TOOL}get_observations"]
    assert client.claude_mem("uninstall").returncode == 0
    assert "claudemem" not in client.plugin("list").stdout


@pytest.mark.extra
def test_the_script_removes_the_plugin_and_the_server_without_the_package(client: Client) -> None:
    remover = client.home.layout.remover
    for arguments in (["install", "--yes"], ["install", "--scope", "user", "--yes"]):
        done = client.claude_mem(*arguments)
        assert done.returncode == 0, done.stderr + done.stdout
        environment = client.env() | {"PATH": f"{client.path.parent}:{client.env()['PATH']}"}
        removed = subprocess.run(["sh", remover], env=environment, text=True, capture_output=True,
                                 stdin=subprocess.DEVNULL, timeout=120)  # fmt: skip
        assert removed.returncode == 0, removed.stderr
        assert "claudemem" not in client.plugin("list").stdout
        assert "claudemem" not in client.plugin("marketplace", "list").stdout
        assert not hooks_in(client) and not servers(client)
        assert "The hooks of claude-mem are removed" in removed.stdout

"""`claude_mem.sdk` with the real Agent SDK and its client, against an API on loopback."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookMatcher,
    PermissionResult,
    PermissionResultAllow,
    ResultMessage,
    ToolPermissionContext,
    query,
)

from claude_mem.library import Memory
from claude_mem.sdk import EVENTS, memory_permissions, with_memory
from tests.conftest import Home
from tests.fake_api import FakeApi, Reply, tool_call
from tests.real_client import bundled_client, needs_client

extra = pytest.mark.extra
ANSWER = "The light blinks twice now; the lamp needed a new fuse."


@pytest.fixture
def project(home: Home) -> Path:
    project = home.path / "lighthouse"
    project.mkdir()
    (project / "light.py").write_text("blink(1)\nwait()\n")
    return project


@pytest.fixture
def machine(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """This process belongs to the user of `home`."""
    for name in [name for name in os.environ if name.startswith(("CLAUDE", "ANTHROPIC"))]:
        if "TEST_NETWORK" not in name:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home.path))
    monkeypatch.setenv("CLAUDE_MEM_DATA_DIR", str(home.layout.root))
    monkeypatch.setenv("CLAUDE_MEM_WORKER_PORT", "0")
    yield home


def options(project: Path, api: FakeApi, **more: Any) -> ClaudeAgentOptions:
    path = bundled_client()
    return ClaudeAgentOptions(
        cwd=project,
        cli_path=path,
        setting_sources=[],
        **{"permission_mode": "bypassPermissions", **more},
        env={
            "ANTHROPIC_API_KEY": "test-key", "ANTHROPIC_BASE_URL": api.url, "IS_SANDBOX": "1",
            "DISABLE_TELEMETRY": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
    )  # fmt: skip


async def ask(prompt: str, chosen: ClaudeAgentOptions) -> str:
    async def prompts() -> Any:
        yield {"type": "user", "message": {"role": "user", "content": prompt}}

    result = ""
    async for message in query(prompt=prompts(), options=chosen):
        if isinstance(message, ResultMessage):
            result = message.result or ""
    return result


@extra
@needs_client
def test_two_sessions_of_a_program_share_a_memory(
    machine: Home, api: FakeApi, project: Path
) -> None:
    path = str(project / "light.py")
    api.say(
        tool_call("Read", file_path=path),
        tool_call("Edit", file_path=path, old_string="blink(1)", new_string="blink(2)"),
        tool_call("Bash", command="echo the lamp is broken >&2; exit 3"),
        Reply(ANSWER),
    )
    chosen = with_memory(options(project, api))
    assert asyncio.run(ask("Make the light blink twice", chosen)) == ANSWER
    machine.wait_settled()
    rows = machine.rows("SELECT event FROM tool_events WHERE event <> 'Statement' ORDER BY id")
    assert [row["event"] for row in rows] == [
        "SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUse", "PostToolUseFailure",
        "Stop",
    ]  # fmt: skip

    api.forget()
    api.say(
        tool_call("mcp__claude-mem__search", query="light"),
        Reply("We made it blink."),
    )

    # Two clients of one process at once, with the same options.
    async def both() -> tuple[str, str]:
        return await asyncio.gather(ask("What did we do?", chosen), ask("Anything open?", chosen))

    machine.layout.launcher.write_text("#!/bin/sh\nexit 9\n")  # no hook process is started
    assert "We made it blink." in asyncio.run(both())
    assert f"- {ANSWER} #" in api.sent()
    assert api.sent().count("Goal: Make the light blink twice") >= 2
    machine.wait_settled()
    sessions = machine.rows("SELECT dialect FROM sdk_sessions")
    assert [row["dialect"] for row in sessions] == ["claude"] * 3


@extra
@needs_client
def test_a_rule_of_the_project_denies_a_command_with_its_reason(
    machine: Home, api: FakeApi, project: Path
) -> None:
    with Memory.open(project) as memory:
        memory.record("Never push to main! Fix the lamp.", "The lamp is fixed.")
        rules = memory.rules()
    assert [rule.text for rule in rules] == ["Never push to main!"]
    asked: list[str] = []

    async def allow(
        name: str, arguments: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResult:
        asked.append(arguments["command"])
        return PermissionResultAllow()

    chosen = options(
        project, api, permission_mode="default",
        can_use_tool=memory_permissions(project, otherwise=allow),
    )  # fmt: skip
    api.say(
        tool_call("Bash", command="touch pushed; git push origin main"),
        tool_call("Bash", command="touch allowed"),
        Reply("Done."),
    )
    assert asyncio.run(ask("Publish it", chosen)) == "Done."
    assert asked == ["touch allowed"]
    assert not (project / "pushed").exists() and (project / "allowed").exists()
    assert f"A rule of this project (memory {rules[0].id}): Never push to main!" in api.sent()


def test_a_broken_rule_can_be_asked_about_instead(machine: Home, project: Path) -> None:
    with Memory.open(project) as memory:
        memory.record("Never push to main! Fix the lamp.", "The lamp is fixed.")
    reasons: list[str | None] = []

    async def decide(
        name: str, arguments: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResult:
        reasons.append(context.decision_reason)
        return PermissionResultAllow()

    permit = memory_permissions(project, otherwise=decide, on_broken_rule="ask")
    call = permit("Bash", {"command": "git push origin main"}, ToolPermissionContext())
    assert asyncio.run(_awaited(call)).behavior == "allow"  # the program said so, not the memory
    assert [reason and reason.endswith("Never push to main!") for reason in reasons] == [True]


async def _awaited(call: Any) -> PermissionResult:
    result: PermissionResult = await call
    return result


def test_what_the_options_have_stays(machine: Home, project: Path) -> None:
    async def own(*_: Any) -> dict[str, Any]:
        return {}

    matcher = HookMatcher(hooks=[own])  # type: ignore[list-item]
    before = ClaudeAgentOptions(
        cwd=project, hooks={"Stop": [matcher]}, allowed_tools=["Read"],
        mcp_servers={"other": {"type": "stdio", "command": "x"}},
    )  # fmt: skip
    after = with_memory(before)
    assert after.hooks is not None and before.hooks == {"Stop": [matcher]}
    assert after.hooks["Stop"][0] is matcher and len(after.hooks["Stop"]) == 2
    assert set(after.hooks) == set(EVENTS)
    assert after.allowed_tools == ["Read", "mcp__claude-mem"]
    assert isinstance(after.mcp_servers, dict) and set(after.mcp_servers) == {"other", "claude-mem"}
    plain = with_memory(before, tools=False)
    assert plain.mcp_servers == before.mcp_servers


def test_a_hook_that_fails_does_not_disturb_the_agent(machine: Home, project: Path) -> None:
    after = with_memory(ClaudeAgentOptions(cwd=project))
    assert after.hooks is not None
    callback: Any = after.hooks["Stop"][0].hooks[0]
    machine.end_worker()
    shutil.rmtree(machine.layout.spool)
    machine.layout.spool.write_text("not a directory")
    assert asyncio.run(callback({"session_id": "s"}, None, None)) == {}
    machine.layout.spool.unlink()

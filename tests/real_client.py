"""The real Claude Code client from the wheel of the Agent SDK, in a temporary home."""

import importlib.util
import json
import os
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.conftest import Home
from tests.fake_api import FakeApi, Reply, tool_call


def bundled_client() -> Path | None:
    """None if the SDK has no wheel for this platform."""
    spec = importlib.util.find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "_bundled" / "claude"
    return path if path.exists() else None


needs_client = pytest.mark.skipif(
    bundled_client() is None,
    reason="claude-agent-sdk has no wheel with the client for this platform",
)


def skip_without_client(observers: Iterable[str]) -> list[ParameterSet]:
    """Observers as parameters of a test; `claude` is skipped if there is no client."""
    return [pytest.param(o, marks=needs_client if o == "claude" else ()) for o in observers]


@dataclass
class Client:
    home: Home
    api: FakeApi
    path: Path
    project: Path
    environment: dict[str, str] = field(default_factory=dict)

    @classmethod
    def in_new_project(cls, home: Home, api: FakeApi, name: str) -> "Client":
        path = bundled_client()
        assert path is not None
        project = home.path / name
        project.mkdir()
        return cls(home, api, path, project)

    def env(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home.path),
            "ANTHROPIC_API_KEY": "test-key",
            "ANTHROPIC_BASE_URL": self.api.url,
            "IS_SANDBOX": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "CLAUDE_CODE_PATH": str(self.path),
            "CLAUDE_MEM_WORKER_PORT": "0",
            **self.environment,
        }

    def command(self, *arguments: str) -> list[str]:
        return [str(self.path), *arguments, "--permission-mode", "bypassPermissions"]

    def ask(
        self,
        prompt: str,
        *arguments: str,
        project: Path | None = None,
        preexec_fn: Callable[[], None] | None = None,
    ) -> "subprocess.CompletedProcess[str]":
        """Run `claude -p` until it exits."""
        return subprocess.run(
            self.command("-p", prompt, *arguments),
            cwd=project or self.project,
            env=self.env(),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
            preexec_fn=preexec_fn,
        )

    def ask_session_id(self, prompt: str, *arguments: str) -> str:
        """Like ask(), but returns the session id."""
        done = self.ask(prompt, "--output-format", "json", *arguments)
        assert done.returncode == 0, done.stderr + done.stdout
        return str(json.loads(done.stdout)["session_id"])

    def plugin(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return self._run("plugin", *arguments)

    def mcp(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return self._run("mcp", *arguments)

    def _run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [self.path, *arguments],
            env=self.env(),
            text=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
        )

    def claude_mem(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return self.home.command(*arguments, **self.env())


TOOL = "mcp__plugin_claudemem_memory__"


def working_session(client: Client) -> list[Reply]:
    path = str(client.project / "light.py")
    return [
        tool_call("Read", file_path=path),
        tool_call("Edit", file_path=path, old_string="blink(1)", new_string="blink(2)"),
        tool_call("Bash", command="echo the lamp is broken >&2; exit 3"),
        tool_call("Bash", command="echo the lamp is mended"),
        Reply("The light blinks twice now; the lamp needed a new fuse."),
    ]


def events(home: Home) -> list[str]:
    """The events that hooks sent, without the statements from the transcript."""
    rows = home.rows("SELECT event FROM tool_events WHERE event <> 'Statement' ORDER BY id")
    return [row["event"] for row in rows]

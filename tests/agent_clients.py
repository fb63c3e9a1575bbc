"""The real clients of other agents, from npm, in a temporary home against a model on loopback.

`make test-all` installs them below `.venv/agents`; `python -m tests.agent_clients` does the same. A
client that cannot be installed leaves a note, and its tests are skipped with it as the reason.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.conftest import Home
from tests.fake_models import Call, FakeModels

ROOT = Path(os.environ.get("CLAUDE_MEM_TEST_AGENTS") or Path(sys.prefix) / "agents")
PACKAGES = {
    "codex": "@openai/codex@0.166.0",
    "opencode": "opencode-ai@1.18.33",
    "copilot": "@github/copilot@1.0.102",
    "gemini": "@google/gemini-cli@0.61.0",
    "qwen": "@qwen-code/qwen-code@0.24.4",
    "node": "node@22",  # for clients that need a newer one than Debian has
}
_WHY = "why-not.txt"
SECONDS = 150


def install_clients() -> None:
    for name, package in PACKAGES.items():
        directory = ROOT / name
        if _program(name).exists():
            continue
        directory.mkdir(parents=True, exist_ok=True)
        reason = _install(directory, package)
        (directory / _WHY).write_text(reason)
        print(f"{name}: {reason or 'installed'}")


def _install(directory: Path, package: str) -> str:
    """Empty, or why it could not be installed."""
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    try:
        done = subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", "--prefix", directory, package],
            capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"npm install {package} took more than 300 s"
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "npm error" in line]
        return f"npm install {package} failed: {' '.join(lines)[:300]}"
    return ""


def _program(name: str) -> Path:
    return ROOT / name / "node_modules" / ".bin" / name


def needs(*names: str) -> pytest.MarkDecorator:
    reasons = [_missing(name) for name in names]
    reason = "; ".join(filter(None, reasons))
    return pytest.mark.skipif(bool(reason), reason=reason)


def _missing(name: str) -> str:
    if _program(name).exists():
        return ""
    note = ROOT / name / _WHY
    why = note.read_text() if note.exists() else "run python -m tests.agent_clients"
    return f"{name} is not installed: {why}"


@dataclass
class AgentClient:
    """One agent in a project, with claude-mem attached by its install command."""

    name: str
    home: Home
    models: FakeModels
    project: Path
    command: Callable[["AgentClient", str], list[str]]
    setup: Callable[["AgentClient"], None]
    shell: Callable[[str], Call]
    edit: Callable[[Path], list[Call]]
    environment: Callable[["AgentClient"], dict[str, str]] = lambda client: {}
    node: str = ""  # the directory of a node to put first on the PATH
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def program(self) -> str:
        return str(_program(self.name))

    def env(self) -> dict[str, str]:
        path = os.pathsep.join(filter(None, (self.node, "/usr/local/bin:/usr/bin:/bin")))
        return {
            "PATH": path,
            "HOME": str(self.home.path),
            "NO_COLOR": "1",
            "CLAUDE_MEM_WORKER_PORT": "0",
            **self.environment(self),
            **self.extra,
        }

    def attach(self) -> None:
        self.setup(self)
        done = self.home.command(
            "install", "--agent", self.name, "--yes", CLAUDE_CODE_PATH="/no/such/claude"
        )
        assert done.returncode == 0, done.stderr + done.stdout

    def ask(self, prompt: str) -> str:
        """One run without a terminal; what it printed."""
        done = subprocess.run(
            self.command(self, prompt),
            cwd=self.project,
            env=self.env(),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]
        return done.stdout

    def working_session(self) -> list[Call]:
        """A command, an edit of `light.py`, and a command that fails."""
        return [
            self.shell("echo the lamp is tested"),
            *self.edit(self.project / "light.py"),
            self.shell("echo the lamp is broken; exit 3"),
        ]


def client(name: str, home: Home, models: FakeModels, project: Path) -> AgentClient:
    return _CLIENTS[name](home, models, project)


def _write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2))


# Codex


def _codex_setup(client: AgentClient) -> None:
    config = client.home.path / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(
        'model = "gpt-5.5"\nmodel_provider = "fake"\napproval_policy = "never"\n'
        'sandbox_mode = "danger-full-access"\n[model_providers.fake]\nname = "fake"\n'
        f'base_url = "{client.models.url}/v1"\nwire_api = "responses"\nenv_key = "FAKE_KEY"\n'
        "request_max_retries = 0\nstream_max_retries = 0\nsupports_websockets = false\n"
    )


def _codex(home: Home, models: FakeModels, project: Path) -> AgentClient:
    patch = "*** Begin Patch\n*** Update File: light.py\n@@\n-blink(1)\n+blink(2)\n*** End Patch\n"
    return AgentClient(
        "codex", home, models, project,
        # The user reviews hooks in Codex; without a terminal nobody can.
        command=lambda c, prompt: [c.program, "exec", "--skip-git-repo-check",
                                   "--dangerously-bypass-hook-trust", prompt],
        setup=_codex_setup,
        shell=lambda command: Call("exec_command", {"cmd": command}),
        edit=lambda path: [Call("apply_patch", text=patch)],
        environment=lambda c: {"FAKE_KEY": "k"},
    )  # fmt: skip


# OpenCode


def _opencode_setup(client: AgentClient) -> None:
    config = client.home.path / ".config" / "opencode"
    # Without these it waits for npm, which cannot be reached.
    (config / "node_modules").mkdir(parents=True)
    _write_json(config / "package-lock.json",
                {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}})  # fmt: skip
    model = {"name": "Fake", "tool_call": True, "limit": {"context": 100000, "output": 4000}}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "Fake", "models": {"fake-model": model},
                "options": {"baseURL": f"{client.models.url}/v1", "apiKey": "k"}}  # fmt: skip
    _write_json(config / "opencode.json", {
        "autoupdate": False, "share": "disabled", "model": "fake/fake-model",
        "small_model": "fake/fake-model", "provider": {"fake": provider},
        "permission": {"bash": "allow", "edit": "allow"},
    })  # fmt: skip


def _opencode(home: Home, models: FakeModels, project: Path) -> AgentClient:
    return AgentClient(
        "opencode", home, models, project,
        # It puts an argument with spaces into quotes.
        command=lambda c, prompt: [c.program, "run", *prompt.split()],
        setup=_opencode_setup,
        shell=lambda command: Call("bash", {"command": command, "description": "Work"}),
        edit=lambda path: [
            Call("read", {"filePath": str(path)}),
            Call("edit", {"filePath": str(path), "oldString": "blink(1)", "newString": "blink(2)"}),
        ],
        environment=lambda c: {
            "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        },
    )  # fmt: skip


# Copilot CLI


def _copilot(home: Home, models: FakeModels, project: Path) -> AgentClient:
    patch = "*** Begin Patch\n*** Update File: {}\n@@\n-blink(1)\n+blink(2)\n*** End Patch\n"
    return AgentClient(
        "copilot", home, models, project,
        command=lambda c, prompt: [c.program, "-p", prompt, "--allow-all-tools",
                                   "--allow-all-paths"],
        setup=lambda c: (home.path / ".copilot").mkdir(),
        shell=lambda command: Call("bash", {"command": command, "description": "Work"}),
        edit=lambda path: [Call("apply_patch", {"input": patch.format(path)})],
        environment=lambda c: {
            "COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": f"{c.models.url}/v1",
            "COPILOT_PROVIDER_API_KEY": "k", "COPILOT_MODEL": "gpt-5.4",
            "COPILOT_AUTO_UPDATE": "false",
        },
    )  # fmt: skip


# Gemini CLI


def _gemini_setup(client: AgentClient) -> None:
    _write_json(client.home.path / ".gemini" / "settings.json", {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False},
    })  # fmt: skip


def _gemini(home: Home, models: FakeModels, project: Path) -> AgentClient:
    return AgentClient(
        "gemini", home, models, project,
        command=lambda c, prompt: [c.program, "--yolo", "-p", prompt],
        setup=_gemini_setup,
        shell=lambda command: Call("run_shell_command",
                                   {"command": command, "description": "Work"}),
        edit=lambda path: [Call("replace", {
            "file_path": str(path), "instruction": "Blink twice", "old_string": "blink(1)",
            "new_string": "blink(2)",
        })],
        environment=lambda c: {
            "GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": c.models.url,
            "GEMINI_TELEMETRY_ENABLED": "false", "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
    )  # fmt: skip


# Qwen Code


def _qwen_setup(client: AgentClient) -> None:
    _write_json(client.home.path / ".qwen" / "settings.json", {
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
    })  # fmt: skip


def _qwen(home: Home, models: FakeModels, project: Path) -> AgentClient:
    return AgentClient(
        "qwen", home, models, project,
        command=lambda c, prompt: [c.program, "--auth-type", "openai", "--yolo", "-p", prompt],
        setup=_qwen_setup,
        shell=lambda command: Call("run_shell_command", {
            "command": command, "description": "Work", "is_background": False,
        }),
        edit=lambda path: [
            Call("read_file", {"file_path": str(path)}),
            Call("edit", {"file_path": str(path), "old_string": "blink(1)",
                          "new_string": "blink(2)"}),
        ],
        environment=lambda c: {
            "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{c.models.url}/v1",
            "OPENAI_MODEL": "fake-model",
        },
        node=str(_program("node").parent),
    )  # fmt: skip


_CLIENTS: dict[str, Callable[[Home, FakeModels, Path], AgentClient]] = {
    "codex": _codex,
    "opencode": _opencode,
    "copilot": _copilot,
    "gemini": _gemini,
    "qwen": _qwen,
}

if __name__ == "__main__":
    install_clients()

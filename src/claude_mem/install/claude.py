"""The Claude Code command: its path and version, and the subcommands `plugin` and `mcp`."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from claude_mem.config import Settings
from claude_mem.errors import ClaudeMemError
from claude_mem.intake.project_access import client_state_file
from claude_mem.observer.models.claude_command import find_command

TIMEOUT = 120


@dataclass(frozen=True, slots=True)
class Claude:
    path: Path
    environ: Mapping[str, str]

    def version(self) -> str:
        """Returns the version; empty if the command cannot be run."""
        try:
            done = self._run("--version", seconds=30)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout.split(" ")[0].strip() if done.returncode == 0 else ""

    def plugin(self, *arguments: str) -> str:
        """`claude plugin …`; a failure raises with the command's own message."""
        return self._check("plugin", *arguments)

    def mcp(self, *arguments: str, directory: Path | None = None) -> str:
        """`claude mcp …`, run in `directory`."""
        return self._check("mcp", *arguments, directory=directory)

    def _check(self, *arguments: str, directory: Path | None = None) -> str:
        try:
            done = self._run(*arguments, seconds=TIMEOUT, directory=directory)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ClaudeMemError(f"{self.path} could not be run: {error}") from None
        if done.returncode != 0:
            message = (done.stderr.strip() or done.stdout.strip())[-500:]
            raise ClaudeMemError(f"`claude {' '.join(arguments)}` failed: {message}")
        return done.stdout

    def _run(
        self, *arguments: str, seconds: int, directory: Path | None = None
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [self.path, *arguments],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=seconds,
            cwd=directory,
            env={**self.environ, "CLAUDE_MEM_INTERNAL": "1"},
        )


def find_claude(settings: Settings, environ: Mapping[str, str]) -> Claude | None:
    path = find_command(settings, environ)
    return Claude(path, environ) if path is not None else None


def config_dir(environ: Mapping[str, str]) -> Path:
    """The directory of the user's settings."""
    configured = environ.get("CLAUDE_CONFIG_DIR")
    return Path(configured) if configured else Path(environ.get("HOME", "/")) / ".claude"


def state_file(environ: Mapping[str, str]) -> Path:
    """Returns the file with the MCP servers."""
    return client_state_file(environ)


def transcripts_dir(environ: Mapping[str, str]) -> Path:
    return config_dir(environ) / "projects"

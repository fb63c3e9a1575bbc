"""Claude Code itself: where it is, which version, and its plugin commands."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from claude_mem.config import Settings
from claude_mem.errors import ClaudeMemError
from claude_mem.observer.models.claude import find_command

SECONDS = 120


@dataclass(frozen=True, slots=True)
class Claude:
    path: Path
    environ: Mapping[str, str]

    def version(self) -> str:
        """As it says itself, or an empty text when it cannot be run."""
        try:
            done = self._run("--version", seconds=30)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout.split(" ")[0].strip() if done.returncode == 0 else ""

    def plugin(self, *arguments: str) -> str:
        """`claude plugin …`; raises with its own words when it fails."""
        return self._do("plugin", *arguments)

    def mcp(self, *arguments: str, within: Path | None = None) -> str:
        """`claude mcp …`, in this directory."""
        return self._do("mcp", *arguments, within=within)

    def _do(self, *arguments: str, within: Path | None = None) -> str:
        try:
            done = self._run(*arguments, seconds=SECONDS, within=within)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ClaudeMemError(f"{self.path} could not be run: {error}") from None
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip())[-500:]
            raise ClaudeMemError(f"`claude {' '.join(arguments)}` failed: {said}")
        return done.stdout

    def _run(
        self, *arguments: str, seconds: int, within: Path | None = None
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [self.path, *arguments],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=seconds,
            cwd=within,
            env={**self.environ, "CLAUDE_MEM_INTERNAL": "1"},
        )


def find_claude(settings: Settings, environ: Mapping[str, str]) -> Claude | None:
    path = find_command(settings, environ)
    return Claude(path, environ) if path is not None else None


def config_dir(environ: Mapping[str, str]) -> Path:
    """Where Claude Code keeps the person's settings."""
    chosen = environ.get("CLAUDE_CONFIG_DIR")
    return Path(chosen) if chosen else Path(environ.get("HOME", "/")) / ".claude"


def state_file(environ: Mapping[str, str]) -> Path:
    """Where Claude Code writes down what it knows, MCP servers among it."""
    chosen = environ.get("CLAUDE_CONFIG_DIR")
    return Path(chosen or environ.get("HOME", "/")) / ".claude.json"


def transcripts_dir(environ: Mapping[str, str]) -> Path:
    return config_dir(environ) / "projects"

"""The npm package, installed as a user would install it: the only place that names versions."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

VERSION = "13.25.3"
BUN = "1"
# Its package names versions that the registry does not have: these are the nearest that it has.
OVERRIDES = {
    "better-auth": "1.6.16",
    "@better-auth/api-key": "1.6.16",
    "@better-auth/core": "1.6.16",
}
MANIFEST = {
    "private": True,
    "dependencies": {"claude-mem": VERSION, "bun": BUN},
    "overrides": OVERRIDES,
}


@dataclass(frozen=True, slots=True)
class Installation:
    directory: Path

    @property
    def modules(self) -> Path:
        return self.directory / "node_modules"

    @property
    def plugin(self) -> Path:
        return self.modules / "claude-mem" / "plugin"

    @property
    def path(self) -> str:
        """PATH with its bun."""
        return f"{self.modules / '.bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"

    def command(self, *arguments: str) -> list[str]:
        """Returns a command as its hooks.json runs it, without the shell that looks for the
        plugin."""
        scripts = self.plugin / "scripts"
        node = shutil.which("node") or "node"
        runner, service = str(scripts / "bun-runner.js"), str(scripts / "worker-service.cjs")
        return [node, runner, service, *arguments]

    @property
    def versions(self) -> dict[str, str]:
        return {
            "claude-mem (npm)": self._version_of("claude-mem"),
            "bun": self._version_of("bun"),
            "node": _output(["node", "--version"]).removeprefix("v"),
        }

    def _version_of(self, package: str) -> str:
        manifest = json.loads((self.modules / package / "package.json").read_bytes())
        return str(manifest["version"])


def install(directory: Path) -> Installation:
    """Uses the installation that is there already, if its version is right."""
    installation = Installation(directory)
    try:
        if installation.versions["claude-mem (npm)"] == VERSION:
            return installation
    except (OSError, ValueError):
        pass
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "package.json").write_text(json.dumps(MANIFEST))
    subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"],
        cwd=directory,
        check=True,
    )
    return installation


def _output(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

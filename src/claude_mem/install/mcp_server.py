"""The MCP server where no plugin brings it: told to Claude Code through its own command."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from claude_mem.config import Layout
from claude_mem.errors import ClaudeMemError
from claude_mem.install.claude import Claude, state_file
from claude_mem.install.plugin import server_entry

NAME = "claude-mem"
# A project's own .mcp.json is shared with others, and our launcher is of this machine.
_SCOPES = {"user": "user", "project": "local"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where Claude Code knows it: everywhere, or in one project."""

    scope: str
    directory: Path | None = None

    @property
    def removing(self) -> tuple[str, ...]:
        """What follows `claude mcp`."""
        return "remove", "--scope", _SCOPES[self.scope], NAME


def add_server(claude: Claude, layout: Layout, here: Place, known: list[Place]) -> None:
    if here in known:
        remove_server(claude, here)
    claude.mcp(*adding(layout, here.scope), within=here.directory)


def adding(layout: Layout, scope: str) -> tuple[str, ...]:
    """What follows `claude mcp`."""
    entry = json.dumps(server_entry(str(layout.mcp_launcher)))
    return "add-json", "--scope", _SCOPES[scope], NAME, entry


def remove_server(claude: Claude, place: Place) -> bool:
    """Whether there was one."""
    try:
        claude.mcp(*place.removing, within=place.directory)
    except ClaudeMemError:
        return False
    return True


def find_places(layout: Layout, environ: Mapping[str, str]) -> list[Place]:
    """Where our server is known, as the client wrote it down. Another's of the same name is not
    ours."""
    try:
        state = json.loads(state_file(environ).read_bytes())
    except (OSError, ValueError):
        return []
    return list(_places(state, layout.mcp_launcher)) if isinstance(state, dict) else []


def _places(state: dict[str, object], launcher: Path) -> Iterator[Place]:
    if _has_ours(state, launcher):
        yield Place("user")
    projects = state.get("projects")
    for directory, project in projects.items() if isinstance(projects, dict) else ():
        if _has_ours(project, launcher) and Path(directory).is_dir():
            yield Place("project", Path(directory))


def _has_ours(holder: object, launcher: Path) -> bool:
    servers = holder.get("mcpServers") if isinstance(holder, dict) else None
    entry = servers.get(NAME) if isinstance(servers, dict) else None
    command = entry.get("command") if isinstance(entry, dict) else None
    if not isinstance(command, str):
        return False
    moved = Path(command).name == launcher.name and not Path(command).exists()
    return command == str(launcher) or moved  # with the data directory, since it was added

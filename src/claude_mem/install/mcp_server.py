"""The MCP server without the plugin, registered with `claude mcp`."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from claude_mem.config import Layout
from claude_mem.errors import ClaudeMemError
from claude_mem.install.claude import Claude, state_file
from claude_mem.install.plugin import server_entry
from claude_mem.install.remover import SERVER

NAME = SERVER
# Not a project's own .mcp.json: that is shared, and the launcher is a path on this machine.
_SCOPES = {"user": "user", "project": "local"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where the server is registered: for the user, or for one project directory."""

    scope: str
    directory: Path | None = None

    @property
    def remove_arguments(self) -> tuple[str, ...]:
        """The arguments for `claude mcp`."""
        return "remove", "--scope", _SCOPES[self.scope], NAME


def add_server(claude: Claude, layout: Layout, place: Place, existing: list[Place]) -> None:
    if place in existing:
        remove_server(claude, place)
    claude.mcp(*add_arguments(layout, place.scope), directory=place.directory)


def add_arguments(layout: Layout, scope: str) -> tuple[str, ...]:
    """Returns the arguments for `claude mcp`."""
    entry = json.dumps(server_entry(str(layout.mcp_launcher)))
    return "add-json", "--scope", _SCOPES[scope], NAME, entry


def remove_server(claude: Claude, place: Place) -> bool:
    """Returns whether it was registered."""
    try:
        claude.mcp(*place.remove_arguments, directory=place.directory)
    except ClaudeMemError:
        return False
    return True


def find_places(layout: Layout, environ: Mapping[str, str]) -> list[Place]:
    """Where our server is registered; one of that name with another command is not ours."""
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


def _has_ours(scope: object, launcher: Path) -> bool:
    servers = scope.get("mcpServers") if isinstance(scope, dict) else None
    entry = servers.get(NAME) if isinstance(servers, dict) else None
    command = entry.get("command") if isinstance(entry, dict) else None
    if not isinstance(command, str):
        return False
    # The data directory may have moved since the server was added.
    moved = Path(command).name == launcher.name and not Path(command).exists()
    return command == str(launcher) or moved

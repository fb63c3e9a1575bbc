"""The MCP server where no plugin brings it: told to Claude Code through its own command."""

import json
from pathlib import Path

from claude_mem.config import Layout
from claude_mem.errors import ClaudeMemError
from claude_mem.install.claude import Claude
from claude_mem.install.plugin import server_entry

NAME = "claude-mem"
# A project's own .mcp.json is shared with others, and our launcher is of this machine.
_SCOPES = {"user": "user", "project": "local"}


def add_server(claude: Claude, layout: Layout, scope: str, directory: Path) -> None:
    remove_server(claude, scope, directory)
    claude.mcp(*adding(layout, scope), within=directory)


def adding(layout: Layout, scope: str) -> tuple[str, ...]:
    """What follows `claude mcp`."""
    entry = json.dumps(server_entry(str(layout.mcp_launcher)))
    return "add-json", "--scope", _SCOPES[scope], NAME, entry


def remove_server(claude: Claude, scope: str, directory: Path) -> bool:
    """Whether there was one."""
    try:
        claude.mcp("remove", "--scope", _SCOPES[scope], NAME, within=directory)
    except ClaudeMemError:
        return False
    return True

"""The Claude Code plugin: a marketplace with one plugin that has hooks, an MCP server and a skill.

The plugin in the wheel finds the launchers through short sh scripts, so that it can be installed
from anywhere. `claude-mem install` writes a copy into the data directory with their absolute paths.
"""

import json
import shutil
from pathlib import Path
from typing import Literal

from claude_mem import __version__
from claude_mem.agents.agent import AgentEvent
from claude_mem.config import Layout
from claude_mem.install.claude import Claude
from claude_mem.install.hooks import EVENTS, all_entries
from claude_mem.install.remover import MARKETPLACE, PLUGIN
from claude_mem.types import Json

NAME = PLUGIN
ID = f"{NAME}@{MARKETPLACE}"
PluginState = Literal["absent", "disabled", "enabled"]
SHIPPED = Path(__file__).with_name("marketplace")
REPOSITORY = SHIPPED.parents[3]  # in a checkout
IN_REPOSITORY = f"./src/claude_mem/install/marketplace/{NAME}"
MARKETPLACE_FILE = ".claude-plugin/marketplace.json"
SERVER = "memory"  # its tools are named mcp__plugin_claudemem_memory__search etc.
DESCRIPTION = "Persistent memory for Claude Code."
_SCRIPTS = ("hooks/run.sh", "mcp.sh")  # find the launchers


def installed_dir(layout: Layout) -> Path:
    return layout.root / "plugin"


def write_plugin(layout: Layout, events: tuple[AgentEvent, ...] = EVENTS) -> Path:
    """Returns the directory for `claude plugin marketplace add`."""
    target = installed_dir(layout)
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(SHIPPED, target)
    entries = all_entries(str(layout.launcher), events=events)
    _write(target / NAME / "hooks" / "hooks.json", entries)
    _write(target / NAME / ".mcp.json", servers(str(layout.mcp_launcher)))
    _write(target / NAME / ".claude-plugin" / "plugin.json", manifest())
    for script in _SCRIPTS:
        (target / NAME / script).unlink()
    for path in (target, *target.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return target


def install_plugin(claude: Claude, layout: Layout, events: tuple[AgentEvent, ...] = EVENTS) -> None:
    directory = write_plugin(layout, events)
    listed = claude.plugin("marketplace", "list")
    if MARKETPLACE in listed and str(directory) not in listed:  # that of a repository
        claude.plugin("marketplace", "remove", MARKETPLACE)
    if is_installed(claude):
        claude.plugin("marketplace", "update", MARKETPLACE)
        claude.plugin("uninstall", ID)
    else:
        claude.plugin("marketplace", "add", str(directory))
    claude.plugin("install", ID)


def remove_plugin(claude: Claude, layout: Layout) -> bool:
    """Returns whether it was installed."""
    installed = is_installed(claude)
    if installed:
        claude.plugin("uninstall", ID)
    if MARKETPLACE in claude.plugin("marketplace", "list"):
        claude.plugin("marketplace", "remove", MARKETPLACE)
    shutil.rmtree(installed_dir(layout), ignore_errors=True)
    return installed


def is_installed(claude: Claude) -> bool:
    return ID in claude.plugin("list")


def plugin_state(claude: Claude) -> PluginState:
    _, listed, rest = claude.plugin("list").partition(ID)
    if not listed:
        return "absent"
    own_lines = rest.split("❯")[0].splitlines()
    states = [line for line in own_lines if line.strip().startswith("Status:")]
    return "disabled" if any("disabled" in line for line in states) else "enabled"


def manifest() -> dict[str, Json]:
    return {
        "name": NAME,
        "version": __version__,
        "description": DESCRIPTION,
        "author": {"name": "claude-mem"},
        "license": "Apache-2.0",
        "keywords": ["memory", "hooks", "mcp"],
    }


def servers(*command_line: str) -> dict[str, Json]:
    """The content of `.mcp.json`."""
    return {"mcpServers": {SERVER: server_entry(*command_line)}}


def server_entry(program: str, *arguments: str) -> dict[str, Json]:
    """Always loaded: the tools are few, and the context of a session refers to them."""
    return {"type": "stdio", "command": program, "args": [*arguments], "alwaysLoad": True}


def marketplace(source: str) -> dict[str, Json]:
    return {
        "name": MARKETPLACE,
        "description": DESCRIPTION,
        "owner": {"name": "claude-mem"},
        "plugins": [{"name": NAME, "source": source, "description": DESCRIPTION}],
    }


def shipped_files() -> dict[str, dict[str, Json]]:
    """The generated files of the wheel; `python -m claude_mem.install.plugin` writes them, and the
    marketplace of the repository, for `claude plugin marketplace add OWNER/REPOSITORY`."""
    return {
        MARKETPLACE_FILE: marketplace(f"./{NAME}"),
        f"{NAME}/.claude-plugin/plugin.json": manifest(),
        f"{NAME}/.mcp.json": servers("sh", "${CLAUDE_PLUGIN_ROOT}/mcp.sh"),
        f"{NAME}/hooks/hooks.json": all_entries("sh", "${CLAUDE_PLUGIN_ROOT}/hooks/run.sh"),
    }


def _write(path: Path, value: dict[str, Json]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    for name, content in shipped_files().items():
        _write(SHIPPED / name, content)
    _write(REPOSITORY / MARKETPLACE_FILE, marketplace(IN_REPOSITORY))

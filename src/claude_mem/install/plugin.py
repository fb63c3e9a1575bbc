"""The plugin: a marketplace of one, with hooks, MCP server and skill of this installation.

What lies in the wheel finds the launchers through a few lines of sh, so that it can be installed
as it is. `claude-mem install` writes a copy into the data directory that names them directly.
"""

import json
import shutil
from pathlib import Path

from claude_mem import __version__
from claude_mem.config import Layout
from claude_mem.install.claude import Claude
from claude_mem.install.hooks import all_entries
from claude_mem.types import Json

# The client reserves names that begin with "claude-" for its maker.
NAME = MARKETPLACE = "claudemem"
SHIPPED = Path(__file__).with_name("marketplace")
SERVER = "memory"  # its tools are mcp__plugin_claudemem_memory__search and so on
DESCRIPTION = "A memory for Claude Code that outlives the session."
_SCRIPTS = ("hooks/run.sh", "mcp.sh")  # they find the launchers


def installed_dir(layout: Layout) -> Path:
    return layout.root / "plugin"


def write_plugin(layout: Layout) -> Path:
    """The marketplace directory to give to `claude plugin marketplace add`."""
    target = installed_dir(layout)
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(SHIPPED, target)
    _write(target / NAME / "hooks" / "hooks.json", all_entries(str(layout.launcher)))
    _write(target / NAME / ".mcp.json", servers(str(layout.mcp_launcher)))
    _write(target / NAME / ".claude-plugin" / "plugin.json", manifest())
    for script in _SCRIPTS:
        (target / NAME / script).unlink()
    for path in (target, *target.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return target


def install_plugin(claude: Claude, layout: Layout) -> None:
    directory = write_plugin(layout)
    if is_installed(claude):
        claude.plugin("marketplace", "update", MARKETPLACE)
        claude.plugin("uninstall", f"{NAME}@{MARKETPLACE}")
    else:
        claude.plugin("marketplace", "add", str(directory))
    claude.plugin("install", f"{NAME}@{MARKETPLACE}")


def remove_plugin(claude: Claude, layout: Layout) -> bool:
    """Whether there was one."""
    there = is_installed(claude)
    if there:
        claude.plugin("uninstall", f"{NAME}@{MARKETPLACE}")
    if MARKETPLACE in claude.plugin("marketplace", "list"):
        claude.plugin("marketplace", "remove", MARKETPLACE)
    shutil.rmtree(installed_dir(layout), ignore_errors=True)
    return there


def is_installed(claude: Claude) -> bool:
    return f"{NAME}@{MARKETPLACE}" in claude.plugin("list")


def is_enabled(claude: Claude) -> bool:
    _, found, rest = claude.plugin("list").partition(f"{NAME}@{MARKETPLACE}")
    own_lines = rest.split("❯")[0].splitlines()
    states = [line for line in own_lines if line.strip().startswith("Status:")]
    return bool(found) and not any("disabled" in line for line in states)


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
    """The content of a .mcp.json."""
    return {"mcpServers": {SERVER: server_entry(*command_line)}}


def server_entry(program: str, *arguments: str) -> dict[str, Json]:
    """The tools are few and the ids in a session's context lead to them: they are always loaded."""
    return {"type": "stdio", "command": program, "args": [*arguments], "alwaysLoad": True}


def shipped_files() -> dict[str, dict[str, Json]]:
    """What the files in the wheel must say; a test compares, `python -m …plugin` writes them."""
    return {
        ".claude-plugin/marketplace.json": {
            "name": MARKETPLACE,
            "description": DESCRIPTION,
            "owner": {"name": "claude-mem"},
            "plugins": [{"name": NAME, "source": f"./{NAME}", "description": DESCRIPTION}],
        },
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

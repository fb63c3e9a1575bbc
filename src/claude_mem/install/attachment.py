"""How Claude Code is attached: by the plugin, or by hooks in its settings plus an MCP server.

Both at once do no harm, but every event arrives twice and the agent may be offered every tool
twice (a client that starts both servers with the same command drops one). So installing one way
removes the other. Each step reports an `Outcome`.
"""

from collections.abc import Mapping
from pathlib import Path

from claude_mem.agents import CLAUDE
from claude_mem.config import Layout
from claude_mem.errors import ClaudeMemError
from claude_mem.install import changed_files, mcp_server, plugin
from claude_mem.install.changed_files import Outcome
from claude_mem.install.claude import Claude, config_dir
from claude_mem.install.hooks import hooks_in
from claude_mem.install.settings_files import SettingsFile


def settings_files(environ: Mapping[str, str]) -> list[Path]:
    """The files that may contain our hooks: the user's settings and those of this directory."""
    project = Path.cwd() / ".claude"
    files = (
        config_dir(environ) / "settings.json",
        project / "settings.json",
        project / "settings.local.json",
    )
    return list(dict.fromkeys(files))


def files_with_hooks(layout: Layout, environ: Mapping[str, str]) -> list[Path]:
    """Lists those that have our hooks, of the files that install recorded and those it would write
    from here."""
    return [file.path for file in _files(layout, environ) if file.has_any()]


def _files(layout: Layout, environ: Mapping[str, str]) -> list[SettingsFile]:
    recorded = changed_files.recorded_paths(layout, CLAUDE)
    paths = dict.fromkeys((*recorded, *settings_files(environ)))
    return [hooks_in(path, layout.launcher) for path in paths]


def has_plugin(claude: Claude | None) -> bool:
    try:
        return claude is not None and plugin.is_installed(claude)
    except ClaudeMemError:
        return False  # a client that does not run has no plugins


def remove_hooks(layout: Layout, environ: Mapping[str, str]) -> list[Outcome]:
    files = _files(layout, environ)
    return changed_files.remove_ours(layout, CLAUDE, files, "Removed our hooks from")


def remove_servers(
    claude: Claude | None, layout: Layout, environ: Mapping[str, str]
) -> list[Outcome]:
    places = mcp_server.find_places(layout, environ)
    if claude is None:
        return [_remove_server_yourself(place) for place in places]
    removed = [mcp_server.remove_server(claude, place) for place in places]
    return [Outcome("Removed the MCP server.")] if any(removed) else []


def _remove_server_yourself(place: mcp_server.Place) -> Outcome:
    where = f" in {place.directory}" if place.directory else ""
    command = " ".join(("claude", "mcp", *place.remove_arguments))
    return Outcome(
        f"Claude Code was not found, so the MCP server is still registered. Run{where}: {command}"
    )


def remove_plugin(claude: Claude | None, layout: Layout) -> list[Outcome]:
    if claude is not None and plugin.remove_plugin(claude, layout):
        return [Outcome(f"Removed the plugin {plugin.NAME}.")]
    if claude is None and plugin.installed_dir(layout).exists():
        return [
            Outcome(
                "Claude Code was not found, so the plugin may still be installed. "
                f"Run: claude plugin uninstall {plugin.ID}"
            )
        ]
    return []


def attached(claude: Claude | None, layout: Layout, environ: Mapping[str, str]) -> list[str]:
    """What `detach` would remove."""
    if has_plugin(claude) or (claude is None and plugin.installed_dir(layout).exists()):
        parts = [f"the plugin {plugin.NAME} of Claude Code"]
    else:
        parts = []
    for place in mcp_server.find_places(layout, environ):
        where = f" in {place.directory}" if place.directory else ""
        parts.append(f"the MCP server of Claude Code{where}")
    return [*parts, *(f"our hooks in {path}" for path in files_with_hooks(layout, environ))]


def detach(claude: Claude | None, layout: Layout, environ: Mapping[str, str]) -> list[Outcome]:
    return [
        *remove_plugin(claude, layout),
        *remove_servers(claude, layout, environ),
        *remove_hooks(layout, environ),
    ]

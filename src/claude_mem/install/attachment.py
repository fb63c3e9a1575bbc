"""How Claude Code is attached: by the plugin, or by hooks in settings and an MCP server.

Both at once do no harm, but every event is told twice, and the agent may be offered all tools twice
(a client that starts both servers by the same command drops one). So installing one way takes the
other out. What was done is said line by line.
"""

from collections.abc import Mapping
from pathlib import Path

from claude_mem.config import Layout
from claude_mem.errors import ClaudeMemError, SettingsError
from claude_mem.install import claude_settings, installed_files, mcp_server, plugin
from claude_mem.install.claude import Claude, config_dir


def settings_files(environ: Mapping[str, str]) -> list[Path]:
    """Where our hooks may stand: the person's settings, and this directory's project."""
    here = Path.cwd() / ".claude"
    places = (config_dir(environ), "settings.json"), (here, "settings.json"), (
        here, "settings.local.json")  # fmt: skip
    return list(dict.fromkeys(directory / name for directory, name in places))


def files_with_hooks(layout: Layout, environ: Mapping[str, str]) -> list[Path]:
    """Those that install wrote, and those that it would write from here."""
    recorded = [file.path for file in installed_files.installed_files(layout)]
    known = dict.fromkeys((*recorded, *settings_files(environ)))
    return [path for path in known if _has_hooks(path, layout.launcher)]


def _has_hooks(path: Path, launcher: Path) -> bool:
    try:
        return bool(claude_settings.has_hooks(path, launcher))
    except SettingsError:
        return False


def has_plugin(claude: Claude | None) -> bool:
    try:
        return claude is not None and plugin.is_installed(claude)
    except ClaudeMemError:
        return False  # a client that cannot be run has none


STAYS = "Look into this file yourself"  # our entries could not be taken out of it


def take_out_hooks(layout: Layout, environ: Mapping[str, str]) -> list[str]:
    said = []
    for file in installed_files.installed_files(layout):
        try:
            change = installed_files.take_back(layout, file, layout.launcher)
        except SettingsError as error:
            said.append(f"{STAYS}: {error}.")
        else:
            said += [] if change.is_empty else [f"Took our hooks out of {file.path}."]
    for path in settings_files(environ):
        try:
            change = claude_settings.without_hooks(path, layout.launcher)
            claude_settings.apply(change)
        except SettingsError as error:
            said.append(f"{STAYS}: {error}.")
        else:
            said += [] if change.is_empty else [f"Took our hooks out of {path}."]
    return list(dict.fromkeys(said))


def take_out_servers(
    claude: Claude | None, layout: Layout, environ: Mapping[str, str]
) -> list[str]:
    places = mcp_server.find_places(layout, environ)
    if claude is None:
        return [_by_hand(place) for place in places]
    removed = [mcp_server.remove_server(claude, place) for place in places]
    return ["Removed the MCP server."] if any(removed) else []


def _by_hand(place: mcp_server.Place) -> str:
    there = f" in {place.directory}" if place.directory else ""
    command = " ".join(("claude", "mcp", *place.removing))
    return (
        f"Claude Code was not found; it still knows our MCP server, until you run{there}: {command}"
    )


def take_out_plugin(claude: Claude | None, layout: Layout) -> list[str]:
    if claude is not None and plugin.remove_plugin(claude, layout):
        return [f"Removed the plugin {plugin.NAME}."]
    if claude is None and plugin.installed_dir(layout).exists():
        return [
            "Claude Code was not found, so its plugin may still be there: "
            f"claude plugin uninstall {plugin.NAME}@{plugin.MARKETPLACE}"
        ]
    return []


def take_out_everything(
    claude: Claude | None, layout: Layout, environ: Mapping[str, str]
) -> list[str]:
    """Exactly our entries, wherever they are."""
    return [
        *take_out_plugin(claude, layout),
        *take_out_servers(claude, layout, environ),
        *take_out_hooks(layout, environ),
    ]

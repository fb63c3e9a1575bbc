"""How Claude Code is attached: by the plugin, or by hooks in its settings plus an MCP server.

Both at once do no harm, but every event arrives twice and the agent may be offered every tool
twice (a client that starts both servers with the same command drops one). So installing one way
removes the other. Each step reports an `Outcome`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from claude_mem.config import Layout
from claude_mem.errors import ClaudeMemError, SettingsError
from claude_mem.install import changed_files, claude_settings, mcp_server, plugin
from claude_mem.install.claude import Claude, config_dir


@dataclass(frozen=True, slots=True)
class Outcome:
    text: str
    failed: bool = False


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
    """Of the files that install recorded and those it would write from here."""
    recorded = [file.path for file in _records_of_claude(layout)]
    candidates = dict.fromkeys((*recorded, *settings_files(environ)))
    return [path for path in candidates if _has_hooks(path, layout.launcher)]


def _records_of_claude(layout: Layout) -> list[changed_files.ChangedFile]:
    return [file for file in changed_files.read_records(layout) if file.agent == "claude"]


def _has_hooks(path: Path, launcher: Path) -> bool:
    try:
        return bool(claude_settings.hooked_events(path, launcher))
    except SettingsError:
        return False


def has_plugin(claude: Claude | None) -> bool:
    try:
        return claude is not None and plugin.is_installed(claude)
    except ClaudeMemError:
        return False  # a client that does not run has no plugins


def remove_hooks(layout: Layout, environ: Mapping[str, str]) -> list[Outcome]:
    """Restore the recorded files, then remove what is still in the files of this directory."""
    outcomes = []
    for file in _records_of_claude(layout):
        try:
            outcomes += _removed(changed_files.revert_file(layout, file))
        except SettingsError as error:
            outcomes.append(_not_removed(error))
    for path in settings_files(environ):
        try:
            change = claude_settings.without_hooks(path, layout.launcher)
            claude_settings.apply(change)
            outcomes += _removed(change)
        except SettingsError as error:
            outcomes.append(_not_removed(error))
    return list(dict.fromkeys(outcomes))


def _removed(change: claude_settings.Change) -> list[Outcome]:
    return [] if change.is_empty else [Outcome(f"Removed our hooks from {change.path}.")]


def _not_removed(error: SettingsError) -> Outcome:
    return Outcome(f"Our hooks were not removed, please edit the file yourself: {error}.", True)


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

"""The files with which claude-mem is attached to an agent, as its module in `agents/` declares."""

from collections.abc import Mapping
from pathlib import Path

from claude_mem.agents.agent import Agent, ConfigFile, Entry
from claude_mem.config import Layout
from claude_mem.errors import SettingsError
from claude_mem.install.settings_files import SettingsFile

_XDG = {".config": "XDG_CONFIG_HOME", ".local/share": "XDG_DATA_HOME"}


def agent_home(agent: Agent, environ: Mapping[str, str]) -> Path:
    if agent.home_variable and (configured := environ.get(agent.home_variable)):
        return Path(configured)
    return _in_home(agent.home, environ)


def transcripts_home(agent: Agent, environ: Mapping[str, str]) -> Path:
    """The directory to which the pattern of its transcripts is relative."""
    return _in_home(agent.data_home, environ) if agent.data_home else agent_home(agent, environ)


def _in_home(name: str, environ: Mapping[str, str]) -> Path:
    for parent, variable in _XDG.items():
        if name.startswith(f"{parent}/") and (configured := environ.get(variable)):
            return Path(configured) / name.removeprefix(f"{parent}/")
    return Path(environ.get("HOME", "/")) / name


def agent_files(
    agent: Agent, scope: str, layout: Layout, environ: Mapping[str, str], project: Path
) -> list[SettingsFile]:
    """Hooks and MCP server may share a file."""
    assert agent.hooks_of is not None
    home = agent_home(agent, environ) if scope == "user" else project
    path, server_path = _place(agent.hooks, scope, home), _place(agent.mcp, scope, home)
    if path is None:
        raise SettingsError(f"{agent.title} has no hooks of a project: use --scope user")
    launchers = (layout.launcher, layout.mcp_launcher)
    hooks = SettingsFile.of(path, agent.hooks_of(agent, layout.launcher), launchers)
    if server_path is None or agent.server_of is None:
        return [hooks]
    server = SettingsFile.of(server_path, agent.server_of(layout.mcp_launcher), launchers)
    if server.path == hooks.path:
        entries: tuple[Entry, ...] = (*hooks.entries, *server.entries)
        return [SettingsFile.of(path, entries, launchers)]
    return [hooks, server]


def rules_file(agent: Agent, project: Path) -> list[SettingsFile]:
    """Returns the rules file of a project, only on request: it is a file of the user."""
    if not agent.rules:
        raise SettingsError(f"{agent.title} needs no rules file: its hooks give it the context")
    return [SettingsFile(project / agent.rules, content=agent.rules_text)]


def _place(file: ConfigFile, scope: str, home: Path) -> Path | None:
    name = file.user if scope == "user" else file.project
    if not name:
        return None
    path = home / name
    with_comments = path.with_suffix(".jsonc")
    is_other = file.may_be_jsonc and not path.exists() and with_comments.exists()
    return with_comments if is_other else path

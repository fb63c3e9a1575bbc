"""The files with which claude-mem is attached to an agent, from the table of agents.

Each is a JSON file with entries of ours, a TOML file with a table of ours, or a file that is ours
as a whole.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from claude_mem.agents import OPENCODE, Agent, AgentEvent
from claude_mem.config import Layout
from claude_mem.errors import SettingsError
from claude_mem.install.claude_settings import Change, read
from claude_mem.install.json_entries import Editor, Entry, containers
from claude_mem.install.toml_table import TomlTable
from claude_mem.types import Json

SERVER = "claude-mem"
PLUGIN = Path(__file__).with_name("opencode_plugin.js")
_LAUNCHER_MARK = '"LAUNCHER"'
_RULES = """\
---
trigger: always_on
---
Earlier sessions of this project are in the memory server claude-mem. At the start of a task, call
its tool `search` with the words of the task.
"""


@dataclass(frozen=True, slots=True)
class AgentFile:
    """A file, and what of it is ours: entries, a table, or the content as a whole."""

    path: Path
    entries: tuple[Entry, ...] = ()
    table: TomlTable | None = None
    content: str | None = None
    launchers: tuple[Path, ...] = ()

    def with_ours(self) -> Change:
        before = read(self.path)
        text = self._decoded(before)
        return Change(self.path, before, self._with_ours(text).encode())

    def _with_ours(self, text: str) -> str:
        if self.content is not None:
            return self.content
        if self.table is not None:
            return self.table.with_table(text)
        return self._editor.with_entries(text, self.entries)

    def without_ours(self, original: bytes | None) -> Change:
        """`original`: the content before install."""
        before = read(self.path)
        if before is None:
            return Change(self.path, None, None)
        if self.content is not None:
            return Change(self.path, before, None)
        text = self._decoded(before)
        if self.table is not None:
            after = self.table.without_table(text)
        else:
            existed = containers(self._decoded(original), self.entries)
            after = self._editor.without_entries(text, self.entries, existed)
        return Change(self.path, before, after.encode())

    def has_any(self) -> bool:
        """Whether some of it is installed."""
        return len(self.missing()) < self._parts

    def missing(self) -> list[str]:
        """What is not installed, by name."""
        before = read(self.path)
        if self.content is not None:
            return [] if before is not None else [self.path.name]
        text = self._decoded(before)
        if self.table is not None:
            return [] if self.table.has_table(text) else [SERVER]
        return [place[-1] for place in self._editor.missing(text, self.entries)]

    @property
    def _parts(self) -> int:
        return sum(not entry.is_default for entry in self.entries) or 1

    @property
    def _editor(self) -> Editor:
        return Editor(self.path, self.launchers)

    def _decoded(self, data: bytes | None) -> str:
        try:
            return (data or b"").decode("utf-8")
        except UnicodeDecodeError:
            raise SettingsError(f"{self.path} is not UTF-8; the file was not changed") from None


def agent_home(agent: Agent, environ: Mapping[str, str]) -> Path:
    if agent.home_variable and (configured := environ.get(agent.home_variable)):
        return Path(configured)
    if agent is OPENCODE and (configured := environ.get("XDG_CONFIG_HOME")):
        return Path(configured) / "opencode"
    return Path(environ.get("HOME", "/")) / agent.home


def transcripts_home(agent: Agent, environ: Mapping[str, str]) -> Path:
    """The directory to which the pattern of its transcripts is relative."""
    if not agent.data_home:
        return agent_home(agent, environ)
    data = environ.get("XDG_DATA_HOME")
    if agent is OPENCODE and data:
        return Path(data) / "opencode"
    return Path(environ.get("HOME", "/")) / agent.data_home


def agent_files(
    agent: Agent, scope: str, layout: Layout, environ: Mapping[str, str], project: Path
) -> list[AgentFile]:
    """Hooks and MCP server may share a file."""
    hooks = _place(agent, agent.hooks.user, agent.hooks.project, scope, environ, project)
    server = _place(agent, agent.mcp.user, agent.mcp.project, scope, environ, project)
    launchers = (layout.launcher, layout.mcp_launcher)
    if agent.hooks_shape in ("copilot", "plugin"):
        files = [AgentFile(_required(hooks, agent), content=_own_content(agent, layout))]
    else:
        entries = _hook_entries(agent, layout.launcher)
        files = [AgentFile(_required(hooks, agent), entries, launchers=launchers)]
    if server is None:
        return files
    if agent.mcp_shape == "toml":
        table = TomlTable(server, "mcp_servers", SERVER, layout.mcp_launcher)
        return [*files, AgentFile(server, table=table)]
    entry = _server_entry(agent, layout.mcp_launcher)
    if server == files[0].path:
        return [AgentFile(server, (*files[0].entries, entry), launchers=launchers)]
    return [*files, AgentFile(server, (entry,), launchers=launchers)]


def rules_file(agent: Agent, project: Path) -> list[AgentFile]:
    """Only on request: it is a file in the user's project."""
    if not agent.rules:
        raise SettingsError(f"{agent.title} needs no rules file: its hooks give it the context")
    return [AgentFile(project / agent.rules, content=_RULES)]


def _required(path: Path | None, agent: Agent) -> Path:
    if path is None:
        raise SettingsError(f"{agent.title} has no hooks of a project: use --scope user")
    return path


def _place(
    agent: Agent, user: str, of_project: str, scope: str, environ: Mapping[str, str], project: Path
) -> Path | None:
    name = user if scope == "user" else of_project
    if not name:
        return None
    path = agent_home(agent, environ) / name if scope == "user" else project / name
    with_comments = path.with_suffix(".jsonc")
    is_other = path.name == "opencode.json" and not path.exists() and with_comments.exists()
    return with_comments if is_other else path


def _command(launcher: Path, agent: Agent, event: AgentEvent) -> str:
    return f"{shlex.quote(str(launcher))} {agent.name} {event.kind}"


def _hook_entries(agent: Agent, launcher: Path) -> tuple[Entry, ...]:
    version = (Entry(("version",), 1, is_element=False, is_default=True),)
    hooks = tuple(
        Entry(("hooks", event.name), _hook(agent, event, launcher)) for event in agent.events
    )
    return (*version, *hooks) if agent.hooks_shape == "cursor" else hooks


def _hook(agent: Agent, event: AgentEvent, launcher: Path) -> Json:
    command = _command(launcher, agent, event)
    timeout = event.timeout * agent.ticks_per_second
    if agent.hooks_shape == "copilot":
        return {"type": "command", "bash": command, "timeoutSec": timeout}
    if agent.hooks_shape == "cursor":
        return {"command": command, "timeout": timeout}
    if agent.hooks_shape == "windsurf":
        return {"command": command, "show_output": False}
    return {"hooks": [{"type": "command", "command": command, "timeout": timeout}]}


def _own_content(agent: Agent, layout: Layout) -> str:
    if agent.hooks_shape == "plugin":
        text = PLUGIN.read_text("utf-8")
        return text.replace(_LAUNCHER_MARK, json.dumps(str(layout.launcher)))
    hooks = {event.name: [_hook(agent, event, layout.launcher)] for event in agent.events}
    return json.dumps({"version": 1, "hooks": hooks}, indent=2) + "\n"


def _server_entry(agent: Agent, launcher: Path) -> Entry:
    program = str(launcher)
    if agent.mcp_shape == "mcp":
        value: Json = {"type": "local", "command": [program], "enabled": True}
        return Entry(("mcp", SERVER), value, is_element=False)
    if agent.mcp_shape == "copilot":
        value = {"type": "local", "command": program, "args": [], "tools": ["*"]}
    else:
        value = {"command": program, "args": []}
    return Entry(("mcpServers", SERVER), value, is_element=False)

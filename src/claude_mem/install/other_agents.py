"""Attaches claude-mem to agents other than Claude Code, refreshes it after an upgrade, and detaches
it. Every file is backed up and recorded before it changes."""

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from claude_mem.agents import find_agent, installable_agents
from claude_mem.agents.agent import Agent
from claude_mem.config import Layout
from claude_mem.install import changed_files
from claude_mem.install.agent_files import agent_files, agent_home, rules_file
from claude_mem.install.changed_files import Outcome
from claude_mem.install.settings_files import Change, SettingsFile, check_writable

SCOPES = ("user", "project")


@dataclass(frozen=True, slots=True)
class Attachment:
    """An agent with the files of one scope."""

    agent: Agent
    scope: str
    layout: Layout
    environ: Mapping[str, str]
    project: Path
    with_rules: bool = False

    @property
    def files(self) -> list[SettingsFile]:
        rules = rules_file(self.agent, self.project) if self.with_rules else []
        return [
            *agent_files(self.agent, self.scope, self.layout, self.environ, self.project),
            *rules,
        ]

    def changes(self) -> list[Change]:
        """What install would do; raises before anything is written if a file cannot be changed."""
        return [change for _, change in self._changes()]

    def _changes(self) -> list[tuple[SettingsFile, Change]]:
        changes = [
            (file, change) for file in self.files if not (change := file.with_ours()).is_empty
        ]
        for file, _ in changes:
            check_writable(file.path)
        return changes

    def install(self) -> list[Outcome]:
        outcomes = []
        for file, change in self._changes():
            backup = changed_files.write(self.layout, file, change, self.agent.name)
            outcomes.append(Outcome(f"{self.agent.title}: changed {file.path}.{backup}"))
        return outcomes or [Outcome(f"{self.agent.title}: already installed.")]

    def is_attached(self) -> bool:
        return any(file.has_any() for file in self.files)

    def missing(self) -> list[str]:
        return [f"{name} in {file.path}" for file in self.files for name in file.missing()]


def is_present(agent: Agent, environ: Mapping[str, str]) -> bool:
    """Whether its program is on the PATH, or it has been used by this user."""
    search_path = environ.get("PATH", "")
    has_program = any(shutil.which(program, path=search_path) for program in agent.programs)
    return has_program or agent_home(agent, environ).is_dir()


def present_agents(environ: Mapping[str, str]) -> list[Agent]:
    return [agent for agent in installable_agents() if is_present(agent, environ)]


def attachments(
    agent: Agent, layout: Layout, environ: Mapping[str, str], project: Path | None = None
) -> list[Attachment]:
    """Where the agent is attached: for the user, and in this directory."""
    places = (Attachment(agent, s, layout, environ, project or Path.cwd()) for s in SCOPES)
    return [place for place in places if place.is_attached()]


def detach_agent(agent: Agent, layout: Layout, environ: Mapping[str, str]) -> list[Outcome]:
    """Removes our entries from every file that install recorded, and from those of the user and
    this directory."""
    removed = f"{agent.title}: removed our entries from"
    files = _candidates(agent, layout, environ)
    return changed_files.remove_ours(layout, agent.name, files, removed)


def files_with_entries(agent: Agent, layout: Layout, environ: Mapping[str, str]) -> list[Path]:
    """What `detach_agent` would change."""
    return [file.path for file in _candidates(agent, layout, environ) if file.has_any()]


def _candidates(agent: Agent, layout: Layout, environ: Mapping[str, str]) -> Iterable[SettingsFile]:
    """The files of the user and of this directory, and those of other projects that were
    recorded."""
    recorded = changed_files.recorded_paths(layout, agent.name)
    files = agent_files(agent, "user", layout, environ, Path.cwd())
    projects = dict.fromkeys((Path.cwd(), *(_project_of(agent, path) for path in recorded)))
    for project in filter(None, projects):
        files += agent_files(agent, "project", layout, environ, project)
        if agent.rules and project / agent.rules in recorded:
            files += rules_file(agent, project)
    return {file.path: file for file in files}.values()


def _project_of(agent: Agent, path: Path) -> Path | None:
    for name in (agent.hooks.project, agent.mcp.project, agent.rules):
        parts = Path(name).parts
        if parts and path.with_suffix(Path(name).suffix).parts[-len(parts) :] == parts:
            return path.parents[len(parts) - 1]
    return None


def refresh(layout: Layout, environ: Mapping[str, str]) -> list[Path]:
    """Brings the installed files of all agents up to date after an upgrade; the files it changed.

    It changes only files that install recorded and that still have entries of ours.
    """
    changed = []
    for name in dict.fromkeys(record.agent for record in changed_files.read_records(layout)):
        agent = find_agent(name)
        if agent is None or agent not in installable_agents():
            continue
        recorded = changed_files.recorded_paths(layout, name)
        for file in _candidates(agent, layout, environ):
            if file.path in recorded and file.has_any():
                change = file.with_ours()
                if not change.is_empty:
                    changed_files.write(layout, file, change, name)
                    changed.append(change.path)
    return changed


def program_path(agent: Agent, environ: Mapping[str, str]) -> str:
    paths = (shutil.which(name, path=environ.get("PATH", os.defpath)) for name in agent.programs)
    return next((path for path in paths if path), "")

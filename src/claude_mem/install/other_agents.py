"""Attaches claude-mem to agents other than Claude Code, refreshes it after an upgrade, and detaches
it. Every file is backed up and recorded before it changes."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from claude_mem.agents import BY_NAME, CODEX, INSTALLABLE, Agent
from claude_mem.config import Layout
from claude_mem.errors import SettingsError
from claude_mem.install import changed_files
from claude_mem.install.attachment import Outcome
from claude_mem.install.claude_settings import Change, apply, check_writable
from claude_mem.install.other_agent_files import AgentFile, agent_files, agent_home, rules_file

SCOPES = ("user", "project")
TRUST = (
    "Codex asks you to review new hooks: start codex and accept them. Until then it skips them"
    " without a message."
)


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
    def files(self) -> list[AgentFile]:
        rules = rules_file(self.agent, self.project) if self.with_rules else []
        return [
            *agent_files(self.agent, self.scope, self.layout, self.environ, self.project),
            *rules,
        ]

    def changes(self) -> list[Change]:
        """What install would do; raises before anything is written if a file cannot be changed."""
        changes = [change for file in self.files if not (change := file.with_ours()).is_empty]
        for change in changes:
            check_writable(change.path)
        return changes

    def install(self) -> list[Outcome]:
        outcomes = []
        for change in self.changes():
            backup = changed_files.save_record(self.layout, change, self.agent.name)
            try:
                apply(change)
            except SettingsError:
                changed_files.delete_record(self.layout, change.path)
                raise
            saved = f" Backup: {backup}" if backup else ""
            outcomes.append(Outcome(f"{self.agent.title}: changed {change.path}.{saved}"))
        return outcomes or [Outcome(f"{self.agent.title}: already installed.")]

    def is_attached(self) -> bool:
        return any(_has_any(file) for file in self.files)

    def missing(self) -> list[str]:
        return [f"{name} in {file.path}" for file in self.files for name in file.missing()]


def _has_any(file: AgentFile) -> bool:
    try:
        return file.has_any()
    except SettingsError:
        return False


def is_present(agent: Agent, environ: Mapping[str, str]) -> bool:
    """Whether its program is on the PATH, or it has been used by this user."""
    search_path = environ.get("PATH", "")
    has_program = any(shutil.which(program, path=search_path) for program in agent.programs)
    return has_program or agent_home(agent, environ).is_dir()


def present_agents(environ: Mapping[str, str]) -> list[Agent]:
    return [agent for agent in INSTALLABLE if is_present(agent, environ)]


def attachments(
    agent: Agent, layout: Layout, environ: Mapping[str, str], project: Path | None = None
) -> list[Attachment]:
    """Where the agent is attached: for the user, and in this directory."""
    places = (Attachment(agent, s, layout, environ, project or Path.cwd()) for s in SCOPES)
    return [place for place in places if place.is_attached()]


def detach_agent(agent: Agent, layout: Layout, environ: Mapping[str, str]) -> list[Outcome]:
    """From every file that install recorded, and from those of the user and this directory."""
    outcomes: list[Outcome] = []
    recorded = {f.path: f for f in changed_files.read_records(layout) if f.agent == agent.name}
    files = {file.path: file for file in _candidates(agent, layout, environ, list(recorded))}
    for path, file in files.items():
        try:
            record = recorded.get(path)
            change = _reverted(file, record)
            apply(change)
            if record is not None:
                changed_files.delete_record(layout, path)
            if not change.is_empty:
                outcomes.append(Outcome(f"{agent.title}: removed our entries from {path}."))
        except SettingsError as error:
            outcomes.append(
                Outcome(
                    f"Our entries were not removed, please edit the file yourself: {error}.", True
                )
            )
    return outcomes


def files_with_entries(agent: Agent, layout: Layout, environ: Mapping[str, str]) -> list[Path]:
    """What `detach_agent` would change."""
    recorded = [f.path for f in changed_files.read_records(layout) if f.agent == agent.name]
    files = _candidates(agent, layout, environ, recorded)
    return list(dict.fromkeys(file.path for file in files if _has_any(file)))


def _reverted(file: AgentFile, record: changed_files.ChangedFile | None) -> Change:
    if record is None:
        return file.without_ours(None) if _has_any(file) else Change(file.path, None, None)
    change = file.without_ours(record.before)
    if change.before == record.after:  # nothing else in it has changed
        return Change(file.path, record.after, record.before)
    return change


def _candidates(
    agent: Agent, layout: Layout, environ: Mapping[str, str], recorded: list[Path]
) -> list[AgentFile]:
    """The files of the user and of this directory, and those of other projects that were
    recorded."""
    files = agent_files(agent, "user", layout, environ, Path.cwd())
    projects = dict.fromkeys((Path.cwd(), *(_project_of(agent, path) for path in recorded)))
    for project in filter(None, projects):
        files += agent_files(agent, "project", layout, environ, project)
        if agent.rules and project / agent.rules in recorded:
            files += rules_file(agent, project)
    return files


def _project_of(agent: Agent, path: Path) -> Path | None:
    for name in (agent.hooks.project, agent.mcp.project, agent.rules):
        parts = Path(name).parts
        if parts and path.with_suffix(Path(name).suffix).parts[-len(parts) :] == parts:
            return path.parents[len(parts) - 1]
    return None


def refresh(layout: Layout, environ: Mapping[str, str]) -> list[Path]:
    """Brings the installed files of all agents up to date after an upgrade; the files it changed.

    Only files that install recorded and that still have entries of ours.
    """
    changed = []
    for record in changed_files.read_records(layout):
        agent = BY_NAME.get(record.agent)
        if agent is None or agent not in INSTALLABLE:
            continue
        for file in _candidates(agent, layout, environ, [record.path]):
            if file.path != record.path or not _has_any(file):
                continue
            change = file.with_ours()
            if not change.is_empty:
                changed_files.save_record(layout, change, agent.name)
                apply(change)
                changed.append(change.path)
    return changed


def advice(agent: Agent) -> str:
    """What the user has to do in the agent."""
    return TRUST if agent is CODEX else ""


def program_path(agent: Agent, environ: Mapping[str, str]) -> str:
    paths = (shutil.which(name, path=environ.get("PATH", os.defpath)) for name in agent.programs)
    return next((path for path in paths if path), "")

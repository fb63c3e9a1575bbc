"""The hooks of Claude Code, in its plugin and in its settings."""

from dataclasses import replace
from pathlib import Path

from claude_mem.agents.agent import AgentEvent
from claude_mem.agents.claude import AGENT, FILE_HINTS, hook_entry, hooks_of
from claude_mem.install.settings_files import SettingsFile
from claude_mem.types import Json

EVENTS = AGENT.events


def events_for(*, file_hints: bool) -> tuple[AgentEvent, ...]:
    return (*EVENTS, FILE_HINTS) if file_hints else EVENTS


def all_entries(*command_line: str, events: tuple[AgentEvent, ...] = EVENTS) -> dict[str, Json]:
    """The content of a hooks.json."""
    return {"hooks": {event.name: [hook_entry(event, *command_line)] for event in events}}


def hooks_in(path: Path, launcher: Path, events: tuple[AgentEvent, ...] = EVENTS) -> SettingsFile:
    entries = hooks_of(replace(AGENT, events=events), launcher)
    return SettingsFile.of(path, entries, (launcher,))


def hooked_events(path: Path, launcher: Path) -> list[str]:
    """The events for which the file has our hook."""
    return [place[-1] for place in hooks_in(path, launcher).places()]

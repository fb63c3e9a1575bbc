"""Finds the transcripts that agents keep. Imports little: `install` counts them for its offer."""

import os
from collections.abc import Iterable
from pathlib import Path

from claude_mem.agents import AGENTS, CLAUDE, Agent
from claude_mem.install import agent_files
from claude_mem.install.claude import transcripts_dir


def transcripts_home() -> Path:
    return transcripts_dir(os.environ)


def chosen(names: tuple[str, ...] = ()) -> list[Agent]:
    return [a for a in AGENTS if a.transcripts and (not names or a.name in names)]


def transcripts_place(agent: Agent) -> Path:
    return (
        transcripts_home() if agent is CLAUDE else agent_files.transcripts_home(agent, os.environ)
    )


def all_transcripts(names: tuple[str, ...] = ()) -> list[Path]:
    """Of these agents, or of all."""
    files: list[Path] = []
    for agent in chosen(names):
        if agent is CLAUDE:
            files += find_transcripts([transcripts_home()])
        else:
            files += _find_agent_transcripts(transcripts_place(agent), agent.transcripts)
    return files


def find_transcripts(places: Iterable[Path]) -> list[Path]:
    """Files of sessions; those of subagents are left out, because hooks report their work as
    part of the parent session."""
    transcripts: dict[Path, None] = {}
    for place in map(Path.absolute, places):
        if place.is_dir():
            files = (path for path in place.rglob("*.jsonl") if _is_session_file(path, place))
            transcripts.update(dict.fromkeys(sorted(files)))
        elif place.exists():
            transcripts[place] = None
    return list(transcripts)


def _find_agent_transcripts(home: Path, pattern: str) -> list[Path]:
    """The sessions of another agent: the files below its directory that match."""
    return sorted(path for path in home.glob(pattern) if path.is_file()) if pattern else []


def _is_session_file(path: Path, root: Path) -> bool:
    of_subagent = path.name.startswith("agent-") or "subagents" in path.relative_to(root).parts
    return not of_subagent and path.is_file()

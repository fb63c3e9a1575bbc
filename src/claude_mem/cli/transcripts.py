"""Where the transcripts of the agents of this user are."""

import os
from pathlib import Path

from claude_mem.agents import AGENTS, CLAUDE, Agent
from claude_mem.install import agent_files
from claude_mem.install.claude import transcripts_dir
from claude_mem.intake.transcripts.transcript_files import find_agent_transcripts, find_transcripts


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
            files += find_agent_transcripts(transcripts_place(agent), agent.transcripts)
    return files

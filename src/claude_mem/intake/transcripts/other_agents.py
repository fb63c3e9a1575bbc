"""Transcripts of agents other than Claude Code, read by the functions in `agents/`.

The first line tells which agent's it is; a file may also be one JSON object, or a database.
"""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from claude_mem.agents import all_agents
from claude_mem.agents.agent import Agent, Lines, TranscriptEvent
from claude_mem.agents.reading.fields import Fields
from claude_mem.errors import BadInput
from claude_mem.hook.private_text import strip_payload
from claude_mem.intake.transcripts.transcript import Transcript, open_regular_file
from claude_mem.json_objects import parse_object
from claude_mem.store.transfer.typescript.snapshot import open_copy

_SQLITE = b"SQLite format 3\0"
_LARGEST_EXPORT = 256 * 1024 * 1024


@dataclass(slots=True)
class AgentTranscript(Transcript):
    """Lines, which are read as a whole."""

    agent: Agent = field(kw_only=True)

    def events(self, start: int = 0) -> Iterator[TranscriptEvent]:
        lines = [Fields(line) for line in self.objects()]
        if lines:
            yield from _read(self.agent, lines, self.path)


@dataclass(slots=True)
class SessionsFile(Transcript):
    """A file with one JSON object, or a database of sessions; whose it is shows when it is read."""

    dialect: str = ""

    def events(self, start: int = 0) -> Iterator[TranscriptEvent]:
        for agent, lines in self._sessions():
            self.lines += 1
            self.dialect = agent.name
            yield from _read(agent, lines, self.path)

    def _sessions(self) -> Iterator[tuple[Agent, Lines]]:
        with open_regular_file(self.path) as file:
            head = file.read(len(_SQLITE))
            if head != _SQLITE:
                session = Fields(parse_object(strip_payload(head + file.read(_LARGEST_EXPORT))))
                if (agent := _agent_of(session)) is not None:
                    yield agent, [session]
                return
        with open_copy(self.path) as copy:
            yield from _stored_sessions(copy)


def open_agent_transcript(path: Path, head: bytes) -> Transcript | None:
    """`head` is its first line; None if no agent writes such a file."""
    if head.startswith(_SQLITE[:15]) or (path.suffix == ".json" and head.lstrip()[:1] == b"{"):
        return SessionsFile(path)
    try:
        first = json.loads(head)
    except (ValueError, RecursionError):
        return None
    agent = _agent_of(Fields(first)) if isinstance(first, dict) else None
    return AgentTranscript(path, dialect=agent.name, agent=agent) if agent is not None else None


def _agent_of(first: Fields) -> Agent | None:
    """None: it is Claude Code's, or none that is known."""
    return next((a for a in all_agents() if a.transcripts and a.transcripts.is_known(first)), None)


def _read(agent: Agent, lines: Lines, path: Path) -> list[TranscriptEvent]:
    assert agent.transcripts is not None and agent.transcripts.read is not None
    return agent.transcripts.read(lines, path)


def _stored_sessions(copy: sqlite3.Connection) -> Iterator[tuple[Agent, Lines]]:
    """Reads the sessions of the agent whose database it is: the queries of the others fail."""
    problem: sqlite3.Error | None = None
    for agent in all_agents():
        if agent.transcripts is None or agent.transcripts.read_database is None:
            continue
        try:
            for lines in agent.transcripts.read_database(copy):
                yield agent, lines
        except sqlite3.Error as error:
            problem = error
        else:
            return
    raise BadInput(f"not a database of an agent that can be read: {problem}")

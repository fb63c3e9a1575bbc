"""Transcripts of agents other than Claude Code; the first line tells which agent's it is."""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from claude_mem.errors import BadInput
from claude_mem.hook.private_text import strip_private
from claude_mem.intake.transcripts.agent_formats import Reader, format_of
from claude_mem.intake.transcripts.opencode_sessions import read_sessions
from claude_mem.intake.transcripts.transcript import (
    Payload,
    Transcript,
    TranscriptEvent,
    open_regular_file,
)
from claude_mem.json_objects import parse_object
from claude_mem.store.transfer.typescript.snapshot import open_copy

OPENCODE = "opencode"
_SQLITE = b"SQLite format 3\0"
_LARGEST_EXPORT = 256 * 1024 * 1024


@dataclass(slots=True)
class AgentTranscript(Transcript):
    """Of an agent other than Claude Code; it is read as a whole."""

    reader: Reader = field(kw_only=True)

    def events(self, start: int = 0) -> Iterator[TranscriptEvent]:
        lines = list(self.objects())
        if lines:
            yield from self.reader(lines, self.path)


@dataclass(slots=True)
class OpenCodeTranscript(Transcript):
    """The database of OpenCode, or a file of `opencode export`: sessions with their messages."""

    def events(self, start: int = 0) -> Iterator[TranscriptEvent]:
        for session in self._sessions():
            self.lines += 1
            yield from read_sessions(session, self.path)

    def _sessions(self) -> Iterator[Payload]:
        with open_regular_file(self.path) as file:
            head = file.read(len(_SQLITE))
            if head != _SQLITE:
                yield parse_object(strip_private(head + file.read(_LARGEST_EXPORT)))
                return
        try:
            yield from _stored_sessions(self.path)
        except sqlite3.Error as error:
            raise BadInput(f"not a database of OpenCode that can be read: {error}") from None


def open_agent_transcript(path: Path, head: bytes) -> Transcript | None:
    """`head` is its first line; None if no agent writes such a file."""
    if head.startswith(_SQLITE[:15]) or (path.suffix == ".json" and head.lstrip()[:1] == b"{"):
        return OpenCodeTranscript(path, dialect=OPENCODE)
    try:
        first = json.loads(head)
    except (ValueError, RecursionError):
        return None
    known = format_of(first) if isinstance(first, dict) else None
    if known is None:
        return None
    dialect, reader = known
    return AgentTranscript(path, dialect=dialect, reader=reader)


def _stored_sessions(path: Path) -> Iterator[Payload]:
    with open_copy(path) as copy:
        for session_id, directory, parent in copy.execute(
            "SELECT id, directory, parent_id FROM session ORDER BY time_created, id"
        ):
            if parent is None:  # hooks report the work of subagents as part of their parent
                info: Payload = {"id": session_id, "directory": directory}
                yield {"info": info, "messages": list(_messages(copy, session_id))}


def _messages(copy: sqlite3.Connection, session_id: str) -> Iterator[Payload]:
    rows = copy.execute(
        "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id",
        (session_id,),
    ).fetchall()
    for message_id, data in rows:
        parts = copy.execute(
            "SELECT id, data FROM part WHERE message_id = ? ORDER BY id", (message_id,)
        )
        yield {
            "info": _with_id(message_id, data),
            "parts": [_with_id(part_id, part) for part_id, part in parts],
        }


def _with_id(identity: str, data: str) -> Payload:
    return {**parse_object(strip_private(data.encode("utf-8", "replace"))), "id": identity}

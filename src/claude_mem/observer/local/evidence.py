"""Everything that a turn shows, collected before it is written down."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from claude_mem.observer.local.commands import CommandLog, read_commands
from claude_mem.observer.local.files import FileWork, files_changed, files_read
from claude_mem.observer.local.research import research_topics
from claude_mem.observer.local.user_request import Request, parse_request
from claude_mem.types import ToolUse, Turn

Origin = Literal["plan", "request", "statement", "final"]

LONG_STATEMENT = 200  # characters: longer statements count as sources of the memories


@dataclass(frozen=True, slots=True)
class SourceText:
    text: str
    origin: Origin
    sources: tuple[int, ...] = ()  # ids of its events


@dataclass(frozen=True, slots=True)
class TurnEvidence:
    request: Request
    statements: tuple[ToolUse, ...]  # the agent's messages before the last one
    final: str  # the agent's last message
    final_sources: tuple[int, ...]
    files: dict[str, FileWork]
    files_read: tuple[str, ...]
    research: str
    commands: CommandLog
    error: str  # the error that ended the turn
    sources: tuple[int, ...]  # the events of the messages that matter

    def texts(self) -> Iterator[SourceText]:
        """In chronological order."""
        request = self.request.text
        if self.request.error:
            request += f"\n\nError: {self.request.error}"
        yield SourceText(self.request.plan, "plan")
        yield SourceText(request, "request")
        for event in self.statements:
            yield SourceText(event.text or "", "statement", (event.id,))
        yield SourceText(self.final, "final", self.final_sources)


def collect_evidence(turn: Turn) -> TurnEvidence:
    messages = [
        event for event in turn.events if event.kind in ("Statement", "Stop") and event.text
    ]
    stops = [event for event in messages if event.kind == "Stop"]
    final = (stops or messages)[-1].text or "" if messages else ""
    files = files_changed(turn)
    errors = [event.text or "" for event in turn.events if event.kind == "StopFailure"]
    return TurnEvidence(
        request=parse_request(turn.prompt or ""),
        statements=tuple(e for e in messages if e.kind == "Statement" and e.text != final),
        final=final,
        final_sources=tuple(event.id for event in messages if event.text == final),
        files=files,
        files_read=tuple(path for path in files_read(turn) if path not in files),
        research=research_topics(turn),
        commands=read_commands(turn),
        error=errors[-1] if errors else "",
        sources=_sources(messages, final),
    )


def _sources(messages: list[ToolUse], final: str) -> tuple[int, ...]:
    return tuple(
        event.id
        for event in messages
        if event.text == final or len(event.text or "") > LONG_STATEMENT
    )

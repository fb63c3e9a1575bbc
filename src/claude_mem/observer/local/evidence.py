"""Everything that a turn shows, collected before it is written down."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from claude_mem.observer.local.commands import CommandLog, read_commands
from claude_mem.observer.local.files import FileWork, files_changed, files_read
from claude_mem.observer.local.research import research_topics
from claude_mem.observer.local.user_request import Request, parse_request
from claude_mem.types import RecordKind, ToolUse, Turn

Origin = Literal[
    "request", "paste", "statement", "final", "plan", "question", "report", "notice", "compaction",
    "commit", "pull_request",
]  # fmt: skip

PROMPT = "UserPromptSubmit"  # has words only where the client sent it: a background task reports
LONG_STATEMENT = 200  # characters: longer statements count as sources of the memories
LONGEST_REQUEST = 1_500  # a longer prompt is pasted, at least in part
# Of a text that describes more than this turn, or as much as a message, the start is enough.
_LIMITS: dict[Origin, int] = {
    "report": 12_000,
    "notice": 12_000,
    "compaction": 4_000,
    "plan": 12_000,
}
_WRITTEN: dict[RecordKind, Origin] = {
    "plan": "plan",
    "question": "question",
    "report": "report",
    "compaction": "compaction",
    "commit": "commit",
    "pull_request": "pull_request",
}


@dataclass(frozen=True, slots=True)
class SourceText:
    text: str
    origin: Origin
    sources: tuple[int, ...] = ()  # ids of its events
    messages_after: int = 0  # of the agent, in this turn


@dataclass(frozen=True, slots=True)
class TurnEvidence:
    request: Request
    statements: tuple[ToolUse, ...]  # the agent's messages before the last one
    final: str  # the agent's last message
    final_sources: tuple[int, ...]
    written: tuple[SourceText, ...]  # what models wrote for the tools: plans, reports, commits
    descriptions: tuple[str, ...]  # of the work of subagents
    tasks: tuple[str, ...]
    files: dict[str, FileWork]
    files_read: tuple[str, ...]  # and not edited
    edited_files_read: tuple[str, ...]
    research: str
    commands: CommandLog
    tools: tuple[str, ...]  # the name of each tool use
    failed_tools: int
    error: str  # the error that ended the turn
    sources: tuple[int, ...]  # the events of the messages that matter

    def texts(self) -> Iterator[SourceText]:
        """The request, then messages in their order, then what was written for tools."""
        request = self.request.text
        if self.request.error:
            request += f"\n\nError: {self.request.error}"
        yield SourceText(self.request.plan, "paste")
        yield SourceText(request, "paste" if len(request) > LONGEST_REQUEST else "request")
        for number, event in enumerate(self.statements):
            after = len(self.statements) - number
            yield SourceText(event.text or "", "statement", (event.id,), after)
        yield from self.written
        yield SourceText(self.final, "final", self.final_sources)

    @property
    def said(self) -> int:
        """The length of what the user and the agent said."""
        messages = (self.request.text, self.request.plan, self.final)
        return sum(map(len, messages)) + sum(len(event.text or "") for event in self.statements)

    def all_files_read(self, count: int) -> tuple[str, ...]:
        """Those that were not edited first, since the list of edited files has the others."""
        return (*self.files_read, *self.edited_files_read)[:count]

    def written_as(self, *origins: Origin) -> list[str]:
        return [source.text for source in self.written if source.origin in origins]

    @property
    def subjects(self) -> list[str]:
        """First lines of commits and pull requests."""
        texts = self.written_as("commit", "pull_request") or self.commands.subjects
        lines = (next(iter(text.strip().splitlines()), "").strip() for text in texts)
        return list(dict.fromkeys(line for line in lines if line))


def collect_evidence(turn: Turn) -> TurnEvidence:
    messages = [
        event for event in turn.events if event.kind in ("Statement", "Stop") and event.text
    ]
    stops = [event for event in messages if event.kind == "Stop"]
    final = (stops or messages)[-1].text or "" if messages else ""
    files, read = files_changed(turn), files_read(turn)
    errors = [event.text or "" for event in turn.events if event.kind == "StopFailure"]
    tools = [event for event in turn.events if event.tool_name and not event.agent_id]
    return TurnEvidence(
        request=parse_request(turn.prompt or ""),
        statements=tuple(e for e in messages if e.kind == "Statement" and e.text != final),
        final=final,
        final_sources=tuple(event.id for event in messages if event.text == final),
        written=tuple(_written(turn)),
        descriptions=_texts_of(turn, "description", ("Task", "Agent")),
        tasks=_texts_of(turn, "task"),
        files=files,
        files_read=tuple(path for path in read if path not in files),
        edited_files_read=tuple(path for path in read if path in files),
        research=research_topics(turn),
        commands=read_commands(turn),
        tools=tuple(event.tool_name or "" for event in tools),
        failed_tools=sum(event.kind == "PostToolUseFailure" for event in tools),
        error=errors[-1] if errors else "",
        sources=_sources(messages, final),
    )


def _written(turn: Turn) -> Iterator[SourceText]:
    for event in turn.events:
        for part in event.parts:
            if (origin := _WRITTEN.get(part.kind)) is not None:
                if event.kind == PROMPT:
                    origin = "notice"
                text = part.text[: _LIMITS.get(origin, len(part.text))]
                yield SourceText(text, origin, (event.id,))


def _texts_of(turn: Turn, kind: RecordKind, tools: tuple[str, ...] = ()) -> tuple[str, ...]:
    texts = (
        part.text
        for event in turn.events
        if not tools or event.tool_name in tools
        for part in event.parts
        if part.kind == kind
    )
    return tuple(dict.fromkeys(texts))


def _sources(messages: list[ToolUse], final: str) -> tuple[int, ...]:
    return tuple(
        event.id
        for event in messages
        if event.text == final or len(event.text or "") > LONG_STATEMENT
    )

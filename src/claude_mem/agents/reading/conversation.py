"""The events of a past session of another agent, as its transcript tells of them.

A reader of an agent's format calls these methods in order; the events are those of Claude Code.
"""

from dataclasses import dataclass, field
from pathlib import Path

from claude_mem.agents.agent import Events, Payload, TranscriptEvent
from claude_mem.agents.reading.tools import ToolCall, tool_events
from claude_mem.hook.private_text import MARK
from claude_mem.types import STATEMENT, Json


@dataclass(slots=True)
class Conversation:
    session_id: str
    cwd: str
    path: Path
    at_ms: int | None  # of the latest event
    prompt_id: str | None = None
    last_text: str = ""
    _events: list[TranscriptEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._add("SessionStart", source="startup")

    def prompt(self, prompt_id: str, text: str, at_ms: int | None, source: Payload) -> None:
        """`source` is the object with the text; it is marked if private text was in it."""
        self._end_turn()
        self.prompt_id, self.at_ms = prompt_id, at_ms or self.at_ms
        mark: Payload = {MARK: True} if source.get(MARK) else {}
        self._add("UserPromptSubmit", prompt=text, **mark)

    def say(self, text: str, at_ms: int | None, uuid: str) -> None:
        self.at_ms = at_ms or self.at_ms
        if self.prompt_id is not None and text.strip():
            self.last_text = text
            common: Payload = {"session_id": self.session_id, "prompt_id": self.prompt_id}
            fields: Payload = {"hook_event_name": STATEMENT, "uuid": uuid, "statement": text}
            self._events.append(TranscriptEvent(STATEMENT, {**common, **fields}, self.at_ms))

    def tool(self, call: ToolCall, at_ms: int | None) -> None:
        self.at_ms = at_ms or self.at_ms
        if self.prompt_id is not None:
            for event in tool_events(self._common("PostToolUse"), call):
                payload = {**event.payload, "hook_event_name": event.kind}
                self._events.append(TranscriptEvent(event.kind, payload, self.at_ms))

    def end(self) -> Events:
        """All events of the session."""
        self._end_turn()
        self._add("SessionEnd", reason="other")
        return self._events

    def _end_turn(self) -> None:
        if self.prompt_id is not None:
            self._add("Stop", stop_hook_active=False, last_assistant_message=self.last_text)
        self.last_text = ""

    def _common(self, kind: str) -> Payload:
        common: Payload = {
            "session_id": self.session_id,
            "hook_event_name": kind,
            "transcript_path": str(self.path),
            "cwd": self.cwd,
        }
        return common if self.prompt_id is None else {**common, "prompt_id": self.prompt_id}

    def _add(self, kind: str, **fields: Json) -> None:
        event = TranscriptEvent(kind, {**self._common(kind), **fields}, self.at_ms)
        self._events.append(event)

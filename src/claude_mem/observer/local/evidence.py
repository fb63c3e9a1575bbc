"""All that is known of a turn before it is written down."""

from dataclasses import dataclass
from typing import Literal

from claude_mem.observer.local.commands import CommandLog, read_commands
from claude_mem.observer.local.files import FileWork, files_changed, files_read
from claude_mem.observer.local.request import Request, understand
from claude_mem.observer.local.research import looked_into
from claude_mem.types import ToolUse, Turn

Origin = Literal["plan", "asked", "spoken", "final"]

LONG_STATEMENT = 200  # characters: from here on a statement counts as a source


@dataclass(frozen=True, slots=True)
class Words:
    """Something that was said in the turn, and where."""

    text: str
    origin: Origin
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Story:
    asked: Request
    spoken: tuple[ToolUse, ...]  # what the agent said on the way
    final: str  # and at the end
    final_sources: tuple[int, ...]
    files: dict[str, FileWork]
    read: tuple[str, ...]
    looked_into: str
    ran: CommandLog
    ended_by: str  # the error that ended the turn
    said_by: tuple[int, ...]  # the events that brought the words

    @property
    def words(self) -> list[Words]:
        """In the order in which they were said."""
        asked = self.asked.words
        if self.asked.error:
            asked += f"\n\nError: {self.asked.error}"
        return [
            Words(self.asked.plan, "plan"),
            Words(asked, "asked"),
            *(Words(event.text or "", "spoken", (event.id,)) for event in self.spoken),
            Words(self.final, "final", self.final_sources),
        ]


def story_of(turn: Turn) -> Story:
    said = [event for event in turn.events if event.kind in ("Statement", "Stop") and event.text]
    stops = [event for event in said if event.kind == "Stop"]
    final = (stops or said)[-1].text or "" if said else ""
    files = files_changed(turn)
    return Story(
        asked=understand(turn.prompt or ""),
        spoken=tuple(e for e in said if e.kind == "Statement" and e.text != final),
        final=final,
        final_sources=tuple(e.id for e in said if e.text == final),
        files=files,
        read=tuple(path for path in files_read(turn) if path not in files),
        looked_into=looked_into(turn),
        ran=read_commands(turn),
        ended_by=next((e.text or "" for e in turn.events[::-1] if e.kind == "StopFailure"), ""),
        said_by=_sources(said, final),
    )


def _sources(said: list[ToolUse], final: str) -> tuple[int, ...]:
    return tuple(
        event.id for event in said if event.text == final or len(event.text or "") > LONG_STATEMENT
    )

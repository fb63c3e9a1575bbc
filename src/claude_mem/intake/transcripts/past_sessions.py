"""A transcript of the past, read into turns and distilled as they would have been live.

Every event goes through the same `Reader` as a hook's. Of turns older than the raw events that
are kept, what no observer looks at is dropped first: there is nothing to redact or to cut in it.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from claude_mem.errors import BadInput
from claude_mem.intake.dialects import Arrival, Reader
from claude_mem.intake.transcripts.transcript import Moment, Payload, Transcript
from claude_mem.observer.local.commands import reads_output_of
from claude_mem.observer.local.files import EDITING
from claude_mem.observer.local.observer import distil
from claude_mem.observer.local.research import SENT_FOR
from claude_mem.store.turns import PROMPT, SESSION_END, SESSION_START, TOLD
from claude_mem.types import (
    Event,
    Json,
    PastSession,
    PastTurn,
    Project,
    ToolUse,
    Turn,
)

_OF_AN_EDIT = ("filePath", "notebook_path", "type")
SHORT = 1000
TURNS_AT_ONCE = 40  # of a long session: so much is held in memory


@dataclass(slots=True)
class PastReader:
    """One file's sessions, in pieces that can be stored one after the other."""

    path: Path
    reader: Reader
    keep_raw_since: int
    wanted: Callable[[Project, str], bool] = lambda project, directory: True
    transcript: Transcript = field(init=False)
    unreadable: int = 0  # events that no payload could be made of
    text_chars: int = 0  # of what the person and the agent said

    def __post_init__(self) -> None:
        self.transcript = Transcript(self.path)

    def sessions(self) -> Iterator[PastSession]:
        session: _Session | None = None
        for moment in self.transcript.moments():
            if moment.event == SESSION_START:
                session = self._begin(moment)
            elif session is None:
                continue
            elif moment.event == SESSION_END:
                session.end_turn(self)
                if session.turns:
                    yield session.piece()
                session = None
            else:
                self._hear(session, moment)
                if len(session.turns) >= TURNS_AT_ONCE:
                    yield session.piece()
        assert session is None

    def _begin(self, moment: Moment) -> "_Session | None":
        directory = str(moment.payload["cwd"])
        project = self.reader.projects.of(directory)
        if not self.wanted(project, directory):
            return None
        at = moment.at_ms if moment.at_ms is not None else self._first_ms(moment)
        return _Session(str(moment.payload["session_id"]), project, directory, str(self.path), at)

    def _first_ms(self, start: Moment) -> int:
        """The first time that the session's lines tell, where its first line has none."""
        for moment in Transcript(self.path).moments():
            same = moment.payload["session_id"] == start.payload["session_id"]
            if same and moment.at_ms is not None:
                return moment.at_ms
        return self.path.stat().st_mtime_ns // 1_000_000

    def _hear(self, session: "_Session", moment: Moment) -> None:
        if moment.event == PROMPT:
            session.end_turn(self)
        elif session.is_private:
            return
        session.now = max(session.now, moment.at_ms or 0)
        keeps_raw = session.now >= self.keep_raw_since
        payload = moment.payload if keeps_raw else _looked_at(moment.payload)
        if self.reader.skips(payload):
            return
        try:
            arrival = Arrival(moment.event, session.now, session.directory)
            event = self.reader.event(arrival, payload)
        except (ValueError, BadInput):
            self.unreadable += 1
            return
        session.events.append(event)
        words = moment.payload.get("prompt") or moment.payload.get("statement")
        self.text_chars += len(words) if isinstance(words, str) else 0


@dataclass(slots=True)
class _Session:
    session_id: str
    project: Project
    directory: str
    path: str
    started_ms: int
    now: int = 0
    number: int = 0
    events: list[Event] = field(default_factory=list)
    turns: list[PastTurn] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    title: str | None = None
    subtitle: str | None = None
    user_prompt: str | None = None
    prompt_ids: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now = self.started_ms

    @property
    def is_private(self) -> bool:
        """Of the turn that goes on: its prompt was, as a whole, and so is all that follows."""
        return bool(self.events) and not (self.events[0].prompt or "").strip()

    def end_turn(self, reader: PastReader) -> None:
        events, self.events = self.events, []
        if not events or events[0].kind != PROMPT:
            return
        self.number += 1
        prompt, prompt_id = events[0].prompt or "", events[0].prompt_id or ""
        self.prompt_ids.append(prompt_id)
        if not prompt.strip():
            self.turns.append(PastTurn(prompt_id, None, self.number, events[0].arrived_ms))
            return
        made = distil(self._turn(prompt_id, prompt, events))
        self.told = [*self.told, *(o.text for o in made.observations), made.summary.text][-TOLD:]
        self.title = self.title or made.title
        self.subtitle = made.subtitle or self.subtitle
        self.user_prompt = self.user_prompt or prompt
        keeps_raw = events[-1].arrived_ms >= reader.keep_raw_since
        begun = events[0].arrived_ms
        self.turns.append(
            PastTurn(prompt_id, prompt, self.number, begun, tuple(events), made, keeps_raw)
        )

    def _turn(self, prompt_id: str, prompt: str, events: list[Event]) -> Turn:
        return Turn(
            id=0,
            session_db_id=0,
            content_session_id=self.session_id,
            memory_session_id="",
            project=self.project,
            project_dir=self.directory,
            transcript_path=self.path,
            prompt_id=prompt_id,
            prompt_number=self.number,
            prompt=prompt,
            started_ms=events[0].arrived_ms,
            events=tuple(tool_use(place, event) for place, event in enumerate(events, 1)),
            told=tuple(self.told),
        )

    def piece(self) -> PastSession:
        turns, self.turns = self.turns, []
        return PastSession(self.session_id, self.project, self.directory, self.path,
                           self.started_ms, self.now, tuple(turns), self.title, self.subtitle,
                           self.user_prompt, tuple(self.prompt_ids))  # fmt: skip


def tool_use(place: int, event: Event) -> ToolUse:
    return ToolUse(
        id=place,
        kind=event.kind,
        tool_name=event.tool_name,
        tool_input=json.loads(event.tool_input or "null"),
        tool_response=json.loads(event.tool_response or "null"),
        text=event.text,
        agent_id=event.agent_id,
    )


def _looked_at(payload: Payload) -> Payload:
    """What an observer looks at: commands and their output, which file an edit was of, errands."""
    name, given = payload.get("tool_name"), payload.get("tool_input")
    if name == "Bash":
        command = given.get("command") if isinstance(given, dict) else None
        if isinstance(command, str) and not reads_output_of(command):
            return {**payload, "tool_response": None}
    if name is None or name == "Bash":
        return payload
    if name not in (*EDITING, *SENT_FOR, "Read"):
        return {**payload, "tool_input": None, "tool_response": None}
    return {
        **payload,
        "tool_input": _short_parts(given),
        "tool_response": _short_parts(payload.get("tool_response"), _OF_AN_EDIT),
    }


def _short_parts(value: Json, names: tuple[str, ...] = ()) -> Json:
    """Paths, kinds, small replacements; not the files themselves."""
    if not isinstance(value, dict):
        return None
    return {
        name: part
        for name, part in value.items()
        if isinstance(part, str) and len(part) <= SHORT and name != "content"
        if not names or name in names
    }

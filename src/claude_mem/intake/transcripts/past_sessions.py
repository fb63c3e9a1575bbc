"""A transcript of past sessions, read into turns and distilled as live turns are.

Every event goes through the same `EventReader` as a hook's. For turns older than the retention of
raw events, the fields that no observer uses are dropped first, so they need no redaction; of turns
that are distilled later, also those that only the observer uses. If their raw texts come with the
memories (`raw_later`), the same holds for recent turns.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeGuard

from claude_mem.agents.agent import Payload, TranscriptEvent
from claude_mem.errors import BadInput
from claude_mem.intake.event_reader import (
    SUBAGENT_TOOLS,
    TOOLS_WITH_PARTS,
    EventHeader,
    EventReader,
    is_bare,
    may_have_message,
    record_of,
)
from claude_mem.intake.transcripts.transcript import Transcript, open_transcript, session_title
from claude_mem.observer.local.evidence import RESEARCH_TOOLS
from claude_mem.observer.local.observer import distil
from claude_mem.observer.local.tool_uses import EDITING, is_outcome_unknown, reads_output_of
from claude_mem.store.memories import RECENT_MEMORIES
from claude_mem.store.message_parents import BACKGROUND_TOOLS, IN_BACKGROUND, IN_BACKGROUND_FIELD
from claude_mem.types import (
    PROMPT,
    SESSION_END,
    SESSION_START,
    ClientMessage,
    Distillate,
    Event,
    Json,
    PastSession,
    PastTurn,
    Project,
    SessionTitle,
    Turn,
    TurnEvent,
    Verbosity,
)

_EDIT_RESULT_FIELDS = ("filePath", "notebook_path", "type")
_REPLACED_TEXTS = ("old_string", "new_string")  # titles tell what an edit defines
_LONGEST_OLD_FIELD = 1000
TURNS_PER_PART = 40  # bounds the memory that a long session needs


@dataclass(slots=True)
class StartedTasks:
    """The background tasks that the turns of a session started, for the messages that report them:
    the same answers as `store/message_parents.py`, before anything is stored."""

    by_call: dict[str, str] = field(default_factory=dict)  # tool_use_id -> prompt_id
    responses: list[tuple[str, str]] = field(default_factory=list)  # of starts, with prompt_id
    latest: str | None = None

    def add(self, prompt_id: str, events: list[Event]) -> None:
        for event in events:
            if event.tool_use_id is not None:
                self.by_call.setdefault(event.tool_use_id, prompt_id)
            if event.tool_name in BACKGROUND_TOOLS or IN_BACKGROUND in (event.tool_input or ""):
                self.latest = prompt_id
                self.responses.append((event.tool_response or "", prompt_id))

    def parent_of(self, message: ClientMessage) -> str | None:
        if message.tool_use_id in self.by_call:
            return self.by_call[message.tool_use_id]
        task_id = message.task_id
        by_task = (turn for text, turn in self.responses if task_id and task_id in text)
        return next(by_task, self.latest)


@dataclass(slots=True)
class PastSessionReader:
    """The sessions of one file, in parts that can be stored one after the other."""

    path: Path
    reader: EventReader
    keep_raw_since: int
    includes: Callable[[Project, str], bool] = lambda project, directory: True
    verbosity: Verbosity = "normal"
    distils: bool = True  # False: the turns get no memories yet
    raw_later: bool = False  # nor the raw texts of their events
    transcript: Transcript = field(init=False)  # opened by sessions(): it may not be readable
    unreadable: int = 0  # payloads that the reader refused
    text_chars: int = 0  # length of all prompts and statements

    def __post_init__(self) -> None:
        self.transcript = Transcript(self.path)

    def sessions(self) -> Iterator[PastSession]:
        self.transcript = open_transcript(self.path)
        session: _Session | None = None
        for event in self.transcript.events():
            if event.kind == SESSION_START:
                session = self._begin(event)
            elif session is None:
                continue
            elif event.kind == SESSION_END:
                session.end_turn()
                if session.turns:
                    yield session.take_part()
                session = None
            else:
                self._add(session, event)
                if len(session.turns) >= TURNS_PER_PART:
                    yield session.take_part()
        assert session is None

    def _begin(self, start: TranscriptEvent) -> "_Session | None":
        directory = str(start.payload["cwd"])
        project = self.reader.projects.of(directory)
        if not self.includes(project, directory):
            return None
        at_ms = start.at_ms if start.at_ms is not None else self._first_ms(start)
        session_id = str(start.payload["session_id"])
        title = session_title(self.path, session_id, self.reader.redactor)
        return _Session(session_id, project, directory, str(self.path), at_ms, title,
                        self.verbosity, self.keep_raw_since, self.transcript.dialect,
                        self.distils)  # fmt: skip

    def _first_ms(self, start: TranscriptEvent) -> int:
        """The first timestamp of the session, where its first line has none."""
        for event in open_transcript(self.path).events():
            is_same_session = event.payload["session_id"] == start.payload["session_id"]
            if is_same_session and event.at_ms is not None:
                return event.at_ms
        return self.path.stat().st_mtime_ns // 1_000_000

    def _add(self, session: "_Session", event: TranscriptEvent) -> None:
        if event.kind == PROMPT:
            session.end_turn()
        elif session.is_private:
            return
        session.now = max(session.now, event.at_ms or 0)
        payload = self._fields(event.payload, is_old=session.now < self.keep_raw_since)
        header = EventHeader(event.kind, session.now, session.directory, session.dialect)
        if self.reader.skips(event.kind, payload):
            session.add_words(self.reader.read_skipped(header, payload))
            return
        try:
            session.events.append(self._read(header, payload))
        except (ValueError, BadInput):
            self.unreadable += 1
            return
        text = event.payload.get("prompt") or event.payload.get("statement")
        self.text_chars += len(text) if isinstance(text, str) else 0

    def _fields(self, payload: Payload, *, is_old: bool) -> Payload:
        if is_old:
            return (_observed_fields if self.distils else _recorded_fields)(payload)
        return _recorded_fields(payload, _all_fields) if self.raw_later else payload

    def _read(self, header: EventHeader, payload: Payload) -> Event:
        if is_bare(payload):
            return self.reader.read_bare(header, payload)
        try:
            return self.reader.read(header, payload)
        except (ValueError, BadInput):
            # A value that is nested too deeply costs its texts, not the event: whether these are
            # read now or later must not change which events a turn has.
            rest = _recorded_fields(payload)
            if rest is payload:
                raise
            read = self.reader.read_bare if is_bare(rest) else self.reader.read
            return read(header, rest)


@dataclass(slots=True)
class _Session:
    session_id: str
    project: Project
    directory: str
    path: str
    started_ms: int
    client_title: SessionTitle | None
    verbosity: Verbosity
    keep_raw_since: int
    dialect: str = "claude"
    distils: bool = True
    now: int = 0
    number: int = 0
    events: list[Event] = field(default_factory=list)
    turns: list[PastTurn] = field(default_factory=list)
    recent_memories: list[str] = field(default_factory=list)
    title: str | None = None
    subtitle: str | None = None
    user_prompt: str | None = None
    prompt_ids: list[str] = field(default_factory=list)
    tasks: StartedTasks = field(default_factory=StartedTasks)

    def __post_init__(self) -> None:
        self.now = self.started_ms

    @property
    def is_private(self) -> bool:
        """Whether the whole prompt of the open turn was private: then the turn is, too."""
        return bool(self.events) and self.events[0].is_private

    def add_words(self, skipped: Event | None) -> None:
        """Adds the words of an event that is not stored to the one before it."""
        if skipped is not None and self.events:
            last = self.events[-1]
            words = last.unstored_words + skipped.unstored_words
            self.events[-1] = replace(last, unstored_words=words)

    def end_turn(self) -> None:
        events, self.events = self.events, []
        if not events or events[0].kind != PROMPT:
            return
        self.number += 1
        prompt, prompt_id = events[0].prompt or "", events[0].prompt_id or ""
        started_ms = events[0].arrived_ms
        self.prompt_ids.append(prompt_id)
        message = events[0].client_message
        if events[0].is_private:
            self.turns.append(PastTurn(prompt_id, None, self.number, started_ms))
            return
        parent = self.tasks.parent_of(message) if message is not None else None
        self.tasks.add(prompt_id, events)
        own = prompt if message is None else None
        distillate = self._distil(prompt_id, own, events) if self.distils else None
        self.user_prompt = self.user_prompt or prompt or None
        keeps_raw = events[-1].arrived_ms >= self.keep_raw_since
        self.turns.append(
            PastTurn(
                prompt_id=prompt_id,
                prompt=own,
                number=self.number,
                started_ms=started_ms,
                events=tuple(events),
                distillate=distillate,
                record=record_of(prompt, (event.parts for event in events)),
                keeps_raw=keeps_raw,
                is_client_message=message is not None,
                parent_prompt_id=parent,
            )
        )

    def _distil(self, prompt_id: str, prompt: str | None, events: list[Event]) -> Distillate:
        distillate = distil(self._turn(prompt_id, prompt, events), self.verbosity)
        memories = (*(o.text for o in distillate.observations), distillate.summary.text)
        self.recent_memories = [*self.recent_memories, *memories][-RECENT_MEMORIES:]
        self.title = self.title or distillate.title
        self.subtitle = distillate.subtitle or self.subtitle
        return distillate

    def _turn(self, prompt_id: str, prompt: str | None, events: list[Event]) -> Turn:
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
            events=tuple(turn_event(number, event) for number, event in enumerate(events, 1)),
            recent_memories=tuple(self.recent_memories),
            is_client_message=events[0].client_message is not None,
        )

    def take_part(self) -> PastSession:
        """The turns since the last part."""
        turns, self.turns = self.turns, []
        return PastSession(self.session_id, self.project, self.directory, self.path,
                           self.started_ms, self.now, tuple(turns), self.title, self.subtitle,
                           self.user_prompt, tuple(self.prompt_ids), self.client_title,
                           self.dialect, self.distils, self.keep_raw_since)  # fmt: skip


def turn_event(number: int, event: Event) -> TurnEvent:
    return TurnEvent(
        id=number,
        kind=event.kind,
        tool_name=event.tool_name,
        tool_input=json.loads(event.tool_input) if event.tool_input else None,
        tool_response=json.loads(event.tool_response) if event.tool_response else None,
        text=event.text,
        agent_id=event.agent_id,
        parts=event.parts,
        cwd=event.cwd,
        at_ms=event.arrived_ms,
        unstored_words=event.unstored_words,
    )


def _observed_fields(payload: Payload) -> Payload:
    """What the observer uses: commands and their output, paths of edited files, subagent tasks."""
    name, tool_input = payload.get("tool_name"), payload.get("tool_input")
    if name == "Bash":
        command = tool_input.get("command") if isinstance(tool_input, dict) else None
        is_unread = isinstance(command, str) and not reads_output_of(command)
        if is_unread and not is_outcome_unknown(payload.get("tool_response")):
            return {**payload, "tool_response": None}
    if not isinstance(name, str) or name == "Bash" or name in TOOLS_WITH_PARTS:
        return payload
    if name not in (*EDITING, *RESEARCH_TOOLS, "Read"):
        return {**payload, "tool_input": None, "tool_response": None}
    return {
        **payload,
        "tool_input": _short_fields(tool_input),
        "tool_response": _short_fields(payload.get("tool_response"), _EDIT_RESULT_FIELDS),
    }


def _all_fields(payload: Payload) -> Payload:
    return payload


def _recorded_fields(
    payload: Payload, otherwise: Callable[[Payload], Payload] = _observed_fields
) -> Payload:
    """What the record needs, and what tells which turn started a task; `otherwise` gives what is
    read to distil the turn. The same payloads are refused as then: one that is nested may be."""
    name, tool_input = payload.get("tool_name"), payload.get("tool_input")
    if not isinstance(name, str) or not payload.get("tool_use_id"):
        return otherwise(payload)  # without an id, the fields are the key of the event
    if name in SUBAGENT_TOOLS and _is_flat(tool_input):
        return {**payload, "tool_input": {"description": tool_input.get("description")}}
    if name == "Bash" and _is_flat(tool_input) and IN_BACKGROUND_FIELD not in tool_input:
        response = payload.get("tool_response")
        if _is_flat(response) or isinstance(response, str | None):
            return _without_output(payload, tool_input)
    starts_task = isinstance(tool_input, dict) and IN_BACKGROUND_FIELD in tool_input
    if starts_task or name in BACKGROUND_TOOLS or name in TOOLS_WITH_PARTS:
        return otherwise(payload)
    return _bare(payload)


def _without_output(payload: Payload, tool_input: Payload) -> Payload:
    description, command = tool_input.get("description"), tool_input.get("command")
    has_message = isinstance(command, str) and may_have_message(command)
    if not has_message and not description:
        return _bare(payload)
    named = {"description": description, "command": command if has_message else None}
    return {**payload, "tool_input": named, "tool_response": None, "error": None}


def _bare(payload: Payload) -> Payload:
    return {**payload, "tool_input": None, "tool_response": None, "error": None}


def _is_flat(value: Json) -> TypeGuard[Payload]:
    return isinstance(value, dict) and not any(
        isinstance(inner, dict | list) for inner in value.values()
    )


def _short_fields(value: Json, names: tuple[str, ...] = ()) -> Json:
    """Paths, types and replacements, not the contents of files."""
    if not isinstance(value, dict):
        return None
    return {
        name: text
        for name, text in value.items()
        if isinstance(text, str) and name != "content"
        if len(text) <= _LONGEST_OLD_FIELD or name in _REPLACED_TEXTS
        if not names or name in names
    }

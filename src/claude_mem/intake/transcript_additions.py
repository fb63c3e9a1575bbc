"""What hooks do not report and the transcript has: what the agent wrote between its tool calls,
links to pull requests, which commands failed, and the title that the client gave the session."""

import asyncio
import json
import logging
import mmap
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from claude_mem.errors import BadInput
from claude_mem.intake.event_reader import EventHeader, EventReader
from claude_mem.intake.transcripts.transcript import (
    TranscriptEvent,
    open_regular_file,
    open_transcript,
    session_title,
)
from claude_mem.store import Store
from claude_mem.store.clock import now_ms
from claude_mem.store.turns import Recorded
from claude_mem.types import (
    FROM_TRANSCRIPT,
    PROMPT,
    SESSION_END,
    TOOL_FAILURE,
    Event,
    Project,
    SessionTitle,
    Turn,
)

log = logging.getLogger("claude_mem.transcript_additions")
CLAUDE = "claude"
STOP = "Stop"
_JUST_ENDED_MS = 60_000
_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.5)


class TranscriptAdditions:
    def __init__(self, store: Store, reader: EventReader) -> None:
        self._store, self._reader = store, reader
        self._titles = ClientTitles(store, reader)

    async def add_to(self, turn: Turn) -> Turn:
        """The turn with what its transcript adds; that is also stored. Updates the title."""
        if not turn.transcript_path:
            return turn
        await self._titles.update(turn.session_db_id, turn.content_session_id, turn.transcript_path)
        events = await asyncio.to_thread(self._read, turn)
        for pause in _PAUSES:
            if not awaits_answer(turn, events, now_ms()):
                break
            await asyncio.sleep(pause)
            events = await asyncio.to_thread(self._read, turn)
        if not events:
            return turn
        return await asyncio.wrap_future(self._store.add_from_transcript(turn, events)) or turn

    def _read(self, turn: Turn) -> list[Event]:
        path = Path(turn.transcript_path)
        try:
            statements = additions_to(path, turn, self._stored_prompt)
            return [self._event(statement, turn) for statement in statements]
        except FileNotFoundError:
            return []  # the client deletes old transcripts, or is set to keep none
        except (OSError, ValueError, BadInput) as error:
            log.warning("turn %d: cannot read %s: %s", turn.id, path.name, error)
            return []

    def _event(self, statement: TranscriptEvent, turn: Turn) -> Event:
        at_ms = statement.at_ms if statement.at_ms is not None else turn.started_ms
        header = EventHeader(statement.kind, at_ms, turn.project_dir)
        return self._reader.read(header, statement.payload)

    def _stored_prompt(self, prompt: str) -> str | None:
        """A prompt as the store has it: redacted and truncated."""
        payload = {"session_id": "-", "prompt": prompt}
        return self._reader.read(EventHeader(PROMPT, 0), payload).prompt


def awaits_answer(turn: Turn, statements: list[Event], now: int) -> bool:
    """A client that does not send the last message may write it to its transcript only after the
    hook of the turn's end has run."""
    stops = [event for event in turn.events if event.kind == STOP]
    if not stops or stops[-1].text or now - stops[-1].at_ms > _JUST_ENDED_MS:
        return False
    last_work = max((event.at_ms for event in turn.events if event.tool_name), default=0)
    texts = (event for event in statements if event.kind not in (TOOL_FAILURE, PROMPT))
    return not any(text.arrived_ms >= last_work for text in texts)


def additions_to(
    path: Path, turn: Turn, stored_prompt: Callable[[str], str | None] = str
) -> list[TranscriptEvent]:
    """The statements of one turn, as far as the client has written them; with the failures of
    other agents, since the hooks of Codex report none, and with the prompt if no hook reported it.
    """
    transcript = open_transcript(path)
    is_claude = transcript.dialect == CLAUDE
    # Those of other agents are read from their first line, which names the session.
    start = _offset_of_prompt(path, turn.prompt_id) if is_claude else 0
    if start is None:
        return []
    kinds = FROM_TRANSCRIPT if is_claude else (*FROM_TRANSCRIPT, TOOL_FAILURE)
    turns = _turns(transcript.events(start), turn.content_session_id, kinds)
    match = _match(turns, turn, stored_prompt)
    if match is None:
        return []
    return [match.prompt_event, *match.statements] if _lacks_prompt(turn) else match.statements


def _match(
    turns: "Iterator[_TranscriptTurn]", turn: Turn, stored_prompt: Callable[[str], str | None]
) -> "_TranscriptTurn | None":
    if not _has_no_id(turn.prompt_id):
        return next((t for t in turns if t.prompt_id == turn.prompt_id), None)
    if _lacks_prompt(turn):  # the one that was running when the first event was reported
        return max(
            (t for t in turns if (t.at_ms or 0) <= turn.started_ms),
            key=lambda t: t.number,
            default=None,
        )
    prompt = (turn.prompt or "").strip()
    matches = (t for t in turns if (stored_prompt(t.prompt) or "").strip() == prompt)
    return min(matches, key=lambda match: match.distance(turn), default=None)


def _lacks_prompt(turn: Turn) -> bool:
    return turn.prompt is None and not turn.is_client_message


@dataclass(slots=True)
class _TranscriptTurn:
    number: int
    prompt_id: str
    prompt: str
    at_ms: int | None
    prompt_event: TranscriptEvent
    statements: list[TranscriptEvent] = field(default_factory=list)

    def distance(self, turn: Turn) -> tuple[bool, int]:
        """Orders turns with the same prompt: the same number first, then the nearest in time."""
        return self.number != turn.prompt_number, abs((self.at_ms or 0) - turn.started_ms)


def _turns(
    events: Iterator[TranscriptEvent], session_id: str, kinds: tuple[str, ...]
) -> Iterator[_TranscriptTurn]:
    """The turns of a session, each as soon as it is complete."""
    number = 0
    turn: _TranscriptTurn | None = None
    for event in events:
        payload = event.payload
        if payload["session_id"] != session_id:
            continue
        if event.kind == PROMPT:
            if turn is not None:
                yield turn
            number += 1
            prompt_id, prompt = str(payload["prompt_id"]), str(payload["prompt"])
            turn = _TranscriptTurn(number, prompt_id, prompt, event.at_ms, event)
        elif turn is not None and event.kind in kinds:
            turn.statements.append(event)
    if turn is not None:
        yield turn


def _has_no_id(prompt_id: str) -> bool:
    """An old client sent no prompt id, so the store made one of the prompt's number."""
    return prompt_id.startswith("number-")


def _offset_of_prompt(path: Path, prompt_id: str) -> int | None:
    """Where the first line with this prompt id starts, so that earlier turns are not parsed."""
    if _has_no_id(prompt_id):
        return 0
    with open_regular_file(path) as file:
        if os.fstat(file.fileno()).st_size == 0:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            position = data.find(json.dumps(prompt_id).encode())
            return data.rfind(b"\n", 0, position) + 1 if position >= 0 else None


class ClientTitles:
    """Taken after every turn, and at the end of a session, because the user may have renamed it
    since."""

    def __init__(self, store: Store, reader: EventReader) -> None:
        self._store, self._reader = store, reader
        self._ended: list[tuple[Event, int]] = []

    def note(self, recorded: list[tuple[Event, Recorded]]) -> None:
        self._ended += [
            (event, record.session_db_id)
            for event, record in recorded
            if event.kind == SESSION_END and event.transcript_path and record.outcome == "stored"
        ]

    async def update_ended(self) -> set[Project]:
        """Projects with a session that has a new title."""
        ended, self._ended = self._ended, []
        return {
            event.project
            for event, session in ended
            if await self.update(session, event.session_id, event.transcript_path)
        }

    async def update(self, session_db_id: int, session_id: str, path: str) -> bool:
        title = await asyncio.to_thread(self._read, Path(path), session_id)
        if title is None:
            return False
        return await asyncio.wrap_future(self._store.set_client_title(session_db_id, title))

    def _read(self, path: Path, session_id: str) -> SessionTitle | None:
        try:
            return session_title(path, session_id, self._reader.redactor)
        except FileNotFoundError:
            return None  # the client deletes old transcripts, or is set to keep none
        except (OSError, ValueError, BadInput) as error:
            log.warning("session %s: cannot read %s: %s", session_id, path.name, error)
            return None

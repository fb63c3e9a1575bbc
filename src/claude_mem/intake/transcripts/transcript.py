"""A client's transcript, line by line, as the hook payloads that its session sent, in order.

Besides what hooks are told it holds what was said between the tools: `Statement` moments. What is
no part of the conversation is passed over, what cannot be read is counted. Private text goes
before a line is even parsed.
"""

import json
import mmap
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from claude_mem.errors import BadInput
from claude_mem.hook.scanner import NAMES, strip_private
from claude_mem.store.turns import STATEMENT
from claude_mem.types import Json, Turn

Payload = dict[str, Json]

LONGEST_LINE = 64 * 1024 * 1024
BUFFER = 1024 * 1024
# What the client itself puts in the user's place.
_NOT_A_PROMPT = re.compile(
    r"<local-command-|<bash-(?:input|stdout|stderr)>|<user-memory-input>"
    r"|\[Request interrupted by user|Caveat: The messages below"
    r"|(?:Stop|PreToolUse|PostToolUse|UserPromptSubmit)[\w: ]* hook (?:feedback|output|blocking)",
    re.IGNORECASE,
)
_COMMAND = re.compile(r"(?:<command-.*)?<command-name>([^<]*)</command-name>", re.DOTALL)
_COMMAND_OUTPUT = "<local-command-stdout>"
# Calls that were refused or never ran: no hook hears of them.
_NEVER_RAN = re.compile(
    r"\s*(?:The user doesn't want|User rejected|\[Request interrupted|Permission to use"
    r"|<tool_use_error>(?:InputValidationError|Sibling tool call|Unknown skill|No such tool))"
)
_DECODER = json.JSONDecoder()
_PRIVATE_TAG = re.compile(rb"<[\\/]*(?:" + b"|".join(NAMES) + rb")", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s,\0\ufeff]*")
# Of the years in which a client can have written; any other time is a broken one.
_EARLIEST, _LATEST = (int(datetime(y, 1, 1, tzinfo=UTC).timestamp() * 1000) for y in (2000, 2100))


@dataclass(frozen=True, slots=True)
class Moment:
    """One event of a session, and when it was, where the transcript says so."""

    event: str
    payload: Payload
    at_ms: int | None


@dataclass(slots=True)
class Transcript:
    """One file, read from front to back."""

    path: Path
    lines: int = 0
    unreadable: int = 0  # lines, or parts of lines, that are no JSON objects

    def moments(self, start: int = 0) -> Iterator[Moment]:
        """From a SessionStart to a SessionEnd; nothing where the file holds no session."""
        telling: _Telling | None = None
        for line in self.objects(start):
            session_id = line.get("sessionId")
            if not isinstance(session_id, str) or not session_id or line.get("isSidechain"):
                continue
            if telling is not None and telling.session_id != session_id:
                yield from telling.end()
                telling = None
            if telling is None:
                if line.get("type") not in ("user", "assistant"):
                    continue
                telling = _Telling(session_id, _text(line.get("cwd")), self.path)
                yield telling.moment("SessionStart", line, source="startup")
            yield from telling.hear(line)
        if telling is not None:
            yield from telling.end()

    def objects(self, start: int = 0) -> Iterator[Payload]:
        with open_regular(self.path) as file:
            file.seek(start)
            while line := file.readline(LONGEST_LINE):
                if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                    self.unreadable += 1
                    _skip_line(file)
                elif not line.isspace():
                    self.lines += 1
                    yield from self._parse(line)

    def _parse(self, line: bytes) -> Iterator[Payload]:
        """Usually one object; a writer that was interrupted may leave two on a line, or half."""
        if b'"user"' not in line and b'"assistant"' not in line and line.lstrip()[:1] == b"{":
            return  # progress, snapshots: nobody's words
        text = _without_private(line).decode("utf-8", "replace")
        has_escapes = b"\\u" in line
        place = _next(text, 0)
        while place < len(text):
            try:
                value, end = _DECODER.raw_decode(text, place)
                if has_escapes and ("\\ud" in text or "\\uD" in text):
                    value = _whole_characters(value)
            except (ValueError, RecursionError):
                self.unreadable += 1
                return
            if isinstance(value, dict):
                yield value
            else:
                self.unreadable += 1
            place = _next(text, end)


Wording = Callable[[str], str | None]  # a prompt as the store has it: redacted, cut


def statements_of(path: Path, turn: Turn, wording: Wording = str) -> list[Moment]:
    """What was said in one turn, as far as the file has it by now."""
    start = _place_of(path, turn.prompt_id)
    if start is None:
        return []
    told = _told_turns(Transcript(path).moments(start), turn.content_session_id)
    if not _has_no_id(turn.prompt_id):
        return next((one.statements for one in told if one.prompt_id == turn.prompt_id), [])
    words = (turn.prompt or "").strip()
    same = [one for one in told if (wording(one.prompt) or "").strip() == words]
    return min(same, key=lambda one: one.distance(turn)).statements if same else []


@dataclass(slots=True)
class _ToldTurn:
    number: int
    prompt_id: str
    prompt: str
    at_ms: int | None
    statements: list[Moment] = field(default_factory=list)

    def distance(self, turn: Turn) -> tuple[bool, int]:
        """Of turns in the same words: the one with its number, else the one nearest in time."""
        return self.number != turn.prompt_number, abs((self.at_ms or 0) - turn.started_ms)


def _told_turns(moments: Iterator[Moment], session_id: str) -> Iterator[_ToldTurn]:
    """The turns of a session, each when it is complete."""
    number = 0
    now: _ToldTurn | None = None
    for moment in moments:
        payload = moment.payload
        if payload["session_id"] != session_id:
            continue
        if moment.event == "UserPromptSubmit":
            if now is not None:
                yield now
            number += 1
            now = _ToldTurn(number, str(payload["prompt_id"]), str(payload["prompt"]), moment.at_ms)
        elif now is not None and moment.event == STATEMENT:
            now.statements.append(moment)
    if now is not None:
        yield now


def _has_no_id(prompt_id: str) -> bool:
    """The client gave none (it is an old one), so the turn goes by its number."""
    return prompt_id.startswith("number-")


def _place_of(path: Path, prompt_id: str) -> int | None:
    """Where the first line that names the prompt begins: the turns before it are not parsed."""
    if _has_no_id(prompt_id):
        return 0
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size == 0:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            place = data.find(json.dumps(prompt_id).encode())
            return data.rfind(b"\n", 0, place) + 1 if place >= 0 else None


@dataclass(slots=True)
class _Telling:
    """What is known so far of a session while its lines go by."""

    session_id: str
    cwd: str
    path: Path
    prompt_id: str | None = None
    turns: int = 0
    last_words: str = ""
    last_error: Payload | None = None  # of the API, if the turn ended with it
    last_line: Payload = field(default_factory=dict)
    command: Payload | None = None  # a slash command of which it is not known yet what it does
    calls: dict[str, Payload] = field(default_factory=dict)
    said: set[tuple[str, str]] = field(default_factory=set)

    def moment(self, event: str, line: Payload, **rest: Json) -> Moment:
        common: Payload = {"session_id": self.session_id, "hook_event_name": event}
        if event != STATEMENT:  # which is the same one wherever its file lies
            common |= {"transcript_path": str(self.path), "cwd": self.cwd}
        if self.prompt_id is not None:
            common["prompt_id"] = self.prompt_id
        return Moment(event, {**common, **rest}, _milliseconds(line.get("timestamp")))

    def hear(self, line: Payload) -> Iterator[Moment]:
        kind, message = line.get("type"), line.get("message")
        if kind not in ("user", "assistant") or not isinstance(message, dict):
            return
        if line.get("isMeta") or line.get("isCompactSummary"):
            return
        blocks = _blocks(message.get("content"))
        if kind == "assistant":
            yield from self._hear_agent(line, message, blocks)
        else:
            yield from self._hear_user(line, blocks)
        self.last_line = line

    def end(self) -> Iterator[Moment]:
        yield from self._end_turn()
        yield self.moment("SessionEnd", self.last_line, reason="other")

    def _hear_user(self, line: Payload, blocks: list[Json]) -> Iterator[Moment]:
        text = "\n".join(_texts(blocks)).strip()
        if text:
            yield from self._hear_words(line, text)
        elif _is_said(blocks) and self._is_new_prompt(line):
            yield from self._begin_turn(line, "")  # all that was said is private
        yield from self._tool_results(line, blocks)

    def _is_new_prompt(self, line: Payload) -> bool:
        return line.get("promptId") is None or line.get("promptId") != self.prompt_id

    def _hear_words(self, line: Payload, text: str) -> Iterator[Moment]:
        if _COMMAND.match(text):
            self.command = {**line, "text": _as_typed(text)}
        elif _NOT_A_PROMPT.match(text):
            if text.startswith(_COMMAND_OUTPUT):
                self.command = None  # the client itself answered it
        elif self._is_new_prompt(line):
            yield from self._begin_turn(line, text)

    def _begin_turn(self, line: Payload, text: str) -> Iterator[Moment]:
        yield from self._end_turn()
        self.command = None
        self.turns += 1
        known = _text(line.get("promptId")) or _text(line.get("uuid"))
        self.prompt_id = known or f"{self.session_id}:{self.turns}"
        yield self.moment("UserPromptSubmit", line, prompt=text)
        self.last_line = line

    def _end_turn(self) -> Iterator[Moment]:
        if self.prompt_id is not None and self.last_error is not None:
            yield self.moment("StopFailure", self.last_line, **self.last_error)
        elif self.prompt_id is not None:
            yield self.moment(
                "Stop", self.last_line, stop_hook_active=False,
                last_assistant_message=self.last_words,
            )  # fmt: skip
        self.last_words, self.last_error = "", None
        self.calls.clear()
        self.said.clear()

    def _hear_agent(self, line: Payload, message: Payload, blocks: list[Json]) -> Iterator[Moment]:
        if self.command is not None:
            command, self.command = self.command, None
            yield from self._begin_turn(command, str(command["text"]))
        for block in blocks:
            if isinstance(block, dict) and block.get("type") == "tool_use":
                self.calls[str(block.get("id"))] = block
        text = "\n".join(_texts(blocks)).strip()
        self.last_error = None
        if line.get("isApiErrorMessage"):
            error = _text(line.get("error")) or "unknown"
            self.last_error = {"error": error, "last_assistant_message": text}
        elif text and (said := (str(message.get("id")), text)) not in self.said:
            self.said.add(said)
            self.last_words = text
            if self.prompt_id is not None:
                uuid = _text(line.get("uuid"))
                yield self.moment(STATEMENT, line, uuid=uuid, statement=text)

    def _tool_results(self, line: Payload, blocks: list[Json]) -> Iterator[Moment]:
        for block in blocks:
            if not isinstance(block, dict) or block.get("type") != "tool_result":
                continue
            call = self.calls.pop(str(block.get("tool_use_id")), None)
            if call is None or self.prompt_id is None:
                continue
            given: Payload = {"tool_name": call.get("name"), "tool_input": call.get("input"),
                              "tool_use_id": call.get("id")}  # fmt: skip
            if block.get("is_error"):
                error = "\n".join(_texts(_blocks(block.get("content"))))
                if not _NEVER_RAN.match(error):
                    yield self.moment("PostToolUseFailure", line, **given, error=error)
            else:
                result = line.get("toolUseResult", block.get("content"))
                yield self.moment("PostToolUse", line, **given, tool_response=result)


def is_within(path: Json, directory: Path | None) -> bool:
    """Whether it names a transcript in there, once every link in it is followed."""
    if not isinstance(path, str) or directory is None or not Path(path).is_absolute():
        return False
    try:
        found = Path(path).resolve()
        return found.suffix == ".jsonl" and found.is_relative_to(directory.resolve())
    except (OSError, ValueError, RuntimeError):  # a loop, a NUL
        return False


def open_regular(path: Path) -> BinaryIO:
    """A file, and nothing that could block or never end."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise BadInput(f"{path} is not a file")
    return os.fdopen(handle, "rb", buffering=BUFFER)


def _without_private(line: bytes) -> bytes:
    """Most lines have no such tag; to look for one is cheaper than to scan."""
    if b"u00" in line or b"U00" in line or _PRIVATE_TAG.search(line):
        return strip_private(line)
    return line


def _skip_line(file: BinaryIO) -> None:
    while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
        pass


def _next(text: str, place: int) -> int:
    match = _BETWEEN.match(text, place)
    return match.end() if match else place


def _blocks(content: Json) -> list[Json]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if isinstance(content, str) else []


def _is_said(blocks: list[Json]) -> bool:
    """By the person: words or pictures, and not what a tool gave."""
    kinds = [block.get("type") for block in blocks if isinstance(block, dict)]
    return bool(kinds) and "tool_result" not in kinds


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _whole_characters(value: Json) -> Json:
    """JSON can spell half a character; no text in the database can."""
    whole: Json = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return whole


def _texts(blocks: list[Json]) -> list[str]:
    return [
        text
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "text"
        if isinstance(text := block.get("text"), str)
    ]


def _as_typed(text: str) -> str:
    """A slash command as the person typed it."""
    name = _COMMAND.match(text)
    command = name[1].strip() if name else ""
    arguments = text.partition("<command-args>")[2].partition("</command-args>")[0].strip()
    return f"/{command.removeprefix('/')} {arguments}".strip()


def _milliseconds(moment: Json) -> int | None:
    if not isinstance(moment, str):
        return None
    try:
        found = datetime.fromisoformat(moment)
    except ValueError:
        return None
    ms = round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
    return ms if _EARLIEST <= ms < _LATEST else None

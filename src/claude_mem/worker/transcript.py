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
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from claude_mem.errors import BadInput
from claude_mem.hook.scanner import NAMES, strip_private
from claude_mem.store.turns import STATEMENT
from claude_mem.types import Json

Payload = dict[str, Json]

LONGEST_LINE = 64 * 1024 * 1024
# What the client itself puts in the user's place.
_NOT_A_PROMPT = re.compile(
    r"<local-command-|<bash-(?:input|stdout|stderr)>|<user-memory-input>"
    r"|\[Request interrupted by user|Caveat: The messages below"
    r"|(?:Stop|PreToolUse|PostToolUse|UserPromptSubmit)[\w: ]* hook (?:feedback|output|blocking)",
    re.IGNORECASE,
)
_COMMAND = re.compile(r"<command-name>\s*(/?[^<]*?)\s*</command-name>")
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_COMMAND_OUTPUT = "<local-command-stdout>"
# Calls that were refused or never ran: no hook hears of them.
_NEVER_RAN = re.compile(
    r"\s*(?:The user doesn't want|User rejected|\[Request interrupted|Permission to use"
    r"|<tool_use_error>(?:InputValidationError|Sibling tool call|Unknown skill|No such tool))"
)
_DECODER = json.JSONDecoder()
_PRIVATE_TAG = re.compile(rb"<[\\/]*(?:" + b"|".join(NAMES) + rb")", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s,\0\ufeff]*")


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
                telling = _Telling(session_id, str(line.get("cwd") or ""), self.path)
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
        place = _next(text, 0)
        while place < len(text):
            try:
                value, end = _DECODER.raw_decode(text, place)
            except (ValueError, RecursionError):
                self.unreadable += 1
                return
            if isinstance(value, dict):
                yield value
            else:
                self.unreadable += 1
            place = _next(text, end)


def statements_of(path: Path, session_id: str, prompt_id: str, prompt: str) -> list[Moment]:
    """What was said in one turn, as far as the file has it by now."""
    start = _place_of(path, prompt_id)
    if start is None:
        return []
    found: list[Moment] = []
    inside = False
    for moment in Transcript(path).moments(start):
        if moment.event == "UserPromptSubmit":
            if inside:
                break
            inside = _is_turn(moment.payload, session_id, prompt_id, prompt)
        elif inside and moment.event == STATEMENT:
            found.append(moment)
    return found


def _is_turn(payload: Payload, session_id: str, prompt_id: str, prompt: str) -> bool:
    if payload["session_id"] != session_id:
        return False
    return payload.get("prompt_id") == prompt_id or (
        _has_no_id(prompt_id) and str(payload["prompt"]).strip() == prompt.strip()
    )


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
    last_words: str = ""
    last_line: Payload = field(default_factory=dict)
    command: Payload | None = None  # a slash command of which it is not known yet what it does
    calls: dict[str, Payload] = field(default_factory=dict)
    said: set[tuple[str, str]] = field(default_factory=set)

    def moment(self, event: str, line: Payload, **rest: Json) -> Moment:
        common: Payload = {
            "session_id": self.session_id,
            "transcript_path": str(self.path),
            "cwd": self.cwd,
            "hook_event_name": event,
        }
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
        yield from self._tool_results(line, blocks)

    def _hear_words(self, line: Payload, text: str) -> Iterator[Moment]:
        if _COMMAND.search(text):
            self.command = {**line, "text": _as_typed(text)}
        elif _NOT_A_PROMPT.match(text):
            if text.startswith(_COMMAND_OUTPUT):
                self.command = None  # the client itself answered it
        elif line.get("promptId") is None or line.get("promptId") != self.prompt_id:
            yield from self._begin_turn(line, text)

    def _begin_turn(self, line: Payload, text: str) -> Iterator[Moment]:
        yield from self._end_turn()
        self.command = None
        self.prompt_id = str(line.get("promptId") or line.get("uuid") or f"at-{len(self.said)}")
        yield self.moment("UserPromptSubmit", line, prompt=text)
        self.last_line = line

    def _end_turn(self) -> Iterator[Moment]:
        if self.prompt_id is not None:
            yield self.moment(
                "Stop", self.last_line, stop_hook_active=False,
                last_assistant_message=self.last_words,
            )  # fmt: skip
        self.last_words = ""
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
        said = (str(message.get("id")), text)
        if text and said not in self.said and not line.get("isApiErrorMessage"):
            self.said.add(said)
            self.last_words = text
            if self.prompt_id is not None:
                yield self.moment(STATEMENT, line, uuid=line.get("uuid"), statement=text)

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


def open_regular(path: Path) -> BinaryIO:
    """A file, and nothing that could block or never end."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise BadInput(f"{path} is not a file")
    return os.fdopen(handle, "rb")


def _without_private(line: bytes) -> bytes:
    """Most lines have no such tag; to look for one is cheaper than to scan."""
    return strip_private(line) if b"u00" in line or _PRIVATE_TAG.search(line) else line


def _skip_line(file: BinaryIO) -> None:
    while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
        pass


def _next(text: str, place: int) -> int:
    match = _BETWEEN.match(text, place)
    return match.end() if match else place


def _blocks(content: Json) -> list[Json]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}]


def _texts(blocks: list[Json]) -> list[str]:
    return [
        text
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "text"
        if isinstance(text := block.get("text"), str)
    ]


def _as_typed(text: str) -> str:
    """A slash command as the person typed it."""
    name, given = _COMMAND.search(text), _ARGUMENTS.search(text)
    arguments = given[1].strip() if given else ""
    command = name[1] if name else ""
    return f"/{command.removeprefix('/')} {arguments}".strip()


def _milliseconds(moment: Json) -> int | None:
    if not isinstance(moment, str):
        return None
    try:
        return round(datetime.fromisoformat(moment).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None

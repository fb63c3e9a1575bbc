"""A client's transcript, line by line, as the hook events that its session sent, in order.

In addition to what hooks report it has what the agent wrote between tool calls (`Statement`
events), the pull requests that the client noticed (`PullRequest` events) and the branch on which a
turn began (`Branch` events; the usual main branches are not worth one). Other lines that are
not part of the conversation are skipped, lines that cannot be read are counted. Private text is
removed before a line is parsed. `additions_to` gives what hooks did not report of one turn.
"""

import json
import mmap
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from claude_mem.agents.agent import Payload, TranscriptEvent
from claude_mem.errors import BadInput
from claude_mem.hook.private_text import (
    MARK,
    NAMES,
    may_be_disguised,
    strip_and_tell,
    strip_private,
    with_plain_tags,
)
from claude_mem.intake.event_reader import is_command
from claude_mem.json_objects import replace_surrogates
from claude_mem.language.prompt import parse_prompt
from claude_mem.redaction import Redactor
from claude_mem.store.turns import MAIN_BRANCHES
from claude_mem.text import one_line, shorten
from claude_mem.timestamps import milliseconds
from claude_mem.types import (
    BRANCH,
    FROM_TRANSCRIPT,
    PROMPT,
    PULL_REQUEST,
    STATEMENT,
    TOOL_FAILURE,
    Json,
    SessionTitle,
    Turn,
)

CLAUDE = "claude"

LONGEST_LINE = 64 * 1024 * 1024
LONGEST_HEAD = 4 * 1024 * 1024  # the first line of Codex holds its instructions
BUFFER = 1024 * 1024
_COMMAND_OUTPUT = "<local-command-stdout>"
# Results of calls that were refused or never ran: no hook reports them.
_NEVER_RAN = re.compile(
    r"\s*(?:The user doesn't want|User rejected|\[Request interrupted|Permission to use"
    r"|<tool_use_error>(?:InputValidationError|Sibling tool call|Unknown skill|No such tool))"
)
_DECODER = json.JSONDecoder()
# Between "<" and its name a tag may have a slash, spaces of any kind, and escapes of these.
_PRIVATE_TAG = re.compile(rb"<[\s\\/nrtbf\x80-\xff]*+(?:" + b"|".join(NAMES) + rb")", re.IGNORECASE)
_REMINDER = b"<system-reminder>", b"</system-reminder>"
_MAX_REMINDERS = 50  # far fewer than the sections of which `strip_private` keeps some
_SEPARATORS = re.compile(r"[\s,\0\ufeff]*")
# A pattern that begins with fixed bytes takes half the time of `in` and `rfind`.
_OF_CONVERSATION = re.compile(rb'"(?:user|assistant|pr-link)"')
_ESCAPE = re.compile(rb"\\[uU]")


@dataclass(slots=True)
class Transcript:
    """A transcript: one file, read from start to end."""

    path: Path
    lines: int = 0
    unreadable: int = 0  # lines, or parts of lines, that are not JSON objects
    dialect: str = "claude"

    def events(self, start: int = 0) -> Iterator[TranscriptEvent]:
        """Each session from SessionStart to SessionEnd; nothing if the file has no session."""
        session: _SessionReader | None = None
        for line in self.objects(start):
            session_id = line.get("sessionId")
            if not isinstance(session_id, str) or not session_id or line.get("isSidechain"):
                continue
            if session is not None and session.session_id != session_id:
                yield from session.end()
                session = None
            if session is None:
                if line.get("type") not in ("user", "assistant"):
                    continue
                session = _SessionReader(session_id, _text(line.get("cwd")), self.path)
                yield session.event("SessionStart", line, source="startup")
            yield from session.read(line)
        if session is not None:
            yield from session.end()

    def objects(self, start: int = 0) -> Iterator[Payload]:
        with open_regular_file(self.path) as file:
            file.seek(start)
            while line := file.readline(LONGEST_LINE):
                if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                    self.unreadable += 1
                    _skip_line(file)
                elif not line.isspace():
                    self.lines += 1
                    yield from self._parse(line)

    def _parse(self, line: bytes) -> Iterator[Payload]:
        """Parses a line; an interrupted writer may leave two objects on it, or half of one."""
        is_known = self.dialect != "claude" or _OF_CONVERSATION.search(line) is not None
        if not is_known and line.lstrip()[:1] == b"{":
            return  # progress, snapshots: not part of the conversation
        has_escapes = _ESCAPE.search(line) is not None
        clean, had_private = _without_private(line, has_escapes)
        text = clean.decode("utf-8", "replace")
        position = _skip_separators(text, 0)
        while position < len(text):
            try:
                value, end = _DECODER.raw_decode(text, position)
                if has_escapes and ("\\ud" in text or "\\uD" in text):
                    value = replace_surrogates(value)
            except (ValueError, RecursionError):
                self.unreadable += 1
                return
            if isinstance(value, dict):
                yield value | {MARK: True} if had_private else value
            else:
                self.unreadable += 1
            position = _skip_separators(text, end)


def open_transcript(path: Path) -> Transcript:
    """Opens a transcript of Claude Code, unless the first line is of another agent's format."""
    # Not at the top: that module imports this one.
    from claude_mem.intake.transcripts.other_agents import open_agent_transcript

    with open_regular_file(path) as file:
        head = file.readline(LONGEST_HEAD)
    return open_agent_transcript(path, head) or Transcript(path)


@dataclass(slots=True)
class _SessionReader:
    """Turns the lines of one session into events."""

    session_id: str
    cwd: str
    path: Path
    prompt_id: str | None = None
    turns: int = 0
    last_message: str = ""
    last_error: Payload | None = None  # an API error that may end the turn
    last_line: Payload = field(default_factory=dict)
    # A slash command becomes a prompt once the agent works on it, not if the client answers it.
    pending_command: Payload | None = None
    calls: dict[str, Payload] = field(default_factory=dict)
    statements: set[tuple[str, str]] = field(default_factory=set)

    def event(self, kind: str, line: Payload, **fields: Json) -> TranscriptEvent:
        common: Payload = {"session_id": self.session_id, "hook_event_name": kind}
        if (
            kind not in FROM_TRANSCRIPT
        ):  # a copied file must give its statements the same content key
            common |= {"transcript_path": str(self.path), "cwd": self.cwd}
        if self.prompt_id is not None:
            common["prompt_id"] = self.prompt_id
        return TranscriptEvent(kind, {**common, **fields}, milliseconds(line.get("timestamp")))

    def read(self, line: Payload) -> Iterator[TranscriptEvent]:
        role, message = line.get("type"), line.get("message")
        if role == "pr-link" and self.prompt_id is not None:
            # The client repeats the line, so it may come again in later turns.
            if isinstance(url := line.get("prUrl"), str):
                yield self.event(PULL_REQUEST, line, statement=url)
            return
        if role not in ("user", "assistant") or not isinstance(message, dict):
            return
        if line.get("isMeta"):
            return
        blocks = _blocks(message.get("content"))
        if line.get("isCompactSummary"):
            summary = "\n".join(_texts(blocks))
            if self.prompt_id is None:  # a new file goes on with the session of another one
                yield from self._begin_turn(line, summary)
            else:
                yield self.event("PostCompact", line, compact_summary=summary)
            return
        if role == "assistant":
            yield from self._read_assistant(line, message, blocks)
        else:
            yield from self._read_user(line, blocks)
        self.last_line = line

    def end(self) -> Iterator[TranscriptEvent]:
        yield from self._end_turn()
        yield self.event("SessionEnd", self.last_line, reason="other")

    def _read_user(self, line: Payload, blocks: list[Json]) -> Iterator[TranscriptEvent]:
        # The user types nothing into the line of a tool's result; a client may add text to it.
        text = "" if _has_result(blocks) else "\n".join(_texts(blocks)).strip()
        if text:
            yield from self._read_user_text(line, text)
        elif _is_user_input(blocks) and self._is_new_prompt(line):
            yield from self._begin_turn(line, "")  # private, images, or the client's words
        yield from self._read_tool_results(line, blocks)

    def _is_new_prompt(self, line: Payload) -> bool:
        return line.get("promptId") is None or line.get("promptId") != self.prompt_id

    def _read_user_text(self, line: Payload, text: str) -> Iterator[TranscriptEvent]:
        if is_command(text):
            self.pending_command = {**line, "text": parse_prompt(text).typed}
        elif parse_prompt(text).sender == "aside":
            if text.startswith(_COMMAND_OUTPUT):
                self.pending_command = None  # the client answered it
        elif self._is_new_prompt(line):
            yield from self._begin_turn(line, text)

    def _begin_turn(self, line: Payload, prompt: str) -> Iterator[TranscriptEvent]:
        yield from self._end_turn()
        self.pending_command = None
        self.turns += 1
        line_id = _text(line.get("promptId")) or _text(line.get("uuid"))
        self.prompt_id = line_id or f"{self.session_id}:{self.turns}"
        mark: Payload = {MARK: True} if line.get(MARK) else {}
        yield self.event("UserPromptSubmit", line, prompt=prompt, **mark)
        branch = _text(line.get("gitBranch"))
        if branch and branch not in MAIN_BRANCHES:
            yield self.event(BRANCH, line, statement=branch)
        self.last_line = line

    def _end_turn(self) -> Iterator[TranscriptEvent]:
        if self.prompt_id is not None and self.last_error is not None:
            yield self.event("StopFailure", self.last_line, **self.last_error)
        elif self.prompt_id is not None:
            yield self.event(
                "Stop", self.last_line, stop_hook_active=False,
                last_assistant_message=self.last_message,
            )  # fmt: skip
        self.last_message, self.last_error = "", None
        self.calls.clear()
        self.statements.clear()

    def _read_assistant(
        self, line: Payload, message: Payload, blocks: list[Json]
    ) -> Iterator[TranscriptEvent]:
        if self.pending_command is not None:
            command, self.pending_command = self.pending_command, None
            yield from self._begin_turn(command, str(command["text"]))
        for block in blocks:
            if isinstance(block, dict) and block.get("type") == "tool_use":
                if (
                    self.prompt_id is None
                ):  # its prompt is in the session that this one was forked of
                    yield from self._begin_turn(line, "")
                self.calls[str(block.get("id"))] = block
        text = "\n".join(_texts(blocks)).strip()
        self.last_error = None
        if line.get("isApiErrorMessage"):
            error = _text(line.get("error")) or "unknown"
            self.last_error = {"error": error, "last_assistant_message": text}
        elif text and (statement := (str(message.get("id")), text)) not in self.statements:
            self.statements.add(statement)
            self.last_message = text
            if self.prompt_id is not None:
                uuid = _text(line.get("uuid"))
                yield self.event(STATEMENT, line, uuid=uuid, statement=text)

    def _read_tool_results(self, line: Payload, blocks: list[Json]) -> Iterator[TranscriptEvent]:
        for block in blocks:
            if not isinstance(block, dict) or block.get("type") != "tool_result":
                continue
            call = self.calls.pop(str(block.get("tool_use_id")), None)
            if call is None or self.prompt_id is None:
                continue
            tool: Payload = {"tool_name": call.get("name"), "tool_input": call.get("input"),
                             "tool_use_id": call.get("id"),
                             "cwd": _text(line.get("cwd")) or self.cwd}  # fmt: skip
            if block.get("is_error"):
                error = "\n".join(_texts(_blocks(block.get("content"))))
                if not _NEVER_RAN.match(error):
                    yield self.event("PostToolUseFailure", line, **tool, error=error)
            else:
                result = line.get("toolUseResult", block.get("content"))
                yield self.event("PostToolUse", line, **tool, tool_response=result)


def is_within(path: Json, directory: Path | None) -> bool:
    """Whether the path, with all symlinks resolved, is a transcript in that directory."""
    if not isinstance(path, str) or directory is None or not Path(path).is_absolute():
        return False
    try:
        resolved = Path(path).resolve()
        return resolved.suffix == ".jsonl" and resolved.is_relative_to(directory.resolve())
    except (OSError, ValueError, RuntimeError):  # a symlink loop, a NUL
        return False


def open_regular_file(path: Path) -> BinaryIO:
    """Refuses pipes and devices, which could block or never end."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise BadInput(f"{path} is not a file")
    return os.fdopen(handle, "rb", buffering=BUFFER)


def _without_private(line: bytes, has_escapes: bool) -> tuple[bytes, bool]:
    """Most lines have no private tag, or only those of a client's reminders in the results of its
    tools: searching for them is cheaper than scanning."""
    if has_escapes or may_be_disguised(line):
        return strip_and_tell(line)
    if _PRIVATE_TAG.search(line) is None:
        return line, False
    rest = _without_reminders(line)
    return strip_and_tell(line) if rest is None else (rest, False)


def _without_reminders(line: bytes) -> bytes | None:
    """None where it has other tags, or one of these is not closed in the same string."""
    opening, closing = _REMINDER
    if line.count(opening) > _MAX_REMINDERS:
        return None
    kept: list[bytes] = []
    done = 0
    while (start := line.find(opening, done)) >= 0:
        end = line.find(closing, start)
        reminder = line[start + len(opening) : end]
        if end < 0 or _PRIVATE_TAG.search(reminder) or _has_quote(reminder):
            return None
        kept.append(line[done:start])
        done = end + len(closing)
    kept.append(line[done:])
    # Also if a tag came to be where a reminder was.
    rest = b"".join(kept)
    return None if _PRIVATE_TAG.search(rest) else rest


def _has_quote(text: bytes) -> bool:
    """Whether a string of JSON ends in it."""
    return b'"' in text and b'"' in text.replace(b"\\\\", b"").replace(b'\\"', b"")


def _skip_line(file: BinaryIO) -> None:
    while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
        pass


def _skip_separators(text: str, position: int) -> int:
    if text.startswith("{", position):
        return position
    if position == len(text) - 1 and text[position] == "\n":  # as nearly every line ends
        return len(text)
    match = _SEPARATORS.match(text, position)
    return match.end() if match else position


def _blocks(content: Json) -> list[Json]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if isinstance(content, str) else []


def _is_user_input(blocks: list[Json]) -> bool:
    """Whether the content is text or images of the user, not the result of a tool."""
    return any(isinstance(block, dict) for block in blocks) and not _has_result(blocks)


def _has_result(blocks: list[Json]) -> bool:
    return any(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _texts(blocks: list[Json]) -> list[str]:
    return [
        text
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "text"
        if isinstance(text := block.get("text"), str)
    ]


# The title that the client gave a session, from lines that are not part of the conversation.
#
# A `custom-title` is the user's and counts before an `ai-title`, and that before a `summary`. A
# `summary` names the last message it covers: many are about other sessions of the project. The
# bytes of the file are searched from the end, because the client repeats such lines and the last
# counts.

_TITLE_KINDS = ("custom-title", "customTitle", True), ("ai-title", "aiTitle", False)
_END_OF_KINDS = b'-title"'
LONGEST_TITLE = 120
MAX_LINES = 200  # of one kind, from the end
LONGEST_TITLE_LINE = 10_000
# A client's model may have put into the title what the user marked as private.
_BEFORE_PRIVATE = re.compile(rb"(?:<|u003c)[\s\\/]{0,8}\Z")
CHUNK, _OVERLAP = 64 * 1024, 80  # longer than a tag whose characters are escaped


def session_title(path: Path, session_id: str, redactor: Redactor) -> SessionTitle | None:
    """None where there is no title, or where some of the session is private."""
    with open_regular_file(path) as file:
        if os.fstat(file.fileno()).st_size == 0:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            title = _last_title(data, session_id)
            if title is None or _has_private(data):
                return None
    text = shorten(one_line(redactor.redact(title.text)), LONGEST_TITLE)
    return SessionTitle(text, title.by_user) if text else None


def _has_private(data: mmap.mmap) -> bool:
    """Whether there is a private tag, tested word by word, as that is much faster than a pattern
    that matches any case."""
    for start in range(0, len(data), CHUNK):
        chunk = data[max(0, start - _OVERLAP) : start + CHUNK]
        if _ESCAPE.search(chunk) or may_be_disguised(chunk):
            chunk = with_plain_tags(chunk)
        chunk = chunk.lower()
        place = chunk.find(b"private")
        while place >= 0:
            if _BEFORE_PRIVATE.search(chunk, max(0, place - _OVERLAP), place):
                return True
            place = chunk.find(b"private", place + 1)
    return False


def _last_title(data: mmap.mmap, session_id: str) -> SessionTitle | None:
    has_titles = data.rfind(_END_OF_KINDS) >= 0  # one search for both: most files have neither
    for kind, name, by_user in _TITLE_KINDS if has_titles else ():
        for line in _lines_from_end(data, kind):
            if line.get("sessionId") == session_id:
                text = line.get(name)
                if isinstance(text, str) and text.strip():
                    return SessionTitle(text, by_user)
                break  # the user removed it
    for line in _lines_from_end(data, "summary"):
        text, leaf = line.get("summary"), line.get("leafUuid")
        if isinstance(text, str) and text.strip() and _has_message(data, leaf):
            return SessionTitle(text, by_user=False)
    return None


def _lines_from_end(data: mmap.mmap, kind: str) -> Iterator[Payload]:
    end, mark = len(data), json.dumps(kind).encode()
    for _ in range(MAX_LINES):
        position = data.rfind(mark, 0, end)
        if position < 0:
            return
        start = data.rfind(b"\n", 0, position) + 1
        stop = data.find(b"\n", position)
        line = data[start : stop if stop >= 0 else len(data)]
        end = start
        if len(line) <= LONGEST_TITLE_LINE and (value := _parsed(line, kind)) is not None:
            yield value


def _parsed(line: bytes, kind: str) -> Payload | None:
    try:
        value = json.loads(strip_private(line))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value.get("type") == kind else None


def _has_message(data: mmap.mmap, uuid: object) -> bool:
    if not isinstance(uuid, str):
        return False
    quoted = json.dumps(uuid).encode()
    return data.find(b'"uuid":' + quoted) >= 0 or data.find(b'"uuid": ' + quoted) >= 0


# What hooks do not report of a turn: what the agent wrote between its tool calls, links to pull
# requests, which commands failed


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

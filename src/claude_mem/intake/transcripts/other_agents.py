"""Transcripts of other agents, read as the events that their hooks send.

A function for each format takes the JSON objects of a file, in order, without private text.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from claude_mem.errors import BadInput
from claude_mem.hook.private_text import MARK, strip_payload
from claude_mem.intake.event_reader import milliseconds
from claude_mem.intake.normalisers.copilot import without_mark
from claude_mem.intake.normalisers.gemini import output_of, without_context
from claude_mem.intake.normalisers.payloads import first, mapping, plain_text, text, texts_of
from claude_mem.intake.transcripts.agent_conversation import Conversation
from claude_mem.intake.transcripts.cursor_sessions import is_message, read_cursor
from claude_mem.intake.transcripts.transcript import (
    Payload,
    Transcript,
    TranscriptEvent,
    open_regular_file,
)
from claude_mem.json_objects import parse_object
from claude_mem.store.transfer.typescript.snapshot import open_copy
from claude_mem.types import Json

Reader = Callable[[list[Payload], Path], Iterator[TranscriptEvent]]
Format = tuple[str, Reader]  # with the dialect
_WORKSPACE = re.compile(r"\*\*Workspace Directories:\*\*\n\s*- (.+)")
_PROJECT_ROOT = ".project_root"


def format_of(line: Payload) -> Format | None:
    """By the first line of the file; None: Claude Code's, or none that is known."""
    if line.get("type") == "session_meta" and isinstance(line.get("payload"), dict):
        return "codex", read_codex
    if line.get("type") == "session.start" and isinstance(line.get("data"), dict):
        return "copilot", read_copilot
    if "projectHash" in line and isinstance(line.get("sessionId"), str):
        return "gemini", read_gemini
    if isinstance(mapping(line.get("message")).get("parts"), list) or "systemPayload" in line:
        return "qwen", read_qwen
    if is_message(line):
        return "cursor", read_cursor
    return None


# Codex


def read_codex(lines: list[Payload], path: Path) -> Iterator[TranscriptEvent]:
    meta = mapping(lines[0].get("payload"))
    chat = Conversation(text(meta, "session_id", "id"), text(meta, "cwd"), path)
    yield from chat.start(_time(lines[0]))
    # Some versions write only plans as items.
    has_items = any(_item_of(line).get("type") == "UserMessage" for line in lines)
    turn = ""
    for line in lines:
        payload, at_ms = mapping(line.get("payload")), _time(line)
        turn = text(payload, "turn_id") or turn
        if has_items:
            item = _item_of(line) | {MARK: line.get(MARK)}
            yield from _codex_item(chat, item, turn, at_ms)
        elif payload.get("type") == "user_message":
            yield from chat.prompt(turn or f"{chat.session_id}:{at_ms}",
                                   text(payload, "message"), at_ms,
                                   had_private=line.get(MARK))  # fmt: skip
        elif payload.get("type") == "agent_message":
            yield from chat.say(text(payload, "message"), at_ms, f"{at_ms}")
        else:
            yield from _codex_item(chat, _item_of_end(payload), turn, at_ms)
    yield from chat.end()


def _item_of(line: Payload) -> Payload:
    payload = mapping(line.get("payload"))
    return mapping(payload.get("item")) if payload.get("type") == "item_completed" else {}


def _item_of_end(payload: Payload) -> Payload:
    """The item of a tool call, of which versions without items wrote the end."""
    kind, call_id = payload.get("type"), payload.get("call_id")
    if kind == "exec_command_end":
        return {**payload, "type": "CommandExecution", "id": call_id}
    if kind == "patch_apply_end" and payload.get("success"):
        return {"type": "FileChange", "id": call_id, "changes": payload.get("changes")}
    if kind == "mcp_tool_call_end":
        result = mapping(payload.get("result"))
        content = mapping(result.get("Ok")).get("content", result.get("Err"))
        call = mapping(payload.get("invocation"))
        return {**call, "type": "McpToolCall", "id": call_id, "result": content}
    return {}


def _codex_item(
    chat: Conversation, item: Payload, turn: str, at_ms: int | None
) -> Iterator[TranscriptEvent]:
    kind, call_id = item.get("type"), text(item, "id")
    if kind == "UserMessage":
        typed = texts_of(item.get("content"))
        yield from chat.prompt(turn, typed, at_ms, had_private=item.get(MARK))
    elif kind == "AgentMessage":
        yield from chat.say(plain_text(item.get("content")), at_ms, call_id)
    elif kind == "CommandExecution":
        code = item.get("exit_code")
        yield from chat.tool("Bash", {"command": _shell(item.get("command"))},
                             text(item, "aggregated_output"), at_ms, call_id=call_id,
                             code=code if isinstance(code, int) else 0)  # fmt: skip
    elif kind == "FileChange":
        for number, (file, change) in enumerate(mapping(item.get("changes")).items()):
            nth = f"{call_id}:{number}" if number else call_id
            yield from _codex_change(chat, file, mapping(change), at_ms, nth)
    elif kind == "McpToolCall":
        name = f"mcp__{text(item, 'server')}__{text(item, 'tool')}"
        yield from chat.tool(name, item.get("arguments"), plain_text(item.get("result")), at_ms,
                             call_id=call_id)  # fmt: skip


def _codex_change(
    chat: Conversation, file: str, change: Payload, at_ms: int | None, call_id: str
) -> Iterator[TranscriptEvent]:
    if change.get("type") == "add":
        arguments: Json = {"file_path": file, "content": change.get("content")}
        yield from chat.tool("Write", arguments, "", at_ms, call_id=call_id)
        return
    diff = text(change, "unified_diff").splitlines()
    old = "\n".join(line[1:] for line in diff if line[:1] == "-" and line[:3] != "---")
    new = "\n".join(line[1:] for line in diff if line[:1] == "+" and line[:3] != "+++")
    arguments = {"file_path": file, "old_string": old, "new_string": new}
    yield from chat.tool("Edit", arguments, "", at_ms, call_id=call_id)


def _shell(command: Json) -> Json:
    words = command if isinstance(command, list) else [command]
    return words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else command


# Copilot CLI


def read_copilot(lines: list[Payload], path: Path) -> Iterator[TranscriptEvent]:
    data = mapping(lines[0].get("data"))
    cwd = text(mapping(data.get("context")), "cwd")
    chat = Conversation(text(data, "sessionId"), cwd, path)
    yield from chat.start(_time(lines[0]))
    calls: dict[str, Payload] = {}
    for line in lines:
        data, at_ms, kind = mapping(line.get("data")), _time(line), line.get("type")
        if kind == "user.message":
            yield from chat.prompt(text(data, "messageId"), text(data, "content"), at_ms,
                                   had_private=line.get(MARK))  # fmt: skip
        elif kind == "assistant.message":
            yield from chat.say(text(data, "content"), at_ms, text(data, "messageId"))
        elif kind == "tool.execution_start":
            calls[text(data, "toolCallId")] = data
        elif kind == "tool.execution_complete":
            call = calls.pop(text(data, "toolCallId"), {})
            yield from _copilot_tool(chat, call, data, at_ms)
    yield from chat.end()


def _copilot_tool(
    chat: Conversation, call: Payload, done: Payload, at_ms: int | None
) -> Iterator[TranscriptEvent]:
    if not call:
        return
    error, code = mapping(done.get("error")), mapping(done.get("shellExecution")).get("exitCode")
    if error.get("code") == "denied":  # it never ran
        return
    output = text(mapping(done.get("result")), "detailedContent", "content")
    yield from chat.tool(
        text(call, "toolName"), call.get("arguments"), without_mark(output), at_ms,
        call_id=text(done, "toolCallId"), error=text(error, "message"),
        code=code if isinstance(code, int) else 0,
    )  # fmt: skip


# Gemini CLI


def read_gemini(lines: list[Payload], path: Path) -> Iterator[TranscriptEvent]:
    """A log: rows are repeated with more in them, and the last one counts."""
    messages: dict[str, Payload] = {}
    for line in lines:
        updated = mapping(line.get("$set")).get("messages")
        rows = updated if isinstance(updated, list) else [line]
        for row in rows:
            if isinstance(row, dict) and isinstance(row.get("id"), str):
                identity = str(row["id"])
                had_private = MARK in line or MARK in messages.get(identity, {})
                messages[identity] = row | {MARK: True} if had_private else row
    chat = Conversation(text(lines[0], "sessionId"), _gemini_cwd(messages, path), path)
    yield from chat.start(milliseconds(lines[0].get("startTime")))
    for identity, row in messages.items():
        at_ms = milliseconds(row.get("timestamp"))
        if row.get("type") == "user":
            typed = _gemini_prompt(row.get("content"))
            if typed is not None:
                yield from chat.prompt(identity, typed, at_ms, had_private=row.get(MARK))
        elif row.get("type") == "gemini":
            yield from chat.say(plain_text(row.get("content")), at_ms, identity)
            calls = row.get("toolCalls")
            for call in calls if isinstance(calls, list) else ():
                yield from _gemini_tool(chat, mapping(call), at_ms)
    yield from chat.end()


def _gemini_cwd(messages: dict[str, Payload], path: Path) -> str:
    """The transcript has it only in the message that sets up the chat; a file next to it, too."""
    try:
        return (path.parent.parent / _PROJECT_ROOT).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        pass
    for row in messages.values():
        if workspace := _WORKSPACE.search(plain_text(row.get("content"))):
            return workspace[1].strip()
    return ""


def _gemini_prompt(content: Json) -> str | None:
    """What the user typed; None for results of tools and for the client's own message."""
    parts = content if isinstance(content, list) else [{"text": content}]
    objects = [part for part in parts if isinstance(part, dict)]
    if not objects or any("functionResponse" in part for part in objects):
        return None
    whole = "\n".join(text(part, "text") for part in objects if "text" in part)
    if whole.startswith("<session_context>"):
        return None
    return whole


def _gemini_tool(chat: Conversation, call: Payload, at_ms: int | None) -> Iterator[TranscriptEvent]:
    result = call.get("result")
    parts = result if isinstance(result, list) else [result]
    responses = [mapping(mapping(p).get("functionResponse")).get("response") for p in parts]
    response = mapping(responses[0]) if responses else {}
    output = output_of({"llmContent": without_context(text(response, "output"))})
    error = plain_text(response.get("error"))
    yield from chat.tool(
        text(call, "name"), call.get("args"), output,
        milliseconds(call.get("timestamp")) or at_ms, call_id=text(call, "id"), error=error,
    )  # fmt: skip


# Qwen Code


def read_qwen(lines: list[Payload], path: Path) -> Iterator[TranscriptEvent]:
    head = lines[0]
    chat = Conversation(text(head, "sessionId"), text(head, "cwd"), path)
    yield from chat.start(_time(head))
    calls: dict[str, Payload] = {}
    for number, line in enumerate(lines):
        at_ms, kind, uuid = _time(line), line.get("type"), text(line, "uuid")
        parts = mapping(line.get("message")).get("parts")
        parts = parts if isinstance(parts, list) else []
        if kind == "user" and line.get("provenance", "real_user") == "real_user":
            typed = text(mapping(line.get("systemPayload")), "displayText")
            prompt = typed or _qwen_text(parts[:1])
            yield from chat.prompt(_qwen_prompt_id(lines[number:]) or uuid, prompt, at_ms,
                                   had_private=line.get(MARK))  # fmt: skip
        elif kind == "assistant":
            yield from chat.say(_qwen_text(parts), at_ms, uuid)
            for part in parts:
                call = mapping(mapping(part).get("functionCall"))
                calls[text(call, "id")] = call
        elif kind == "tool_result":
            for part in parts:
                result = mapping(mapping(part).get("functionResponse"))
                yield from _qwen_tool(chat, calls.pop(text(result, "id"), {}), line, result, at_ms)
    yield from chat.end()


def _qwen_text(parts: list[Json]) -> str:
    """Without the model's thoughts."""
    texts = [
        first(part, "text") for part in parts if isinstance(part, dict) and not part.get("thought")
    ]
    return "\n".join(part for part in texts if isinstance(part, str))


def _qwen_prompt_id(lines: list[Payload]) -> str:
    """Hooks get it; the transcript has it in the next line about a request."""
    for line in lines[1:]:
        if line.get("type") == "user":
            return ""
        event = mapping(mapping(line.get("systemPayload")).get("uiEvent"))
        if prompt_id := text(event, "prompt_id"):
            return prompt_id
    return ""


def _qwen_tool(
    chat: Conversation, call: Payload, line: Payload, result: Payload, at_ms: int | None
) -> Iterator[TranscriptEvent]:
    if not call:
        return
    response, done = mapping(result.get("response")), mapping(line.get("toolCallResult"))
    display = mapping(done.get("resultDisplay"))
    output = text(display, "output") or output_of({"llmContent": text(response, "output")})
    code = display.get("exitCode")
    yield from chat.tool(
        text(call, "name"), call.get("args"), output, at_ms, call_id=text(call, "id"),
        error="" if isinstance(code, int) and code else plain_text(response.get("error")),
        code=code if isinstance(code, int) else None,
    )  # fmt: skip


def _time(line: Payload) -> int | None:
    return milliseconds(line.get("timestamp"))


# A session of OpenCode, as its database and its export have it, read as events.


def read_opencode(session: Payload, path: Path) -> Iterator[TranscriptEvent]:
    info, messages = mapping(session.get("info")), session.get("messages")
    rows = [mapping(row) for row in messages] if isinstance(messages, list) else []
    if not text(info, "id") or not rows:
        return
    chat = Conversation(text(info, "id"), text(info, "directory"), path)
    yield from chat.start(_created(mapping(rows[0].get("info"))))
    for row in rows:
        message, parts = mapping(row.get("info")), row.get("parts")
        inner = [mapping(part) for part in parts] if isinstance(parts, list) else []
        at_ms = _created(message)
        if message.get("role") == "user":
            typed = [text(p, "text") for p in inner if p.get("type") == "text"
                     and not p.get("synthetic")]  # fmt: skip
            had_private = _had_private(session, row, message, *inner)
            yield from chat.prompt(text(message, "id"), "\n".join(typed), at_ms,
                                   had_private=had_private)  # fmt: skip
            continue
        for part in inner:
            if part.get("type") == "text":
                yield from chat.say(text(part, "text"), at_ms, text(part, "id"))
            elif part.get("type") == "tool":
                yield from _tool(chat, part, at_ms)
    yield from chat.end()


def _had_private(*objects: Payload) -> bool:
    """An export is one object: if some of it was private, any empty prompt may have been."""
    return any(MARK in item for item in objects)


def _tool(chat: Conversation, part: Payload, at_ms: int | None) -> Iterator[TranscriptEvent]:
    state = mapping(part.get("state"))
    if state.get("status") not in ("completed", "error"):
        return
    code = mapping(state.get("metadata")).get("exit")
    yield from chat.tool(
        text(part, "tool"), state.get("input"), plain_text(state.get("output")),
        _milliseconds(mapping(state.get("time")).get("end")) or at_ms,
        call_id=text(part, "callID"), error=plain_text(state.get("error")),
        code=code if isinstance(code, int) else 0,
    )  # fmt: skip


def _created(message: Payload) -> int | None:
    return _milliseconds(mapping(message.get("time")).get("created"))


def _milliseconds(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


# Transcripts of agents other than Claude Code; the first line tells which agent's it is.

OPENCODE = "opencode"
_SQLITE = b"SQLite format 3\0"
_LARGEST_EXPORT = 256 * 1024 * 1024


@dataclass(slots=True)
class AgentTranscript(Transcript):
    """Of an agent other than Claude Code; it is read as a whole."""

    reader: Reader = field(kw_only=True)

    def events(self, start: int = 0) -> Iterator[TranscriptEvent]:
        lines = list(self.objects())
        if lines:
            yield from self.reader(lines, self.path)


@dataclass(slots=True)
class OpenCodeTranscript(Transcript):
    """The database of OpenCode, or a file of `opencode export`: sessions with their messages.
    Earlier versions of Gemini CLI wrote such a file, too."""

    def events(self, start: int = 0) -> Iterator[TranscriptEvent]:
        for session in self._sessions():
            self.lines += 1
            if "projectHash" in session:
                self.dialect = "gemini"
                lines: list[Payload] = [session, {**session, "$set": session}]
                yield from read_gemini(lines, self.path)
            else:
                yield from read_opencode(session, self.path)

    def _sessions(self) -> Iterator[Payload]:
        with open_regular_file(self.path) as file:
            head = file.read(len(_SQLITE))
            if head != _SQLITE:
                yield parse_object(strip_payload(head + file.read(_LARGEST_EXPORT)))
                return
        try:
            yield from _stored_sessions(self.path)
        except sqlite3.Error as error:
            raise BadInput(f"not a database of OpenCode that can be read: {error}") from None


def open_agent_transcript(path: Path, head: bytes) -> Transcript | None:
    """`head` is its first line; None if no agent writes such a file."""
    if head.startswith(_SQLITE[:15]) or (path.suffix == ".json" and head.lstrip()[:1] == b"{"):
        return OpenCodeTranscript(path, dialect=OPENCODE)
    try:
        first = json.loads(head)
    except (ValueError, RecursionError):
        return None
    known = format_of(first) if isinstance(first, dict) else None
    if known is None:
        return None
    dialect, reader = known
    return AgentTranscript(path, dialect=dialect, reader=reader)


def _stored_sessions(path: Path) -> Iterator[Payload]:
    with open_copy(path) as copy:
        for session_id, directory, parent in copy.execute(
            "SELECT id, directory, parent_id FROM session ORDER BY time_created, id"
        ):
            if parent is None:  # hooks report the work of subagents as part of their parent
                info: Payload = {"id": session_id, "directory": directory}
                yield {"info": info, "messages": list(_messages(copy, session_id))}


def _messages(copy: sqlite3.Connection, session_id: str) -> Iterator[Payload]:
    rows = copy.execute(
        "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id",
        (session_id,),
    ).fetchall()
    for message_id, data in rows:
        parts = copy.execute(
            "SELECT id, data FROM part WHERE message_id = ? ORDER BY id", (message_id,)
        )
        yield {
            "info": _with_id(message_id, data),
            "parts": [_with_id(part_id, part) for part_id, part in parts],
        }


def _with_id(identity: str, data: str) -> Payload:
    return {**parse_object(strip_payload(data.encode("utf-8", "replace"))), "id": identity}

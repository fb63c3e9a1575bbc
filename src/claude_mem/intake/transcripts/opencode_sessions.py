"""A session of OpenCode, as its database and its export have it, read as events."""

from collections.abc import Iterator
from pathlib import Path

from claude_mem.intake.normalisers.payloads import mapping, plain_text, text
from claude_mem.intake.transcripts.other_agent_events import Conversation
from claude_mem.intake.transcripts.transcript import Payload, TranscriptEvent
from claude_mem.types import Json


def read_sessions(session: Payload, path: Path) -> Iterator[TranscriptEvent]:
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
            yield from chat.prompt(text(message, "id"), "\n".join(typed), at_ms)
            continue
        for part in inner:
            if part.get("type") == "text":
                yield from chat.say(text(part, "text"), at_ms, text(part, "id"))
            elif part.get("type") == "tool":
                yield from _tool(chat, part, at_ms)
    yield from chat.end()


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

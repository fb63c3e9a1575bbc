"""A transcript as the hook payloads that its session would have sent, in order."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from claude_mem.errors import BadInput
from claude_mem.types import Json

Payload = dict[str, Json]


@dataclass(slots=True)
class _Replay:
    """What is known so far while the lines go by."""

    session_id: str
    cwd: str
    transcript: Path
    prompt_id: str | None = None
    last_words: str = ""
    calls: dict[str, Payload] = field(default_factory=dict)

    def payload(self, event: str, **rest: Json) -> tuple[str, Payload]:
        common: Payload = {
            "session_id": self.session_id,
            "transcript_path": str(self.transcript),
            "cwd": self.cwd,
            "hook_event_name": event,
        }
        if self.prompt_id is not None:
            common["prompt_id"] = self.prompt_id
        return event, {**common, **rest}


def payloads(transcript: Path) -> Iterator[tuple[str, Payload]]:
    """Pairs of event name and payload. Lines that are no part of a conversation are passed over."""
    replay: _Replay | None = None
    for line in _objects(transcript):
        if replay is None and isinstance(line.get("sessionId"), str):
            replay = _Replay(str(line["sessionId"]), str(line.get("cwd") or ""), transcript)
            yield replay.payload("SessionStart", source="startup")
        if replay is not None and not line.get("isSidechain") and not line.get("isMeta"):
            yield from _events_of(replay, line)
    if replay is None:
        raise BadInput(f"{transcript} holds no session: is it a Claude Code transcript?")
    yield from _end_of_turn(replay)
    yield replay.payload("SessionEnd", reason="other")


def session_and_directory(transcript: Path) -> tuple[str, str]:
    for line in _objects(transcript):
        if isinstance(line.get("sessionId"), str) and isinstance(line.get("cwd"), str):
            return str(line["sessionId"]), str(line["cwd"])
    raise BadInput(f"{transcript} holds no session: is it a Claude Code transcript?")


def _objects(transcript: Path) -> Iterator[Payload]:
    try:
        with transcript.open(encoding="utf-8", errors="replace") as file:
            for text in file:
                try:
                    line: Json = json.loads(text)
                except (ValueError, RecursionError):
                    continue
                if isinstance(line, dict):
                    yield line
    except OSError as error:
        raise BadInput(f"{transcript} cannot be read: {error.strerror}") from None


def _events_of(replay: _Replay, line: Payload) -> Iterator[tuple[str, Payload]]:
    message = line.get("message")
    if not isinstance(message, dict):
        return
    content = message.get("content")
    whole: list[Json] = [{"type": "text", "text": content}]
    blocks = content if isinstance(content, list) else whole
    if line.get("type") == "assistant":
        _note_assistant(replay, blocks)
    elif line.get("type") == "user":
        prompt = "\n".join(_texts(blocks)).strip()
        if prompt:
            yield from _end_of_turn(replay)
            replay.prompt_id = str(line.get("promptId") or line.get("uuid"))
            yield replay.payload("UserPromptSubmit", prompt=prompt)
        yield from _tool_results(replay, line, blocks)


def _texts(blocks: list[Json]) -> list[str]:
    return [
        text
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "text"
        if isinstance(text := block.get("text"), str)
    ]


def _note_assistant(replay: _Replay, blocks: list[Json]) -> None:
    for block in blocks:
        if isinstance(block, dict) and block.get("type") == "tool_use":
            replay.calls[str(block.get("id"))] = block
    said = "\n".join(_texts(blocks)).strip()
    if said:
        replay.last_words = said


def _tool_results(
    replay: _Replay, line: Payload, blocks: list[Json]
) -> Iterator[tuple[str, Payload]]:
    for block in blocks:
        if not isinstance(block, dict) or block.get("type") != "tool_result":
            continue
        call = replay.calls.pop(str(block.get("tool_use_id")), None)
        if call is None:
            continue
        given: Payload = {"tool_name": call.get("name"), "tool_input": call.get("input"),
                          "tool_use_id": call.get("id")}  # fmt: skip
        if block.get("is_error"):
            yield replay.payload("PostToolUseFailure", **given, error=str(block.get("content")))
        else:
            result = line.get("toolUseResult", block.get("content"))
            yield replay.payload("PostToolUse", **given, tool_response=result)


def _end_of_turn(replay: _Replay) -> Iterator[tuple[str, Payload]]:
    if replay.prompt_id is not None:
        yield replay.payload(
            "Stop", stop_hook_active=False, last_assistant_message=replay.last_words
        )
    replay.last_words = ""

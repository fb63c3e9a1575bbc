"""Raw events as a turn's page shows them: a line, its diff, what went in and what came out."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from claude_mem.server.viewer.rendering import Reader
from claude_mem.server.viewer.texts import line
from claude_mem.store.memory_rows import JsonRow
from claude_mem.text import shorten_middle, without_controls

MAX_TEXT = 6000
MAX_DIFF_LINES = 400
# What names a tool call best, in this order.
_SUBJECTS = ("description", "command", "file_path", "path", "pattern", "query", "url", "prompt")
_NAMES = {
    "UserPromptSubmit": "Prompt", "Stop": "End of the turn", "StopFailure": "Failed",
    "SubagentStop": "Subagent", "PreCompact": "Compaction", "PostCompact": "Compacted",
    "SessionStart": "Session start", "SessionEnd": "Session end", "Statement": "Statement",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DiffLine:
    kind: Literal["add", "del", "same"]
    text: str


@dataclass(frozen=True, slots=True)
class EventView:
    id: int
    moment: datetime
    name: str
    subject: str
    is_failure: bool
    diff: tuple[DiffLine, ...]
    request: str
    response: str
    text: str

    @property
    def is_empty(self) -> bool:
        return not (self.diff or self.request or self.response or self.text)


def event_views(events: tuple[JsonRow, ...], reader: Reader) -> list[EventView]:
    return [_view(event, reader) for event in events]


def _view(event: dict[str, Any], reader: Reader) -> EventView:
    request, response = _parsed(event["tool_input"]), _parsed(event["tool_response"])
    diff = tuple(_diff(request, response))[:MAX_DIFF_LINES]
    name = event["tool_name"] or _NAMES.get(event["event"], event["event"])
    return EventView(
        id=event["id"],
        moment=reader.moment(event["created_at_epoch"]),
        name=name,
        subject=_subject(request),
        is_failure=event["event"] in ("PostToolUseFailure", "StopFailure"),
        diff=diff,
        request="" if diff else _shown(request),
        response="" if diff else _shown(response),
        text=shorten_middle(without_controls(event["text"] or ""), MAX_TEXT),
    )


def _parsed(text: str | None) -> Any:
    """A field that was cut to its limit is not JSON any more: then it is a text."""
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return text


def _subject(request: Any) -> str:
    if isinstance(request, dict):
        for name in _SUBJECTS:
            if isinstance(request.get(name), str) and request[name].strip():
                return line(request[name], 140)
    return ""


def _shown(value: Any) -> str:
    if isinstance(value, dict) and len(texts := [v for v in value.values() if v]) == 1:
        value = texts[0]  # a command, or the output of one
    if value in (None, "", {}, []):
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return shorten_middle(without_controls(text), MAX_TEXT)


def _diff(request: Any, response: Any) -> Iterator[DiffLine]:
    hunks = response.get("structuredPatch") if isinstance(response, dict) else None
    lines = [
        text
        for hunk in (hunks if isinstance(hunks, list) else ())
        if isinstance(hunk, dict) and isinstance(hunk.get("lines"), list)
        for text in hunk["lines"]
        if isinstance(text, str)
    ]
    if not lines and isinstance(request, dict):
        lines = [*_marked("-", request.get("old_string")), *_marked("+", request.get("new_string"))]
        if "old_string" not in request:
            lines += _marked("+", request.get("content"))
    for text in lines:
        kind: Literal["add", "del", "same"] = (
            "add" if text[:1] == "+" else "del" if text[:1] == "-" else "same"
        )
        yield DiffLine(kind, without_controls(text))


def _marked(mark: str, text: Any) -> list[str]:
    return [f"{mark}{row}" for row in text.splitlines()] if isinstance(text, str) else []

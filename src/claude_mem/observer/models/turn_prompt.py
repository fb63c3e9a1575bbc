"""The turn as a model reads it: what was said and done, shortened where that costs least.

Diffs, final reports and errors say what came of a turn and stay longest. Files that were read,
to-do lists and texts of skills are shortened first.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from claude_mem.text import shorten_middle
from claude_mem.types import Json, ToolUse, Turn

MAX_RECORD_CHARS = 48_000  # about 12,000 tokens
MAX_PROMPT_CHARS, MAX_STATEMENT_CHARS = 6_000, 6_000
MIN_TOOL_CHARS = 160  # what remains of a tool's input or output in a very long turn
shorten_text = partial(shorten_middle, head_share=0.65)  # the end of an output says most

_EDITS = frozenset(("Edit", "Write", "MultiEdit", "NotebookEdit", "apply_patch"))
_REPORTS = frozenset(("Task", "Agent", "ExitPlanMode", "AskUserQuestion"))
_READS = frozenset(
    ("Read", "Grep", "Glob", "LS", "NotebookRead", "ToolSearch", "WebSearch", "TodoWrite",
     "TodoRead", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "Skill", "SlashCommand")
)  # fmt: skip
_ERROR = re.compile(r"Traceback \(most|\b(?:error|fatal|panic|exception)\b ?[:\[]|\bFAIL(?:ED)?\b")
_READ_END = 2_000  # of an output, searched for errors


@dataclass(frozen=True, slots=True)
class Limits:
    """Characters of a tool's input and output."""

    input: int
    output: int


EDIT, REPORT, ERROR = Limits(4_000, 300), Limits(900, 6_000), Limits(700, 3_000)
COMMAND, READ = Limits(700, 900), Limits(300, 300)
# In a long turn: first reads are shortened, then other calls, then diffs, reports and errors.
_SHARES: tuple[tuple[float, float, float], ...] = (
    (1.0, 1.0, 1.0), (0.0, 1.0, 1.0), (0.0, 0.5, 1.0), (0.0, 0.25, 1.0), (0.0, 0.0, 1.0),
    (0.0, 0.0, 0.5), (0.0, 0.0, 0.25), (0.0, 0.0, 0.0),
)  # fmt: skip

_SPEAKERS = {
    "Statement": "the agent",
    "UserPromptSubmit": "the client: a background task reports",
    "PullRequest": "the client: a pull request was opened or updated",
    "Branch": "the client: the branch of the working tree",
    "Stop": "the agent, at the end",
    "StopFailure": "the error that ended the turn",
    "SubagentStop": "a subagent",
    "PostCompact": "summary of the conversation so far",
}


def format_record(
    turn: Turn, max_chars: int = MAX_RECORD_CHARS, *, has_lookups: bool = True
) -> str:
    """`has_lookups`: with the calls that only read, such as Read, Grep or TodoWrite."""
    if not has_lookups:
        turn = replace(turn, events=tuple(e for e in turn.events if limits_of(e) is not READ))
    for of_reads, of_commands, of_important in _SHARES:
        shares = {READ: of_reads, COMMAND: of_commands}
        parts = _record_parts(turn, shares, of_important)
        text = "\n\n".join(parts)
        if len(text) <= max_chars:
            return text
    return shorten_text(text, max_chars)


def _record_parts(turn: Turn, shares: dict[Limits, float], important: float) -> Iterable[str]:
    if turn.prompt:
        yield "[the user]\n" + escape_fence(shorten_text(turn.prompt, MAX_PROMPT_CHARS))
    texts: set[str] = set()
    for event in turn.events:
        if event.tool_name:
            yield format_tool_use(event, shares.get(limits_of(event), important))
        elif event.text and event.text not in texts:
            texts.add(event.text)
            text = escape_fence(shorten_text(event.text, MAX_STATEMENT_CHARS))
            yield f"[{_SPEAKERS.get(event.kind, event.kind)}]\n{text}"


def limits_of(event: ToolUse) -> Limits:
    name = event.tool_name or ""
    if event.kind == "PostToolUseFailure":
        return ERROR
    if name in _EDITS:
        return EDIT
    if name in _REPORTS:
        return REPORT
    if name in _READS:
        return READ
    return ERROR if _ERROR.search(_format_value(event.tool_response)[-_READ_END:]) else COMMAND


def format_tool_use(event: ToolUse, share: float = 1.0) -> str:
    """`share`: of the usual length of input and output."""
    limits = limits_of(event)
    max_input = max(MIN_TOOL_CHARS, int(limits.input * share))
    max_output = max(MIN_TOOL_CHARS, int(limits.output * share))
    failed = ", failed" if event.kind == "PostToolUseFailure" else ""
    lines = [
        f"[tool {escape_fence(event.tool_name or '')}{_time(event)}{failed}]",
        escape_fence(shorten_text(_format_value(event.tool_input), max_input)),
    ]
    output = _format_value(event.tool_response)
    # The response to an edit repeats its input with the file around it.
    if output and event.tool_name not in _EDITS:
        lines.append("-> " + escape_fence(shorten_text(output, max_output)))
    if event.text:
        lines.append("-> " + escape_fence(shorten_text(event.text, max_output)))
    return "\n".join(lines)


def _time(event: ToolUse) -> str:
    """The day is in the opening of the request."""
    if not event.at_ms:
        return ""
    return datetime.fromtimestamp(event.at_ms / 1000, UTC).strftime(" at %H:%M:%S")


def _format_value(value: Json) -> str:
    """As readable lines: most values are objects with a few texts."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return "\n".join(f"{name}: {_format_leaf(part)}" for name, part in value.items() if part)
    return _format_leaf(value)


def _format_leaf(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_FENCE = re.compile(r"<(?=\s*+/?\s*+record\b)", re.IGNORECASE)


def escape_fence(text: str) -> str:
    return _FENCE.sub("&lt;", text)
